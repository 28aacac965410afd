//! `SLIDE.ALL`: several keys are judged, and all are recorded in or none.

use std::collections::BTreeMap;

use redis::{Connection, Value, from_redis_value_ref};

use crate::events::{events, of};
use crate::info::{added, expected};
use crate::loading::{command_info, map_of};
use crate::support::{
    ALMOST_A_DECADE, DECADE, DECADE_FIELD, Reply, Server, Setup, all_replies, entries, error_of,
    headers_of, info_number, line, now, run, slide_counter, slide_log, slide_peek, state,
};

#[track_caller]
pub fn slide_all(con: &mut Connection, words: &str) -> (i64, Vec<Reply>) {
    let value = line(&format!("SLIDE.ALL {words}"))
        .query(con)
        .unwrap_or_else(|error| panic!("{words}: {error}"));
    all_replies(&value)
}

#[track_caller]
fn error_of_all(con: &mut Connection, words: &str) -> String {
    error_of(con, &line(&format!("SLIDE.ALL {words}")))
}

fn verdicts(replies: &[Reply]) -> Vec<(i64, i64, i64)> {
    let verdict = |reply: &Reply| {
        let waits = i64::from(reply.retry_after > 0);
        (reply.limited, reply.remaining, waits)
    };
    replies.iter().map(verdict).collect()
}

#[test]
fn the_reply_is_a_verdict_and_five_integers_for_each_key() {
    let server = Server::start();
    for mut con in [server.connect(), server.connect_resp3()] {
        run::<()>(&mut con, "FLUSHALL", &[]);
        let words = format!(
            "SLIDE.ALL 3 log counter sharp LOG 10 1d COST 3 COUNTER 5 {DECADE} COST 3 \
             COUNTER 7 {DECADE} BUCKETS 4 STRICT COST 3"
        );
        let mut ask = || match line(&words).query::<Value>(&mut con).unwrap() {
            Value::Array(parts) => parts,
            other => panic!("{other:?}"),
        };
        for (first, five) in [
            (0, [[0, 10, 7, 0], [0, 5, 2, 0], [0, 7, 4, 0]]),
            (1, [[0, 10, 7, 0], [1, 5, 2, 1], [0, 7, 4, 0]]),
        ] {
            let parts = ask();
            assert_eq!(parts[0], Value::Int(first), "{parts:?}");
            assert_eq!(parts.len(), 4, "{parts:?}");
            for (part, [limited, limit, remaining, waits]) in parts[1..].iter().zip(five) {
                let Value::Array(integers) = part else {
                    panic!("{part:?}")
                };
                assert_eq!(
                    integers[..3],
                    [limited, limit, remaining].map(Value::Int),
                    "{parts:?}"
                );
                let &[Value::Int(retry), Value::Int(reset)] = &integers[3..] else {
                    panic!("{part:?}")
                };
                assert_eq!(i64::from(retry > 0), waits, "{parts:?}");
                assert!(reset > 0 && reset >= retry, "{parts:?}");
            }
        }
    }
}

#[test]
fn one_key_is_answered_as_by_its_own_command() {
    let server = Server::start();
    let mut con = server.connect();
    let tiers = [(9, ALMOST_A_DECADE), (5, DECADE)];
    for cost in ["3", "0", "3", "2", "1", "6"] {
        let log = slide_log(&mut con, "log", &tiers, &["COST", cost]);
        let counter = slide_counter(&mut con, "counter", &tiers, &["COST", cost]);
        for (name, own) in [("LOG", log), ("COUNTER", counter)] {
            let words = format!("1 all:{name} {name} 9 {ALMOST_A_DECADE} 5 {DECADE} COST {cost}");
            let (limited, replies) = slide_all(&mut con, &words);
            assert_eq!(limited, own.limited, "{name} {cost}");
            let [reply] = replies[..] else {
                panic!("{replies:?}")
            };
            assert_eq!(
                (reply.limited, reply.limit, reply.remaining),
                (own.limited, own.limit, own.remaining),
                "{name} {cost}"
            );
            assert_eq!(reply.retry_after > 0, own.retry_after > 0, "{name} {cost}");
        }
    }
    // How the calls merged into entries depends on the ms, their total does not.
    let total = |con: &mut Connection, key| {
        let (member, _) = entries(con, key).pop().unwrap();
        member.split(':').next().unwrap().to_owned()
    };
    assert_eq!(total(&mut con, "log"), total(&mut con, "all:LOG"));
    // The keys' windows begin at moments of their own, their counts are the same.
    let counts = |con: &mut Connection, key| -> Vec<String> {
        let fields: BTreeMap<String, String> = run(con, "HGETALL", &[key]);
        let counts = |value: String| value.split_once(':').unwrap().1.to_owned();
        fields.into_values().map(counts).collect()
    };
    assert_eq!(counts(&mut con, "counter"), counts(&mut con, "all:COUNTER"));
}

