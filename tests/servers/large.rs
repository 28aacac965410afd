//! Logs of a million entries.

use redis::{Cmd, Connection, cmd};

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

/// The CPU time that the server's main thread has used, in seconds: however busy the machine is,
/// what other processes use does not count.
fn cpu_time(con: &mut Connection) -> f64 {
    ["used_cpu_user_main_thread", "used_cpu_sys_main_thread"]
        .map(|field| info(con, "cpu", field).expect("a CPU time"))
        .map(|seconds| seconds.parse::<f64>().unwrap())
        .iter()
        .sum()
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
        // A scan of the log would take a thousand times as long, a busy machine up to twenty times.
        assert!(
            large <= small * 50.0 + 1.0,
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
    // At least every 16th call trims. What it costs is measured with two readings of the clock around it, and now
    // and then an interrupt falls to the process: few calls may seem to take longer.
    let call = slide("SLIDE.LOG", "k", &[(1_000_000, "60s")], &[]);
    let slow = (0..500)
        .filter(|_| {
            let before = cpu_time(&mut con);
            call.query::<()>(&mut con).unwrap();
            cpu_time(&mut con) - before > 0.001
        })
        .count();
    assert!(slow <= 5, "{slow} of 500 calls took more than 1 ms");
    let trimmed = MILLION - run::<i64>(&mut con, "ZCOUNT", &["k", "-inf", &last.to_string()]);
    assert!(
        trimmed >= 500 / 16 * 64,
        "of a million expired entries only {trimmed} were trimmed"
    );
}
