//! `SLIDE.LOG` to the ms.

use crate::support::clock::{Frozen, START};
use crate::support::{DECADE, DECADE_MS, Reply, entries, repeated, run, slide, slide_log};

const MINUTE: i64 = 60_000;

#[test]
fn limited_calls_do_not_count() {
    let mut frozen = Frozen::start();
    let verdicts: Vec<i64> = (0..5)
        .map(|ms| {
            frozen.set(START + ms);
            slide_log(&mut frozen.con, "k", &[(2, "4ms")], &[]).limited
        })
        .collect();
    assert_eq!(verdicts, [0, 0, 1, 1, 0]);
}

#[test]
fn calls_of_one_ms_are_counted_apart_and_kept_together() {
    let mut frozen = Frozen::start();
    let verdicts: Vec<i64> = (0..3)
        .map(|_| slide_log(&mut frozen.con, "k", &[(2, "60s")], &[]).limited)
        .collect();
    assert_eq!(verdicts, [0, 0, 1]);
    assert_eq!(entries(&mut frozen.con, "k"), [("2:2".to_owned(), START)]);
}

#[test]
fn a_window_is_half_open() {
    let mut frozen = Frozen::start();
    for (window, ms) in [
        ("10ms", 10),
        ("500ms", 500),
        ("60s", MINUTE),
        ("30d", 2_592_000_000),
        (DECADE, DECADE_MS),
    ] {
        frozen.set(START);
        let tiers = [(3, window)];
        slide_log(&mut frozen.con, window, &tiers, &["COST", "3"]);
        frozen.set(START + ms - 1);
        assert_eq!(
            slide_log(&mut frozen.con, window, &tiers, &[]),
            Reply {
                limited: 1,
                limit: 3,
                remaining: 0,
                retry_after: 1,
                reset_after: 1
            }
        );
        frozen.set(START + ms);
        assert_eq!(
            slide_log(&mut frozen.con, window, &tiers, &[]),
            Reply {
                limited: 0,
                limit: 3,
                remaining: 2,
                retry_after: 0,
                reset_after: ms
            }
        );
        frozen.delete(window);
    }
}

#[test]
fn the_wait_is_for_the_oldest_entry() {
    let mut frozen = Frozen::start();
    for seconds in [0, 10] {
        frozen.set(START + seconds * 1000);
        assert_eq!(
            slide_log(&mut frozen.con, "k", &[(2, "60s")], &[]).limited,
            0
        );
    }
    frozen.set(START + 20_000);
    assert_eq!(
        slide_log(&mut frozen.con, "k", &[(2, "60s")], &[]),
        Reply {
            limited: 1,
            limit: 2,
            remaining: 0,
            retry_after: 40_000,
            reset_after: 50_000
        }
    );
}

#[test]
fn a_step_back_gives_no_free_pass_and_no_long_lockout() {
    let mut frozen = Frozen::start();
    let tiers = [(10, "60s")];
    repeated(&slide("SLIDE.LOG", "k", &tiers, &[]), 10)
        .query::<()>(&mut frozen.con)
        .unwrap();
    frozen.set(START - 5000);
    let full = Reply {
        limited: 1,
        limit: 10,
        remaining: 0,
        retry_after: 65_000,
        reset_after: 65_000,
    };
    assert_eq!(slide_log(&mut frozen.con, "k", &tiers, &[]), full);
    // A step of just one window is still waited out, one ms more is a wrong date.
    frozen.set(START - MINUTE);
    let wait = 2 * MINUTE;
    let full = Reply {
        retry_after: wait,
        reset_after: wait,
        ..full
    };
    assert_eq!(slide_log(&mut frozen.con, "k", &tiers, &[]), full);
    assert_eq!(entries(&mut frozen.con, "k"), [("10:10".to_owned(), START)]);
    frozen.set(START - MINUTE - 1);
    let full = Reply {
        retry_after: MINUTE,
        reset_after: MINUTE,
        ..full
    };
    assert_eq!(slide_log(&mut frozen.con, "k", &tiers, &[]), full);
    assert_eq!(
        entries(&mut frozen.con, "k"),
        [("10:10".to_owned(), START - MINUTE - 1)]
    );
    frozen.set(START - 2);
    assert_eq!(slide_log(&mut frozen.con, "k", &tiers, &[]).limited, 1);
    frozen.set(START - 1);
    assert_eq!(slide_log(&mut frozen.con, "k", &tiers, &[]).limited, 0);
}

#[test]
fn a_wrong_date_in_the_far_future_locks_a_key_for_one_window() {
    let mut frozen = Frozen::start();
    let tiers = [(2, "10s"), (3, "60s")];
    slide_log(&mut frozen.con, "k", &tiers, &["COST", "2"]);
    frozen.set(START + 1_000_000_000_000);
    slide_log(&mut frozen.con, "k", &tiers, &["COST", "2"]);
    frozen.set(START + 1);
    let healed = slide_log(&mut frozen.con, "k", &tiers, &[]);
    assert_eq!(
        (healed.limited, healed.limit, healed.retry_after),
        (1, 2, 10_000)
    );
    let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &["k"]);
    assert!((START + 1 + MINUTE..=START + 1 + MINUTE + MINUTE / 4).contains(&expiry));
    frozen.set(START + 10_001);
    assert_eq!(slide_log(&mut frozen.con, "k", &tiers, &[]).limited, 0);
}

#[test]
fn a_key_outlives_its_entries_but_not_for_long() {
    let mut frozen = Frozen::start();
    for call in 0..200 {
        frozen.set(START + call * 700);
        slide_log(&mut frozen.con, "k", &[(1000, "60s")], &[]);
    }
    let newest = START + 199 * 700;
    frozen.set(newest + MINUTE - 1);
    assert_eq!(
        slide_log(&mut frozen.con, "k", &[(1, "60s")], &[]).limited,
        1
    );
    frozen.set(newest + MINUTE + MINUTE / 4 + 1);
    assert_eq!(run::<i64>(&mut frozen.con, "EXISTS", &["k"]), 0);
}

/// A burst of 100 at the end of a calendar minute, and another at the start of the next.
#[test]
fn bursts_around_a_boundary_share_one_limit() {
    let mut frozen = Frozen::start();
    let boundary = (START / MINUTE + 1) * MINUTE;
    let mut calls: Vec<i64> = Vec::new();
    for burst in 0..4 {
        for ms in (-100..0).chain(1..=100) {
            let time = boundary + burst * 30_000 + ms;
            frozen.set(time);
            if slide_log(&mut frozen.con, "k", &[(100, "60s")], &[]).limited == 0 {
                calls.push(time);
            }
        }
    }
    for end in &calls {
        let inside = calls
            .iter()
            .filter(|&time| (end - MINUTE + 1..=*end).contains(time))
            .count();
        assert!(inside <= 100, "{inside} calls in the minute before {end}");
    }
    assert_eq!(calls.len(), 200);
}
