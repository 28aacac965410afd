//! `SLIDE.REFUND`: the newest units go back.

use std::collections::BTreeMap;

use redis::{Connection, cmd};

use crate::loading::command_info;
use crate::support::{
    DECADE, DECADE_FIELD, DECADE_MS, Server, Setup, bucket, command, entries, error_of, now, run,
    slide_counter, slide_log, slide_peek, state, wait_until,
};

fn refund(con: &mut Connection, key: &str, units: u64) -> u64 {
    run(con, "SLIDE.REFUND", &[key, &units.to_string()])
}

/// A log with entries of 5, 3 and 2 units in the last seconds.
fn store(con: &mut Connection) -> i64 {
    let time = now(con);
    for (age, member) in [(3000, "5:5"), (2000, "8:3"), (1000, "10:2")] {
        run::<i64>(con, "ZADD", &["log", &(time - age).to_string(), member]);
    }
    run::<i64>(con, "PEXPIREAT", &["log", &(time + 70_000).to_string()]);
    time
}

#[test]
fn a_missing_key_has_nothing_to_give() {
    let server = Server::start();
    let mut con = server.connect();
    assert_eq!(refund(&mut con, "k", 5), 0);
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0);
    // Nothing was put by: the limit is still the limit.
    let reply = slide_log(&mut con, "k", &[(10, "60s")], &["COST", "11"]);
    assert_eq!((reply.limited, reply.remaining), (1, 10));
}

#[test]
fn the_newest_entries_of_a_log_are_taken_first() {
    let server = Server::start();
    let mut con = server.connect();
    for (units, left) in [
        (1, &[("5:5", 3000), ("8:3", 2000), ("9:1", 1000)][..]),
        (2, &[("5:5", 3000), ("8:3", 2000)]),
        (4, &[("5:5", 3000), ("6:1", 2000)]),
        (5, &[("5:5", 3000)]),
        (9, &[("1:1", 3000)]),
    ] {
        let time = store(&mut con);
        let expiry: i64 = run(&mut con, "PEXPIRETIME", &["log"]);
        assert_eq!(refund(&mut con, "log", units), units);
        let expected: Vec<(String, i64)> = left
            .iter()
            .map(|(member, age)| ((*member).to_owned(), time - age))
            .collect();
        assert_eq!(entries(&mut con, "log"), expected, "after {units}");
        assert_eq!(run::<i64>(&mut con, "PEXPIRETIME", &["log"]), expiry);
        let peek = slide_peek(&mut con, "log", &[(10, "60s")], &[]);
        assert_eq!(u64::try_from(peek.remaining).unwrap(), units);
        // The running total goes on from what is left.
        let reply = slide_log(&mut con, "log", &[(10, "60s")], &[]);
        assert_eq!(u64::try_from(reply.remaining).unwrap(), units - 1);
        let member = format!("{}:1", 10 - units + 1);
        assert_eq!(entries(&mut con, "log").pop().unwrap().0, member);
        run::<i64>(&mut con, "DEL", &["log"]);
    }
}

#[test]
fn no_more_is_taken_than_is_stored_and_an_empty_log_is_gone() {
    let server = Server::start();
    let mut con = server.connect();
    for units in [10, 11, 9_007_199_254_740_991] {
        store(&mut con);
        assert_eq!(refund(&mut con, "log", units), 10);
        assert_eq!(run::<i64>(&mut con, "EXISTS", &["log"]), 0);
    }
}

#[test]
fn one_refund_takes_from_1000_entries_at_most() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    let mut fill = cmd("ZADD");
    fill.arg("log");
    for entry in 1..=1500 {
        fill.arg(time - 2000 + entry)
            .arg(format!("{}:2", entry * 2));
    }
    fill.query::<i64>(&mut con).unwrap();
    assert_eq!(refund(&mut con, "log", 2500), 2000);
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["log"]), 500);
    assert_eq!(refund(&mut con, "log", 500), 500);
    assert_eq!(
        slide_peek(&mut con, "log", &[(500, "60s")], &[]).remaining,
        0
    );
}

