//! Logs of a million entries.

use redis::{Cmd, Connection, Pipeline, Value, cmd};

use crate::support::{Server, info, now, repeated, run, slide, slide_log};

const MILLION: i64 = 1_000_000;

/// A limit that no test reaches.
const ROOMY: u64 = 1_000_000_000;

/// Stores this many entries of cost 1, one a ms, the last at the given time.
fn store(con: &mut Connection, key: &str, count: i64, last: i64) {
    let numbers: Vec<i64> = (1..=count).collect();
    for chunk in numbers.chunks(10_000) {
        let mut add = cmd("ZADD");
        add.arg(key);
        for number in chunk {
            add.arg(last - count + number).arg(format!("{number}:1"));
        }
        add.query::<i64>(con).unwrap();
    }
}

/// The server's own mean time of a command since the last reset, in µs.
fn mean_time(con: &mut Connection) -> f64 {
    let line = info(con, "commandstats", "cmdstat_slide.log")
        .or_else(|| info(con, "commandstats", "cmdstat_SLIDE.LOG"))
        .expect("calls were made");
    let per_call = line
        .split(',')
        .find_map(|part| part.strip_prefix("usec_per_call="))
        .unwrap();
    per_call.parse().unwrap()
}

fn mean_time_of(con: &mut Connection, call: &Cmd) -> f64 {
    run::<()>(con, "CONFIG", &["RESETSTAT"]);
    repeated(call, 500).query::<()>(con).unwrap();
    mean_time(con)
}

/// How many of these calls took the server more than 1 ms.
fn slow_calls(con: &mut Connection, calls: &Pipeline) -> usize {
    run::<()>(con, "CONFIG", &["SET", "slowlog-log-slower-than", "1000"]);
    run::<()>(con, "SLOWLOG", &["RESET"]);
    calls.query::<()>(con).unwrap();
    let slow: Vec<Vec<Value>> = run(con, "SLOWLOG", &["GET", "-1"]);
    slow.iter()
        .filter(|entry| {
            let words: Vec<String> = redis::from_redis_value_ref(&entry[3]).unwrap();
            words[0].eq_ignore_ascii_case("SLIDE.LOG")
        })
        .count()
}

#[test]
fn a_call_costs_the_same_whatever_the_logs_size() {
    let server = Server::start();
    let mut con = server.connect();
    let last = now(&mut con) - 1;
    store(&mut con, "small", 1000, last);
    store(&mut con, "large", MILLION, last);
    // Admitted; limited, and the wait reaches far into the log; limited by the shorter window.
    let kinds: [fn(&str, u64) -> Cmd; 3] = [
        |key, _| slide("SLIDE.LOG", key, &[(ROOMY, "1h")], &[]),
        |key, size| {
            let cost = (size / 2).to_string();
            slide("SLIDE.LOG", key, &[(size * 3 / 4, "1h")], &["COST", &cost])
        },
        |key, size| slide("SLIDE.LOG", key, &[(size / 10, "10m"), (ROOMY, "1h")], &[]),
    ];
    for (kind, call) in kinds.iter().enumerate() {
        let (small, large) = (call("small", 1000), call("large", 1_000_000));
        let mut fastest = [f64::MAX; 2];
        for _ in 0..8 {
            fastest[0] = fastest[0].min(mean_time_of(&mut con, &small));
            fastest[1] = fastest[1].min(mean_time_of(&mut con, &large));
        }
        let [small, large] = fastest;
        // A scan of the log would take a thousand times as long, a busy machine some times.
        assert!(
            large <= small * 10.0 + 1.0,
            "kind {kind}: {small} µs and {large} µs"
        );
    }
}

#[test]
fn waits_in_a_large_log_are_exact() {
    let server = Server::start();
    let mut con = server.connect();
    let last = now(&mut con) - 1;
    store(&mut con, "k", MILLION, last);
    for freed in [1, 2, 10, 1000, 65_537, 500_000, 999_999, 1_000_000] {
        let cost = freed.to_string();
        let call = slide("SLIDE.LOG", "k", &[(1_000_000, "1h")], &["COST", &cost]);
        crate::support::timed_reply(&mut con, call).matches(|now| crate::support::Reply {
            limited: 1,
            limit: 1_000_000,
            remaining: 0,
            retry_after: last - MILLION + freed + 3_600_000 - now,
            reset_after: last + 3_600_000 - now,
        });
    }
}

#[test]
fn a_million_expired_entries_stall_no_call() {
    let server = Server::start();
    let mut con = server.connect();
    let last = now(&mut con) - 100_000;
    store(&mut con, "k", MILLION, last);
    let first = slide_log(&mut con, "k", &[(1000, "60s")], &[]);
    assert_eq!((first.limited, first.remaining), (0, 999));
    let left: i64 = run(&mut con, "ZCARD", &["k"]);
    assert!(
        left > MILLION - 64,
        "one call removed {}",
        MILLION + 1 - left
    );
    // Another process can keep the server waiting now and then; a stall of the module's own would
    // be there in each round, as each trims several times.
    let round = repeated(&slide("SLIDE.LOG", "k", &[(1_000_000, "60s")], &[]), 200);
    let slow: Vec<usize> = (0..20).map(|_| slow_calls(&mut con, &round)).collect();
    assert!(
        slow.contains(&0),
        "calls of more than 1 ms in each round: {slow:?}"
    );
    let trimmed = MILLION - run::<i64>(&mut con, "ZCOUNT", &["k", "-inf", &last.to_string()]);
    assert!(
        trimmed > 2000,
        "of a million expired entries only {trimmed} were trimmed"
    );
}
