//! INFO: what the module counts.

use std::collections::BTreeMap;

use redis::{Connection, Value};

use crate::support::{
    DECADE, Server, now, repeated, run, slide, slide_counter, slide_log, slide_peek,
};

/// The module's section, without the server's prefix.
fn counts(con: &mut Connection) -> BTreeMap<String, i64> {
    let text: String = run(con, "INFO", &["slide"]);
    text.lines()
        .filter_map(|line| line.strip_prefix("slide_")?.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// What some calls add to the counts, without those that stay.
pub fn added(con: &mut Connection, calls: impl FnOnce(&mut Connection)) -> BTreeMap<String, i64> {
    let before = counts(con);
    calls(con);
    let mut after = counts(con);
    for (name, count) in &before {
        *after.get_mut(name).unwrap() -= count;
    }
    after.retain(|_, count| *count != 0);
    after
}

/// Counts, written as pairs.
pub fn expected<const N: usize>(counts: [(&str, i64); N]) -> BTreeMap<String, i64> {
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

#[test]
fn every_count_is_there_from_the_start() {
    let server = Server::start();
    let mut con = server.connect();
    let counts = counts(&mut con);
    for name in [
        "log_admitted",
        "log_limited",
        "counter_admitted",
        "counter_limited",
        "lease_admitted",
        "lease_limited",
        "all_admitted",
        "all_limited",
        "peeked",
        "forced",
        "refunded_units",
        "released",
        "errors",
        "trimmed_entries",
        "clock_faults",
        "panics",
    ] {
        assert_eq!(counts.get(name), Some(&0), "{name} of {counts:?}");
    }
    assert!(run::<String>(&mut con, "INFO", &["everything"]).contains("slide_log_admitted:0"));
}

#[test]
fn verdicts_are_counted_by_command() {
    let server = Server::start();
    let mut con = server.connect();
    let log = added(&mut con, |con| {
        for cost in ["2", "1", "1", "0", "9"] {
            slide_log(con, "log", &[(3, "1d")], &["COST", cost]);
        }
    });
    assert_eq!(log, expected([("log_admitted", 3), ("log_limited", 2)]));
    let counter = added(&mut con, |con| {
        for cost in ["2", "1", "1", "1", "0"] {
            slide_counter(con, "counter", &[(3, DECADE)], &["COST", cost]);
        }
    });
    assert_eq!(
        counter,
        expected([("counter_admitted", 3), ("counter_limited", 2)])
    );
}

#[test]
fn everything_else_is_counted_once() {
    let server = Server::start();
    let mut con = server.connect();
    let peeked = added(&mut con, |con| {
        slide_peek(con, "k", &[(3, "1d")], &[]);
        slide_peek(con, "k", &[(3, "1d")], &["COST", "4"]);
    });
    assert_eq!(peeked, expected([("peeked", 2)]));

    let forced = added(&mut con, |con| {
        slide_log(con, "k", &[(3, "1d")], &["COST", "3", "FORCE"]);
        slide_log(con, "k", &[(3, "1d")], &["COST", "2", "FORCE"]);
    });
    assert_eq!(
        forced,
        expected([("log_admitted", 1), ("log_limited", 1), ("forced", 1)])
    );

    let refunded = added(&mut con, |con| {
        for _ in 0..3 {
            run::<i64>(con, "SLIDE.REFUND", &["k", "4"]);
        }
    });
    assert_eq!(refunded, expected([("refunded_units", 5)]));

    let errors = added(&mut con, |con| {
        run::<()>(con, "SET", &["string", "x"]);
        for (key, window) in [("string", "1d"), ("k", "60")] {
            slide("SLIDE.LOG", key, &[(3, window)], &[])
                .query::<Value>(con)
                .unwrap_err();
        }
    });
    assert_eq!(errors, expected([("errors", 2)]));

    let healed = added(&mut con, |con| {
        let future = (now(con) + 3_600_000).to_string();
        run::<i64>(con, "ZADD", &["healed", &future, "5:5"]);
        // A look writes nothing, so the fault is still there.
        slide_peek(con, "healed", &[(5, "60s")], &[]);
        slide_log(con, "healed", &[(5, "60s")], &[]);
        slide_log(con, "healed", &[(5, "60s")], &[]);
    });
    assert_eq!(
        healed,
        expected([("clock_faults", 1), ("log_limited", 2), ("peeked", 1)])
    );
}

#[test]
fn trimmed_entries_are_counted() {
    let server = Server::start();
    let mut con = server.connect();
    let old = now(&mut con) - 10_000_000;
    let mut fill = redis::cmd("ZADD");
    fill.arg("k");
    for entry in 1..=500 {
        fill.arg(old + entry).arg(format!("{entry}:1"));
    }
    fill.query::<i64>(&mut con).unwrap();
    let added = added(&mut con, |con| {
        let call = slide("SLIDE.LOG", "k", &[(1_000_000, "60s")], &[]);
        repeated(&call, 1000).query::<()>(con).unwrap();
    });
    let left: i64 = run(&mut con, "ZCOUNT", &["k", "-inf", &(old + 500).to_string()]);
    assert!(left < 500);
    assert_eq!(
        added,
        expected([("log_admitted", 1000), ("trimmed_entries", 500 - left)])
    );
}