#[test]
fn a_recorded_call_is_in_every_key() {
    let server = Server::start();
    let mut con = server.connect();
    let words =
        format!("3 a b c COUNTER 50 {DECADE} BUCKETS 64 LOG 40 1d 30 1h COUNTER 60 {DECADE}");
    for call in 1..=30 {
        let (limited, replies) = slide_all(&mut con, &words);
        assert_eq!(limited, 0);
        let left: Vec<i64> = replies.iter().map(|reply| reply.remaining).collect();
        assert_eq!(left, [50 - call, 30 - call, 60 - call]);
    }
    // The second tier of the second key is full now.
    let (limited, replies) = slide_all(&mut con, &words);
    assert_eq!(limited, 1);
    assert_eq!(verdicts(&replies), [(0, 20, 0), (1, 0, 1), (0, 30, 0)]);
    assert_eq!(replies[1].limit, 30);
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 3);
}

/// Wherever the key stands that is over, no other is touched: neither data nor expiry, and nobody
/// who watches or replicates hears of it.
#[test]
fn one_key_over_its_limit_is_recorded_in_none() {
    let primary = Server::start();
    let replica = Setup::new().without_module().replica_of(&primary).start();
    let (mut con, mut watcher) = (primary.connect(), primary.connect());
    slide_log(&mut con, "log", &[(10, "1d")], &["COST", "2"]);
    slide_counter(&mut con, "counter", &[(10, "3652d")], &["COST", "2"]);
    slide_log(&mut con, "full", &[(10, "1d")], &["COST", "10"]);
    primary.wait_for(&replica);
    let before = state(&mut con);
    let offset = info_number(&mut con, "replication", "master_repl_offset");
    let changes = info_number(&mut con, "persistence", "rdb_changes_since_last_save");
    let clauses = [
        ("log", "LOG 10 1d"),
        ("counter", "COUNTER 10 3652d"),
        ("new", "COUNTER 10 3652d"),
        ("full", "LOG 10 1d"),
    ];
    for turn in 0..clauses.len() {
        let mut turned = clauses;
        turned.rotate_left(turn);
        let keys = turned.map(|clause| clause.0);
        let words = format!("4 {} {}", keys.join(" "), turned.map(|c| c.1).join(" "));
        run::<()>(&mut watcher, "WATCH", &keys);
        let (limited, replies) = slide_all(&mut con, &words);
        assert_eq!(limited, 1);
        for (key, reply) in keys.iter().zip(&replies) {
            let (over, remaining) = match *key {
                "full" => (1, 0),
                "new" => (0, 10),
                _ => (0, 8),
            };
            assert_eq!((reply.limited, reply.remaining), (over, remaining), "{key}");
        }
        assert_eq!(state(&mut con), before, "{words}");
        run::<()>(&mut watcher, "MULTI", &[]);
        let done: Option<Vec<i64>> = redis::cmd("EXEC").query(&mut watcher).unwrap();
        assert!(done.is_some(), "{words}: a watched key counts as changed");
    }
    assert_eq!(
        info_number(&mut con, "replication", "master_repl_offset"),
        offset
    );
    assert_eq!(
        info_number(&mut con, "persistence", "rdb_changes_since_last_save"),
        changes
    );
    // A recorded call changes each of its keys, so the above could have shown.
    for key in ["log", "counter", "new"] {
        run::<()>(&mut watcher, "WATCH", &[key]);
        let words = "3 log counter new LOG 10 1d COUNTER 10 3652d COUNTER 10 3652d";
        assert_eq!(slide_all(&mut con, words).0, 0);
        run::<()>(&mut watcher, "MULTI", &[]);
        let done: Option<Vec<i64>> = redis::cmd("EXEC").query(&mut watcher).unwrap();
        assert!(done.is_none(), "{key} was not signalled as changed");
    }
    assert!(info_number(&mut con, "replication", "master_repl_offset") > offset);
}

