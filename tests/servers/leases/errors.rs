//! What is turned down, and by which sentence; and what is not, when memory is full.

use redis::{Connection, cmd};

use super::{lease, release, slide_lease};
use crate::support::{
    Server, error_of, line, now, run, slide, slide_counter, slide_log, slide_peek, state,
};

const WRONGTYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const FOREIGN: &str = "ERR key holds a sorted set that SLIDE.LEASE did not write";

#[test]
fn arguments_out_of_range_are_named() {
    let server = Server::start();
    let mut con = server.connect();
    let limit = "ERR limit must be an integer from 0 to 9007199254740991, got";
    let ttl = "ERR ttl must be from 1ms to 86400000ms with its unit (ms, s, m, h or d), got";
    for (call, error) in [
        ("SLIDE.LEASE k x 60s a", format!("{limit} 'x'")),
        ("SLIDE.LEASE k -1 60s a", format!("{limit} '-1'")),
        (
            "SLIDE.LEASE k 5 60 a",
            format!("{ttl} '60': say 60s or 60ms"),
        ),
        ("SLIDE.LEASE k 5 0ms a", format!("{ttl} '0ms'")),
        ("SLIDE.LEASE k 5 25h a", format!("{ttl} '25h'")),
        (
            "SLIDE.LEASE k 5 86400001ms a",
            format!("{ttl} '86400001ms'"),
        ),
        ("SLIDE.LEASE k 5 FORCE a", format!("{ttl} 'FORCE'")),
        (
            "SLIDE.LEASE k 5 60s a 7",
            "ERR syntax error: unknown option '7'".into(),
        ),
        (
            "SLIDE.LEASE k 5 60s a COST 1",
            "ERR syntax error: unknown option 'COST'".into(),
        ),
        (
            "SLIDE.LEASE k 5 60s a HEADERS",
            "ERR syntax error: unknown option 'HEADERS'".into(),
        ),
        (
            "SLIDE.LEASE k 5 60s a FORCE force",
            "ERR syntax error: option 'force' was given twice".into(),
        ),
        (
            "SLIDE.ALL 1 k LEASE 5 60s",
            "ERR id must be 1 to 128 bytes, got nothing".into(),
        ),
        (
            "SLIDE.ALL 1 k LEASE 5 60 a",
            format!("{ttl} '60': say 60s or 60ms"),
        ),
        (
            "SLIDE.ALL 1 k LEASE 5 60s a COST 1",
            "ERR syntax error: unknown option 'COST'".into(),
        ),
        (
            "SLIDE.ALL 2 k l LEASE 5 60s a",
            "ERR expected one clause (LOG, COUNTER or LEASE) for each key, 2 in all, got 1".into(),
        ),
    ] {
        assert_eq!(error_of(&mut con, &line(call)), error, "{call}");
    }
    for name in ["SLIDE.LEASE k 5 60s", "SLIDE.RELEASE k"] {
        let error = error_of(&mut con, &line(name));
        assert!(error.contains("wrong number of arguments"), "{error}");
    }
    for length in [0, 129, 1000] {
        let id = vec![b'x'; length];
        let error = format!("ERR id must be 1 to 128 bytes, got {length} bytes");
        assert_eq!(error_of(&mut con, &lease("k", 5, "60s", &id, &[])), error);
        let mut all = line("SLIDE.ALL 1 k LEASE 5 60s");
        assert_eq!(error_of(&mut con, all.arg(&id)), error);
        let mut release = cmd("SLIDE.RELEASE");
        release.arg("k").arg("good").arg(&id);
        assert_eq!(error_of(&mut con, &release), error);
    }
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0);
    // The day itself is a ttl.
    assert_eq!(
        slide_lease(&mut con, "k", 5, "1d", "a", &[]).reset_after,
        86_400_000
    );
}

#[test]
fn each_kind_of_key_is_named() {
    let server = Server::start();
    let mut con = server.connect();
    slide_lease(&mut con, "leases", 5, "1h", "a", &[]);
    slide_log(&mut con, "log", &[(5, "1d")], &[]);
    slide_counter(&mut con, "counter", &[(5, "1d")], &[]);
    run::<()>(&mut con, "SET", &["string", "@a"]);
    let before = state(&mut con);
    let leases = "ERR key holds leases, SLIDE.LOG did not write it";
    let log = "ERR key holds a log, SLIDE.LEASE did not write it";
    let counter = "WRONGTYPE key holds a SLIDE.COUNTER, SLIDE.LEASE needs a sorted set";
    let peek =
        "ERR key holds leases: SLIDE.PEEK then takes one limit with any window, and no options";
    for (call, error) in [
        ("SLIDE.LOG leases 5 60s", leases),
        ("SLIDE.LOG leases 5 60s COST 0", leases),
        ("SLIDE.REFUND leases 5", leases),
        ("SLIDE.REFUND leases 5 AGE 1s", leases),
        ("SLIDE.ALL 1 leases LOG 5 60s", leases),
        (
            "SLIDE.COUNTER leases 5 60s",
            "WRONGTYPE key holds a SLIDE.LEASE, SLIDE.COUNTER needs a hash",
        ),
        ("SLIDE.PEEK leases 5 60s 6 1d", peek),
        ("SLIDE.PEEK leases 5 60s COST 1", peek),
        ("SLIDE.PEEK leases 5 60s HEADERS", peek),
        ("SLIDE.PEEK leases 5 60s BUCKETS 2", peek),
        ("SLIDE.PEEK leases 5 60s STRICT", peek),
        ("SLIDE.LEASE log 5 60s a", log),
        ("SLIDE.LEASE log 0 60s a FORCE", log),
        ("SLIDE.RELEASE log a", log),
        ("SLIDE.ALL 1 log LEASE 5 60s a", log),
        ("SLIDE.LEASE counter 5 60s a", counter),
        ("SLIDE.RELEASE counter a", counter),
        ("SLIDE.ALL 1 counter LEASE 5 60s a", counter),
        ("SLIDE.LEASE string 5 60s a", WRONGTYPE),
        ("SLIDE.RELEASE string a", WRONGTYPE),
    ] {
        assert_eq!(error_of(&mut con, &line(call)), error, "{call}");
    }
    assert_eq!(state(&mut con), before);
}

