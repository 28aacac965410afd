//! Leases that have ended, and waits for many: neither is ever walked through.

use super::{lease, slide_lease, store};
use crate::support::{Server, info, now, repeated, run, timed_reply, wait_until};

/// The server's own mean time of a call since the last reset, in µs.
fn mean_time(con: &mut redis::Connection, call: &redis::Cmd, calls: usize) -> f64 {
    run::<()>(con, "CONFIG", &["RESETSTAT"]);
    repeated(call, calls).query::<()>(con).unwrap();
    let line = info(con, "commandstats", "cmdstat_slide.lease")
        .or_else(|| info(con, "commandstats", "cmdstat_SLIDE.LEASE"))
        .expect("calls were made");
    let mut parts = line.split(',');
    let per_call = parts.find_map(|part| part.strip_prefix("usec_per_call="));
    per_call.unwrap().parse().unwrap()
}

#[test]
fn ten_thousand_that_ended_are_gone_after_a_few_hundred_calls() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    store(
        &mut con,
        "k",
        (0..10_000).map(|place| time - 1 - place / 100),
    );
    let mut left = 10_000;
    for call in 0..157 {
        let id = format!("new {call}");
        let reply = slide_lease(&mut con, "k", 1_000, "60s", &id, &[]);
        assert_eq!((reply.limited, reply.remaining), (0, 999 - call));
        let ended: i64 = run(&mut con, "ZCOUNT", &["k", "-inf", &(time - 1).to_string()]);
        assert_eq!(ended, (left - 64).max(0), "one call removes at most 64");
        left = ended;
    }
    assert_eq!(left, 0);
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["k"]), 157);
}

#[test]
fn what_they_are_in_number_makes_no_difference() {
    let server = Server::start();
    let mut con = server.connect();
    let end = now(&mut con) + 600;
    store(&mut con, "few", (0..100).map(|_| end));
    store(&mut con, "many", (0..100_000).map(|_| end));
    store(&mut con, "other", [end + 3_600_000]);
    wait_until(&mut con, end + 1);
    // A limited call removes nothing, so that all stay as many as they are.
    for key in ["few", "many"] {
        run::<i64>(
            &mut con,
            "ZADD",
            &[key, &(end + 3_600_000).to_string(), "@live"],
        );
    }
    let limited = |key| lease(key, 1, "60s", "x", &[]);
    let mut fastest = [f64::MAX; 2];
    for _ in 0..8 {
        for (fastest, key) in fastest.iter_mut().zip(["few", "many"]) {
            *fastest = fastest.min(mean_time(&mut con, &limited(key), 500));
        }
    }
    let [few, many] = fastest;
    // A walk would take a thousand times as long, a busy machine some times.
    assert!(many <= few * 10.0 + 1.0, "{few} µs and {many} µs");
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["many"]), 100_001);
}

#[test]
fn a_wait_for_many_is_exact_and_short_to_find() {
    let server = Server::start();
    let mut con = server.connect();
    let first = now(&mut con) + 60_000;
    store(&mut con, "small", (0..100).map(|place| first + 7 * place));
    store(
        &mut con,
        "large",
        (0..100_000).map(|place| first + 7 * place),
    );
    for limit in [1, 2, 10, 50_000, 99_990, 99_999, 100_000] {
        let call = timed_reply(&mut con, lease("large", limit, "60s", "x", &[]));
        let rank = 100_000 - i64::try_from(limit).unwrap();
        call.matches(|now| crate::support::Reply {
            limited: 1,
            limit: i64::try_from(limit).unwrap(),
            remaining: 0,
            retry_after: first + 7 * rank - now,
            reset_after: first + 7 * 99_999 - now,
        });
    }
    let mut fastest = [f64::MAX; 2];
    for _ in 0..8 {
        for (fastest, key) in fastest.iter_mut().zip(["small", "large"]) {
            let call = lease(key, 1, "60s", "x", &[]);
            *fastest = fastest.min(mean_time(&mut con, &call, 200));
        }
    }
    let [small, large] = fastest;
    assert!(large <= small * 10.0 + 1.0, "{small} µs and {large} µs");
}
