//! Stores in memory, for tests.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};

use super::Foreign;
use super::counter::{BucketLayout, Buckets, CounterStore, Phase};
use super::lease::{Lease, LeaseId, LeaseStore};
use super::log::{Cursor, ScoreRange, SortedSet};
use super::units::Timestamp;

/// A sorted set of a log, with what the server does with it: members are ordered by score and then by
/// their bytes, and one that is added again moves.
#[derive(Clone, Debug, Default)]
pub struct LogMemory {
    pub ordered: BTreeSet<(i64, Vec<u8>)>,
    scores: BTreeMap<Vec<u8>, i64>,
    pub expiry: Option<Timestamp>,
    pub work: Work,
    /// How many more reads find what a log wrote, if not all.
    pub reads_left: Cell<Option<usize>>,
}

/// What was done to a set.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Places that were looked up by score.
    pub lookups: usize,
    /// Steps from one member to the next.
    pub steps: Cell<usize>,
    /// Members that were read.
    pub reads: Cell<usize>,
    pub added: usize,
    pub removed: usize,
    pub commands: usize,
    /// Entries that were packed.
    pub packed: usize,
    /// Expired members that were removed.
    pub trimmed: usize,
}

impl LogMemory {
    pub fn of(members: impl IntoIterator<Item = (i64, Vec<u8>)>) -> Self {
        let mut set = Self::default();
        for (score, member) in members {
            set.put(score, member);
        }
        set
    }

    fn put(&mut self, score: i64, member: Vec<u8>) {
        if let Some(old) = self.scores.insert(member.clone(), score) {
            self.ordered.remove(&(old, member.clone()));
        }
        self.ordered.insert((score, member));
    }

    fn take(&mut self, member: &Vec<u8>) {
        let score = self.scores.remove(member);
        let score = score.unwrap_or_else(|| panic!("{member:?} is not there"));
        self.ordered.remove(&(score, member.clone()));
    }

    fn look_up(&mut self, range: (Bound<i64>, Bound<i64>), last: bool) -> Option<MemoryCursor<'_>> {
        self.work.lookups += 1;
        let start = match range.0 {
            Bound::Excluded(above) => above + 1,
            _ => i64::MIN,
        };
        let mut places = self.ordered.range((start, Vec::new())..);
        let place = if last {
            places.next_back()
        } else {
            places.next()
        };
        Some(MemoryCursor {
            place: place?.clone(),
            start,
            set: self,
        })
    }

    /// The set as the server shows it.
    pub fn members(&self) -> Vec<(Vec<u8>, f64)> {
        let ordered = self.ordered.iter();
        ordered
            .map(|(score, member)| (member.clone(), Timestamp::from_millis(*score).as_score()))
            .collect()
    }
}

#[derive(Debug)]
pub struct MemoryCursor<'s> {
    set: &'s LogMemory,
    start: i64,
    place: (i64, Vec<u8>),
}

fn count(counter: &Cell<usize>) {
    counter.set(counter.get() + 1);
}

impl Cursor for MemoryCursor<'_> {
    type Text = Vec<u8>;

    fn element(&mut self) -> Option<(f64, Vec<u8>)> {
        count(&self.set.work.reads);
        let (score, member) = self.place.clone();
        let score = Timestamp::from_millis(score).as_score();
        if let Some(left) = self.set.reads_left.get() {
            let Some(left) = left.checked_sub(1) else {
                return Some((score, b"foreign".to_vec()));
            };
            self.set.reads_left.set(Some(left));
        }
        Some((score, member))
    }

    fn advance(&mut self) -> bool {
        count(&self.set.work.steps);
        let later = (Bound::Excluded(&self.place), Bound::Unbounded);
        let next = self.set.ordered.range(later).next().cloned();
        next.map(|next| self.place = next).is_some()
    }

    fn retreat(&mut self) -> bool {
        count(&self.set.work.steps);
        let earlier = self
            .set
            .ordered
            .range((self.start, Vec::new())..self.place.clone());
        let next = earlier.last().cloned();
        next.map(|next| self.place = next).is_some()
    }
}

