//! HEADERS: a sixth element, ready to send.

use std::collections::BTreeMap;

use redis::{Cmd, Connection, Value, from_redis_value, from_redis_value_ref, pipe};

use crate::support::{
    DECADE, Reply, Server, entries, error_of, now, reply_of, run, slide, slide_counter, slide_log,
    state, wait_until,
};

type Headers = BTreeMap<String, String>;

/// The five integers and the headers.
#[track_caller]
fn with_headers(value: Value) -> (Reply, Headers) {
    let six: Vec<Value> = from_redis_value(value).unwrap();
    assert_eq!(six.len(), 6, "{six:?}");
    let five: Vec<i64> = six[..5]
        .iter()
        .map(|int| from_redis_value_ref(int).unwrap())
        .collect();
    let pairs = six[5]
        .as_map_iter()
        .unwrap_or_else(|| panic!("no map: {:?}", six[5]));
    let text = |value| from_redis_value_ref::<String>(value).unwrap();
    (
        reply_of(&five),
        pairs
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
    )
}

#[track_caller]
fn call(con: &mut Connection, command: &Cmd) -> (Reply, Headers) {
    with_headers(command.query(con).unwrap())
}

fn names(headers: &Headers) -> Vec<&str> {
    headers.keys().map(String::as_str).collect()
}

