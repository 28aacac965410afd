//! Dates at which clocks overflow, back and forth, and windows of up to ten years around them.

use std::collections::BTreeMap;

use redis::{Cmd, Value, from_redis_value_ref};

use crate::histories::{Buckets, MIXED, Traffic, compare};
use crate::support::clock::Frozen;
use crate::support::random::{Numbers, assert_telling, effort};
use crate::support::{Reply, bucket, end_of_bucket, entries, reply_of, run, slide};

/// In seconds since 1970: the epoch itself, 2001, the ends of 31 and 32 bits of seconds, of 63 bits
/// of nanoseconds and of ten digits of seconds, and the year 2500.
const LANDMARKS: [i64; 7] = [
    0,
    1_000_000_000,
    1 << 31,
    1 << 32,
    9_223_372_037,
    10_000_000_000,
    16_725_225_600,
];

const WINDOWS: [(i64, &str); 4] = [
    (1, "1ms"),
    (1000, "1s"),
    (86_400_000, "1d"),
    (315_576_000_000, "5259600m"),
];

/// Leaps to a little before a landmark, or after it.
fn leaping(numbers: &mut Numbers, now: i64, window: u64) -> i64 {
    if !numbers.one_in(4) {
        return numbers.later(now, window);
    }
    let landmark = LANDMARKS[numbers.place(LANDMARKS.len())] * 1000;
    let near = i64::try_from(numbers.below(window)).unwrap();
    let early = i64::try_from(numbers.below(window)).unwrap();
    (landmark + near - early).max(0)
}

/// Each leap back of more than ten years is a clock fault, whatever the window.
fn assert_healed(faults: i64) {
    let enough = faults > effort(20, 200);
    assert_telling(enough, format!("only {faults} clock faults"));
}

fn histories() -> u64 {
    effort(6, 60)
}

#[test]
fn logs_stay_exact_around_far_dates() {
    assert_healed(compare(&Traffic::on_logs(MIXED, leaping), histories()));
}

#[test]
fn classic_counters_do_too() {
    let traffic = Traffic::on_counters(MIXED, Buckets::Classic, leaping);
    assert_healed(compare(&traffic, histories()));
}

#[test]
fn counters_in_buckets_strict_or_not_do_too() {
    let traffic = Traffic::on_counters(MIXED, Buckets::OneNumber, leaping);
    assert_healed(compare(&traffic, histories()));
}

fn with_headers(frozen: &mut Frozen, command: &Cmd) -> (Reply, BTreeMap<String, String>) {
    let six: Vec<Value> = command.query(&mut frozen.con).unwrap();
    let five: Vec<i64> = six[..5]
        .iter()
        .map(|integer| from_redis_value_ref(integer).unwrap())
        .collect();
    (reply_of(&five), from_redis_value_ref(&six[5]).unwrap())
}

/// The header says the second in which the next unit comes, whatever its digits: with all but one
/// unit left, that is when the reported tier is empty again.
fn assert_reset_header(now: i64, reply: Reply, headers: &BTreeMap<String, String>) {
    let expected = (now + reply.reset_after + 999) / 1000;
    assert_eq!(
        headers["X-RateLimit-Reset"],
        expected.to_string(),
        "at {now}"
    );
}

#[test]
fn headers_and_expiries_are_right_at_any_date() {
    let mut frozen = Frozen::start();
    for seconds in LANDMARKS {
        let instant = seconds * 1000;
        for now in (instant - 1..=instant + 1).filter(|&now| now >= 0) {
            frozen.set(now);
            for (window, spelled) in WINDOWS {
                let key = format!("{now}:{window}");
                let tiers = [(2, spelled)];
                let log = slide("SLIDE.LOG", &key, &tiers, &["HEADERS"]);
                let (reply, headers) = with_headers(&mut frozen, &log);
                assert_eq!((reply.limited, reply.reset_after), (0, window));
                assert_reset_header(now, reply, &headers);
                assert_eq!(entries(&mut frozen.con, &key), [("1:1".to_owned(), now)]);
                let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &[&key]);
                let spare = expiry - now - window;
                assert!((0..=window / 4).contains(&spare), "{key}: {spare}");

                let key = format!("c:{key}");
                let counter = slide("SLIDE.COUNTER", &key, &tiers, &["HEADERS"]);
                let (reply, headers) = with_headers(&mut frozen, &counter);
                let end = end_of_bucket(&key, window, 1, bucket(&key, window, 1, now));
                assert_eq!((reply.limited, reply.reset_after), (0, end - now));
                assert_reset_header(now, reply, &headers);
                let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &[&key]);
                assert_eq!(expiry, end, "{key}");
            }
        }
    }
}
