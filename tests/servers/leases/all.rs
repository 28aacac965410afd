//! `SLIDE.ALL` with leases: what a gateway asks, in one call.

use std::collections::BTreeMap;

use redis::{Connection, Value};

use super::slide_lease;
use crate::all::slide_all;
use crate::events::{events, of};
use crate::support::{Server, Setup, headers_of, line, now, run, slide_log, state};

const GATEWAY: &str = "3 {u}:flight {u}:calls {u}:tokens \
                       LEASE 5 60s req-81 LOG 60 60s LOG 100000 60s COST 4000";

#[test]
fn one_call_takes_a_place_a_call_and_tokens() {
    let server = Server::start();
    let mut con = server.connect();
    let (limited, replies) = slide_all(&mut con, GATEWAY);
    assert_eq!(limited, 0);
    let left: Vec<i64> = replies.iter().map(|reply| reply.remaining).collect();
    assert_eq!(left, [4, 59, 96_000]);
    let holders: Vec<String> = run(&mut con, "ZRANGE", &["{u}:flight", "0", "-1"]);
    assert_eq!(holders, ["@req-81"]);
    // A retry keeps its place but pays the rest again.
    let (_, replies) = slide_all(&mut con, GATEWAY);
    let left: Vec<i64> = replies.iter().map(|reply| reply.remaining).collect();
    assert_eq!(left, [4, 58, 92_000]);
}

/// Whichever of the three is over, nothing is taken anywhere: no lease is leaked.
#[test]
fn over_any_limit_nothing_is_taken_anywhere() {
    let server = Server::start();
    let mut con = server.connect();
    for (full, fill) in [
        (0, "SLIDE.LEASE {u}:flight 9 1h other"),
        (1, "SLIDE.LOG {u}:calls 60 60s COST 60"),
        (2, "SLIDE.LOG {u}:tokens 100000 60s COST 96001"),
    ] {
        run::<()>(&mut con, "FLUSHALL", &[]);
        line(fill).query::<Value>(&mut con).unwrap();
        let before = state(&mut con);
        let gateway = GATEWAY.replace("LEASE 5", "LEASE 1");
        let seen = events(&server, "zhgd", |con| {
            let (limited, replies) = slide_all(con, &gateway);
            assert_eq!(limited, 1);
            for (place, reply) in replies.iter().enumerate() {
                assert_eq!(reply.limited, i64::from(place == full), "{fill}");
                assert_eq!(reply.retry_after > 0, place == full, "{fill}");
            }
        });
        // The key that is over is told of, and nothing else happens.
        let key = ["{u}:flight", "{u}:calls", "{u}:tokens"][full];
        assert_eq!(seen, [("slide.limited".to_owned(), key.to_owned())]);
        run::<i64>(&mut con, "DEL", &["over"]);
        assert_eq!(state(&mut con), before, "{fill}");
        // A call that holds its place already is not turned away by a full key of leases.
        if full == 0 {
            let own = gateway.replace("req-81", "other");
            assert_eq!(slide_all(&mut con, &own).0, 0);
        }
    }
}

#[test]
fn force_takes_a_place_in_every_key() {
    let server = Server::start();
    let mut con = server.connect();
    slide_lease(&mut con, "a", 1, "1h", "x", &[]);
    let words = "3 a b log LEASE 1 60s y LEASE 1 60s y LOG 5 60s FORCE";
    let (limited, replies) = slide_all(&mut con, words);
    assert_eq!(limited, 1);
    let over: Vec<i64> = replies.iter().map(|reply| reply.limited).collect();
    assert_eq!(over, [1, 0, 0]);
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["a"]), 2);
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["b"]), 1);
    assert_eq!(slide_log(&mut con, "log", &[(5, "60s")], &[]).remaining, 3);
}

/// What follows `LEASE limit ttl` is an id, whatever it looks like.
#[test]
fn an_id_can_look_like_anything() {
    let server = Server::start();
    let mut con = server.connect();
    for id in ["FORCE", "HEADERS", "LOG", "LEASE", "5", "60s"] {
        let words = format!("2 k l LEASE 9 60s {id} LEASE 9 60s {id} FORCE");
        assert_eq!(slide_all(&mut con, &words).0, 0, "{id}");
    }
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["k"]), 6);
}

fn headers(con: &mut Connection, words: &str) -> BTreeMap<String, String> {
    let parts: Vec<Value> = line(&format!("SLIDE.ALL {words} HEADERS"))
        .query(con)
        .unwrap();
    headers_of(parts.last().unwrap()).into_iter().collect()
}

#[test]
fn leases_give_headers_only_their_wait() {
    let server = Server::start();
    let mut con = server.connect();
    let admitted = headers(&mut con, GATEWAY);
    assert_eq!(admitted["X-RateLimit-Limit"], "60");
    assert_eq!(admitted["X-RateLimit-Remaining"], "59");
    assert_eq!(
        admitted["RateLimit-Policy"],
        r#""60-per-60s";q=60;w=60, "100000-per-60s";q=100000;w=60"#
    );
    assert!(!admitted.contains_key("Retry-After"));

    slide_lease(&mut con, "{u}:flight", 5, "1h", "req-81", &[]);
    let gateway = GATEWAY.replace("LEASE 5 60s req-81", "LEASE 1 60s req-82");
    let time = now(&mut con);
    let limited = headers(&mut con, &gateway);
    let wait: i64 = limited["Retry-After"].parse().unwrap();
    assert!((3590..=3600).contains(&wait), "{limited:?}");
    let reset: i64 = limited["X-RateLimit-Reset"].parse().unwrap();
    assert!((time / 1000 + 3590..=time / 1000 + 3611).contains(&reset));
    assert_eq!(limited["X-RateLimit-Remaining"], "59");

    let only = headers(&mut con, "1 {u}:flight LEASE 1 60s req-82");
    assert_eq!(only.keys().collect::<Vec<_>>(), ["Retry-After"]);
    assert!(headers(&mut con, "1 {u}:flight LEASE 5 60s req-82").is_empty());
    // Nothing ever fits.
    assert!(headers(&mut con, "1 {u}:none LEASE 0 60s req-82").is_empty());
}

#[test]
fn in_a_dry_run_leases_are_kept_as_ever() {
    let server = Setup::new().line("slide.enforce no").start();
    let mut con = server.connect();
    let mut limited = Vec::new();
    let seen = events(&server, "d", |con| {
        for id in ["a", "b"] {
            let reply = slide_lease(con, "k", 1, "60s", id, &[]);
            limited.push((reply.limited, reply.retry_after > 0));
        }
        let (over, replies) = slide_all(con, "1 k LEASE 1 60s b");
        limited.push((over, replies[0].retry_after > 0));
    });
    assert_eq!(limited, [(0, false), (0, true), (0, true)]);
    assert_eq!(of(&seen, "k"), ["slide.limited"; 2]);
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["k"]), 1);
    assert!(headers(&mut con, "1 k LEASE 1 60s b").is_empty());
}

#[test]
fn the_effects_are_one_transaction() {
    let server = Setup::new()
        .line("appendonly yes")
        .line("appendfsync always")
        .start();
    let mut con = server.connect();
    slide_all(&mut con, GATEWAY);
    let mut names: Vec<String> = server
        .append_only_stream()
        .into_iter()
        .map(|mut c| c.remove(0))
        .collect();
    names.retain(|name| name != "SELECT");
    assert_eq!(
        names,
        [
            "MULTI",
            "ZADD",
            "PEXPIREAT",
            "ZADD",
            "PEXPIREAT",
            "ZADD",
            "PEXPIREAT",
            "EXEC"
        ]
    );
}