#[test]
fn force_records_in_every_key() {
    let server = Server::start();
    let mut con = server.connect();
    let clauses =
        |cost| format!("2 log counter LOG 5 1d COST {cost} COUNTER 10 {DECADE} COST {cost} FORCE");
    let (limited, replies) = slide_all(&mut con, &clauses(7));
    assert_eq!(limited, 1);
    assert_eq!(verdicts(&replies), [(1, 0, 0), (0, 3, 0)]);
    assert_eq!(replies[0].retry_after, -1);
    let (limited, replies) = slide_all(&mut con, &clauses(2));
    assert_eq!(limited, 1);
    assert_eq!(verdicts(&replies), [(1, 0, 1), (0, 1, 0)]);
    // Nine units are in both.
    assert_eq!(
        slide_peek(&mut con, "log", &[(9, "1d")], &["COST", "0"]).remaining,
        0
    );
    assert_eq!(slide_peek(&mut con, "log", &[(10, "1d")], &[]).limited, 0);
    assert_eq!(
        slide_peek(&mut con, "counter", &[(9, DECADE)], &["COST", "0"]).remaining,
        0
    );
    assert_eq!(
        slide_peek(&mut con, "counter", &[(10, DECADE)], &[]).limited,
        0
    );
}

/// What a gateway in front of a language model asks: one call and so many tokens.
#[test]
fn each_clause_has_a_cost_of_its_own() {
    let server = Server::start();
    let mut con = server.connect();
    let words = "2 {u}:calls {u}:tokens LOG 60 60s LOG 1000 60s COST 400";
    for (limited, calls, tokens) in [(0, 59, 600), (0, 58, 200), (1, 58, 200)] {
        let (over, replies) = slide_all(&mut con, words);
        assert_eq!(
            (over, replies[0].remaining, replies[1].remaining),
            (limited, calls, tokens)
        );
        // The calls would be admitted, but for the tokens.
        assert_eq!((replies[0].limited, replies[0].retry_after), (0, 0));
    }
}

#[test]
fn headers_are_of_the_whole_call() {
    let server = Server::start();
    for (mut con, is_map) in [(server.connect(), false), (server.connect_resp3(), true)] {
        run::<()>(&mut con, "FLUSHALL", &[]);
        let call = line(
            "SLIDE.ALL 3 a b c LOG 60 60s 9 1d LOG 1000 60s COST 400 LOG 60 60s COST 2 HEADERS",
        );
        let ask = |con: &mut Connection| -> Vec<Value> { call.query(con).unwrap() };
        for (limited, reported, remaining) in [(0, "9", "8"), (0, "9", "7"), (1, "1000", "200")] {
            let parts = ask(&mut con);
            assert_eq!((parts.len(), &parts[0]), (5, &Value::Int(limited)));
            assert_eq!(matches!(parts[4], Value::Map(_)), is_map);
            let headers: BTreeMap<String, String> = headers_of(&parts[4]).into_iter().collect();
            assert_eq!(headers["X-RateLimit-Limit"], reported);
            assert_eq!(headers["X-RateLimit-Remaining"], remaining);
            assert_eq!(
                headers["RateLimit-Policy"],
                "\"60-per-60s\";q=60;w=60, \"9-per-86400s\";q=9;w=86400, \
                 \"1000-per-60s\";q=1000;w=60, \"60-per-60s-2\";q=60;w=60"
            );
            assert_eq!(
                headers["RateLimit"].matches(";t=").count(),
                4,
                "{headers:?}"
            );
            assert_eq!(headers.contains_key("Retry-After"), limited == 1);
        }
    }
}

#[test]
fn cost_0_reports_and_records_nothing() {
    let server = Server::start();
    let mut con = server.connect();
    let words = format!("2 log counter LOG 5 1d COST 0 COUNTER 10 {DECADE} COST 0");
    for words in [&words, &format!("{words} FORCE")] {
        let (limited, replies) = slide_all(&mut con, words);
        assert_eq!(limited, 0);
        assert_eq!(verdicts(&replies), [(0, 5, 0), (0, 10, 0)]);
        assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0);
    }
    // Over a limit even a call that costs nothing is.
    slide_log(&mut con, "log", &[(5, "1d")], &["COST", "6", "FORCE"]);
    let (limited, replies) = slide_all(&mut con, &words);
    assert_eq!(limited, 1);
    assert_eq!(verdicts(&replies), [(1, 0, 1), (0, 10, 0)]);
}