#[test]
fn totals_stay_right_across_2_to_the_64() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    for (age, member) in [(2000, "18446744073709551615:5"), (1000, "3:4")] {
        run::<i64>(
            &mut con,
            "ZADD",
            &["log", &(time - age).to_string(), member],
        );
    }
    assert_eq!(refund(&mut con, "log", 6), 6);
    assert_eq!(
        entries(&mut con, "log"),
        [("18446744073709551613:3".to_owned(), time - 2000)]
    );
    assert_eq!(
        slide_log(&mut con, "log", &[(10, "60s")], &["COST", "4"]).remaining,
        3
    );
    assert_eq!(entries(&mut con, "log").pop().unwrap().0, "1:4");
}

#[test]
fn a_counter_gives_from_its_newest_buckets_in_every_field() {
    let server = Server::start();
    let mut con = server.connect();
    for (units, taken, decade, other) in [
        (1, 1, "6:4:9", "6:3:2"),
        (5, 5, "6:0:9", "6:0:1"),
        (9, 9, "6:0:5", "6:0:0"),
        (50, 14, "6:0:0", "6:0:0"),
    ] {
        run::<i64>(
            &mut con,
            "HSET",
            &["k", DECADE_FIELD, "6:5:9", "300000000000", "6:4:2"],
        );
        let expiry = 8 * DECADE_MS;
        run::<i64>(&mut con, "PEXPIREAT", &["k", &expiry.to_string()]);
        assert_eq!(refund(&mut con, "k", units), taken);
        let fields: BTreeMap<String, String> = run(&mut con, "HGETALL", &["k"]);
        assert_eq!(
            (
                fields[DECADE_FIELD].as_str(),
                fields["300000000000"].as_str()
            ),
            (decade, other)
        );
        assert_eq!(run::<i64>(&mut con, "PEXPIRETIME", &["k"]), expiry);
    }
}

fn refund_aged(con: &mut Connection, key: &str, units: u64, age: i64) -> u64 {
    let age = format!("{age}ms");
    run(con, "SLIDE.REFUND", &[key, &units.to_string(), "AGE", &age])
}

/// With AGE a caller gets its own units back, and those that came after stay.
#[test]
fn with_age_the_units_of_that_time_are_taken() {
    let server = Server::start();
    let mut con = server.connect();
    let ages = [40_000, 30_400, 30_000, 29_500, 10_000, 5000];
    for (units, age, taken, left) in [
        // First from then on, oldest first, then from there back.
        (1, 30_000, 1, [2, 2, 1, 2, 2, 2]),
        (3, 30_000, 3, [2, 2, 0, 1, 2, 2]),
        (5, 30_000, 5, [2, 1, 0, 0, 2, 2]),
        // Nothing outside the two seconds around it, however much is asked for.
        (99, 30_000, 6, [2, 0, 0, 0, 2, 2]),
        (99, 20_000, 0, [2, 2, 2, 2, 2, 2]),
        // To the newest entry, whose place the one before takes.
        (99, 5000, 2, [2, 2, 2, 2, 2, 0]),
        (2, 40_000, 2, [0, 2, 2, 2, 2, 2]),
    ] {
        let time = now(&mut con);
        for (place, age) in (1..).zip(ages) {
            let (score, member) = ((time - age).to_string(), format!("{}:2", place * 2));
            run::<i64>(&mut con, "ZADD", &["log", &score, &member]);
        }
        // The server's clock goes on meanwhile, so the call is made a little later than `time`.
        let late = now(&mut con) - time;
        assert_eq!(refund_aged(&mut con, "log", units, age + late), taken);
        let (mut total, mut expected) = (0, Vec::new());
        for (cost, age) in left.iter().zip(ages).filter(|(cost, _)| **cost > 0) {
            total += cost;
            expected.push((format!("{total}:{cost}"), time - age));
        }
        assert_eq!(
            entries(&mut con, "log"),
            expected,
            "{units} of {age} ms ago"
        );
        run::<i64>(&mut con, "DEL", &["log"]);
    }
}

