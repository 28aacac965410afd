//! One call for a place: read, judge, then write.

use super::lease_id::LeaseId;
use super::store::{Lease, LeaseStore};
use crate::limiter::units::{Limit, Millis, Timestamp, Ttl};
use crate::limiter::verdict::{Outlook, Standing, Verdict, Wait};
use crate::limiter::{Call, Foreign};

/// How many leases are looked at one by one before they are counted by the store.
const WALK: usize = 8;

/// The most ended leases that one call removes.
const MOST_REMOVED: usize = 64;

/// The most wrongly dated leases that one call dates anew.
const MOST_HEALED: usize = 64;

/// What a caller asks: a place among `limit`.
#[derive(Clone, Debug)]
pub struct Take {
    /// How many places there are.
    pub limit: Limit,
    /// How long the place is held, from the call on.
    pub ttl: Ttl,
    /// Who holds it.
    pub id: LeaseId,
}

/// A call for a place that has been read and not yet written.
#[derive(Debug)]
pub struct LeaseCall<'a, S> {
    store: &'a mut S,
    now: Timestamp,
    limit: Limit,
    /// When a lease ends that this call takes, renews, or dates anew.
    end: Timestamp,
    /// Who asks; nobody yet where a call only looks.
    id: Option<&'a LeaseId>,
    /// When the id's lease ends, or ended.
    held: Option<Timestamp>,
    /// The last to end, as it is stored.
    latest: Option<Lease>,
    /// How many leases are live.
    live: usize,
    /// The earliest of the leases that a wrong clock dated: no ttl reaches that far.
    misdated: Vec<LeaseId>,
    recorded: bool,
    /// When the last lease ends after the call.
    last_end: Option<Timestamp>,
}

impl<'a, S: LeaseStore> LeaseCall<'a, S> {
    /// Reads how a call for a place stands at `now`.
    ///
    /// # Errors
    /// [`Foreign`] when the store holds something that was not written as a lease.
    pub fn read(store: &'a mut S, now: Timestamp, take: &'a Take) -> Result<Self, Foreign> {
        Self::read_for(store, now, take.limit, take.ttl, Some(&take.id))
    }

    /// Reads how a call by a new id would stand at `now`. It is not to be recorded.
    ///
    /// # Errors
    /// As for [`LeaseCall::read`].
    pub fn peek(store: &'a mut S, now: Timestamp, limit: Limit) -> Result<Self, Foreign> {
        Self::read_for(store, now, limit, Ttl::MAX, None)
    }

    fn read_for(
        store: &'a mut S,
        now: Timestamp,
        limit: Limit,
        ttl: Ttl,
        id: Option<&'a LeaseId>,
    ) -> Result<Self, Foreign> {
        let mut call = Self {
            store,
            now,
            limit,
            end: now + ttl,
            id,
            held: None,
            latest: None,
            live: 0,
            misdated: Vec::new(),
            recorded: false,
            last_end: None,
        };
        call.store.latest_first(|lease| {
            call.latest = Some(lease);
            false
        })?;
        let Some(latest) = call.latest.as_ref().map(|lease| lease.end) else {
            return Ok(call);
        };
        if let Some(id) = id {
            call.held = call.store.end_of(id)?;
        }
        if latest > now {
            call.live = call.count_live(latest)?;
        }
        if latest > call.latest_possible() {
            call.misdated = call.find_misdated()?;
        }
        Ok(call)
    }

    /// No lease that is taken now ends later.
    fn latest_possible(&self) -> Timestamp {
        self.now + Ttl::MAX
    }

    /// How many leases are live, of which `latest` ends last.
    fn count_live(&mut self, latest: Timestamp) -> Result<usize, Foreign> {
        let (now, mut ended, mut reached) = (self.now, 0, false);
        self.store.earliest_first(None, |lease| {
            reached = lease.end > now;
            ended += usize::from(!reached);
            !reached && ended < WALK
        })?;
        Ok(if reached {
            self.store.len().saturating_sub(ended)
        } else {
            self.store.count(now, latest)
        })
    }

    fn find_misdated(&mut self) -> Result<Vec<LeaseId>, Foreign> {
        let mut misdated = Vec::new();
        let after = Some(self.latest_possible());
        self.store.earliest_first(after, |lease| {
            misdated.push(lease.id);
            misdated.len() < MOST_HEALED
        })?;
        Ok(misdated)
    }

    /// Whether the caller holds a place already.
    fn renews(&self) -> bool {
        self.held.is_some_and(|end| end > self.now)
    }

    /// How many leases are live after the call.
    fn live_after(&self) -> usize {
        self.live + usize::from(self.recorded && !self.renews())
    }

    /// Whether the call moves this lease to another end.
    fn moves(&self, id: &LeaseId) -> bool {
        self.misdated.contains(id) || (self.recorded && self.id == Some(id))
    }

