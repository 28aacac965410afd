//! What a window's buckets say about its usage, now and later, in closed form.

use super::buckets::Buckets;
use super::timeline::{Ticks, Timeline};
use crate::limiter::units::{Cost, Limit, Millis, Timestamp};
use crate::limiter::verdict::Wait;

/// A window's usage at one tick.
#[derive(Clone, Copy, Debug)]
pub struct Estimate<'a> {
    timeline: Timeline,
    buckets: &'a Buckets,
    ticks: Ticks,
    strict: bool,
    /// The sum of the counts that the window covers whole.
    kept: u64,
    /// The usage in whole units, rounded up: limits and costs are whole, so that no comparison with
    /// them can tell it from the exact one.
    usage: u64,
}

impl<'a> Estimate<'a> {
    /// Of these buckets, of which the newest holds `ticks`. `strict` counts the bucket that the
    /// window leaves whole.
    #[inline(always)]
    pub fn new(timeline: Timeline, buckets: &'a Buckets, ticks: Ticks, strict: bool) -> Self {
        let (leaving, kept) = buckets.split_oldest();
        // Without overflow: 64 counts below 2^57.
        let kept = kept.iter().sum();
        let window = timeline.ticks_per_bucket();
        let elapsed = ticks.saturating_sub(timeline.start(buckets.index()));
        let covered = if strict {
            leaving
        } else {
            let covered = window.saturating_sub(elapsed);
            let share = scaled(leaving, covered).div_ceil(window.into());
            u64::try_from(share).unwrap_or(leaving)
        };
        Self {
            timeline,
            buckets,
            ticks,
            strict,
            kept,
            usage: kept + covered,
        }
    }

    /// Whether `cost` units more than the estimated usage pass the limit.
    pub fn is_over(self, limit: Limit, cost: Cost) -> bool {
        self.usage + cost.get() > limit.get()
    }

    /// Whole units left below the limit.
    pub fn remaining(self, limit: Limit) -> u64 {
        limit.get().saturating_sub(self.usage)
    }

    /// Until a call of `cost` units at `now` or later fits.
    #[inline(always)]
    pub fn wait(self, limit: Limit, cost: Cost, now: Timestamp) -> Wait {
        let Some(room) = limit.get().checked_sub(cost.get()) else {
            return Wait::Never;
        };
        if self.usage <= room {
            return Wait::NONE;
        }
        let window = self.timeline.ticks_per_bucket();
        let mut begins = self.timeline.start(self.buckets.index());
        let mut kept = self.kept;
        // The bucket that leaves, then the one after it, and so on to the newest.
        let mut oldest_first = self.buckets.counts().iter().rev().copied();
        while let Some(leaving) = oldest_first.next() {
            let room = room.checked_sub(kept);
            if let Some(covered) = room.and_then(|room| self.covered_within(room, leaving)) {
                begins = begins.saturating_add(window.saturating_sub(covered));
                break;
            }
            begins = begins.saturating_add(window);
            kept -= oldest_first.clone().next().unwrap_or(0);
        }
        let fits = self.timeline.ceil_time(begins.max(self.ticks));
        Wait::For(fits.since(now))
    }

    /// How many ticks of the leaving bucket may still be covered for its part to have room; `None`
    /// while any of it counts too much.
    fn covered_within(self, room: u64, leaving: u64) -> Option<Ticks> {
        let window = self.timeline.ticks_per_bucket();
        if self.strict {
            return (leaving <= room).then_some(window);
        }
        let covered = scaled(room, window).checked_div(leaving.into());
        Some(covered.map_or(window, |ticks| u64::try_from(ticks).unwrap_or(window)))
    }

    /// Until nothing counts any more, from `now` on.
    pub fn reset(self, now: Timestamp) -> Millis {
        let mut index = self.buckets.index();
        for count in self.buckets.counts() {
            if *count > 0 {
                return self.timeline.expires_at(index).since(now);
            }
            index = index.saturating_sub(1);
        }
        Millis::ZERO
    }
}

/// Units times ticks, without overflow.
fn scaled(units: u64, ticks: Ticks) -> u128 {
    u128::from(units) * u128::from(ticks)
}