#[test]
fn a_foreign_sorted_set_is_left_alone() {
    let server = Server::start();
    let mut con = server.connect();
    let end = now(&mut con) + 60_000;
    let live = end.to_string();
    let long = format!("@{}", "x".repeat(129));
    for (score, member) in [
        (live.as_str(), "alice"),
        (&live, ""),
        (&live, "@"),
        (&live, &long),
        ("inf", "@a"),
        ("-inf", "@a"),
        ("-1", "@a"),
        (&format!("{end}.5"), "@a"),
        ("9007199254740992", "@a"),
    ] {
        run::<i64>(&mut con, "ZADD", &["k", score, member]);
        let before = state(&mut con);
        for call in [
            "LEASE k 5 60s a",
            "LEASE k 0 60s b FORCE",
            "RELEASE k a",
            "RELEASE k b",
        ] {
            let error = error_of(&mut con, &line(&format!("SLIDE.{call}")));
            assert_eq!(error, FOREIGN, "{score} {member:?} {call}");
        }
        assert_eq!(state(&mut con), before);
        run::<i64>(&mut con, "DEL", &["k"]);
    }
    // What stands before leases is seen too: it would be the first to be removed, or waited for.
    for (score, member) in [("5", "alice"), (&live, "Alice")] {
        let later = (end + 1).to_string();
        run::<i64>(&mut con, "ZADD", &["k", score, member, &later, "@a"]);
        let before = state(&mut con);
        let call = lease("k", 5, "60s", "b", &[]);
        assert_eq!(error_of(&mut con, &call), FOREIGN);
        assert_eq!(state(&mut con), before);
        run::<i64>(&mut con, "DEL", &["k"]);
    }
}

/// More leases have ended than one call looks at, and something else is among them.
#[test]
fn what_else_is_among_ended_leases_stays() {
    let server = Server::start();
    let mut con = server.connect();
    super::store(&mut con, "k", (0..30).map(|place| 1000 + place));
    run::<i64>(&mut con, "ZADD", &["k", "1020", "alice"]);
    slide_lease(&mut con, "k", 1, "60s", "a", &[]);
    let left: Vec<String> = run(&mut con, "ZRANGE", &["k", "0", "0"]);
    assert_eq!(left, ["alice"]);
    let call = lease("k", 5, "60s", "b", &[]);
    assert_eq!(error_of(&mut con, &call), FOREIGN);
}

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

fn set_maxmemory(con: &mut Connection, bytes: &str) {
    run::<()>(con, "CONFIG", &["SET", "maxmemory", bytes]);
}

#[test]
fn whoever_holds_a_place_keeps_it_when_memory_is_full() {
    let server = Server::start();
    let mut con = server.connect();
    for id in ["a", "b"] {
        slide_lease(&mut con, "k", 3, "60s", id, &[]);
    }
    slide_log(&mut con, "log", &[(5, "1d")], &[]);
    let far = (now(&mut con) + 10 * 86_400_000).to_string();
    run::<i64>(&mut con, "ZADD", &["misdated", &far, "@a"]);
    set_maxmemory(&mut con, "1");
    let before = state(&mut con);
    for call in [
        lease("k", 3, "60s", "c", &[]),
        lease("k", 2, "60s", "c", &["FORCE"]),
        lease("new", 3, "60s", "a", &[]),
        line("SLIDE.ALL 2 k log LEASE 3 60s a LOG 5 1d"),
    ] {
        assert_eq!(error_of(&mut con, &call), OOM);
    }
    assert_eq!(slide_lease(&mut con, "k", 2, "60s", "c", &[]).limited, 1);
    assert_eq!(slide_peek(&mut con, "k", &[(2, "1s")], &[]).limited, 1);
    let refused = line("SLIDE.ALL 2 k log LEASE 3 60s a LOG 1 1d");
    assert!(refused.query::<redis::Value>(&mut con).is_ok());
    assert_eq!(state(&mut con), before, "half of something was written");

    assert_eq!(slide_lease(&mut con, "k", 2, "90s", "a", &[]).limited, 0);
    assert_eq!(
        slide("SLIDE.PEEK", "k", &[(2, "1s")], &[])
            .query::<Vec<i64>>(&mut con)
            .unwrap()[0],
        1
    );
    let renewed = line("SLIDE.ALL 1 k LEASE 2 60s b");
    assert!(renewed.query::<redis::Value>(&mut con).is_ok());
    assert_eq!(release(&mut con, "k", "b"), 1);
    // Healing needs none either.
    assert_eq!(
        slide_lease(&mut con, "misdated", 1, "60s", "x", &[]).limited,
        1
    );
    let end: i64 = run(&mut con, "ZSCORE", &["misdated", "@a"]);
    assert!(end <= now(&mut con) + 60_000);
    set_maxmemory(&mut con, "0");
    assert_eq!(slide_lease(&mut con, "k", 2, "60s", "c", &[]).limited, 0);
}
