//! `SLIDE.PEEK`: the answer of a call that is not made.

use redis::Value;

use crate::loading::command_info;
use crate::support::{
    ALMOST_A_DECADE, DECADE, Reply, Server, Setup, at_least, entries, error_of, eventually,
    info_number, now, run, slide, slide_counter, slide_log, slide_peek, state, timed_replies,
};

#[test]
fn a_missing_key_is_an_empty_one_and_stays_missing() {
    let server = Server::start();
    let mut con = server.connect();
    for options in [&[][..], &["COST", "5"], &["cost", "0"]] {
        let reply = slide_peek(&mut con, "k", &[(5, "60s")], options);
        assert_eq!(
            (reply.limited, reply.limit, reply.remaining),
            (0, 5, 5),
            "{options:?}"
        );
        assert_eq!(
            (reply.retry_after, reply.reset_after),
            (0, 0),
            "{options:?}"
        );
    }
    let never = slide_peek(&mut con, "k", &[(5, "60s")], &["COST", "6"]);
    assert_eq!(
        (never.limited, never.remaining, never.retry_after),
        (1, 5, -1)
    );
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0);
}

#[test]
fn a_peek_says_what_a_call_would_without_recording() {
    let server = Server::start();
    let mut con = server.connect();
    for (name, window) in [("SLIDE.LOG", "1d"), ("SLIDE.COUNTER", DECADE)] {
        let tiers = [(10, window), (9, ALMOST_A_DECADE)];
        slide(name, name, &tiers, &["COST", "4"])
            .query::<Value>(&mut con)
            .unwrap();
        let before = state(&mut con);
        let fits = slide_peek(&mut con, name, &tiers, &["COST", "5"]);
        assert_eq!(
            (fits.limited, fits.limit, fits.remaining, fits.retry_after),
            (0, 9, 5, 0)
        );
        assert!(fits.reset_after > 0);
        assert_eq!(state(&mut con), before);
        // A call that is refused changes nothing, so both answers are the same.
        for cost in ["6", "9", "11"] {
            let call = |command| slide(command, name, &tiers, &["COST", cost]);
            let both = timed_replies(&mut con, &[call("SLIDE.PEEK"), call(name)]);
            let [peek, call] = both.value[..] else {
                unreachable!()
            };
            assert_eq!(peek.limited, 1);
            // Waits are the same if no ms has passed between.
            let lag = call.retry_after - peek.retry_after;
            assert!((both.before - both.after..=0).contains(&lag), "{both:?}");
            let lag = call.reset_after - peek.reset_after;
            assert!((both.before - both.after..=0).contains(&lag), "{both:?}");
            let waits = (peek.retry_after, peek.reset_after);
            assert_eq!(
                Reply {
                    retry_after: waits.0,
                    reset_after: waits.1,
                    ..call
                },
                peek
            );
        }
        assert_eq!(state(&mut con), before);
    }
}

#[test]
fn a_peek_at_a_full_key_gives_the_wait() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(3, "60s")], &["COST", "3"]);
    slide_counter(&mut con, "counter", &[(3, DECADE)], &["COST", "3"]);
    for (key, window) in [("log", "60s"), ("counter", DECADE)] {
        let full = slide_peek(&mut con, key, &[(3, window)], &[]);
        assert_eq!((full.limited, full.remaining), (1, 0), "{key}");
        assert!(full.retry_after > 0, "{key}: {full:?}");
        let free = slide_peek(&mut con, key, &[(3, window)], &["COST", "0"]);
        assert_eq!(
            (free.limited, free.remaining, free.retry_after),
            (0, 0, 0),
            "{key}"
        );
    }
}

#[test]
fn a_peek_is_no_change_to_anyone() {
    let primary = Server::start();
    let replica = Setup::new().replica_of(&primary).start();
    let (mut con, mut other) = (primary.connect(), primary.connect());
    slide_log(&mut con, "log", &[(3, "1d")], &["COST", "3"]);
    slide_counter(&mut con, "counter", &[(3, DECADE)], &["COST", "3"]);
    primary.wait_for(&replica);
    let before = state(&mut con);
    let offset = info_number(&mut con, "replication", "master_repl_offset");
    let changes = info_number(&mut con, "persistence", "rdb_changes_since_last_save");
    run::<()>(&mut con, "WATCH", &["log", "counter", "new"]);
    for (key, window) in [("log", "1d"), ("counter", DECADE), ("new", "1d")] {
        for limit in [3, 4] {
            slide_peek(&mut other, key, &[(limit, window)], &[]);
        }
    }
    assert_eq!(state(&mut other), before);
    assert_eq!(
        info_number(&mut other, "replication", "master_repl_offset"),
        offset
    );
    let after = info_number(&mut other, "persistence", "rdb_changes_since_last_save");
    assert_eq!(after, changes);
    run::<()>(&mut con, "MULTI", &[]);
    run::<String>(&mut con, "PING", &[]);
    assert!(
        run::<Option<Vec<String>>>(&mut con, "EXEC", &[]).is_some(),
        "WATCH saw a change"
    );
}

