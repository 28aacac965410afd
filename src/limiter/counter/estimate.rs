//! What a window's buckets say about its usage, now and later, in closed form.

use super::buckets::{Buckets, Division};
use crate::limiter::units::{Cost, Limit, Millis, Timestamp};
use crate::limiter::verdict::Wait;

/// A clock that ticks `buckets` times a millisecond, so that each bucket is `window` ticks long.
///
/// 128 bits hold a time below 2^63 ms times 64 buckets, and a sum of counts below 2^64 times a
/// window below 2^39 ms.
pub type Ticks = u128;

impl Division {
    fn ticks_per_bucket(self) -> Ticks {
        self.window().get().into()
    }

    fn ticks_per_ms(self) -> Ticks {
        self.buckets().into()
    }

    /// The tick at which `now` begins.
    pub fn ticks(self, now: Timestamp) -> Ticks {
        u128::try_from(now.as_millis()).unwrap_or(0) * self.ticks_per_ms()
    }

    /// The bucket that holds this tick.
    pub fn bucket(self, ticks: Ticks) -> u64 {
        u64::try_from(ticks / self.ticks_per_bucket()).unwrap_or(u64::MAX)
    }

    /// The tick at which a bucket begins.
    pub fn start(self, bucket: u64) -> Ticks {
        Ticks::from(bucket) * self.ticks_per_bucket()
    }

    /// The first millisecond that begins at this tick or later.
    pub fn ceil_time(self, ticks: Ticks) -> Timestamp {
        let ms = ticks.div_ceil(self.ticks_per_ms());
        Timestamp::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
    }

    /// When a bucket no longer counts in any window.
    pub fn end_of_matter(self, bucket: u64) -> Timestamp {
        self.ceil_time(self.start(bucket) + (self.ticks_per_ms() + 1) * self.ticks_per_bucket())
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
}

impl Estimate<'_> {
    /// Whether `cost` units more than the estimated usage pass the limit.
    pub fn is_over(self, limit: Limit, cost: Cost) -> bool {
        let window = self.division.ticks_per_bucket();
        self.scaled() + Ticks::from(cost.get()) * window > Ticks::from(limit.get()) * window
    }

    /// Whole units left below the limit.
    pub fn remaining(self, limit: Limit) -> u64 {
        let window = self.division.ticks_per_bucket();
        let left = (Ticks::from(limit.get()) * window).saturating_sub(self.scaled());
        u64::try_from(left / window).unwrap_or(u64::MAX)
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
        let room = Ticks::from(room) * window;
        let mut begins = self.division.start(self.buckets.index());
        let mut kept = self.kept();
        let mut newer = self.buckets.counts().iter().rev().skip(1);
        for leaving in self.buckets.counts().iter().rev() {
            // It fits once so few ticks of the leaving bucket are covered that the rest has room.
            if let Some(room) = room.checked_sub(kept * window) {
                let covered = room.checked_div((*leaving).into()).unwrap_or(window);
                begins += window.saturating_sub(covered);
                break;
            }
            begins += window;
            kept -= newer.next().map_or(0, |count| Ticks::from(*count));
        }
        let fits = self.division.ceil_time(begins.max(self.ticks));
        Wait::For(fits.since(now))
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
    fn scaled(self) -> Ticks {
        let window = self.division.ticks_per_bucket();
        let elapsed = self
            .ticks
            .saturating_sub(self.division.start(self.buckets.index()));
        let leaving = self
            .buckets
            .counts()
            .last()
            .map_or(0, |count| Ticks::from(*count));
        leaving * window.saturating_sub(elapsed) + self.kept() * window
    }

    /// The sum of the counts that the window covers whole.
    fn kept(self) -> Ticks {
        let counts = self.buckets.counts();
        counts
            .iter()
            .rev()
            .skip(1)
            .map(|count| Ticks::from(*count))
            .sum()
    }
}