/// A refund that comes after the window has passed must not take what is another caller's.
#[test]
fn with_age_nothing_is_taken_from_others() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    for (age, member) in [(122_000, "10:10"), (1_000, "20:10")] {
        run::<i64>(&mut con, "ZADD", &["k", &(time - age).to_string(), member]);
    }
    assert_eq!(slide_peek(&mut con, "k", &[(10, "60s")], &[]).remaining, 0);
    // The first caller's upstream fails two minutes later.
    refund_aged(&mut con, "k", 10, 122_000);
    assert_eq!(slide_peek(&mut con, "k", &[(10, "60s")], &[]).remaining, 0);
    // The second one's does at once.
    assert_eq!(refund_aged(&mut con, "k", 10, 1_000), 10);
    assert_eq!(slide_peek(&mut con, "k", &[(10, "60s")], &[]).remaining, 10);
}

#[test]
fn with_age_only_the_newest_1000_entries_are_looked_at() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    let mut fill = cmd("ZADD");
    fill.arg("log");
    for entry in 1..=1500 {
        fill.arg(time - 100_000 + entry)
            .arg(format!("{}:2", entry * 2));
    }
    fill.query::<i64>(&mut con).unwrap();
    assert_eq!(refund_aged(&mut con, "log", 5000, 99_000), 2000);
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["log"]), 500);
}

#[test]
fn with_age_a_counter_gives_from_the_buckets_of_that_time() {
    let server = Server::start();
    let mut con = server.connect();
    // Of ten buckets of a decade the one that a refund's age names, and no other.
    let index = bucket("k", DECADE_MS, 10, now(&mut con));
    let field = format!("{DECADE_FIELD}/10");
    let year = DECADE_MS / 10;
    for (units, age, taken, left) in [
        (2, 0, 2, "7:8:7:6:5:4:3:2:1:0:0"),
        (99, 2 * year, 7, "9:8:0:6:5:4:3:2:1:0:0"),
        (99, 9 * year, 0, "9:8:7:6:5:4:3:2:1:0:0"),
    ] {
        let value = format!("{index}:9:8:7:6:5:4:3:2:1:0:0");
        run::<i64>(&mut con, "HSET", &["k", &field, &value]);
        assert_eq!(refund_aged(&mut con, "k", units, age), taken, "{age}");
        let stored: String = run(&mut con, "HGET", &["k", &field]);
        assert_eq!(stored, format!("{index}:{left}"), "{age}");
    }
}

/// A window that is over has nothing to give, even if its field is still there.
#[test]
fn a_dead_field_gives_nothing() {
    let server = Server::start();
    let mut con = server.connect();
    slide_counter(&mut con, "k", &[(100, "50ms")], &["COST", "50"]);
    slide_counter(&mut con, "k", &[(100, DECADE)], &[]);
    let over = now(&mut con) + 100;
    wait_until(&mut con, over);
    assert_eq!(refund(&mut con, "k", 100), 1);
}

#[test]
fn an_estimate_is_settled_either_way() {
    let server = Server::start();
    let mut con = server.connect();
    for (kind, window) in [("LOG", "1d"), ("COUNTER", DECADE)] {
        let mut spend = |key: &str, options: &[&str]| {
            let tiers = [(10_000, window)];
            match kind {
                "LOG" => slide_log(&mut con, key, &tiers, options),
                _ => slide_counter(&mut con, key, &tiers, options),
            }
        };
        // 4,000 tokens are reserved, 1,000 were used.
        let less = format!("{kind}:less");
        assert_eq!(spend(&less, &["COST", "4000"]).remaining, 6000);
        assert_eq!(refund(&mut server.connect(), &less, 3000), 3000);
        assert_eq!(spend(&less, &["COST", "0"]).remaining, 9000);
        // 4,000 are reserved, 6,000 were used: the rest counts whether or not it fits.
        let more = format!("{kind}:more");
        assert_eq!(spend(&more, &["COST", "4000"]).remaining, 6000);
        assert_eq!(spend(&more, &["COST", "2000", "FORCE"]).remaining, 4000);
        let over = spend(&more, &["COST", "5000", "FORCE"]);
        assert_eq!((over.limited, over.remaining), (1, 0));
        assert_eq!(refund(&mut server.connect(), &more, 2000), 2000);
        assert_eq!(spend(&more, &["COST", "0"]).remaining, 1000);
    }
}

