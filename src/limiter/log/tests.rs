//! The log in memory against the naive oracle.

use std::cell::Cell;
use std::num::NonZeroU64;

use proptest::prelude::*;

use super::{Entry, LogCall, LogStore, refund, refund_aged};
use crate::limiter::histories::{History, Refund, cost, histories, reply, tiers};
use crate::limiter::memory::LogMemory;
use crate::limiter::refund::RecordedAt;
use crate::limiter::tier::Tiers;
use crate::limiter::units::{Age, Cost, Timestamp};
use crate::limiter::verdict::{Verdict, Wait};
use crate::limiter::{Call, Foreign, oracle};

fn play(store: &mut LogMemory, now: i64, tiers: &Tiers, units: Cost, force: bool) -> Verdict {
    let mut call = LogCall::read(store, Timestamp::from_millis(now), tiers, units).unwrap();
    let record = force || !call.is_over();
    let verdict = call.settle(record).unwrap();
    call.commit();
    verdict
}

fn peek(store: &LogMemory, now: i64, tiers: &Tiers, units: Cost) -> Verdict {
    let mut store = store.clone();
    LogCall::read(&mut store, Timestamp::from_millis(now), tiers, units)
        .unwrap()
        .settle(false)
        .unwrap()
}

fn is_over(store: &LogMemory, now: i64, tiers: &Tiers, units: Cost) -> bool {
    let mut store = store.clone();
    LogCall::read(&mut store, Timestamp::from_millis(now), tiers, units)
        .unwrap()
        .is_over()
}

fn some(units: u64) -> NonZeroU64 {
    NonZeroU64::new(units).unwrap()
}