#[test]
fn not_enforced_only_the_first_integer_differs() {
    let server = Server::start();
    let mut con = server.connect();
    run::<()>(&mut con, "CONFIG", &["SET", "slide.enforce", "no"]);
    let words = format!("2 log counter LOG 5 1d COST 4 COUNTER 10 {DECADE} COST 4");
    let mut seen = Vec::new();
    let told = events(&server, "d", |con| {
        let counts = added(con, |con| {
            seen.extend((0..3).map(|_| slide_all(con, &words)));
        });
        assert_eq!(counts, expected([("all_admitted", 1), ("all_limited", 2)]));
    });
    for (call, log) in [(0, (0, 1, 0)), (1, (0, 1, 1)), (2, (0, 1, 1))] {
        let (limited, replies) = &seen[call];
        assert_eq!(*limited, 0, "call {call}");
        assert_eq!(verdicts(replies), [log, (0, 6, 0)], "call {call}");
    }
    // Subscribers hear of the key that was over its limit all the same.
    assert_eq!(of(&told, "log"), ["slide.limited"; 2]);
    assert_eq!(of(&told, "counter"), [""; 0]);
    run::<()>(&mut con, "CONFIG", &["SET", "slide.enforce", "yes"]);
    let (limited, replies) = slide_all(&mut con, &words);
    assert_eq!(limited, 1);
    assert_eq!(verdicts(&replies), [(1, 1, 1), (0, 6, 0)]);
}

/// Each of these is turned down with a sentence that has these words, and nothing is recorded.
fn turns_down(cases: &[(&str, &[&str])]) {
    let server = Server::start();
    let mut con = server.connect();
    for (words, named) in cases {
        let error = error_of_all(&mut con, words);
        assert!(
            error.starts_with("ERR ") && named.iter().all(|named| error.contains(named)),
            "{words}: {error}"
        );
    }
    assert_eq!(
        run::<i64>(&mut con, "DBSIZE", &[]),
        0,
        "an error changed something"
    );
}

#[test]
fn keys_are_as_many_as_said_and_all_different() {
    turns_down(&[
        ("0 a LOG 5 1d", &["numkeys", "from 1 to 64", "'0'"]),
        ("65 a LOG 5 1d", &["numkeys", "from 1 to 64", "'65'"]),
        ("-1 a LOG 5 1d", &["numkeys", "from 1 to 64", "'-1'"]),
        ("01 a LOG 5 1d", &["numkeys", "from 1 to 64", "'01'"]),
        ("+1 a LOG 5 1d", &["numkeys", "from 1 to 64", "'+1'"]),
        ("a 1 LOG 5 1d", &["numkeys", "from 1 to 64", "'a'"]),
        ("99999999999999999999 a LOG 5 1d", &["numkeys"]),
        ("18446744073709551617 a LOG 5 1d", &["numkeys"]),
        ("2 a a LOG 5 1d LOG 5 1d", &["key", "'a'"]),
        ("3 a b a LOG 5 1d LOG 5 1d LOG 5 1d", &["key", "'a'"]),
    ]);
}

#[test]
fn clauses_are_as_many_as_keys() {
    turns_down(&[
        ("2 a b LOG 5 1d", &["clause"]),
        ("1 a LOG 5 1d COUNTER 5 1d", &["clause"]),
        ("3 a LOG 5 1d", &["clause"]),
        ("4 a LOG 5 1d", &["clause"]),
        ("1 a 5 1d COST 1", &["clause"]),
        ("1 a NX 5 1d", &["clause", "'NX'"]),
        ("2 a b LOG 5 1d FORCE LOG 5 1d", &["clause", "'FORCE'"]),
        (
            "2 a b LOG 5 1d BUCKETS 4 LOG 5 1d",
            &["clause", "'BUCKETS'"],
        ),
    ]);
}

#[test]
fn options_stand_in_their_places() {
    let syntax = "syntax error: ";
    turns_down(&[
        ("1 a LOG 5 1d BUCKETS 4", &[syntax, "'BUCKETS'"]),
        ("1 a LOG 5 1d STRICT", &[syntax, "'STRICT'"]),
        ("1 a LOG 5 1d HEADERS COST 1", &[syntax, "'COST'"]),
        ("1 a COUNTER 5 1d FORCE STRICT", &[syntax, "'STRICT'"]),
        ("1 a COUNTER 5 1d FORCE BUCKETS 4", &[syntax, "'BUCKETS'"]),
        ("1 a LOG 5 1d FORCE LOG 5 1d", &["'LOG'"]),
        ("1 a LOG 5 1d COST 1 5 1h", &[syntax, "'5'"]),
        ("1 a COUNTER 5 1d STRICT strict", &[syntax, "'strict'"]),
        (
            "1 a COUNTER 5 1d BUCKETS 4 BUCKETS 4",
            &[syntax, "'BUCKETS'"],
        ),
        ("1 a LOG 5 1d FORCE FORCE", &[syntax, "'FORCE'"]),
        ("1 a LOG 5 1d HEADERS headers", &[syntax, "'headers'"]),
        ("1 a LOG 5 1d COST 1 COST 1", &[syntax, "'COST'"]),
    ]);
}

