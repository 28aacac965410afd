//! The clock steps back and forward by the sizes at which the rules change, at random moments of
//! random histories, and replies stay those of the oracles.

use crate::all;
use crate::histories::{Buckets, MIXED, PLAIN, Traffic, compare};
use crate::support::random::{EARLIEST, Numbers, assert_telling, effort};

const YEAR: i64 = 31_557_600_000;

/// After a fault some more calls at about that time, so that it matters.
fn stepping(numbers: &mut Numbers, now: i64, window: u64) -> i64 {
    if !numbers.one_in(3) {
        return numbers.later(now, window);
    }
    let window = i64::try_from(window).unwrap();
    let sizes = [1, window / 2, window, window + 1, 2 * window, YEAR];
    let size = sizes[numbers.place(sizes.len())];
    if numbers.one_in(2) {
        now + size
    } else {
        (now - size).max(EARLIEST)
    }
}

fn assert_healed(faults: i64) {
    let enough = faults > effort(4, 50);
    assert_telling(enough, format!("only {faults} clock faults"));
}

fn histories() -> u64 {
    effort(6, 80)
}

#[test]
fn logs_stay_exact() {
    assert_healed(compare(&Traffic::on_logs(PLAIN, stepping), histories()));
}

#[test]
fn logs_with_peek_refund_and_force_do_too() {
    assert_healed(compare(&Traffic::on_logs(MIXED, stepping), histories()));
}

#[test]
fn classic_counters_do_too() {
    let traffic = Traffic::on_counters(MIXED, Buckets::Classic, stepping);
    assert_healed(compare(&traffic, histories()));
}

#[test]
fn counters_in_buckets_strict_or_not_do_too() {
    let traffic = Traffic::on_counters(MIXED, Buckets::OneNumber, stepping);
    assert_healed(compare(&traffic, histories()));
}

#[test]
fn several_keys_at_once_do_too() {
    assert_healed(all::compare(stepping, histories()));
}
