//! One call on a log: read, judge, then write.

use super::entry::{Entry, MAX_USAGE};
use super::moment::{Moment, Usage};
use super::record::record;
use super::set::SortedSet;
use crate::limiter::tier::{PerTier, Tiers};
use crate::limiter::units::{Cost, Millis, Timestamp, Window};
use crate::limiter::verdict::{Outlook, Verdict};
use crate::limiter::{Call, Foreign};

/// A call on a log that has been read and not yet written.
#[derive(Debug)]
pub struct LogCall<'a, S> {
    set: &'a mut S,
    cost: Cost,
    longest: Window,
    moment: Moment,
    usage: PerTier<Usage>,
    over: bool,
    /// The units that the call adds.
    recorded: u64,
}

impl<'a, S: SortedSet> LogCall<'a, S> {
    /// Reads how each tier stands at `now`.
    ///
    /// # Errors
    /// [`Foreign`] when the set holds something that no log wrote.
    #[inline(always)]
    pub fn read(
        set: &'a mut S,
        now: Timestamp,
        tiers: &Tiers,
        cost: Cost,
    ) -> Result<Self, Foreign> {
        let longest = tiers.longest();
        let moment = Moment::read(set, now, longest)?;
        let usage = tiers.each().try_map(|tier| moment.usage(set, *tier))?;
        let over = usage.any(|usage| usage.is_over(cost));
        Ok(Self {
            set,
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

    /// Keeps the log for its longest window. A quarter more saves writing it on most calls.
    fn keep(&mut self) {
        let needed = self.moment.time + self.longest;
        let kept = self.set.expiry().is_some_and(|expiry| expiry >= needed);
        if self.moment.healed || !kept {
            self.set
                .expire_at(needed + Millis::new(self.longest.get() / 4));
        }
    }
}

impl<S: SortedSet> Call for LogCall<'_, S> {
    fn is_over(&self) -> bool {
        self.over
    }

    fn records(&self) -> bool {
        self.cost.get() > 0
    }

    fn is_healed(&self) -> bool {
        self.moment.healed
    }

    #[inline(always)]
    fn settle(&mut self, record: bool) -> Result<Verdict, Foreign> {
        self.recorded = if record { self.recordable() } else { 0 };
        let cost = self.over.then_some(self.cost);
        let mut standing = |usage| self.moment.standing(self.set, usage, cost, self.recorded);
        let mut verdict = Verdict::of(self.over, standing(&self.usage.first)?);
        for usage in &self.usage.rest {
            verdict.add(standing(usage)?);
        }
        Ok(verdict)
    }

    fn outlooks(&mut self) -> Result<Vec<Outlook>, Foreign> {
        let (set, moment, recorded) = (&mut *self.set, self.moment, self.recorded);
        let outlook = |usage: &Usage| {
            Outlook::new(usage.tier, usage.remaining(recorded), |cost| {
                moment.wait(set, usage, cost, recorded)
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
        let entry = |cost| Entry { time, total, cost };
        match newest {
            Some(newest) if self.moment.healed => {
                let text = self.set.text(&entry(newest.cost + recorded).member());
                self.set.clear();
                self.set.add(&[(time, text)]);
            }
            _ if recorded == 0 => return,
            newest => {
                let merged = newest.filter(|newest| newest.time == time);
                let cost = recorded + merged.map_or(0, |merged| merged.cost);
                let expired = time.before(self.longest);
                record(self.set, entry(cost), merged, recorded, expired);
            }
        }
        self.keep();
    }
}
