//! One call on a counter: read, judge, then write.

use super::buckets::{BucketCount, Buckets, Division};
use super::estimate::{Estimate, Ticks};
use super::store::CounterStore;
use crate::limiter::tier::{PerTier, Tier, Tiers};
use crate::limiter::units::{Cost, Timestamp};
use crate::limiter::verdict::{Standing, Verdict, Wait};
use crate::limiter::{Call, Foreign};

/// How a counter counts, for all tiers of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Into how many buckets each window is divided.
    pub buckets: BucketCount,
    /// Whether the bucket that a window leaves counts whole.
    pub strict: bool,
}

/// A tier and its buckets, brought up to the time of the call.
#[derive(Debug)]
struct Field {
    tier: Tier,
    division: Division,
    buckets: Buckets,
    /// When the call is judged: now, but never before the newest bucket.
    ticks: Ticks,
    strict: bool,
    /// Whether the newest bucket began with this call.
    begun: bool,
    /// Whether the dates lay too far in the future, so that all was gathered at now.
    healed: bool,
}

impl Field {
    /// A tier of which nothing is recorded.
    fn empty(now: Timestamp, tier: Tier, shape: Shape) -> Self {
        let division = Division::new(tier.window, shape.buckets);
        let ticks = division.ticks(now);
        Self {
            tier,
            division,
            buckets: Buckets::empty(division, division.bucket(ticks)),
            ticks,
            strict: shape.strict,
            begun: true,
            healed: false,
        }
    }

    /// Takes in what is recorded, as it stands at `now`.
    fn read<S: CounterStore>(&mut self, store: &mut S, now: Timestamp) -> Result<(), Foreign> {
        let current = self.buckets.index();
        if !store.read(self.division, &mut self.buckets)? {
            return Ok(());
        }
        self.begun = self.buckets.index() < current;
        let newest = self.division.start(self.buckets.index());
        if newest > self.division.ticks(now + self.tier.window) {
            self.buckets.gather(current);
            self.healed = true;
        } else if newest > self.ticks {
            self.ticks = newest;
        } else {
            self.buckets.advance(current);
        }
        Ok(())
    }

    fn estimate(&self) -> Estimate<'_> {
        Estimate::new(self.division, &self.buckets, self.ticks, self.strict)
    }

    #[inline(always)]
    fn standing(&self, cost: Cost, now: Timestamp) -> Standing {
        let limit = self.tier.limit;
        let estimate = self.estimate();
        Standing {
            tier: self.tier,
            remaining: estimate.remaining(limit),
            wait: estimate.wait(limit, cost, now),
            reset: estimate.reset(now),
        }
    }
}

/// A call on a counter that has been read and not yet written.
#[derive(Debug)]
pub struct CounterCall<'a, S> {
    store: &'a mut S,
    now: Timestamp,
    cost: Cost,
    fields: PerTier<Field>,
    over: bool,
    recorded: bool,
}

impl<'a, S: CounterStore> CounterCall<'a, S> {
    /// Reads how each tier stands at `now`.
    ///
    /// # Errors
    /// [`Foreign`] when the store holds something that no counter wrote.
    #[inline(always)]
    pub fn read(
        store: &'a mut S,
        now: Timestamp,
        tiers: &Tiers,
        shape: Shape,
        cost: Cost,
    ) -> Result<Self, Foreign> {
        let mut call = Self {
            store,
            now,
            cost,
            fields: tiers.each().map(|tier| Field::empty(now, *tier, shape)),
            over: false,
            recorded: false,
        };
        for field in call.fields.iter_mut() {
            field.read(call.store, now)?;
            call.over |= field.estimate().is_over(field.tier.limit, cost);
        }
        Ok(call)
    }

    /// Keeps the counter until its last bucket stops to matter.
    fn keep(&mut self) {
        let last = self
            .fields
            .iter()
            .map(|field| field.division.end_of_matter(field.buckets.index()))
            .max();
        let healed = self.is_healed();
        if let Some(needed) = last
            && (healed || self.store.expiry().is_none_or(|expiry| expiry < needed))
        {
            self.store.expire_at(needed);
        }
    }
}

impl<S: CounterStore> Call for CounterCall<'_, S> {
    fn is_over(&self) -> bool {
        self.over
    }

    fn is_healed(&self) -> bool {
        self.fields.any(|field| field.healed)
    }

    #[inline(always)]
    fn settle(&mut self, record: bool) -> Result<Verdict, Foreign> {
        self.recorded = record && self.cost.get() > 0;
        if self.recorded {
            for field in self.fields.iter_mut() {
                field.buckets.add(self.cost.get());
            }
        }
        let standing = |field: &Field| field.standing(self.cost, self.now);
        let mut verdict = Verdict::of(self.over, standing(&self.fields.first));
        for field in &self.fields.rest {
            verdict.add(standing(field));
        }
        Ok(verdict)
    }

    fn wait_for(&mut self, tier: Tier, cost: Cost) -> Result<Wait, Foreign> {
        let field = self.fields.iter().find(|field| field.tier == tier);
        Ok(field.map_or(Wait::NONE, |field| {
            field.estimate().wait(tier.limit, cost, self.now)
        }))
    }

    #[inline(always)]
    fn commit(&mut self) {
        let mut begun = false;
        for field in self.fields.iter() {
            if self.recorded || field.healed {
                self.store.write(field.division, &field.buckets);
                begun |= field.begun || field.healed;
            }
        }
        // Within a bucket the expiry stays right, unless a clock fault under other windows cut it.
        if begun || (self.recorded && !self.fields.rest.is_empty()) {
            self.keep();
        }
    }
}
