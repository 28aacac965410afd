//! What the counter promises, with adversaries who search for a counterexample.

use proptest::prelude::*;

use super::{BucketCount, CounterCall, Shape};
use crate::limiter::Call;
use crate::limiter::histories::{cost, tiers};
use crate::limiter::memory::CounterMemory;
use crate::limiter::tier::Tiers;
use crate::limiter::units::Timestamp;

/// One key under one limit, and all that it recorded.
struct Target {
    store: CounterMemory,
    tiers: Tiers,
    shape: Shape,
    limit: u64,
    window: u64,
    /// (time, cost)
    recorded: Vec<(u64, u64)>,
}

impl Target {
    fn new(limit: u64, window: u64, buckets: u64, strict: bool) -> Self {
        Self {
            store: CounterMemory::default(),
            tiers: tiers(&[(limit, window)]),
            shape: Shape {
                buckets: BucketCount::new(buckets).unwrap(),
                strict,
            },
            limit,
            window,
            recorded: Vec::new(),
        }
    }

    /// Whether a call of `units` at `now` is admitted, and how many units are left after it.
    fn call(&mut self, now: u64, units: u64) -> (bool, u64) {
        let time = Timestamp::from_millis(now.try_into().unwrap());
        let units = cost(units);
        let mut call =
            CounterCall::read(&mut self.store, time, &self.tiers, self.shape, units).unwrap();
        let admitted = !call.is_over();
        let left = call.settle(admitted).unwrap().reported.remaining;
        call.commit();
        if admitted && units.get() > 0 {
            self.recorded.push((now, units.get()));
        }
        (admitted, left)
    }

    /// Takes all that is left at `now`.
    fn drain(&mut self, now: u64) {
        let (_, left) = self.call(now, 0);
        if left > 0 {
            self.call(now, left);
        }
    }

    /// The most units in a window `(t - window * parts / buckets, t]`, whatever its end.
    fn worst_window(&self, parts: u64) -> u64 {
        let ends = (0..self.recorded.len()).map(|last| {
            let end = self.recorded[last].0;
            let window = self.recorded[..=last].iter().rev();
            window
                .take_while(|(time, _)| {
                    (end - time) * self.shape.buckets.get() < self.window * parts
                })
                .map(|(_, cost)| cost)
                .sum()
        });
        ends.max().unwrap_or(0)
    }
}

/// A time of the next try and what is tried there: 0 stands for all that is left.
fn tries(window: u64) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![
        4 => 0..=window / 8,
        2 => 0..=window,
        // A boundary is where adversaries gain.
        2 => (1..4_u64).prop_map(move |quarters| quarters * window / 4),
        1 => Just(window - 1),
        1 => Just(1_u64),
    ];
    let units = prop_oneof![3 => Just(0_u64), 2 => 1_u64..4, 1 => 1_u64..1_000];
    prop::collection::vec((gap, units), 1..60)
}

fn cases() -> impl Strategy<Value = (u64, u64, u64, Vec<(u64, u64)>)> {
    (1_u64..=1_000, 2_u64..400, 1_u64..=64).prop_flat_map(|(limit, window, buckets)| {
        (Just(limit), Just(window), Just(buckets), tries(window))
    })
}

fn attack(target: &mut Target, tries: &[(u64, u64)]) {
    let mut now = target.window * 10 - 1;
    for &(gap, units) in tries {
        now += gap;
        if units == 0 {
            target.drain(now);
        } else {
            target.call(now, units.min(target.limit));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_classic_counter_holds_twice_the_limit((limit, window, _, tries) in cases()) {
        let mut target = Target::new(limit, window, 1, false);
        attack(&mut target, &tries);
        prop_assert!(target.worst_window(1) <= 2 * limit);
    }

    #[test]
    fn with_buckets_a_window_shorter_by_one_holds_the_limit(
        (limit, window, buckets, tries) in cases(),
    ) {
        let mut target = Target::new(limit, window, buckets, false);
        attack(&mut target, &tries);
        prop_assert!(target.worst_window(buckets - 1) <= limit);
    }

    #[test]
    fn strict_a_window_holds_the_limit((limit, window, buckets, tries) in cases()) {
        let mut target = Target::new(limit, window, buckets, true);
        attack(&mut target, &tries);
        prop_assert!(target.worst_window(buckets) <= limit);
    }

    /// What an exact log of a window longer by one bucket would admit is admitted.
    #[test]
    fn strict_refuses_no_more_than_a_longer_log((limit, window, buckets, tries) in cases()) {
        let mut target = Target::new(limit, window, buckets, true);
        let mut now = window * 10 - 1;
        for (gap, units) in tries {
            now += gap;
            let units = units.clamp(1, limit);
            let live = target.recorded.iter().rev();
            let used: u64 = live
                .take_while(|(time, _)| (now - time) * buckets < window * (buckets + 1))
                .map(|(_, cost)| cost)
                .sum();
            let (admitted, _) = target.call(now, units);
            prop_assert!(admitted || used + units > limit);
        }
    }
}

/// The worst that greed finds: all at the end of one window, all that is left at the end of the next.
#[test]
fn greed_gets_nearly_twice_the_limit_out_of_the_classic_counter() {
    for limit in [1, 2, 10, 100, 1_000] {
        let window = 60_000;
        let mut worst = 0;
        for early in [1, 2, 10, 1_000, 30_000] {
            let mut target = Target::new(limit, window, 1, false);
            let end = 100 * window;
            target.drain(end - early);
            for now in [end + window - early - 1, end + window - early] {
                target.drain(now);
            }
            worst = worst.max(target.worst_window(1));
        }
        println!("limit {limit}: {worst} in the worst window of the classic counter");
        // With one unit there is no part of it that could have left.
        assert!(
            worst >= 2 * limit - limit.div_ceil(100) - 1 && worst <= 2 * limit,
            "{worst}"
        );
    }
}
