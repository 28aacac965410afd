//! Stores in memory, for tests.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::Foreign;
use super::counter::{BucketLayout, Buckets, CounterStore, Phase};
use super::lease::{Lease, LeaseId, LeaseStore};
use super::log::{Entry, LogStore};
use super::units::Timestamp;

/// A log, ordered as a sorted set is: by time, then by member.
#[derive(Clone, Debug, Default)]
pub struct LogMemory {
    pub entries: BTreeSet<(i64, u64, u64)>,
    pub expiry: Option<Timestamp>,
    /// How many entries the last trim removed.
    pub trimmed: usize,
    /// How many more reads succeed, if not all.
    pub reads_left: Cell<Option<usize>>,
}

impl LogMemory {
    fn show<'a>(
        &self,
        entries: impl Iterator<Item = &'a (i64, u64, u64)>,
        mut visit: impl FnMut(Entry) -> bool,
    ) -> Result<(), Foreign> {
        for entry in entries {
            let entry = self.read(Some(*entry))?;
            if entry.is_none_or(|entry| !visit(entry)) {
                break;
            }
        }
        Ok(())
    }

    fn read(&self, found: Option<(i64, u64, u64)>) -> Result<Option<Entry>, Foreign> {
        if let Some(left) = self.reads_left.get() {
            let left = left.checked_sub(1).ok_or(Foreign::Log)?;
            self.reads_left.set(Some(left));
        }
        Ok(found.map(|(time, total, cost)| Entry {
            time: Timestamp::from_millis(time),
            total,
            cost,
        }))
    }
}

impl LogStore for LogMemory {
    fn newest(&mut self) -> Result<Option<Entry>, Foreign> {
        self.read(self.entries.last().copied())
    }

    fn first_after(&mut self, time: Timestamp) -> Result<Option<Entry>, Foreign> {
        let mut later = self.entries.range((time.as_millis() + 1, 0, 0)..);
        let first = later.next().copied();
        self.read(first)
    }

    fn oldest_first(
        &mut self,
        time: Timestamp,
        visit: impl FnMut(Entry) -> bool,
    ) -> Result<(), Foreign> {
        self.show(self.entries.range((time.as_millis() + 1, 0, 0)..), visit)
    }

    fn newest_first(&mut self, visit: impl FnMut(Entry) -> bool) -> Result<(), Foreign> {
        self.show(self.entries.iter().rev(), visit)
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn count_through(&mut self, time: Timestamp, most: usize) -> usize {
        let through = self.entries.range(..(time.as_millis() + 1, 0, 0));
        through.take(most).count()
    }

    fn append(&mut self, entry: Entry) {
        let later = self
            .entries
            .last()
            .is_none_or(|last| last.0 < entry.time.as_millis());
        assert!(later, "not later than all others");
        self.entries
            .insert((entry.time.as_millis(), entry.total, entry.cost));
    }

    fn replace(&mut self, old: &[Entry], new: &[Entry]) {
        let member = |entry: &Entry| (entry.total, entry.cost);
        for entry in old {
            let stored = (entry.time.as_millis(), entry.total, entry.cost);
            assert!(self.entries.remove(&stored), "{stored:?} is not there");
        }
        for entry in new {
            assert!(old.iter().any(|old| old.time == entry.time), "{entry:?}");
            let clash = self
                .entries
                .iter()
                .any(|kept| (kept.1, kept.2) == member(entry));
            assert!(!clash, "a sorted set would move its member {entry:?}");
            self.entries
                .insert((entry.time.as_millis(), entry.total, entry.cost));
        }
    }

    fn trim(&mut self, count: usize) {
        for _ in 0..count {
            self.entries.pop_first();
        }
        assert!(!self.entries.is_empty());
        self.trimmed = count;
    }

    fn restart(&mut self, entry: Entry) {
        self.entries.clear();
        self.append(entry);
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.expiry
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.expiry = Some(time);
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
