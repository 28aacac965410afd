//! Histories with hundreds of calls in a window, so that most entries get packed.

use std::num::NonZeroU64;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::Pair;
use crate::limiter::histories::{Refund, Step};
use crate::limiter::memory::LogMemory;
use crate::limiter::oracle;

/// What a client does for a while.
#[derive(Clone, Debug)]
enum Phase {
    /// Calls with gaps and costs of a kind.
    Calls(Vec<Step>),
    /// Gives back, and the clock goes on.
    Refunds(Vec<(i64, Refund)>),
    /// The clock steps.
    Clock(i64),
}

#[derive(Clone, Debug)]
struct Dense {
    tiers: Vec<(u64, u64)>,
    /// Gaps and costs of the entries that 0.1 left.
    prefix: Vec<(i64, u64)>,
    phases: Vec<Phase>,
}

fn calls(window: i64) -> impl Strategy<Value = Phase> {
    let gap = prop_oneof![
        4 => Just(3_i64),
        4 => Just((window / 300).max(1)),
        2 => Just((window / 40).max(1)),
        1 => Just(0),
    ];
    let cost =
        prop_oneof![4 => Just(1_u64), 3 => Just(20), 1 => Just(1 << 20), 1 => Just((1 << 53) - 1)];
    (gap, cost, 1_usize..150).prop_flat_map(|(gap, cost, count)| {
        let step = (0..=2 * gap, 0..=2 * cost, prop::bool::weighted(0.2));
        let step = step.prop_map(|(elapsed, cost, force)| Step {
            elapsed,
            cost: cost.clamp(1, (1 << 53) - 1),
            force,
            refund: None,
        });
        prop::collection::vec(step, count).prop_map(Phase::Calls)
    })
}

fn refunds(window: i64) -> impl Strategy<Value = Phase> {
    let units = prop_oneof![4 => 1_u64..40, 3 => 1_u64..2_000, 1 => Just((1 << 53) - 1)];
    let age = prop_oneof![
        2 => 0..=window.unsigned_abs(),
        1 => 0_u64..3_000,
    ];
    let refund = (units, prop::option::of(age)).prop_map(|(units, age)| Refund {
        units: NonZeroU64::new(units).unwrap(),
        age,
    });
    prop::collection::vec((0_i64..20, refund), 1..4).prop_map(Phase::Refunds)
}

fn dense() -> impl Strategy<Value = Dense> {
    let window = prop_oneof![40_i64..400, 400_i64..4_000, 4_000_i64..60_000];
    window.prop_flat_map(|window| {
        let phase = prop_oneof![
            6 => calls(window),
            3 => refunds(window),
            1 => prop_oneof![-window..=window, -3 * window..=-window, 0..=4 * window].prop_map(Phase::Clock),
        ];
        let limit = prop_oneof![1 => 50_u64..2_000, 2 => Just((1_u64 << 53) - 1)];
        let other = (limit.clone(), 1..=2 * window.unsigned_abs());
        let prefix = prop_oneof![
            3 => prop::collection::vec((1_i64..30, 1_u64..30), 0..1),
            1 => prop::collection::vec((1_i64..30, 1_u64..30), 0..400),
        ];
        (limit, prop::option::of(other), prefix, prop::collection::vec(phase, 1..14)).prop_map(
            move |(limit, other, prefix, phases)| {
                let first = (limit, window.unsigned_abs());
                let other = other.filter(|other| other.1 != first.1);
                Dense {
                    tiers: [Some(first), other].into_iter().flatten().collect(),
                    prefix,
                    phases,
                }
            },
        )
    })
}

/// A log as 0.1 wrote it, which packed nothing: entries with these gaps and costs.
pub fn unpacked(start: i64, gaps_and_costs: &[(i64, u64)]) -> (LogMemory, i64) {
    let (mut now, mut total) = (start, 0);
    let member = |&(gap, cost): &(i64, u64)| {
        now += gap;
        total += cost;
        (now, format!("{total}:{cost}").into_bytes())
    };
    let set = LogMemory::of(gaps_and_costs.iter().map(member).collect::<Vec<_>>());
    (set, now)
}

fn agrees_with_the_oracle(history: &Dense) -> Result<usize, TestCaseError> {
    let mut pair = Pair::new(&history.tiers);
    let (set, mut now) = unpacked(1_767_323_045_000, &history.prefix);
    let stored = oracle::stored::log(&set.members()).unwrap();
    pair.set = set;
    pair.oracle = oracle::Log::holding(&stored);
    for phase in &history.phases {
        match phase {
            Phase::Calls(steps) => {
                for step in steps {
                    now += step.elapsed;
                    pair.step(now, step)?;
                }
            }
            Phase::Refunds(refunds) => {
                for (elapsed, refund) in refunds {
                    now += elapsed;
                    pair.refund(now, *refund)?;
                }
            }
            Phase::Clock(step) => now += step,
        }
    }
    Ok(pair.set.work.packed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]
    #[test]
    fn every_reply_equals_the_oracles(history in dense()) {
        agrees_with_the_oracle(&history)?;
    }
}

/// Whether these histories are dense enough to mean anything.
#[test]
fn most_of_these_histories_pack_entries() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let packed = (0..200).filter(|_| {
        let history = dense().new_tree(&mut runner).unwrap().current();
        agrees_with_the_oracle(&history).unwrap() >= 100
    });
    assert!(packed.count() >= 100);
}
