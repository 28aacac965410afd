//! One call on a counter: read, judge, then write.

use super::buckets::{BucketCount, BucketLayout, Buckets};
use super::estimate::Estimate;
use super::store::CounterStore;
use super::timeline::{Phase, Ticks, Timeline};
use crate::limiter::tier::{PerTier, Tier, Tiers};
use crate::limiter::units::{Cost, Timestamp};
use crate::limiter::verdict::{Outlook, Standing, Verdict, Wait};
use crate::limiter::{Call, Foreign};

/// How many fields one call looks at to find dead ones.
const FIELD_SAMPLE: usize = 16;

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
    timeline: Timeline,
    buckets: Buckets,
    /// When the call is judged: now, but never before the newest bucket.
    ticks: Ticks,
    strict: bool,
    /// Whether the newest bucket began with this call.
    rolled_over: bool,
    /// Whether the dates lay too far in the future, so that all was gathered at now.
    healed: bool,
}

impl Field {
    /// A tier of which nothing is recorded.
    fn empty(now: Timestamp, tier: Tier, shape: Shape, phase: Phase) -> Self {
        let layout = BucketLayout::new(tier.window, shape.buckets);
        let timeline = Timeline::new(layout, phase);
        let ticks = timeline.ticks(now);
        Self {
            tier,
            timeline,
            buckets: Buckets::empty(layout, timeline.bucket(ticks)),
            ticks,
            strict: shape.strict,
            rolled_over: true,
            healed: false,
        }
    }

    /// Takes in what is recorded, as it stands at `now`.
    fn read<S: CounterStore>(&mut self, store: &mut S, now: Timestamp) -> Result<(), Foreign> {
        let current = self.buckets.index();
        if !store.read(self.timeline.layout(), &mut self.buckets)? {
            return Ok(());
        }
        self.rolled_over = self.buckets.index() < current;
        let newest = self.timeline.start(self.buckets.index());
        if newest > self.timeline.ticks(now + self.tier.window) {
            self.buckets.collapse_into(current);
            self.healed = true;
        } else if newest > self.ticks {
            self.ticks = newest;
        } else {
            self.buckets.advance(current);
        }
        Ok(())
    }

    fn estimate(&self) -> Estimate<'_> {
        Estimate::new(self.timeline, &self.buckets, self.ticks, self.strict)
    }

    /// The tier after the call. `limited` is the cost of a call that was over a limit; an admitted
    /// call waits for nothing.
    #[inline(always)]
    fn standing(&self, limited: Option<Cost>, now: Timestamp) -> Standing {
        let limit = self.tier.limit;
        let estimate = self.estimate();
        Standing {
            limit,
            remaining: estimate.remaining(limit),
            wait: limited.map_or(Wait::NONE, |cost| estimate.wait(limit, cost, now)),
            reset: estimate.reset(now),
        }
    }

    /// When the field no longer counts in any window.
    fn expires_at(&self) -> Timestamp {
        self.timeline.expires_at(self.buckets.index())
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
        let phase = store.phase();
        let empty = |tier: &Tier| Field::empty(now, *tier, shape, phase);
        let mut call = Self {
            store,
            now,
            cost,
            fields: tiers.each().map(empty),
            over: false,
            recorded: false,
        };
        for field in call.fields.iter_mut() {
            field.read(call.store, now)?;
            call.over |= field.estimate().is_over(field.tier.limit, cost);
        }
        Ok(call)
    }

    /// Extends the expiry until the newest bucket can no longer count.
    fn keep(&mut self) {
        let last = self.fields.iter().map(Field::expires_at).max();
        let healed = self.is_healed();
        if let Some(needed) = last
            && (healed || self.store.expiry().is_none_or(|expiry| expiry < needed))
        {
            self.store.expire_at(needed);
        }
    }

    /// Looks at some of the counter's fields, and removes those that no longer count: a caller with
    /// ever new windows would make the key grow for ever.
    fn remove_dead_fields(&mut self) {
        if self.store.fields() <= self.fields.len() {
            return;
        }
        let phase = self.store.phase();
        let mut dead = self.store.sample(FIELD_SAMPLE);
        dead.retain(|(layout, buckets)| {
            Timeline::new(*layout, phase).expires_at(buckets.index()) <= self.now
        });
        if !dead.is_empty() {
            let dead = dead.into_iter().map(|(layout, _)| layout);
            self.store.remove(&dead.collect::<Vec<_>>());
        }
    }
}

impl<S: CounterStore> Call for CounterCall<'_, S> {
    fn is_over(&self) -> bool {
        self.over
    }

    fn records(&self) -> bool {
        self.cost.get() > 0
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
        let limited = self.over.then_some(self.cost);
        let standing = |field: &Field| field.standing(limited, self.now);
        let mut verdict = Verdict::of(self.over, standing(&self.fields.first));
        for field in &self.fields.rest {
            verdict.add(standing(field));
        }
        Ok(verdict)
    }

    fn outlooks(&mut self) -> Result<Vec<Outlook>, Foreign> {
        let outlook = |field: &Field| {
            let (estimate, limit) = (field.estimate(), field.tier.limit);
            Outlook::new(field.tier, estimate.remaining(limit), |cost| {
                Ok(estimate.wait(limit, cost, self.now))
            })
        };
        self.fields.iter().map(outlook).collect()
    }

    #[inline(always)]
    fn commit(&mut self) {
        let mut rolled_over = false;
        for field in self.fields.iter() {
            if self.recorded || field.healed {
                self.store.write(field.timeline.layout(), &field.buckets);
                rolled_over |= field.rolled_over || field.healed;
            }
        }
        // Within a bucket the expiry stays right, unless a clock fault under other windows cut it.
        if rolled_over || (self.recorded && !self.fields.rest.is_empty()) {
            self.keep();
        }
        if rolled_over && self.recorded {
            self.remove_dead_fields();
        }
    }
}
