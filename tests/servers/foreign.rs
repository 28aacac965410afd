//! Keys that hold something that the module did not write: an error, and nothing is touched.

use crate::support::{
    ALMOST_A_DECADE, ALMOST_A_DECADE_FIELD, DECADE, DECADE_FIELD, Server, command, error_of, now,
    run, slide, slide_counter, slide_log, state,
};

const LOG: &str = "ERR key holds a sorted set that SLIDE.LOG did not write";
const COUNTER: &str = "ERR key holds a hash that SLIDE.COUNTER did not write";
const WRONGTYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn other_types_get_the_standard_error() {
    let server = Server::start();
    let mut con = server.connect();
    for (name, arguments) in [
        ("SET", &["string", "9"][..]),
        ("RPUSH", &["list", "1:1"]),
        ("SADD", &["set", "1:1"]),
        ("XADD", &["stream", "*", "1", "1"]),
        ("SETBIT", &["bits", "9", "1"]),
    ] {
        run::<redis::Value>(&mut con, name, arguments);
    }
    slide_log(&mut con, "log", &[(5, "1d")], &[]);
    slide_counter(&mut con, "counter", &[(5, "1d")], &[]);
    let before = state(&mut con);
    for (name, wrong) in [
        ("SLIDE.LOG", ("counter", "SLIDE.COUNTER")),
        ("SLIDE.COUNTER", ("log", "SLIDE.LOG")),
    ] {
        for cost in ["0", "1", "6"] {
            let call = |key| slide(name, key, &[(5, "60s")], &["COST", cost]);
            for key in ["string", "list", "set", "stream", "bits"] {
                assert_eq!(error_of(&mut con, &call(key)), WRONGTYPE, "{name} {key}");
            }
            // One of our own kinds is named.
            let (key, kind) = wrong;
            let error = error_of(&mut con, &call(key));
            assert!(
                error.starts_with("WRONGTYPE ") && error.contains(&format!("key holds a {kind}")),
                "{name} {key}: {error}"
            );
        }
    }
    assert_eq!(state(&mut con), before);
    server.assert_alive();
}

#[test]
fn a_foreign_sorted_set_is_left_alone() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    let live = time.to_string();
    for (score, member) in [
        (live.as_str(), "alice"),
        (&live, ""),
        (&live, ":"),
        (&live, "1"),
        (&live, "1:"),
        (&live, ":1"),
        (&live, "1:1:"),
        (&live, "1:1:1"),
        (&live, "1:1:10"),
        (&live, "1:1:01"),
        (&live, "1:1:W01"),
        (&live, "1:1:1W"),
        (&live, "1:1:1+"),
        (&live, "1:1:11:"),
        (&live, "-1:1"),
        (&live, "1:-1"),
        (&live, "1:x"),
        (&live, " 1:1"),
        (&live, "1:1\n"),
        (&live, "18446744073709551616:1"),
        (&live, "1:18446744073709551616"),
        ("250", "alice"),
        ("inf", "1:1"),
        ("-inf", "1:1"),
        (&format!("{time}.5"), "1:1"),
    ] {
        run::<i64>(&mut con, "ZADD", &["k", score, member]);
        run::<i64>(&mut con, "PEXPIRE", &["k", "1000000"]);
        let before = state(&mut con);
        for cost in ["0", "1", "6"] {
            let call = slide("SLIDE.LOG", "k", &[(5, "60s")], &["COST", cost]);
            assert_eq!(error_of(&mut con, &call), LOG, "{score} {member:?}");
        }
        assert_eq!(state(&mut con), before);
        run::<i64>(&mut con, "DEL", &["k"]);
    }
    // A game's ranking, which is larger than a listpack takes.
    let mut ranking = redis::cmd("ZADD");
    ranking.arg("k");
    for player in 0..1000 {
        ranking.arg(player * 10).arg(format!("player {player}"));
    }
    ranking.query::<i64>(&mut con).unwrap();
    let before = state(&mut con);
    assert_eq!(
        error_of(&mut con, &slide("SLIDE.LOG", "k", &[(5, DECADE)], &[])),
        LOG
    );
    assert_eq!(state(&mut con), before);
    server.assert_alive();
}