#[test]
fn errors_leave_everything_as_it_is() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(5, "1d")], &["COST", "3"]);
    slide_counter(&mut con, "counter", &[(5, DECADE)], &["COST", "3"]);
    run::<()>(&mut con, "SET", &["string", "x"]);
    run::<i64>(&mut con, "ZADD", &["zset", "1", "alice"]);
    run::<i64>(&mut con, "HSET", &["hash", "name", "alice"]);
    let before = state(&mut con);
    for wrong in ["0", "-1", "+1", "1.5", "01", "9007199254740992", "x", ""] {
        for key in ["log", "counter", "missing"] {
            let error = error_of(&mut con, &command("SLIDE.REFUND", &[key, wrong]));
            let expected =
                format!("ERR units must be an integer from 1 to 9007199254740991, got '{wrong}'");
            assert_eq!(error, expected);
        }
    }
    for (key, expected) in [
        (
            "string",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        (
            "zset",
            "ERR key holds a sorted set that SLIDE.LOG did not write",
        ),
        (
            "hash",
            "ERR key holds a hash that SLIDE.COUNTER did not write",
        ),
    ] {
        assert_eq!(
            error_of(&mut con, &command("SLIDE.REFUND", &[key, "1"])),
            expected
        );
    }
    for (arguments, named) in [
        (&["log"][..], "wrong number of arguments"),
        (&["log", "1", "1"], "syntax error: "),
        (
            &["log", "1", "FORCE"],
            "syntax error: unknown option 'FORCE'",
        ),
        (&["log", "1", "AGE"], "age must be "),
        (&["log", "1", "AGE", "-1s"], "got '-1s'"),
        (
            &["log", "1", "AGE", "315576000001ms"],
            "got '315576000001ms'",
        ),
        (
            &["log", "1", "AGE", "1s", "age", "1s"],
            "syntax error: option 'age'",
        ),
    ] {
        let error = error_of(&mut con, &command("SLIDE.REFUND", arguments));
        assert!(error.contains(named), "{arguments:?}: {error}");
    }
    assert_eq!(state(&mut con), before);
}

#[test]
fn refunds_work_when_memory_is_full() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(5, "1d")], &["COST", "5"]);
    slide_counter(&mut con, "counter", &[(5, DECADE)], &["COST", "5"]);
    run::<()>(&mut con, "CONFIG", &["SET", "maxmemory", "1"]);
    for (key, window) in [("log", "1d"), ("counter", DECADE)] {
        assert_eq!(refund(&mut con, key, 2), 2);
        assert_eq!(slide_peek(&mut con, key, &[(5, window)], &[]).remaining, 2);
    }
}

/// A primary that writes each effect to its append-only file, and a replica without the module.
fn start_pair() -> (Server, Server) {
    let primary = Setup::new()
        .line("appendonly yes")
        .line("appendfsync always")
        .start();
    let replica = Setup::new().without_module().replica_of(&primary).start();
    (primary, replica)
}

#[test]
fn replicas_and_the_append_only_file_get_effects() {
    let (primary, replica) = start_pair();
    let mut con = primary.connect();
    let time = store(&mut con);
    slide_counter(&mut con, "counter", &[(10, DECADE)], &["COST", "9"]);
    let written = primary.append_only_file().len();
    assert_eq!(refund(&mut con, "log", 4), 4);
    // The key never empties in between: first comes what stays, then what goes.
    let effects = primary.append_only_file().split_off(written);
    assert_eq!(
        effects[0],
        ["ZADD", "log", &(time - 2000).to_string(), "6:1"]
    );
    assert!(effects.len() > 1);
    assert!(
        effects[1..]
            .iter()
            .all(|effect| effect[0].starts_with("ZREM")),
        "{effects:?}"
    );
    assert_eq!(refund(&mut con, "log", 100), 6);
    assert_eq!(refund(&mut con, "counter", 100), 9);
    primary.wait_for(&replica);
    assert_eq!(state(&mut con), state(&mut replica.connect()));
}

