//! `SLIDE.COUNTER` to the ms.

use std::collections::BTreeMap;

use crate::support::clock::{Frozen, START};
use crate::support::{
    DECADE, DECADE_MS, Reply, admitted, bucket, end_of_bucket, repeated, run, slide, slide_counter,
    start_of_bucket,
};

const MINUTE: i64 = 60_000;

/// The start of one of the minutes of the key `k`.
fn full() -> i64 {
    start_of_bucket("k", MINUTE, 1, bucket("k", MINUTE, 1, START))
}

#[track_caller]
fn call(frozen: &mut Frozen, ms: i64, tier: (u64, &str), cost: u64) -> Reply {
    frozen.set(ms);
    slide_counter(&mut frozen.con, "k", &[tier], &["COST", &cost.to_string()])
}

#[test]
fn the_previous_window_counts_by_the_part_still_covered() {
    let mut frozen = Frozen::start();
    call(&mut frozen, full() - 1, (100, "60s"), 50);
    let reply = call(&mut frozen, full() + 6000, (100, "60s"), 10);
    assert_eq!((reply.limited, reply.remaining), (0, 45));
}

#[test]
fn nothing_is_rounded_before_the_comparison() {
    let mut frozen = Frozen::start();
    call(&mut frozen, full() - 1, (1, "60s"), 1);
    assert_eq!(
        call(&mut frozen, full() + 1, (1, "60s"), 1),
        Reply {
            limited: 1,
            limit: 1,
            remaining: 0,
            retry_after: 59_999,
            reset_after: 59_999
        }
    );
    assert_eq!(
        call(&mut frozen, full() + MINUTE - 1, (1, "60s"), 1).limited,
        1
    );
    assert_eq!(call(&mut frozen, full() + MINUTE, (1, "60s"), 1).limited, 0);
}

#[test]
fn waits_know_how_the_weight_falls() {
    let mut frozen = Frozen::start();
    call(&mut frozen, full() - 1, (60, "60s"), 60);
    assert_eq!(
        call(&mut frozen, full() + 12_000, (60, "60s"), 12).limited,
        0
    );
    let limited = call(&mut frozen, full() + 12_000, (60, "60s"), 1);
    assert_eq!((limited.limited, limited.retry_after), (1, 1000));
    assert_eq!(
        call(&mut frozen, full() + 12_999, (60, "60s"), 1).limited,
        1
    );
    assert_eq!(
        call(&mut frozen, full() + 13_000, (60, "60s"), 1).limited,
        0
    );
}

#[test]
fn waits_reach_into_the_next_window() {
    let mut frozen = Frozen::start();
    call(&mut frozen, full(), (10, "60s"), 10);
    let limited = call(&mut frozen, full() + 30_000, (10, "60s"), 1);
    assert_eq!(
        (limited.limited, limited.retry_after, limited.reset_after),
        (1, 36_000, 90_000)
    );
    assert_eq!(
        call(&mut frozen, full() + 65_999, (10, "60s"), 1).limited,
        1
    );
    assert_eq!(
        call(&mut frozen, full() + 66_000, (10, "60s"), 1).limited,
        0
    );
}

#[test]
fn the_window_that_just_ended_is_still_there() {
    let mut frozen = Frozen::start();
    for (window, ms) in [
        ("500ms", 500),
        ("60s", MINUTE),
        ("30d", 2_592_000_000),
        (DECADE, DECADE_MS),
    ] {
        let start = start_of_bucket("k", ms, 1, bucket("k", ms, 1, START) + 1);
        call(&mut frozen, start, (10, window), 10);
        assert_eq!(
            call(&mut frozen, start + ms, (10, window), 1).limited,
            1,
            "{window}"
        );
        let half = call(&mut frozen, start + ms + ms / 2, (10, window), 0);
        assert_eq!((half.remaining, half.reset_after), (5, ms / 2), "{window}");
        let last = call(&mut frozen, start + 2 * ms - 1, (10, window), 0);
        assert_eq!((last.remaining, last.reset_after), (9, 1), "{window}");
        frozen.set(start + 2 * ms + 1);
        assert_eq!(run::<i64>(&mut frozen.con, "EXISTS", &["k"]), 0, "{window}");
    }
}

