//! What a log may hold, and what one call may do.

use std::num::NonZeroU64;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::dense::unpacked;
use super::{play, refund};
use crate::limiter::histories::{cost, tiers};
use crate::limiter::log::Member;
use crate::limiter::memory::{LogMemory, Work};
use crate::limiter::units::{Cost, Timestamp};

/// The members of which an entry is live.
fn live_members(set: &LogMemory, now: i64, window: u64) -> usize {
    let expired = now - i64::try_from(window).unwrap();
    set.ordered.range((expired + 1, Vec::new())..).count()
}

fn reads_and_steps(work: &Work) -> usize {
    work.reads.get() + work.steps.get()
}

/// Random arrivals, `live` in a window on average, with costs up to `most`.
fn steady(live: u64, most: u64, calls: usize) -> impl Iterator<Item = (i64, Cost)> {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut now = 1_767_323_045_000;
    (0..calls).map(move |_| {
        now += i64::try_from(random.next_u64() % (2 * WINDOW / live + 1)).unwrap();
        (now, cost(1 + random.next_u64() % most))
    })
}

const WINDOW: u64 = 600_000;

#[test]
fn steady_traffic_keeps_few_members() {
    for (live, most) in [
        (1, 1),
        (5, 1),
        (20, 1),
        (100, 1),
        (100, 1 << 40),
        (400, 9),
        (1_000, 1),
        (1_000, 100),
        (5_000, 1),
    ] {
        let tiers = tiers(&[((1 << 53) - 1, WINDOW)]);
        let mut set = LogMemory::default();
        let calls = usize::try_from(4 * live).unwrap() + 500;
        let mut largest = 0;
        for (now, cost) in steady(live, most, calls) {
            play(&mut set, now, &tiers, cost, true);
            let live = live_members(&set, now, WINDOW);
            largest = largest.max(live);
            assert!(
                4 * set.ordered.len() <= 5 * live + 4 * 24,
                "{} members, {live} live",
                set.ordered.len()
            );
        }
        let entries = usize::try_from(live).unwrap();
        // 16 to a member and up to 24 single, or more to a member and up to 40 single.
        let enough = if most < 1_000 {
            entries * 3 / 2 / 16 + 40
        } else {
            entries / 3 + 40
        };
        assert!(
            largest <= enough,
            "{largest} members of {live} live entries"
        );
        let text = set
            .ordered
            .iter()
            .map(|(_, member)| member.len())
            .sum::<usize>();
        assert!(
            most > 1 || text <= 4 * entries * 3 / 2 + 40 * 20,
            "{text} bytes for {live}"
        );
    }
}

#[test]
fn a_call_does_little_more_than_it_must() {
    for live in [5, 100, 400, 1_000, 5_000] {
        let tiers = tiers(&[((1 << 53) - 1, WINDOW)]);
        let mut set = LogMemory::default();
        let calls = usize::try_from(3 * live).unwrap() + 500;
        for (now, cost) in steady(live, 1, calls) {
            let before = set.work.clone();
            play(&mut set, now, &tiers, cost, true);
            let work = &set.work;
            // One ZADD, at times a ZREM and two ranges.
            assert!(work.commands - before.commands <= 4);
            assert!(work.added - before.added <= 3, "{work:?}");
            assert!(work.lookups - before.lookups <= 4, "{work:?}");
            assert!(work.removed - before.removed <= 64 + 64);
            assert!(
                reads_and_steps(work) - reads_and_steps(&before) <= 350,
                "{work:?}"
            );
        }
        let work = &set.work;
        assert!(work.commands <= calls * 5 / 4, "{work:?} in {calls} calls");
        assert!(work.added <= calls * 10 / 9, "{work:?} in {calls} calls");
        assert!(
            reads_and_steps(work) <= calls * 12,
            "{work:?} in {calls} calls"
        );
        assert!(
            work.packed + 60 + work.trimmed >= calls - usize::try_from(live).unwrap() || live < 50
        );
    }
}