/// So many entries are removed as a range, all but the one that is taken from in part.
#[test]
fn a_refund_of_many_entries_is_a_few_effects() {
    let (primary, replica) = start_pair();
    let mut con = primary.connect();
    let start = now(&mut con) - 1000;
    let mut fill = redis::cmd("ZADD");
    fill.arg("log");
    for entry in 1..=500 {
        fill.arg(start + entry).arg(format!("{}:2", entry * 2));
    }
    fill.query::<i64>(&mut con).unwrap();
    run::<i64>(&mut con, "PEXPIRE", &["log", "86400000"]);
    let written = primary.append_only_file().len();
    assert_eq!(refund(&mut con, "log", 301), 301);
    let effects = primary.append_only_file().split_off(written);
    let time = |entry: i64| (start + entry).to_string();
    assert_eq!(
        effects,
        [
            vec!["ZADD", "log", &time(350), "699:1"],
            vec!["ZREM", "log", "700:2"],
            vec![
                "ZREMRANGEBYSCORE",
                "log",
                &format!("({}", time(350)),
                "+inf"
            ],
        ]
    );
    let left = entries(&mut con, "log");
    assert_eq!(left.len(), 350);
    assert_eq!(left[349], ("699:1".to_owned(), start + 350));
    assert_eq!(refund(&mut con, "log", 1000), 699);
    assert_eq!(run::<i64>(&mut con, "EXISTS", &["log"]), 0);
    primary.wait_for(&replica);
    assert_eq!(state(&mut con), state(&mut replica.connect()));
}

/// A range parts no two entries of one time, which no log writes but a client may: whether the
/// oldest entry taken shares its time with one that stays or with another that is taken, wholly or
/// in part, what was refunded goes and nothing else.
#[test]
fn a_refund_of_many_entries_parts_those_of_one_time() {
    let server = Server::start();
    let mut con = server.connect();
    let start = now(&mut con) - 1000;
    for pair in [20, 21] {
        let time = |entry: i64| start + entry - i64::from(entry == pair + 1);
        for (units, part) in [(160, None), (159, Some(("41:1".to_owned(), time(21))))] {
            let member = |entry: i64| (format!("{}:2", entry * 2), time(entry));
            let mut fill = cmd("ZADD");
            fill.arg("log");
            for (member, time) in (1..=100).map(member) {
                fill.arg(time).arg(member);
            }
            fill.query::<i64>(&mut con).unwrap();
            assert_eq!(refund(&mut con, "log", units), units);
            let left: Vec<(String, i64)> = (1..=20).map(member).chain(part).collect();
            assert_eq!(entries(&mut con, "log"), left, "{units} across {pair}");
            run::<i64>(&mut con, "DEL", &["log"]);
        }
    }
}

#[test]
fn only_a_refund_that_takes_is_a_change() {
    let server = Server::start();
    let (mut con, mut other) = (server.connect(), server.connect());
    slide_counter(&mut con, "k", &[(10, DECADE)], &["COST", "3"]);
    for (taken, unchanged) in [(3, false), (0, true)] {
        run::<()>(&mut con, "WATCH", &["k"]);
        assert_eq!(refund(&mut other, "k", 9), taken);
        run::<()>(&mut con, "MULTI", &[]);
        run::<String>(&mut con, "PING", &[]);
        let through = run::<Option<Vec<String>>>(&mut con, "EXEC", &[]).is_some();
        assert_eq!(through, unchanged, "{taken} taken");
    }
}

#[test]
fn the_server_knows_what_a_refund_does() {
    let server = Server::start();
    let mut con = server.connect();
    let (arity, flags) = command_info(&mut con, "SLIDE.REFUND");
    assert_eq!(arity, -3);
    assert!(flags.contains(&"write".to_owned()), "{flags:?}");
    assert!(!flags.contains(&"denyoom".to_owned()), "{flags:?}");
    let keys: Vec<String> = run(
        &mut con,
        "COMMAND",
        &["GETKEYS", "SLIDE.REFUND", "the key", "1"],
    );
    assert_eq!(keys, ["the key"]);
}