#[test]
fn a_wrong_number_in_any_clause_is_named() {
    let buckets = "buckets must be an integer from 1 to 64";
    let cost = "cost must be an integer from 0 to 9007199254740991";
    turns_down(&[
        ("1 a COUNTER 5 1d BUCKETS 0", &[buckets, "'0'"]),
        ("1 a COUNTER 5 1d BUCKETS", &[buckets]),
        (
            "2 a b COUNTER 5 1d COUNTER 5 1d BUCKETS 65",
            &[buckets, "'65'"],
        ),
        ("1 a LOG 5 1d COST", &[cost]),
        ("1 a LOG 5 1d COST -1", &[cost, "'-1'"]),
        ("2 a b LOG 5 1d COST x LOG 5 1d", &[cost, "'x'"]),
        ("1 a LOG 5 1d 5", &["window"]),
        ("2 a b LOG 5 1d 5 24h LOG 5 1d", &["window"]),
        ("2 a b LOG 5 1d LOG -5 1d", &["limit must be an integer"]),
        ("2 a b LOG 5 1d LOG 5 0d", &["window", "'0d'"]),
        (
            "2 a b LOG 5 1d LOG 5 60",
            &["window", "got '60': say 60s or 60ms"],
        ),
        ("2 a b LOG 5 1d COUNTER", &["limit must be an integer"]),
    ]);
}

#[test]
fn each_clause_takes_sixteen_tiers() {
    let server = Server::start();
    let mut con = server.connect();
    let tiers = |count| {
        let tiers = (1..=count).map(|minutes| format!("5 {minutes}m"));
        tiers.collect::<Vec<_>>().join(" ")
    };
    let words = format!("2 a b LOG {} COUNTER {}", tiers(16), tiers(16));
    assert_eq!(slide_all(&mut con, &words).0, 0);
    let before = state(&mut con);
    let error = error_of_all(&mut con, &format!("2 a b LOG 5 1d LOG {}", tiers(17)));
    assert!(error.contains("at most 16 tiers"), "{error}");
    assert_eq!(state(&mut con), before);
}

#[test]
fn too_few_arguments_get_the_standard_error() {
    let server = Server::start();
    let mut con = server.connect();
    for short in ["1 a LOG 5", "1 a LOG", "1"] {
        let error = error_of_all(&mut con, short).to_lowercase();
        assert_eq!(
            error, "err wrong number of arguments for 'slide.all' command",
            "{short}"
        );
    }
}

#[test]
fn words_are_taken_in_any_case_and_keys_as_they_are() {
    let server = Server::start();
    let mut con = server.connect();
    let words =
        format!("2 log LOG log 5 1d Cost 2 Counter 9 {DECADE} strict bUCKETS 3 cost 2 force");
    let (limited, replies) = slide_all(&mut con, &words);
    assert_eq!(
        (limited, verdicts(&replies)),
        (0, vec![(0, 3, 0), (0, 7, 0)])
    );
    assert_eq!(run::<String>(&mut con, "TYPE", &["log"]), "zset");
    assert_eq!(run::<String>(&mut con, "TYPE", &["LOG"]), "hash");
    let mut bytes = redis::cmd("SLIDE.ALL");
    bytes
        .arg(3)
        .arg(&b""[..])
        .arg(&b"\0"[..])
        .arg(&b"\0\xff"[..]);
    bytes.arg(&["LOG", "5", "1d", "LOG", "5", "1d", "LOG", "5", "1d"]);
    assert_eq!(all_replies(&bytes.query(&mut con).unwrap()).0, 0);
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 5);
}