/// The excess of a burst goes: 64 members at a time, at least at every 16th recorded call.
#[test]
fn what_has_expired_goes_however_calls_are_recorded() {
    /// Records one more call after this many.
    type Next = fn(&mut LogMemory, i64);
    let record = |set: &mut LogMemory, now, units| {
        let before = set.work.trimmed;
        play(
            set,
            now,
            &tiers(&[((1 << 53) - 1, 1_000)]),
            cost(units),
            true,
        );
        assert!(set.work.trimmed - before <= 64);
    };
    let ways: [(&str, usize, Next); 4] = [
        ("apart", 16, |_, _| {}),
        ("merged", 16, |_, _| {}),
        ("refunded each time", 128 * 4, |set, _| {
            refund(set, NonZeroU64::MIN).unwrap();
        }),
        ("of all costs", 16, |_, _| {}),
    ];
    for (way, within, and_then) in ways {
        let (mut set, now) = unpacked(1_767_323_045_000, &vec![(1, 1); 3_000]);
        let start = now + 5_000;
        let mut calls_since = 0;
        let mut left = 3_000;
        for call in 0_i64.. {
            let later = if way == "merged" { 0 } else { call };
            let units = if way == "of all costs" {
                1 + call.unsigned_abs() * 7 % 50
            } else {
                1
            };
            record(&mut set, start + later, units);
            and_then(&mut set, start + later);
            calls_since += 1;
            let expired = set.ordered.range(..(start - 1_000, Vec::new())).count();
            if expired < left {
                assert!(
                    expired + 64 >= left && (expired + 64 == left || expired < 16),
                    "{way}: {left} to {expired}"
                );
                left = expired;
                calls_since = 0;
            }
            if left < 16 {
                break;
            }
            assert!(
                calls_since <= within,
                "{way}: {left} are left after {calls_since} calls"
            );
        }
    }
}

#[test]
fn what_0_1_left_is_packed_as_calls_go_on() {
    for entries in [40, 130, 1_000, 20_000] {
        let gaps_and_costs = vec![(7, 1); entries];
        let (mut set, mut now) = unpacked(1_767_323_045_000, &gaps_and_costs);
        let tiers = tiers(&[((1 << 53) - 1, 1_000_000_000)]);
        let calls = entries / 6 + 100;
        for _ in 0..calls {
            now += 9;
            let before = set.work.clone();
            play(&mut set, now, &tiers, Cost::ONE, false);
            let work = &set.work;
            assert!(work.lookups - before.lookups <= 45, "{work:?}");
            assert!(
                reads_and_steps(work) - reads_and_steps(&before) <= 400,
                "{work:?}"
            );
            assert!(work.commands - before.commands <= 3);
        }
        let single = set
            .members()
            .iter()
            .filter(|(member, score)| Member::read(*score, member).unwrap().is_single())
            .count();
        assert!(
            single <= 48,
            "{single} of {entries} are single after {calls} calls"
        );
        assert_eq!(
            set.ordered
                .first()
                .unwrap()
                .1
                .split(|byte| *byte == b':')
                .count(),
            3
        );
        let longest = set
            .ordered
            .iter()
            .map(|(_, member)| member.len())
            .max()
            .unwrap();
        assert!(
            if entries > 128 {
                longest > 128
            } else {
                longest <= 64
            },
            "{longest}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn expiry_has_slack_and_is_rarely_written(
        gaps in prop::collection::vec(prop_oneof![20 => 0_i64..3, 4 => 3_i64..60, 1 => 100_i64..3_000], 1..2_000),
        window in 4_u64..4_000,
    ) {
        let tiers = tiers(&[(1 << 40, window)]);
        let mut set = LogMemory::default();
        let mut expiries = 0;
        let start = 1_000_000;
        let mut now = start;
        for gap in gaps {
            now += gap;
            let expiry = set.expiry;
            play(&mut set, now, &tiers, Cost::ONE, false);
            let kept = set.expiry.unwrap().since(Timestamp::from_millis(now)).get();
            prop_assert!((window..=window + window / 4).contains(&kept));
            expiries += u64::from(set.expiry != expiry);
        }
        let span = u64::try_from(now - start).unwrap();
        prop_assert!(expiries <= 1 + span / (window / 4 + 1));
    }
}

#[test]
fn times_are_exact_scores() {
    for ms in [0, 1, 1_767_323_045_000, (1 << 53) - 1] {
        assert_eq!(
            format!("{}", Timestamp::from_millis(ms).as_score()),
            ms.to_string()
        );
    }
}