impl SortedSet for LogMemory {
    type Text = Vec<u8>;
    type Cursor<'s> = MemoryCursor<'s>;

    fn len(&self) -> usize {
        self.ordered.len()
    }

    fn first(&mut self) -> Option<MemoryCursor<'_>> {
        self.look_up((Bound::Unbounded, Bound::Unbounded), false)
    }

    fn first_after(&mut self, time: Timestamp) -> Option<MemoryCursor<'_>> {
        self.look_up((Bound::Excluded(time.as_millis()), Bound::Unbounded), false)
    }

    fn last(&mut self) -> Option<MemoryCursor<'_>> {
        self.look_up((Bound::Unbounded, Bound::Unbounded), true)
    }

    fn text(&self, member: &[u8]) -> Vec<u8> {
        member.to_vec()
    }

    fn add(&mut self, members: &[(Timestamp, Vec<u8>)]) {
        assert!(!members.is_empty());
        self.work.commands += 1;
        self.work.added += members.len();
        for (time, member) in members {
            self.put(time.as_millis(), member.clone());
        }
    }

    fn remove(&mut self, members: &[Vec<u8>]) {
        assert!(!members.is_empty());
        self.work.commands += 1;
        self.work.removed += members.len();
        for member in members {
            self.take(member);
        }
    }

    fn remove_range(&mut self, range: ScoreRange, members: &[Vec<u8>]) {
        let inside = self
            .members()
            .into_iter()
            .filter(|(_, score)| range.contains(score));
        let inside = inside.map(|(member, _)| member).collect::<Vec<_>>();
        assert_eq!(inside, members, "in {range:?}");
        self.remove(members);
    }

    fn clear(&mut self) {
        self.work.commands += 1;
        self.ordered.clear();
        self.scores.clear();
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.expiry
    }

    fn expire_at(&mut self, time: Timestamp) {
        assert!(!self.ordered.is_empty());
        self.expiry = Some(time);
    }

    fn tidied(&mut self, packed: usize, trimmed: usize) {
        self.work.packed += packed;
        self.work.trimmed += trimmed;
    }
}

/// A counter.
#[derive(Clone, Debug, Default)]
pub struct CounterMemory {
    pub phase: Phase,
    pub fields: BTreeMap<Vec<u8>, Vec<u8>>,
    pub expiry: Option<Timestamp>,
    /// How many fields were looked at to find dead ones.
    pub sampled: usize,
}

impl CounterMemory {
    pub fn of_key(key: &[u8]) -> Self {
        Self {
            phase: Phase::of(key),
            ..Self::default()
        }
    }
}

impl CounterStore for CounterMemory {
    fn phase(&self) -> Phase {
        self.phase
    }

    fn read(&mut self, layout: BucketLayout, buckets: &mut Buckets) -> Result<bool, Foreign> {
        match self.fields.get(layout.field().as_slice()) {
            None => Ok(false),
            Some(value) if buckets.assign(value) => Ok(true),
            Some(_) => Err(Foreign::Counter),
        }
    }

    fn read_all(&mut self) -> Result<Vec<(BucketLayout, Buckets)>, Foreign> {
        let fields = self.fields.iter().map(|(field, value)| {
            let layout = BucketLayout::parse(field).ok_or(Foreign::Counter)?;
            Ok((
                layout,
                Buckets::parse(value, layout).ok_or(Foreign::Counter)?,
            ))
        });
        fields.collect()
    }

    fn write(&mut self, layout: BucketLayout, buckets: &Buckets) {
        self.fields
            .insert(layout.field().to_vec(), buckets.value().to_vec());
    }

    fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Others each time.
    fn sample(&mut self, most: usize) -> Vec<(BucketLayout, Buckets)> {
        self.sampled += most;
        let first = self.sampled % self.fields.len();
        let fields = self.fields.iter().cycle().skip(first);
        let fields = fields.take(most.min(self.fields.len()));
        let parse = |(field, value): (&Vec<u8>, &Vec<u8>)| {
            let layout = BucketLayout::parse(field)?;
            Some((layout, Buckets::parse(value, layout)?))
        };
        fields.filter_map(parse).collect()
    }

    fn remove(&mut self, layouts: &[BucketLayout]) {
        for layout in layouts {
            let removed = self.fields.remove(layout.field().as_slice());
            assert!(removed.is_some(), "{layout:?} is not there");
        }
        assert!(!self.fields.is_empty());
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.expiry
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.expiry = Some(time);
    }
}

/// Leases, ordered as a sorted set is: by end, then by member.
#[derive(Clone, Debug, Default)]
pub struct LeaseMemory {
    pub leases: BTreeSet<Lease>,
    pub expiry: Option<Timestamp>,
    /// How many leases were shown one by one, and how often they were counted.
    pub shown: Cell<usize>,
    pub counted: Cell<usize>,
    /// How many ended leases the last call removed.
    pub removed: usize,
}

impl LeaseMemory {
    fn show<'a>(
        &self,
        leases: impl Iterator<Item = &'a Lease>,
        mut visit: impl FnMut(Lease) -> bool,
    ) {
        for lease in leases {
            self.shown.set(self.shown.get() + 1);
            if !visit(lease.clone()) {
                break;
            }
        }
    }

    fn drop_id(&mut self, id: &LeaseId) -> bool {
        let before = self.leases.len();
        self.leases.retain(|lease| lease.id != *id);
        self.leases.len() < before
    }
}

impl LeaseStore for LeaseMemory {
    fn earliest_first(
        &mut self,
        time: Option<Timestamp>,
        visit: impl FnMut(Lease) -> bool,
    ) -> Result<(), Foreign> {
        self.show(
            self.leases.iter().filter(|lease| Some(lease.end) > time),
            visit,
        );
        Ok(())
    }

    fn latest_first(&mut self, visit: impl FnMut(Lease) -> bool) -> Result<(), Foreign> {
        self.show(self.leases.iter().rev(), visit);
        Ok(())
    }

    fn end_of(&mut self, id: &LeaseId) -> Result<Option<Timestamp>, Foreign> {
        let lease = self.leases.iter().find(|lease| lease.id == *id);
        Ok(lease.map(|lease| lease.end))
    }

    fn len(&self) -> usize {
        self.leases.len()
    }

    fn count(&mut self, after: Timestamp, through: Timestamp) -> usize {
        self.counted.set(self.counted.get() + 1);
        let within = |lease: &&Lease| lease.end > after && lease.end <= through;
        self.leases.iter().filter(within).count()
    }

    fn put(&mut self, ids: &[&LeaseId], end: Timestamp) {
        assert!(!ids.is_empty());
        for (place, &id) in ids.iter().enumerate() {
            assert!(!ids[..place].contains(&id), "{id:?} twice");
            self.drop_id(id);
        }
        for &id in ids {
            let id = id.clone();
            self.leases.insert(Lease { end, id });
        }
    }

    fn remove(&mut self, ids: &[&LeaseId]) {
        assert!(!ids.is_empty());
        for id in ids {
            assert!(self.drop_id(id), "{id:?} is not there");
        }
    }

    fn remove_ended(&mut self, now: Timestamp, most: usize) {
        let ended = self.leases.iter().filter(|lease| lease.end <= now);
        let ended = ended.take(most).cloned().collect::<Vec<_>>();
        assert!(!ended.is_empty());
        for lease in &ended {
            self.leases.remove(lease);
        }
        assert!(!self.leases.is_empty());
        self.removed = ended.len();
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.expiry
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.expiry = Some(time);
    }
}