#[test]
fn a_call_takes_64_keys() {
    let server = Server::start();
    let mut con = server.connect();
    let call = |count: usize| {
        let keys: Vec<String> = (0..count).map(|key| format!("k{key}")).collect();
        let clauses = (0..count).map(|key| match key % 3 {
            0 => "LOG 2 1d".to_owned(),
            1 => format!("COUNTER 2 {DECADE} BUCKETS 30"),
            _ => "LEASE 2 1d id".to_owned(),
        });
        let clauses: Vec<String> = clauses.collect();
        format!("{count} {} {}", keys.join(" "), clauses.join(" "))
    };
    for (limited, left) in [(0, 1), (0, 0), (1, 0)] {
        let (over, replies) = slide_all(&mut con, &call(64));
        assert_eq!((over, replies.len()), (limited, 64));
        for (key, reply) in replies.iter().enumerate() {
            // The second call renews the leases of the first.
            let left = if key % 3 == 2 { 1 } else { left };
            assert_eq!(reply.remaining, left, "key {key}");
        }
    }
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 64);
    let error = error_of_all(&mut con, &call(65));
    assert!(error.contains("numkeys") && error.contains("64"), "{error}");
}

#[test]
fn what_the_last_key_holds_decides_before_the_first_is_touched() {
    let primary = Server::start();
    let replica = Setup::new().without_module().replica_of(&primary).start();
    let mut con = primary.connect();
    slide_log(&mut con, "log", &[(5, "1d")], &[]);
    slide_counter(&mut con, "counter", &[(5, DECADE)], &[]);
    run::<()>(&mut con, "SET", &["string", "9"]);
    let time = now(&mut con).to_string();
    run::<i64>(&mut con, "ZADD", &["ranking", &time, "alice"]);
    run::<i64>(&mut con, "HSET", &["session", "name", "alice"]);
    let field = format!("{DECADE_FIELD}/4");
    run::<i64>(&mut con, "HSET", &["short", &field, "5:1:1"]);
    primary.wait_for(&replica);
    let before = state(&mut con);
    let offset = info_number(&mut con, "replication", "master_repl_offset");
    let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let sorted_set = "ERR key holds a sorted set that SLIDE.LOG did not write";
    let hash = "ERR key holds a hash that SLIDE.COUNTER did not write";
    for (last, clause, expected) in [
        ("string", "LOG 5 1d", wrong),
        ("string", "COUNTER 5 1d", wrong),
        ("counter", "LOG 5 1d", "WRONGTYPE "),
        ("log", "COUNTER 5 1d", "WRONGTYPE "),
        ("ranking", "LOG 5 1d", sorted_set),
        ("session", "COUNTER 5 1d", hash),
        ("short", "COUNTER 5 315576000000ms BUCKETS 4", hash),
    ] {
        for options in ["COST 1", "COST 0", "COST 9", "COST 9 FORCE"] {
            for first in ["LOG 5 1d", "COUNTER 5 1d", "LEASE 5 1d id"] {
                let words = format!("3 new newer {last} {first} {first} {clause} {options}");
                let error = error_of_all(&mut con, &words);
                assert!(error.starts_with(expected), "{words}: {error}");
            }
        }
    }
    assert_eq!(state(&mut con), before);
    assert_eq!(
        info_number(&mut con, "replication", "master_repl_offset"),
        offset
    );
    // The same with keys that exist.
    for (first, clause) in [("log", "LOG 5 1d"), ("counter", "COUNTER 5 1d")] {
        let words = format!("2 {first} string {clause} LOG 5 1d");
        assert_eq!(error_of_all(&mut con, &words), wrong);
    }
    assert_eq!(state(&mut con), before);
    primary.assert_alive();
}

#[test]
fn a_limited_key_is_healed_like_alone() {
    let server = Server::start();
    let mut con = server.connect();
    let future = (now(&mut con) + 3_600_000).to_string();
    run::<i64>(&mut con, "ZADD", &["healed", &future, "5:5"]);
    slide_counter(&mut con, "full", &[(5, DECADE)], &["COST", "5"]);
    let before: BTreeMap<String, String> = run(&mut con, "HGETALL", &["full"]);
    let counts = added(&mut con, |con| {
        let words = format!("2 healed full LOG 9 60s COUNTER 5 {DECADE}");
        let (limited, replies) = slide_all(con, &words);
        assert_eq!(
            (limited, verdicts(&replies)),
            (1, vec![(0, 4, 0), (1, 0, 1)])
        );
    });
    assert_eq!(counts, expected([("all_limited", 1), ("clock_faults", 1)]));
    let (member, time) = entries(&mut con, "healed").pop().unwrap();
    assert!(time <= now(&mut con), "{member} is still in the future");
    let after: BTreeMap<String, String> = run(&mut con, "HGETALL", &["full"]);
    assert_eq!(after, before);
}

