//! What a window's buckets say about its usage, now and later, in closed form.

use super::buckets::{Buckets, Division};
use crate::limiter::units::{Cost, Limit, Millis, Timestamp};
use crate::limiter::verdict::Wait;

/// A clock that ticks `buckets` times a millisecond, so that each bucket is `window` ticks long.
///
/// Until the year 9000000 no tick overflows; a stored bucket that lies later than that counts as
/// the last tick, far in the future.
pub type Ticks = u64;

/// Units times ticks: a sum of counts below 2^64 times a window below 2^39.
type Scaled = u128;

impl Division {
    fn ticks_per_bucket(self) -> Ticks {
        self.window().get()
    }

    /// The tick at which `now` begins.
    pub fn ticks(self, now: Timestamp) -> Ticks {
        let ms = u64::try_from(now.as_millis()).unwrap_or(0);
        ms.saturating_mul(self.buckets())
    }

    /// The bucket that holds this tick.
    pub fn bucket(self, ticks: Ticks) -> u64 {
        ticks / self.ticks_per_bucket()
    }

    /// The tick at which a bucket begins.
    pub fn start(self, bucket: u64) -> Ticks {
        bucket.saturating_mul(self.ticks_per_bucket())
    }

    /// The first millisecond that begins at this tick or later.
    fn ceil_time(self, ticks: Ticks) -> Timestamp {
        let ms = ticks.div_ceil(self.buckets());
        Timestamp::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
    }

    /// When a bucket no longer counts in any window.
    pub fn end_of_matter(self, bucket: u64) -> Timestamp {
        self.ceil_time(self.start(bucket.saturating_add(self.buckets() + 1)))
    }
}

/// A window's buckets at one tick.
#[derive(Clone, Copy, Debug)]
pub struct Estimate<'a> {
    /// The window.
    pub division: Division,
    /// Its buckets; the newest holds `ticks`.
    pub buckets: &'a Buckets,
    /// When usage is asked for.
    pub ticks: Ticks,
    /// Whether the bucket that the window leaves counts whole.
    pub strict: bool,
}

impl Estimate<'_> {
    /// Whether `cost` units more than the estimated usage pass the limit.
    pub fn is_over(self, limit: Limit, cost: Cost) -> bool {
        self.scaled() + self.scale(cost.get()) > self.scale(limit.get())
    }

    /// Whole units left below the limit.
    pub fn remaining(self, limit: Limit) -> u64 {
        let left = self.scale(limit.get()).saturating_sub(self.scaled());
        u64::try_from(left / self.scale(1)).unwrap_or(u64::MAX)
    }

    /// Until a call of `cost` units at `now` or later fits.
    pub fn wait(self, limit: Limit, cost: Cost, now: Timestamp) -> Wait {
        let Some(room) = limit.get().checked_sub(cost.get()) else {
            return Wait::Never;
        };
        if !self.is_over(limit, cost) {
            return Wait::NONE;
        }
        let window = self.division.ticks_per_bucket();
        let room = self.scale(room);
        let mut begins = self.division.start(self.buckets.index());
        let mut kept = self.kept();
        let mut newer = self.buckets.counts().iter().rev().skip(1);
        for leaving in self.buckets.counts().iter().rev() {
            let room = room.checked_sub(kept * self.scale(1));
            if let Some(covered) = room.and_then(|room| self.covered_within(room, *leaving)) {
                begins = begins.saturating_add(window.saturating_sub(covered));
                break;
            }
            begins = begins.saturating_add(window);
            kept -= newer.next().map_or(0, |count| Scaled::from(*count));
        }
        let fits = self.division.ceil_time(begins.max(self.ticks));
        Wait::For(fits.since(now))
    }

    /// How many ticks of the leaving bucket may still be covered for its part to have room; `None`
    /// while any of it counts too much.
    fn covered_within(self, room: Scaled, leaving: u64) -> Option<Ticks> {
        let window = self.division.ticks_per_bucket();
        if self.strict {
            (self.scale(leaving) <= room).then_some(window)
        } else {
            let covered = room.checked_div(leaving.into());
            Some(covered.map_or(window, |ticks| u64::try_from(ticks).unwrap_or(window)))
        }
    }

    /// Until nothing counts any more, from `now` on.
    pub fn reset(self, now: Timestamp) -> Millis {
        let mut index = self.buckets.index();
        for count in self.buckets.counts() {
            if *count > 0 {
                return self.division.end_of_matter(index).since(now);
            }
            index = index.saturating_sub(1);
        }
        Millis::ZERO
    }

    /// The estimated usage times the window.
    fn scaled(self) -> Scaled {
        let begins = self.division.start(self.buckets.index());
        let elapsed = self.ticks.saturating_sub(begins);
        let covered = if self.strict {
            self.division.ticks_per_bucket()
        } else {
            self.division.ticks_per_bucket().saturating_sub(elapsed)
        };
        let leaving = self.buckets.counts().last().copied().unwrap_or(0);
        Scaled::from(leaving) * Scaled::from(covered) + self.kept() * self.scale(1)
    }

    /// The sum of the counts that the window covers whole.
    fn kept(self) -> Scaled {
        let counts = self.buckets.counts().iter().rev().skip(1);
        counts.map(|count| Scaled::from(*count)).sum()
    }

    /// Units times the window.
    fn scale(self, units: u64) -> Scaled {
        Scaled::from(units) * Scaled::from(self.division.ticks_per_bucket())
    }
}