#[test]
fn an_admitted_call_has_five_headers() {
    let server = Server::start();
    let mut con = server.connect();
    let log = slide("SLIDE.LOG", "k", &[(100, "60s")], &["HEADERS"]);
    let (reply, headers) = call(&mut con, &log);
    assert_eq!(
        (reply.limited, reply.remaining, reply.reset_after),
        (0, 99, 60_000)
    );
    let end = entries(&mut con, "k")[0].1 + 60_000;
    assert_eq!(
        headers,
        BTreeMap::from(
            [
                ("X-RateLimit-Limit", "100"),
                ("X-RateLimit-Remaining", "99"),
                ("X-RateLimit-Reset", &((end + 999) / 1000).to_string()),
                ("RateLimit-Policy", "\"100-per-60s\";q=100;w=60"),
                ("RateLimit", "\"100-per-60s\";r=99;t=60"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
        )
    );
}

#[test]
fn an_admitted_call_need_not_retry() {
    let server = Server::start();
    let mut con = server.connect();
    let (reply, headers) = call(
        &mut con,
        &slide("SLIDE.LOG", "k", &[(1, "60s")], &["HEADERS"]),
    );
    assert_eq!((reply.limited, reply.retry_after), (0, 0));
    assert!(!headers.contains_key("Retry-After"), "{headers:?}");
    assert_eq!(headers["RateLimit"], "\"1-per-60s\";r=0;t=60");
}

#[test]
fn a_limited_call_says_when_to_retry() {
    let server = Server::start();
    let mut con = server.connect();
    for (wait, seconds) in [(60_000, 60), (59_001, 60), (1400, 2), (300, 1)] {
        // The one entry expires so many ms from now.
        let time = now(&mut con) - 60_000 + wait;
        run::<i64>(&mut con, "ZADD", &["k", &time.to_string(), "3:3"]);
        let limited = slide("SLIDE.LOG", "k", &[(3, "60s")], &["COST", "2", "HEADERS"]);
        let (reply, headers) = call(&mut con, &limited);
        assert_eq!(reply.limited, 1);
        // However long the call took, both say the same in their own units.
        assert_eq!(
            headers["Retry-After"],
            ((reply.retry_after + 999) / 1000).to_string()
        );
        let sent: i64 = headers["Retry-After"].parse().unwrap();
        assert!(
            (1..=seconds).contains(&sent) && sent * 1000 >= reply.retry_after,
            "{headers:?}"
        );
        assert_eq!(headers["RateLimit"], format!("\"3-per-60s\";r=0;t={sent}"));
        run::<i64>(&mut con, "DEL", &["k"]);
    }
}

#[test]
fn there_is_no_header_for_never() {
    let server = Server::start();
    let mut con = server.connect();
    let never = slide("SLIDE.LOG", "k", &[(3, "60s")], &["COST", "4", "HEADERS"]);
    let before = now(&mut con);
    let (reply, headers) = call(&mut con, &never);
    assert_eq!((reply.limited, reply.retry_after), (1, -1));
    assert_eq!(
        names(&headers),
        [
            "RateLimit",
            "RateLimit-Policy",
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Reset"
        ]
    );
    // Nothing is used: there is nothing to wait for.
    assert_eq!(headers["RateLimit"], "\"3-per-60s\";r=3");
    // A client need not wait for anything either.
    let reset: i64 = headers["X-RateLimit-Reset"].parse().unwrap();
    assert!((before + 999) / 1000 <= reset && reset <= (now(&mut con) + 999) / 1000);

    let nothing = slide("SLIDE.LOG", "k", &[(0, "60s")], &["HEADERS"]);
    let (_, headers) = call(&mut con, &nothing);
    assert_eq!(headers["RateLimit"], "\"0-per-60s\";r=0");
    assert!(!headers.contains_key("Retry-After"));
}

#[test]
fn a_policy_is_given_for_every_tier() {
    let server = Server::start();
    let mut con = server.connect();
    let tiers = [
        (10, "500ms"),
        (20, "1500ms"),
        (30, "60000ms"),
        (40, "1h"),
        (5, "1d"),
    ];
    let (_, headers) = call(&mut con, &slide("SLIDE.LOG", "k", &tiers, &["HEADERS"]));
    assert_eq!(
        headers["RateLimit-Policy"],
        "\"10-per-500ms\";q=10;w=1, \"20-per-1500ms\";q=20;w=2, \"30-per-60s\";q=30;w=60, \
         \"40-per-3600s\";q=40;w=3600, \"5-per-86400s\";q=5;w=86400"
    );
    assert_eq!(headers["X-RateLimit-Limit"], "5");
    assert_eq!(
        headers["RateLimit"],
        "\"10-per-500ms\";r=9;t=1, \"20-per-1500ms\";r=19;t=2, \"30-per-60s\";r=29;t=60, \
         \"40-per-3600s\";r=39;t=3600, \"5-per-86400s\";r=4;t=86400"
    );
}

#[test]
fn t_is_the_wait_for_one_unit_more_than_remain() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    for (age, member) in [(50_000, "4:4"), (10_000, "6:2")] {
        run::<i64>(&mut con, "ZADD", &["k", &(time - age).to_string(), member]);
    }
    // 4 remain, the 5th comes when the older entry expires; reset is when the newer one does.
    let peek = slide("SLIDE.PEEK", "k", &[(10, "60s")], &["COST", "9", "HEADERS"]);
    let (reply, headers) = call(&mut con, &peek);
    assert_eq!((reply.limited, reply.remaining), (1, 4));
    let rest = headers["RateLimit"]
        .strip_prefix("\"10-per-60s\";r=4;t=")
        .unwrap();
    assert!(
        (9..=10).contains(&rest.parse::<i64>().unwrap()),
        "{headers:?}"
    );
    let retry: i64 = headers["Retry-After"].parse().unwrap();
    assert!((49..=50).contains(&retry), "{headers:?}");
}

#[test]
fn the_reset_is_an_instant_that_does_not_wobble() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(10, "60s")], &[]);
    slide_counter(&mut con, "counter", &[(10, DECADE)], &[]);
    for (key, window) in [("log", "60s"), ("counter", DECADE)] {
        let peek = slide("SLIDE.PEEK", key, &[(10, window)], &["HEADERS"]);
        let first = call(&mut con, &peek).1;
        let end = now(&mut con) + 300;
        while now(&mut con) < end {
            let headers = call(&mut con, &peek).1;
            assert_eq!(
                headers["X-RateLimit-Reset"], first["X-RateLimit-Reset"],
                "{key}"
            );
        }
    }
    // It is the limit's, not the key's: a log outlives its entries a little.
    let end = entries(&mut con, "log")[0].1 + 60_000;
    let peek = slide("SLIDE.PEEK", "log", &[(10, "60s")], &["HEADERS"]);
    let reset = &call(&mut con, &peek).1["X-RateLimit-Reset"];
    assert_eq!(*reset, ((end + 999) / 1000).to_string());
}

/// Waiting for it gets in, to the second: for one unit more, or for the call that was limited.
#[test]
fn the_reset_is_when_the_next_call_gets_in() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    for (age, member) in [(20_000, "1:1"), (10_000, "2:1")] {
        run::<i64>(&mut con, "ZADD", &["k", &(time - age).to_string(), member]);
    }
    let seconds = |ms: i64| ((ms + 999) / 1000).to_string();
    for (tier, cost, reset) in [
        // Room for one: the next one comes when the oldest leaves.
        ((3, "60s"), "1", time + 40_000),
        // Limited, and so until the oldest leaves, or both.
        ((2, "60s"), "1", time + 40_000),
        ((2, "60s"), "2", time + 50_000),
    ] {
        let peek = slide("SLIDE.PEEK", "k", &[tier], &["COST", cost, "HEADERS"]);
        let headers = call(&mut con, &peek).1;
        assert_eq!(
            headers["X-RateLimit-Reset"],
            seconds(reset),
            "{cost} of {tier:?}"
        );
    }
}

