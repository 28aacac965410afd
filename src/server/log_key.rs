//! A log in a sorted set.

use super::cursor::Cursor;
use super::error::Error;
use super::key::{Holds, Key};
use super::kind::wrong_type;
use super::module_string::ModuleString;
use crate::limiter::Kind;
use crate::limiter::log::{ScoreRange, SortedSet};
use crate::limiter::units::Timestamp;
use crate::stats::STATS;

/// An open key that holds a log, or nothing yet.
#[derive(Debug)]
pub struct LogKey<'k, 'a> {
    key: &'k mut Key<'a>,
}

impl<'k, 'a> LogKey<'k, 'a> {
    /// Takes the key as a log's.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it holds another kind of limiter in another type, and
    /// [`Error::WrongType`] if it holds anything else but a sorted set.
    pub fn new(key: &'k mut Key<'a>) -> Result<Self, Error> {
        match key.holds() {
            Holds::Nothing | Holds::SortedSet => Ok(Self { key }),
            Holds::Hash | Holds::Other => Err(wrong_type(key, Kind::Log)),
        }
    }
}

impl<'a> SortedSet for LogKey<'_, 'a> {
    type Text = ModuleString<'a>;
    type Cursor<'s>
        = Cursor<'s, 'a>
    where
        Self: 's;

    fn len(&self) -> usize {
        self.key.len()
    }

    fn first(&mut self) -> Option<Cursor<'_, 'a>> {
        Cursor::oldest(self.key)
    }

    #[inline]
    fn first_after(&mut self, time: Timestamp) -> Option<Cursor<'_, 'a>> {
        Cursor::first(self.key, time.as_score(), f64::INFINITY)
    }

    #[inline]
    fn last(&mut self) -> Option<Cursor<'_, 'a>> {
        Cursor::last(self.key)
    }

    #[inline]
    fn text(&self, member: &[u8]) -> ModuleString<'a> {
        ModuleString::new(self.key.ctx, member)
    }

    #[inline]
    fn add(&mut self, members: &[(Timestamp, ModuleString<'a>)]) {
        match members {
            [(time, member)] => self.key.zset_add(*time, member),
            members => self.key.zset_add_all(members),
        }
    }

    fn remove(&mut self, members: &[ModuleString<'a>]) {
        self.key.zset_remove(members);
    }

    fn remove_range(&mut self, range: ScoreRange, members: &[ModuleString<'a>]) {
        self.key.zset_remove_range(range, members);
    }

    fn clear(&mut self) {
        self.key.unlink();
    }

    #[inline]
    fn expiry(&self) -> Option<Timestamp> {
        self.key.expiry()
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.key.expire_at(time);
    }

    fn tidied(&mut self, packed: usize, trimmed: usize) {
        let count = |number: usize| u64::try_from(number).unwrap_or(0);
        STATS.packed_entries.add(count(packed));
        STATS.trimmed_entries.add(count(trimmed));
    }
}