#[test]
fn a_step_back_gives_no_free_pass_and_no_long_lockout() {
    let mut frozen = Frozen::start();
    call(&mut frozen, full() + 1, (10, "60s"), 10);
    let stored = |frozen: &mut Frozen| -> String {
        run::<BTreeMap<String, String>>(&mut frozen.con, "HGETALL", &["k"])["60000"].clone()
    };
    let index = bucket("k", MINUTE, 1, full());
    // Time stands still at the bucket's start: the wait is to that, a window, and a tenth of one.
    let limited = call(&mut frozen, full() - 5000, (10, "60s"), 1);
    assert_eq!(
        (limited.limited, limited.retry_after),
        (1, 5000 + MINUTE + 6000)
    );
    let limited = call(&mut frozen, full() - MINUTE, (10, "60s"), 1);
    assert_eq!(
        (limited.limited, limited.retry_after),
        (1, MINUTE + MINUTE + 6000)
    );
    assert_eq!(stored(&mut frozen), format!("{index}:10:0"));
    // One ms more is a wrong date: all counts move to the current bucket.
    let limited = call(&mut frozen, full() - MINUTE - 1, (10, "60s"), 1);
    assert_eq!((limited.limited, limited.retry_after), (1, 1 + 6000));
    assert_eq!(stored(&mut frozen), format!("{}:10:0", index - 2));
    let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &["k"]);
    assert_eq!(expiry, end_of_bucket("k", MINUTE, 1, index - 2));
    assert_eq!(
        call(&mut frozen, full() - MINUTE + 5999, (10, "60s"), 1).limited,
        1
    );
    assert_eq!(
        call(&mut frozen, full() - MINUTE + 6000, (10, "60s"), 1).limited,
        0
    );
}

#[test]
fn a_spoiled_expiry_is_set_right_with_the_next_bucket() {
    let mut frozen = Frozen::start();
    for (minute, spoil) in [
        (0, ["PERSIST", "k"].as_slice()),
        (5, &["PEXPIRE", "k", "60001"]),
    ] {
        let start = full() + minute * MINUTE;
        call(&mut frozen, start, (10, "60s"), 1);
        run::<i64>(&mut frozen.con, spoil[0], &spoil[1..]);
        call(&mut frozen, start + MINUTE, (10, "60s"), 1);
        let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &["k"]);
        assert_eq!(expiry, start + 3 * MINUTE, "{spoil:?}");
    }
}

/// What the classic form promises, and what it does not.
#[test]
fn twice_the_limit_can_pass_but_not_more() {
    let mut frozen = Frozen::start();
    let burst = repeated(&slide("SLIDE.COUNTER", "k", &[(100, "60s")], &[]), 300);
    let mut passed: Vec<(i64, usize)> = Vec::new();
    for second in (0..600).step_by(7) {
        let time = full() + second * 1000;
        let end_of_minute = full() + (second / 60 + 1) * MINUTE - 1;
        for time in [time, end_of_minute] {
            if passed.last().is_none_or(|last| time > last.0) {
                frozen.set(time);
                let replies: Vec<Vec<i64>> = burst.query(&mut frozen.con).unwrap();
                passed.push((time, admitted(&replies)));
            }
        }
    }
    let most = passed
        .iter()
        .map(|&(end, _)| {
            let inside = passed
                .iter()
                .filter(|(time, _)| (end - MINUTE + 1..=end).contains(time));
            inside.map(|(_, count)| count).sum::<usize>()
        })
        .max()
        .unwrap();
    assert!((101..=200).contains(&most), "{most} in some minute");
}
