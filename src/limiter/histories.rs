//! Generated histories of calls, as the property tests of both limiters play them.

use std::num::NonZeroU64;

use proptest::prelude::*;

use super::tier::{Tier, Tiers};
use super::units::{Cost, Limit, MAX_WINDOW_MS, Window};
use super::verdict::{Verdict, Wait};
use crate::limiter::oracle::Reply;

/// One call of a history.
#[derive(Clone, Debug)]
pub struct Step {
    /// How far the clock went since the last call, in ms; it can go back.
    pub elapsed: i64,
    pub cost: u64,
    pub force: bool,
    /// Units to give back before the call.
    pub refund: Option<Refund>,
}

/// Units to give back: the most recent, or those recorded so many ms ago.
#[derive(Clone, Copy, Debug)]
pub struct Refund {
    pub units: NonZeroU64,
    pub age: Option<u64>,
}

/// Calls by one client on one key.
#[derive(Clone, Debug)]
pub struct History {
    pub key: Vec<u8>,
    pub tiers: Vec<(u64, u64)>,
    pub start: i64,
    pub steps: Vec<Step>,
}

/// Tiers of (limit, window in ms).
pub fn tiers(tiers: &[(u64, u64)]) -> Tiers {
    let tier = |&(limit, window): &(u64, u64)| Tier {
        limit: Limit::new(limit).unwrap(),
        window: Window::new(window).unwrap(),
    };
    let mut made = Tiers::new(tier(&tiers[0]));
    for other in &tiers[1..] {
        made.push(tier(other)).unwrap();
    }
    made
}

pub fn cost(units: u64) -> Cost {
    Cost::new(units).unwrap()
}

/// The reply that a verdict becomes.
pub fn reply(verdict: &Verdict) -> Reply {
    let int = |units: u64| i64::try_from(units).unwrap();
    Reply {
        limited: verdict.over.into(),
        limit: int(verdict.reported.limit.get()),
        remaining: int(verdict.reported.remaining),
        retry_after: match verdict.retry_after {
            Wait::For(span) => int(span.get()),
            Wait::Never => -1,
        },
        reset_after: int(verdict.reported.reset.get()),
    }
}

/// Histories in which limits are reached, entries expire and the clock goes wrong both ways.
pub fn histories() -> impl Strategy<Value = History> {
    (window(), 1_usize..=3).prop_flat_map(|(window, count)| {
        let windows = prop::collection::hash_set(1..=4 * window, count)
            .prop_map(|windows| windows.into_iter().collect::<Vec<_>>());
        (
            prop::collection::vec(any::<u8>(), 0..4),
            windows,
            prop::collection::vec(limit(), count),
            prop_oneof![0..3_i64, 1_767_323_045_000..1_767_323_046_000_i64],
            prop::collection::vec(step(i64::try_from(window).unwrap()), 1..24),
        )
            .prop_map(|(key, windows, limits, start, steps)| History {
                key,
                tiers: limits.into_iter().zip(windows).collect(),
                start,
                steps,
            })
    })
}

fn window() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 3_u64..40, 2 => 40_u64..5_000, 1 => Just(315_576_000_000_u64 / 4)]
}

fn limit() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0_u64..12,
        2 => 12_u64..200,
        1 => Just((1_u64 << 53) - 1),
    ]
}

fn step(window: i64) -> impl Strategy<Value = Step> {
    let elapsed = prop_oneof![
        3 => Just(0),
        8 => 0..=window / 3,
        2 => 0..=2 * window,
        1 => 0..=20 * window,
        1 => -window / 2..=0,
        1 => -12 * window..=0,
    ];
    let cost = prop_oneof![
        1 => Just(0),
        8 => 1_u64..4,
        3 => 1_u64..30,
        1 => 100_u64..400,
        1 => Just((1_u64 << 53) - 1),
    ];
    let units = prop_oneof![6 => 1_u64..6, 1 => 1_u64..400, 1 => Just((1_u64 << 53) - 1)];
    let longest = MAX_WINDOW_MS.min(4 * window.unsigned_abs());
    let age = prop_oneof![2 => 0_u64..2_500, 1 => 0..=longest];
    let refund = (units, prop::option::of(age)).prop_map(|(units, age)| Refund {
        units: NonZeroU64::new(units).unwrap(),
        age,
    });
    let refund = prop::option::weighted(0.2, refund);
    (elapsed, cost, prop::bool::weighted(0.15), refund).prop_map(
        |(elapsed, cost, force, refund)| Step {
            elapsed,
            cost,
            force,
            refund,
        },
    )
}