/// A structured field holds at most 15 digits; the policy's name and the X- headers are text.
#[test]
fn numbers_beyond_a_structured_field_are_capped() {
    let server = Server::start();
    let mut con = server.connect();
    let largest = 9_007_199_254_740_991;
    let log = slide("SLIDE.LOG", "k", &[(largest, "60s")], &["HEADERS"]);
    let headers = call(&mut con, &log).1;
    assert_eq!(headers["X-RateLimit-Limit"], "9007199254740991");
    assert_eq!(headers["X-RateLimit-Remaining"], "9007199254740990");
    assert_eq!(
        headers["RateLimit-Policy"],
        "\"9007199254740991-per-60s\";q=999999999999999;w=60"
    );
    assert_eq!(
        headers["RateLimit"],
        "\"9007199254740991-per-60s\";r=999999999999999;t=60"
    );
}

#[test]
fn the_five_integers_are_as_without() {
    let server = Server::start();
    let mut con = server.connect();
    for (name, window) in [("SLIDE.LOG", "1d"), ("SLIDE.COUNTER", DECADE)] {
        let tiers = [(3, window)];
        for cost in ["1", "2", "1", "4"] {
            let plain = slide(name, "plain", &tiers, &["COST", cost]);
            let headed = slide(name, "headed", &tiers, &["HEADERS", "COST", cost]);
            let (plain, headed): (Vec<i64>, Value) = pipe()
                .atomic()
                .add_command(plain)
                .add_command(headed)
                .query(&mut con)
                .unwrap();
            let (headed, _) = with_headers(headed);
            let plain = reply_of(&plain);
            assert_eq!(
                (headed.limited, headed.limit, headed.remaining),
                (plain.limited, plain.limit, plain.remaining)
            );
        }
        run::<i64>(&mut con, "DEL", &["plain", "headed"]);
    }
}

#[test]
fn resp3_gets_a_map_and_resp2_a_flat_array() {
    let server = Server::start();
    for (mut con, is_map) in [(server.connect(), false), (server.connect_resp3(), true)] {
        for (name, key) in [
            ("SLIDE.LOG", "log"),
            ("SLIDE.COUNTER", "counter"),
            ("SLIDE.PEEK", "log"),
        ] {
            let command = slide(name, key, &[(100, "1d")], &["HEADERS"]);
            let six: Vec<Value> = command.query(&mut con).unwrap();
            assert_eq!(matches!(six[5], Value::Map(_)), is_map, "{name}: {six:?}");
            let elements = match &six[5] {
                Value::Map(pairs) => pairs.len() * 2,
                Value::Array(flat) => flat.len(),
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(elements, 10, "{name}: {six:?}");
        }
    }
}

#[test]
fn headers_are_asked_for_once() {
    let server = Server::start();
    let mut con = server.connect();
    let before = state(&mut con);
    for name in ["SLIDE.LOG", "SLIDE.COUNTER", "SLIDE.PEEK"] {
        let call = slide(name, "k", &[(5, "1d")], &["HEADERS", "headers"]);
        let error = error_of(&mut con, &call);
        assert!(error.starts_with("ERR syntax error: "), "{error}");
        assert!(error.to_uppercase().contains("HEADERS"), "{error}");
    }
    assert_eq!(state(&mut con), before);
}

/// In real time: whoever waits as long as Retry-After says gets in.
#[test]
fn retry_after_is_long_enough() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "k", &[(1, "700ms")], &[]);
    let again = slide("SLIDE.LOG", "k", &[(1, "700ms")], &["HEADERS"]);
    let before = now(&mut con);
    let (reply, headers) = call(&mut con, &again);
    assert_eq!(reply.limited, 1);
    let seconds: i64 = headers["Retry-After"].parse().unwrap();
    assert_eq!(seconds, 1);
    wait_until(&mut con, before + seconds * 1000);
    assert_eq!(call(&mut con, &again).0.limited, 0);
}