    /// When the last lease ends after the call: one that the call moves, or the last of the others.
    fn find_last_end(&mut self) -> Result<Option<Timestamp>, Foreign> {
        let moved = (self.recorded || self.is_healed()).then_some(self.end);
        let left = match self.latest.take() {
            Some(latest) if self.moves(&latest.id) => self.find_last_unmoved()?,
            latest => latest.map(|latest| latest.end),
        };
        Ok(moved.max(left))
    }

    fn find_last_unmoved(&mut self) -> Result<Option<Timestamp>, Foreign> {
        let taken = self.id.filter(|_| self.recorded);
        let mut last = None;
        self.store.latest_first(|lease| {
            let moves = self.misdated.contains(&lease.id) || taken == Some(&lease.id);
            last = (!moves).then_some(lease.end);
            moves
        })?;
        Ok(last)
    }

    /// Until there is a place, after a call that was over the limit.
    fn wait(&mut self) -> Result<Wait, Foreign> {
        let live = self.live_after();
        let limit = match usize::try_from(self.limit.get()) {
            Ok(0) => return Ok(Wait::Never),
            Ok(limit) if limit <= live => limit,
            _ => return Ok(Wait::NONE),
        };
        // The caller holds no place, or the call would not be over: what the call moves are the
        // wrongly dated leases, and what it adds is its own. All of these end at once.
        let rank = live - limit + 1;
        let at_once = self.misdated.len() + usize::from(self.recorded);
        let unmoved = self.end_of_rank(rank)?;
        let mut end = unmoved;
        if at_once > 0 {
            end = Some(unmoved.map_or(self.end, |unmoved| unmoved.min(self.end)));
            if rank > at_once {
                end = end.max(self.end_of_rank(rank - at_once)?);
            }
        }
        Ok(end.map_or(Wait::NONE, |end| Wait::For(end.since(self.now))))
    }

    /// When the `rank`th live lease ends, of those that the call does not move.
    fn end_of_rank(&mut self, rank: usize) -> Result<Option<Timestamp>, Foreign> {
        let latest_possible = self.latest_possible();
        match self.stored_end_of_rank(rank)? {
            Some(end) if end > latest_possible => {
                self.stored_end_of_rank(rank + self.misdated.len())
            }
            end => Ok(end),
        }
    }

    fn stored_end_of_rank(&mut self, rank: usize) -> Result<Option<Timestamp>, Foreign> {
        if rank > self.live {
            return Ok(None);
        }
        let (mut passed, mut last) = (0, self.now);
        self.store.earliest_first(Some(self.now), |lease| {
            passed += 1;
            last = lease.end;
            passed < rank.min(WALK)
        })?;
        if passed == rank {
            return Ok(Some(last));
        }
        // Fewer than `rank` end through `last`, or it is the one.
        let mut latest = None;
        self.store.latest_first(|lease| {
            latest = Some(lease.end);
            false
        })?;
        let (mut few, mut enough) = (self.now.as_millis(), latest.unwrap_or(last).as_millis());
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            let through = Timestamp::from_millis(middle);
            if self.store.count(self.now, through) < rank {
                few = middle;
            } else {
                enough = middle;
            }
        }
        Ok(Some(Timestamp::from_millis(enough)))
    }
}

impl<S: LeaseStore> Call for LeaseCall<'_, S> {
    fn is_over(&self) -> bool {
        let limit = usize::try_from(self.limit.get()).unwrap_or(usize::MAX);
        !self.renews() && self.live >= limit
    }

    fn records(&self) -> bool {
        true
    }

    fn needs_memory(&self) -> bool {
        !self.renews()
    }

    fn is_healed(&self) -> bool {
        !self.misdated.is_empty()
    }

    fn settle(&mut self, record: bool) -> Result<Verdict, Foreign> {
        let over = self.is_over();
        self.recorded = record;
        let wait = if over { self.wait()? } else { Wait::NONE };
        self.last_end = self.find_last_end()?;
        let live = u64::try_from(self.live_after()).unwrap_or(u64::MAX);
        let standing = Standing {
            limit: self.limit,
            remaining: self.limit.get().saturating_sub(live),
            wait,
            reset: self
                .last_end
                .map_or(Millis::ZERO, |last| last.since(self.now)),
        };
        Ok(Verdict::of(over, standing))
    }

    fn outlooks(&mut self) -> Result<Vec<Outlook>, Foreign> {
        Ok(Vec::new())
    }

    fn commit(&mut self) {
        let taken = self.id.filter(|_| self.recorded);
        let mut moved = self.misdated.iter().collect::<Vec<_>>();
        moved.extend(taken.filter(|id| !self.misdated.contains(id)));
        if moved.is_empty() {
            return;
        }
        let stored = self.store.len();
        self.store.put(&moved, self.end);
        let revived = self.recorded && self.held.is_some() && !self.renews();
        if self.recorded && stored > self.live + usize::from(revived) {
            self.store.remove_ended(self.now, MOST_REMOVED);
        }
        if let Some(last) = self.last_end
            && (self.is_healed() || self.store.expiry().is_none_or(|expiry| expiry < last))
        {
            self.store.expire_at(last);
        }
    }
}