#[test]
fn a_peek_does_not_keep_a_key_from_eviction() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(3, "1d")], &[]);
    slide_counter(&mut con, "counter", &[(3, DECADE)], &[]);
    eventually("the keys have been idle for a second", || {
        let idle = |key| run::<i64>(&mut server.connect(), "OBJECT", &["IDLETIME", key]);
        (idle("log") >= 1 && idle("counter") >= 1).then_some(())
    });
    for (key, window) in [("log", "1d"), ("counter", DECADE)] {
        slide_peek(&mut con, key, &[(3, window)], &[]);
        assert!(
            run::<i64>(&mut con, "OBJECT", &["IDLETIME", key]) >= 1,
            "{key} was touched"
        );
    }
}

#[test]
fn a_replica_answers() {
    let primary = Server::start();
    let replica = Setup::new().replica_of(&primary).start();
    let mut con = primary.connect();
    slide_log(&mut con, "log", &[(5, "1d")], &["COST", "3"]);
    slide_counter(&mut con, "counter", &[(5, DECADE)], &["COST", "3"]);
    primary.wait_for(&replica);
    let mut copy = replica.connect();
    for (key, window) in [("log", "1d"), ("counter", DECADE)] {
        let reply = slide_peek(&mut copy, key, &[(5, window)], &[]);
        assert_eq!((reply.limited, reply.remaining), (0, 2), "{key}");
        let call = slide("SLIDE.LOG", key, &[(5, window)], &[]);
        assert!(error_of(&mut copy, &call).starts_with("READONLY "));
    }
}

#[test]
fn a_user_who_may_only_read_can_peek() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(5, "1d")], &["COST", "3"]);
    let rule = if at_least(&mut con, 7, 2) {
        "+@read"
    } else {
        "+slide.peek"
    };
    run::<()>(
        &mut con,
        "ACL",
        &["SETUSER", "reader", "on", "nopass", "~*", "-@all", rule],
    );
    run::<()>(&mut con, "AUTH", &["reader", "x"]);
    assert_eq!(slide_peek(&mut con, "log", &[(5, "1d")], &[]).remaining, 2);
    for call in ["SLIDE.LOG", "SLIDE.COUNTER"] {
        let error = error_of(&mut con, &slide(call, "log", &[(5, "1d")], &[]));
        assert!(error.starts_with("NOPERM "), "{error}");
    }
}

#[test]
fn a_wrong_date_is_seen_through_and_left() {
    let server = Server::start();
    let mut con = server.connect();
    let future = now(&mut con) + 3_600_000;
    run::<i64>(&mut con, "ZADD", &["log", &future.to_string(), "9:5"]);
    let bucket = future / 86_400_000 + 3;
    run::<i64>(
        &mut con,
        "HSET",
        &["counter", "86400000", &format!("{bucket}:2:3")],
    );
    let before = state(&mut con);
    let log = slide_peek(&mut con, "log", &[(5, "60s")], &[]);
    assert_eq!(
        (log.limited, log.retry_after, log.reset_after),
        (1, 60_000, 60_000)
    );
    let counter = slide_peek(&mut con, "counter", &[(5, "1d")], &[]);
    assert_eq!((counter.limited, counter.remaining), (1, 0));
    assert!(
        (1..=2 * 86_400_000).contains(&counter.retry_after),
        "{counter:?}"
    );
    assert_eq!(state(&mut con), before);
    assert_eq!(entries(&mut con, "log"), [("9:5".to_owned(), future)]);
}

#[test]
fn errors_are_those_of_the_calls() {
    let server = Server::start();
    let mut con = server.connect();
    run::<()>(&mut con, "SET", &["string", "x"]);
    run::<i64>(&mut con, "ZADD", &["zset", "1", "alice"]);
    run::<i64>(&mut con, "HSET", &["hash", "name", "alice"]);
    slide_log(&mut con, "log", &[(5, "1d")], &[]);
    let before = state(&mut con);
    for (key, options, expected) in [
        (
            "string",
            &[][..],
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        (
            "zset",
            &[],
            "ERR key holds a sorted set that SLIDE.LOG did not write",
        ),
        (
            "hash",
            &[],
            "ERR key holds a hash that SLIDE.COUNTER did not write",
        ),
        (
            "log",
            &["COST", "-1"],
            "ERR cost must be an integer from 0 to 9007199254740991, got '-1'",
        ),
    ] {
        let peek = slide("SLIDE.PEEK", key, &[(5, "1d")], options);
        assert_eq!(error_of(&mut con, &peek), expected);
    }
    for (option, options) in [("BUCKETS", &["BUCKETS", "2"][..]), ("STRICT", &["STRICT"])] {
        let error = error_of(&mut con, &slide("SLIDE.PEEK", "log", &[(5, "1d")], options));
        assert!(
            error.starts_with("ERR ") && error.contains(option),
            "{error}"
        );
    }
    let error = error_of(
        &mut con,
        &slide("SLIDE.PEEK", "log", &[(5, "1d")], &["FORCE"]),
    );
    assert!(
        error.starts_with("ERR syntax error: ") && error.contains("FORCE"),
        "{error}"
    );
    assert_eq!(state(&mut con), before);
}

#[test]
fn the_server_knows_that_a_peek_only_reads() {
    let server = Server::start();
    let mut con = server.connect();
    let (arity, flags) = command_info(&mut con, "SLIDE.PEEK");
    assert_eq!(arity, -4);
    assert!(flags.contains(&"readonly".to_owned()), "{flags:?}");
    assert!(!flags.contains(&"write".to_owned()), "{flags:?}");
}