fn agrees_with_the_oracle(history: &History) -> Result<(), TestCaseError> {
    let tiers = tiers(&history.tiers);
    let (mut store, mut log) = (LogMemory::default(), oracle::Log::new());
    let mut now = history.start;
    for step in &history.steps {
        now = (now + step.elapsed).max(0);
        if let Some(Refund { units, age }) = step.refund {
            let (refunded, expected) = match age {
                None => (refund(&mut store, units), log.refund(units.get())),
                Some(age) => {
                    let time = Timestamp::from_millis(now);
                    let recorded = RecordedAt::ago(time, Age::new(age).unwrap());
                    (
                        refund_aged(&mut store, units, recorded),
                        log.refund_aged(now, units.get(), age),
                    )
                }
            };
            prop_assert_eq!(refunded, Ok(expected), "refunding at {} in {:?}", now, step);
        }
        let call = oracle::Call {
            tiers: &history.tiers,
            cost: step.cost,
            force: step.force,
        };
        let peeked = peek(&store, now, &tiers, cost(step.cost));
        prop_assert_eq!(reply(&peeked), log.peek(now, call), "peeking at {}", now);
        let verdict = play(&mut store, now, &tiers, cost(step.cost), step.force);
        prop_assert_eq!(
            reply(&verdict),
            log.call(now, call),
            "at {} in {:?}",
            now,
            step
        );

        if verdict.over
            && let Wait::For(wait) = verdict.retry_after
        {
            let fits = now + i64::try_from(wait.get()).unwrap();
            prop_assert!(!is_over(&store, fits, &tiers, cost(step.cost)));
            prop_assert!(is_over(&store, fits - 1, &tiers, cost(step.cost)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]
    #[test]
    fn every_reply_equals_the_oracles(history in histories()) {
        agrees_with_the_oracle(&history)?;
    }
}

/// Traffic that fills logs far beyond what one call trims.
fn recorded_times() -> impl Strategy<Value = Vec<i64>> {
    let burst = (
        prop_oneof![20 => 0_i64..3, 4 => 3_i64..60, 1 => 100_i64..3_000],
        1_usize..80,
    )
        .prop_map(|(gap, calls)| vec![gap; calls]);
    prop::collection::vec(burst, 1..40).prop_map(|bursts| {
        let mut now = 1_000_000;
        let gaps = bursts.into_iter().flatten();
        gaps.map(|gap| {
            now += gap;
            now
        })
        .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn trimming_is_bounded_and_rare_and_expiry_has_slack(times in recorded_times(), window in 4_u64..4_000) {
        let tiers = tiers(&[(1 << 40, window)]);
        let mut store = LogMemory::default();
        let (mut trims, mut expiries) = (0, 0);
        for &now in &times {
            store.trimmed = 0;
            let expiry = store.expiry;
            play(&mut store, now, &tiers, Cost::ONE, false);

            let expired = now - i64::try_from(window).unwrap();
            let live = store.entries.range((expired + 1, 0, 0)..).count();
            let removed = store.trimmed;
            prop_assert!(removed <= 64);
            prop_assert!(
                removed == 64 || store.len() * 4 <= live * 5 + 64 * 4,
                "{} entries, {live} live, {removed} removed", store.len()
            );
            trims += usize::from(removed > 0);

            let kept = store.expiry.unwrap().since(Timestamp::from_millis(now)).get();
            prop_assert!((window..=window + window / 4).contains(&kept));
            expiries += u64::from(store.expiry != expiry);
        }
        prop_assert!(trims <= times.len() / 32);
        let span = u64::try_from(times[times.len() - 1] - times[0]).unwrap();
        prop_assert!(expiries <= 1 + span / (window / 4 + 1));
    }
}

#[test]
fn a_long_log_is_searched_to_the_exact_entry() {
    let tiers = tiers(&[(100_000, 1_000_000)]);
    let mut store = LogMemory::default();
    for now in 0..100_000_i64 {
        play(&mut store, now * 7, &tiers, Cost::ONE, false);
    }
    for excess in [1, 2, 4, 5, 6, 1_000, 54_321, 99_999, 100_000] {
        let now = 99_999 * 7;
        let mut call = LogCall::read(
            &mut store,
            Timestamp::from_millis(now),
            &tiers,
            cost(excess),
        )
        .unwrap();
        let verdict = call.settle(false).unwrap();
        let leaves = (i64::try_from(excess).unwrap() - 1) * 7 + 1_000_000;
        assert_eq!(
            reply(&verdict).retry_after,
            leaves - now,
            "to free {excess}"
        );
    }
}

/// Whatever read it is that finds foreign data, nothing has been written before it.
#[test]
fn a_failed_read_leaves_all_as_it_was() {
    let tiers = tiers(&[(20, 1_000), (50, 5_000)]);
    let mut store = LogMemory::default();
    for now in 0..20 {
        play(&mut store, now * 10, &tiers, Cost::ONE, false);
    }
    for (now, units) in [(200, 15), (1_100, 15), (-9_000, 15)] {
        let before = store.entries.clone();
        let mut failures = 0;
        for reads in 0.. {
            let mut store = LogMemory {
                reads_left: Cell::new(Some(reads)),
                ..store.clone()
            };
            let now = Timestamp::from_millis(now);
            let done = LogCall::read(&mut store, now, &tiers, cost(units)).and_then(|mut call| {
                call.settle(true)?;
                call.commit();
                Ok(())
            });
            if done.is_ok() {
                break;
            }
            failures += 1;
            assert_eq!(store.entries, before, "after {reads} reads");
        }
        assert!(failures >= 2, "only {failures} reads at {now:?}");
    }
    for reads in 0..5 {
        let before = store.entries.clone();
        store.reads_left.set(Some(reads));
        assert_eq!(refund(&mut store, some(10)), Err(Foreign::Log));
        assert_eq!(store.entries, before);
    }
}

#[test]
fn a_refund_takes_from_1000_entries_at_most() {
    let tiers = tiers(&[(1 << 40, 1_000_000)]);
    let mut store = LogMemory::default();
    for now in 0..1_500 {
        play(&mut store, now, &tiers, cost(2), false);
    }
    assert_eq!(refund(&mut store, some(2_999)), Ok(2_000));
    assert_eq!(refund(&mut store, some(999)), Ok(999));
    let left = store.newest().unwrap().unwrap();
    assert_eq!((left.total, left.cost), (1, 1));
    assert_eq!(refund(&mut store, some(5)), Ok(1));
    assert_eq!(refund(&mut store, some(5)), Ok(0));
}

#[test]
fn totals_wrap_around() {
    let tiers = tiers(&[(10, 100)]);
    let mut store = LogMemory::default();
    store.append(Entry {
        time: Timestamp::from_millis(1_000),
        total: u64::MAX - 1,
        cost: 3,
    });
    let verdict = play(&mut store, 1_010, &tiers, cost(5), false);
    assert_eq!(verdict.reported.remaining, 2);
    let verdict = play(&mut store, 1_020, &tiers, cost(3), false);
    assert!(verdict.over);
    assert_eq!(
        reply(&verdict).retry_after,
        80,
        "the first entry frees 3 units"
    );
}

#[test]
fn totals_that_do_not_add_up_are_foreign() {
    let tiers = tiers(&[(10, 100)]);
    let mut store = LogMemory::default();
    for (time, total, cost) in [(1_000, 50, 5), (1_001, 49, 7)] {
        store.append(Entry {
            time: Timestamp::from_millis(time),
            total,
            cost,
        });
    }
    let read = LogCall::read(&mut store, Timestamp::from_millis(1_002), &tiers, Cost::ONE);
    assert_eq!(read.err(), Some(Foreign::Log));
}
