//! One call on a log: read, judge, then write.

use super::entry::{Entry, MAX_USAGE};
use super::moment::{Moment, Usage};
use super::store::LogStore;
use crate::limiter::tier::{PerTier, Tiers};
use crate::limiter::units::{Cost, Millis, Timestamp, Window};
use crate::limiter::verdict::{Outlook, Verdict};
use crate::limiter::{Call, Foreign};

/// Trimming waits until so many entries have expired: at most one call in so many trims.
const TRIM_BATCH: usize = 32;

/// The most expired entries that one call removes, and what a log may hold beside its live ones.
const TRIM_MOST: usize = 64;

/// A call on a log that has been read and not yet written.
#[derive(Debug)]
pub struct LogCall<'a, S> {
    store: &'a mut S,
    cost: Cost,
    longest: Window,
    moment: Moment,
    usage: PerTier<Usage>,
    over: bool,
    /// The units that the call adds.
    recorded: u64,
}

impl<'a, S: LogStore> LogCall<'a, S> {
    /// Reads how each tier stands at `now`.
    ///
    /// # Errors
    /// [`Foreign`] when the store holds something that no log wrote.
    #[inline(always)]
    pub fn read(
        store: &'a mut S,
        now: Timestamp,
        tiers: &Tiers,
        cost: Cost,
    ) -> Result<Self, Foreign> {
        let longest = tiers.longest();
        let moment = Moment::read(store, now, longest)?;
        let usage = tiers.each().try_map(|tier| moment.usage(store, *tier))?;
        let over = usage.any(|usage| usage.is_over(cost));
        Ok(Self {
            store,
            cost,
            longest,
            moment,
            usage,
            over,
            recorded: 0,
        })
    }

    /// The cost, less what the recorded usage has no room for.
    fn recordable(&self) -> u64 {
        let used = self.usage.iter().map(|usage| usage.used).max().unwrap_or(0);
        self.cost.get().min(MAX_USAGE.saturating_sub(used))
    }

    fn trim(&mut self) {
        if self.store.len() <= TRIM_MOST {
            return;
        }
        let expired = self.moment.time.before(self.longest);
        let count = self.store.count_through(expired, TRIM_MOST);
        if count >= TRIM_BATCH {
            self.store.trim(count);
        }
    }

    /// Keeps the log for its longest window. A quarter more saves writing it on most calls.
    fn keep(&mut self) {
        let needed = self.moment.time + self.longest;
        let kept = self.store.expiry().is_some_and(|expiry| expiry >= needed);
        if self.moment.healed || !kept {
            self.store
                .expire_at(needed + Millis::new(self.longest.get() / 4));
        }
    }
}

impl<S: LogStore> Call for LogCall<'_, S> {
    fn is_over(&self) -> bool {
        self.over
    }

    fn records(&self) -> bool {
        self.cost.get() > 0
    }

    fn needs_memory(&self) -> bool {
        self.records()
    }

    fn is_healed(&self) -> bool {
        self.moment.healed
    }

    #[inline(always)]
    fn settle(&mut self, record: bool) -> Result<Verdict, Foreign> {
        self.recorded = if record { self.recordable() } else { 0 };
        let cost = self.over.then_some(self.cost);
        let mut standing = |usage| self.moment.standing(self.store, usage, cost, self.recorded);
        let mut verdict = Verdict::of(self.over, standing(&self.usage.first)?);
        for usage in &self.usage.rest {
            verdict.add(standing(usage)?);
        }
        Ok(verdict)
    }

    fn outlooks(&mut self) -> Result<Vec<Outlook>, Foreign> {
        let (store, moment, recorded) = (&mut *self.store, self.moment, self.recorded);
        let outlook = |usage: &Usage| {
            Outlook::new(usage.tier, usage.remaining(recorded), |cost| {
                moment.wait(store, usage, cost, recorded)
            })
        };
        self.usage.iter().map(outlook).collect()
    }

    #[inline(always)]
    fn commit(&mut self) {
        let recorded = self.recorded;
        let Moment { time, newest, .. } = self.moment;
        let total = newest
            .map_or(0, |newest| newest.total)
            .wrapping_add(recorded);
        match newest {
            Some(newest) if self.moment.healed => self.store.restart(Entry {
                time,
                total,
                cost: newest.cost + recorded,
            }),
            _ if recorded == 0 => return,
            Some(newest) if newest.time == time => {
                let cost = newest.cost + recorded;
                self.store
                    .replace(&[newest], &[Entry { time, total, cost }]);
            }
            _ => {
                let cost = recorded;
                self.store.append(Entry { time, total, cost });
            }
        }
        self.trim();
        self.keep();
    }
}