#[test]
fn a_foreign_oldest_live_entry_is_seen() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    let (oldest, newest) = ((time - 9).to_string(), time.to_string());
    for member in [
        "x",
        "1:1:",
        "1:1:1",
        "1:1:10",
        "1:1:01",
        "1:1:1W",
        "1:1:1V0",
        "1:1:W01",
        "1:1:11+",
        "1:1:11:",
        "1:1:zzzzzzzzzzzzzz11",
    ] {
        let stored = ["k", &oldest, member, &newest, "2:1"];
        run::<i64>(&mut con, "ZADD", &stored);
        let before = state(&mut con);
        for name in ["SLIDE.LOG", "SLIDE.PEEK"] {
            let call = slide(name, "k", &[(5, "1h")], &[]);
            assert_eq!(error_of(&mut con, &call), LOG, "{name}: {member}");
        }
        assert_eq!(state(&mut con), before);
        run::<i64>(&mut con, "DEL", &["k"]);
    }
}

#[test]
fn a_foreign_hash_is_left_alone() {
    let server = Server::start();
    let mut con = server.connect();
    for (field, value) in [
        ("name", "alice"),
        ("", ""),
        ("60000x", "1:1:1"),
        ("60000/", "1:1:1"),
        (DECADE_FIELD, ""),
        (DECADE_FIELD, "5"),
        (DECADE_FIELD, "5:1"),
        (DECADE_FIELD, "5:1:1:1"),
        (DECADE_FIELD, "5:1:"),
        (DECADE_FIELD, ":1:1"),
        (DECADE_FIELD, "x:1:1"),
        (DECADE_FIELD, "5:-1:1"),
        (DECADE_FIELD, "5:1:x"),
        (DECADE_FIELD, "5:1:1 "),
        (DECADE_FIELD, "5:18446744073709551616:1"),
        (DECADE_FIELD, "99999999999999999999:1:1"),
    ] {
        run::<i64>(&mut con, "HSET", &["k", field, value]);
        run::<i64>(&mut con, "PEXPIRE", &["k", "1000000"]);
        let before = state(&mut con);
        for cost in ["0", "1", "6"] {
            let call = slide("SLIDE.COUNTER", "k", &[(5, DECADE)], &["COST", cost]);
            assert_eq!(error_of(&mut con, &call), COUNTER, "{field:?} {value:?}");
        }
        assert_eq!(state(&mut con), before);
        run::<i64>(&mut con, "DEL", &["k"]);
    }
    // A session, which is larger than a listpack takes.
    let mut session = redis::cmd("HSET");
    session.arg("k");
    for field in 0..1000 {
        session.arg(format!("field {field}")).arg("x".repeat(100));
    }
    session.query::<i64>(&mut con).unwrap();
    let before = state(&mut con);
    assert_eq!(
        error_of(&mut con, &slide("SLIDE.COUNTER", "k", &[(5, DECADE)], &[])),
        COUNTER
    );
    assert_eq!(state(&mut con), before);
    server.assert_alive();
}

#[test]
fn another_window_of_the_same_counter_is_not_foreign() {
    let server = Server::start();
    let mut con = server.connect();
    slide_counter(&mut con, "k", &[(5, DECADE)], &["COST", "5"]);
    let other = slide_counter(&mut con, "k", &[(5, ALMOST_A_DECADE)], &[]);
    assert_eq!((other.limited, other.remaining), (0, 4));
    assert_eq!(run::<i64>(&mut con, "HLEN", &["k"]), 2);
}

#[test]
fn an_error_in_one_tier_records_in_none() {
    let server = Server::start();
    let mut con = server.connect();
    slide_counter(&mut con, "k", &[(5, DECADE)], &[]);
    run::<i64>(&mut con, "HSET", &["k", ALMOST_A_DECADE_FIELD, "mine"]);
    let before = state(&mut con);
    let call = command("SLIDE.COUNTER", &["k", "5", DECADE, "5", ALMOST_A_DECADE]);
    assert_eq!(error_of(&mut con, &call), COUNTER);
    assert_eq!(state(&mut con), before);
}