#[test]
fn verdicts_are_counted_once_a_call() {
    let server = Server::start();
    let mut con = server.connect();
    for (cost, force, counts) in [
        (5, "", vec![("all_admitted", 1)]),
        (0, "", vec![("all_admitted", 1)]),
        (1, "", vec![("all_limited", 1)]),
        (10, "", vec![("all_limited", 1)]),
        (1, " FORCE", vec![("all_limited", 1), ("forced", 1)]),
    ] {
        let options = format!("COST {cost}{force}");
        let seen = added(&mut con, |con| {
            let counters = format!("COUNTER 9 {DECADE} COUNTER 9 {DECADE} STRICT");
            slide_all(
                con,
                &format!("3 a b c LOG 5 1d COST {cost} {counters}{force}"),
            );
        });
        let counts = counts
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count));
        assert_eq!(seen, counts.collect(), "{options}");
    }
    let seen = added(&mut con, |con| {
        error_of_all(con, "1 a COUNTER 5 1d");
        error_of_all(con, "1 a LOG 5 1d STRICT");
    });
    assert_eq!(seen, expected([("errors", 2)]));
}

#[test]
fn each_key_over_its_limit_is_an_event() {
    let server = Server::start();
    let three = |cost| {
        format!(
            "3 log counter other LOG 5 1d COST {cost} COUNTER 7 {DECADE} COST {cost} \
             LOG 9 1d COST {cost}"
        )
    };
    let seen = events(&server, "dzhg", |con| {
        for cost in [5, 2, 3, 5, 0] {
            slide_all(con, &three(cost));
        }
    });
    let limited = "slide.limited";
    assert_eq!(
        of(&seen, "log"),
        ["zadd", "expire", limited, limited, limited]
    );
    assert_eq!(of(&seen, "counter"), ["hset", "expire", limited, limited]);
    assert_eq!(of(&seen, "other"), ["zadd", "expire", limited]);
}

#[test]
fn without_memory_nothing_is_half_written() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(5, "1d")], &["COST", "5"]);
    slide_counter(&mut con, "counter", &[(9, DECADE)], &["COST", "5"]);
    run::<()>(&mut con, "CONFIG", &["SET", "maxmemory", "1"]);
    let before = state(&mut con);
    let oom = "OOM command not allowed when used memory > 'maxmemory'.";
    for words in [
        format!("2 counter new COUNTER 9 {DECADE} LOG 5 1d"),
        format!("2 new counter LOG 5 1d COUNTER 9 {DECADE}"),
        format!("2 log counter LOG 9 1d COUNTER 9 {DECADE}"),
        format!("2 log counter LOG 5 1d COUNTER 9 {DECADE} FORCE"),
    ] {
        assert_eq!(error_of_all(&mut con, &words), oom, "{words}");
    }
    // What records nothing is answered.
    let words = format!("3 log counter new LOG 5 1d COUNTER 9 {DECADE} LOG 5 1d");
    assert_eq!(slide_all(&mut con, &words).0, 1);
    let free =
        format!("3 log counter new LOG 5 1d COST 0 COUNTER 9 {DECADE} COST 0 LOG 5 1d COST 0");
    let (limited, replies) = slide_all(&mut con, &free);
    assert_eq!(
        (limited, verdicts(&replies)),
        (0, vec![(0, 0, 0), (0, 4, 0), (0, 5, 0)])
    );
    assert_eq!(state(&mut con), before);
    run::<()>(&mut con, "CONFIG", &["SET", "maxmemory", "0"]);
    let words = format!("2 log counter LOG 9 1d COUNTER 9 {DECADE}");
    assert_eq!(slide_all(&mut con, &words).0, 0);
}

