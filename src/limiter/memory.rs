//! Stores in memory, for tests.

use std::collections::BTreeMap;

use super::Foreign;
use super::counter::{Buckets, CounterStore, Division};
use super::log::{Entry, LogStore};
use super::units::Timestamp;

/// A log.
#[derive(Clone, Debug, Default)]
pub struct LogMemory {
    pub entries: BTreeMap<i64, Entry>,
    pub expiry: Option<Timestamp>,
    /// How many entries the last trim removed.
    pub trimmed: usize,
}

impl LogStore for LogMemory {
    fn newest(&mut self) -> Result<Option<Entry>, Foreign> {
        Ok(self.entries.values().next_back().copied())
    }

    fn first_after(&mut self, time: Timestamp) -> Result<Option<Entry>, Foreign> {
        Ok(self
            .entries
            .range(time.as_millis() + 1..)
            .next()
            .map(|(_, entry)| *entry))
    }

    fn last_before(&mut self, time: Timestamp) -> Result<Option<Entry>, Foreign> {
        Ok(self
            .entries
            .range(..time.as_millis())
            .next_back()
            .map(|(_, entry)| *entry))
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn count_through(&mut self, time: Timestamp, most: usize) -> usize {
        self.entries.range(..=time.as_millis()).take(most).count()
    }

    fn append(&mut self, entry: Entry) {
        assert!(self.entries.insert(entry.time.as_millis(), entry).is_none());
    }

    fn replace(&mut self, old: &[Entry], new: Option<Entry>) {
        for entry in old {
            assert_eq!(self.entries.remove(&entry.time.as_millis()), Some(*entry));
        }
        self.entries
            .extend(new.map(|entry| (entry.time.as_millis(), entry)));
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
    pub fields: BTreeMap<Vec<u8>, Vec<u8>>,
    pub expiry: Option<Timestamp>,
}

impl CounterStore for CounterMemory {
    fn read(&mut self, division: Division) -> Result<Option<Buckets>, Foreign> {
        let value = self.fields.get(division.field().as_slice());
        value
            .map(|value| Buckets::parse(value, division).ok_or(Foreign::Counter))
            .transpose()
    }

    fn read_all(&mut self) -> Result<Vec<(Division, Buckets)>, Foreign> {
        let fields = self.fields.iter().map(|(field, value)| {
            let division = Division::parse(field).ok_or(Foreign::Counter)?;
            Ok((
                division,
                Buckets::parse(value, division).ok_or(Foreign::Counter)?,
            ))
        });
        fields.collect()
    }

    fn write(&mut self, division: Division, buckets: &Buckets) {
        self.fields
            .insert(division.field().to_vec(), buckets.value().to_vec());
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.expiry
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.expiry = Some(time);
    }
}