#[test]
fn the_server_finds_the_keys() {
    let server = Server::start();
    let mut con = server.connect();
    let (arity, flags) = command_info(&mut con, "SLIDE.ALL");
    assert_eq!(arity, -6);
    for flag in ["write", "fast"] {
        assert!(flags.contains(&flag.to_owned()), "{flags:?}");
    }
    assert!(!flags.contains(&"denyoom".to_owned()), "{flags:?}");
    let call = "SLIDE.ALL 3 a b c LOG 5 1d COUNTER 5 1d BUCKETS 4 LOG 9 1h COST 3";
    let keys: Vec<String> = line(&format!("COMMAND GETKEYS {call}"))
        .query(&mut con)
        .unwrap();
    assert_eq!(keys, ["a", "b", "c"]);
    let keys: Vec<(String, Vec<String>)> = line(&format!("COMMAND GETKEYSANDFLAGS {call}"))
        .query(&mut con)
        .unwrap();
    let names: Vec<&str> = keys.iter().map(|key| key.0.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    for (name, flags) in &keys {
        for flag in ["RW", "access", "update"] {
            assert!(flags.contains(&flag.to_owned()), "{name}: {flags:?}");
        }
    }
}

/// The arguments of a documented block, by name.
fn inner(argument: &BTreeMap<String, Value>) -> BTreeMap<String, BTreeMap<String, Value>> {
    let list = argument["arguments"].as_sequence().unwrap();
    let named = |argument: &Value| {
        let argument = map_of(argument);
        (text(&argument, "name"), argument)
    };
    list.iter().map(named).collect()
}

fn text(argument: &BTreeMap<String, Value>, field: &str) -> String {
    from_redis_value_ref(&argument[field]).unwrap()
}

#[test]
fn the_documentation_shows_the_clauses() {
    let server = Server::start();
    let mut con = server.connect();
    let docs = map_of(&run(&mut con, "COMMAND", &["DOCS", "SLIDE.ALL"]));
    let docs = map_of(docs.values().next().unwrap());
    let names: Vec<String> = docs["arguments"]
        .as_sequence()
        .unwrap()
        .iter()
        .map(|argument| text(&map_of(argument), "name"))
        .collect();
    assert_eq!(names, ["numkeys", "key", "clause", "force", "headers"]);
    let arguments = inner(&docs);
    let flags = |argument: &BTreeMap<String, Value>| -> Vec<String> {
        let flags = argument.get("flags");
        flags.map_or_else(Vec::new, |flags| from_redis_value_ref(flags).unwrap())
    };
    assert_eq!(text(&arguments["key"], "type"), "key");
    assert_eq!(flags(&arguments["key"]), ["multiple"]);
    let clause = &arguments["clause"];
    assert_eq!(text(clause, "type"), "oneof");
    assert_eq!(flags(clause), ["multiple"]);
    let clauses = inner(clause);
    for (word, options) in [
        ("log", &["cost"][..]),
        ("counter", &["cost", "buckets", "strict"]),
    ] {
        let clause = &clauses[&format!("{word}-clause")];
        assert_eq!(text(clause, "type"), "block");
        let words = inner(clause);
        assert_eq!(text(&words[word], "token"), word.to_uppercase());
        assert_eq!(flags(&words["tier"]), ["multiple"]);
        for option in options {
            assert_eq!(flags(&words[*option]), ["optional"], "{option}");
            assert_eq!(text(&words[*option], "token"), option.to_uppercase());
        }
        assert_eq!(words.len(), 2 + options.len(), "{words:?}");
    }
    let words = inner(&clauses["lease-clause"]);
    assert_eq!(text(&words["lease"], "token"), "LEASE");
    assert_eq!(text(&words["limit"], "type"), "integer");
    for word in ["ttl", "id"] {
        assert_eq!(text(&words[word], "type"), "string");
    }
    assert_eq!(words.len(), 4, "{words:?}");
}

#[test]
fn a_user_needs_every_key() {
    let server = Server::start();
    let mut admin = server.connect();
    for rule in [
        "on",
        "nopass",
        "~mine:*",
        "%R~shared:*",
        "-@all",
        "+slide.all",
    ] {
        run::<()>(&mut admin, "ACL", &["SETUSER", "limiter", rule]);
    }
    let mut con = server.connect();
    run::<()>(&mut con, "AUTH", &["limiter", "x"]);
    assert_eq!(
        slide_all(&mut con, "2 mine:1 mine:2 LOG 5 1d LOG 5 1d").0,
        0
    );
    let before = state(&mut admin);
    for (keys, clauses) in [
        ("2 mine:1 other", "LOG 5 1d LOG 5 1d"),
        ("2 other mine:1", "LOG 5 1d LOG 5 1d"),
        ("3 mine:3 other mine:1", "LOG 5 1d COUNTER 5 1d LOG 5 1d"),
        ("2 mine:1 shared:1", "LOG 5 1d LOG 5 1d"),
        ("2 mine:1 shared:1", "LOG 5 1d LOG 5 1d COST 0"),
    ] {
        let error = error_of_all(&mut con, &format!("{keys} {clauses}"));
        assert!(error.starts_with("NOPERM "), "{keys}: {error}");
        assert_eq!(state(&mut admin), before, "{keys}");
    }
    // However numkeys is written, no key is missed by the server and taken by the module.
    for numkeys in ["01", "+1", "1.0", "0x1", "0", "-1", "9"] {
        error_of_all(&mut con, &format!("{numkeys} other LOG 5 1d"));
        assert_eq!(state(&mut admin), before, "{numkeys}");
    }
}
