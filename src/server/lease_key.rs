//! Leases in a sorted set: score = end in ms, member = `@` and the id.

use smallvec::SmallVec;

use super::api::{OK, api};
use super::cursor::Cursor;
use super::error::Error;
use super::key::{Holds, Key};
use super::kind::wrong_type;
use super::module_string::ModuleString;
use super::reading::count_scores;
use crate::limiter::lease::{Lease, LeaseId, LeaseStore};
use crate::limiter::units::Timestamp;
use crate::limiter::{Foreign, Kind};

/// An open key that holds leases, or nothing yet.
#[derive(Debug)]
pub struct LeaseKey<'k, 'a> {
    key: &'k mut Key<'a>,
}

impl<'k, 'a> LeaseKey<'k, 'a> {
    /// Takes the key as that of leases.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it holds another kind of limiter in another type, and
    /// [`Error::WrongType`] if it holds anything else but a sorted set.
    pub fn new(key: &'k mut Key<'a>) -> Result<Self, Error> {
        match key.holds() {
            Holds::Nothing | Holds::SortedSet => Ok(Self { key }),
            Holds::Hash | Holds::Other => Err(wrong_type(key, Kind::Lease)),
        }
    }

    fn member(&self, id: &LeaseId) -> ModuleString<'a> {
        ModuleString::new(self.key.ctx, id.member())
    }
}

impl LeaseStore for LeaseKey<'_, '_> {
    fn earliest_first(
        &mut self,
        time: Option<Timestamp>,
        mut visit: impl FnMut(Lease) -> bool,
    ) -> Result<(), Foreign> {
        let cursor = match time {
            Some(time) => Cursor::first(self.key, time.as_score(), f64::INFINITY),
            None => Cursor::oldest(self.key),
        };
        let Some(mut cursor) = cursor else {
            return Ok(());
        };
        while let Some(lease) = cursor.lease()?
            && visit(lease)
            && cursor.advance()
        {}
        Ok(())
    }

    fn latest_first(&mut self, mut visit: impl FnMut(Lease) -> bool) -> Result<(), Foreign> {
        let Some(mut cursor) = Cursor::last(self.key) else {
            return Ok(());
        };
        while let Some(lease) = cursor.lease()?
            && visit(lease)
            && cursor.retreat()
        {}
        Ok(())
    }

    fn end_of(&mut self, id: &LeaseId) -> Result<Option<Timestamp>, Foreign> {
        if self.key.holds() == Holds::Nothing {
            return Ok(None);
        }
        let member = self.member(id);
        let mut end = 0.0;
        // SAFETY: the key is open and a sorted set; `end` outlives the call.
        let status = unsafe {
            api!(RedisModule_ZsetScore(
                self.key.raw(),
                member.raw(),
                &raw mut end
            ))
        };
        if status == OK {
            Timestamp::from_score(end).map(Some).ok_or(Foreign::Lease)
        } else {
            Ok(None)
        }
    }

    fn len(&self) -> usize {
        self.key.len()
    }

    fn count(&mut self, after: Timestamp, through: Timestamp) -> usize {
        count_scores(self.key, after, through)
    }

    fn put(&mut self, ids: &[&LeaseId], end: Timestamp) {
        match ids {
            [id] => {
                let member = self.member(id);
                self.key.zset_add(end, &member);
            }
            ids => {
                let members = ids.iter().map(|id| (end, self.member(id)));
                let members = members.collect::<Vec<_>>();
                self.key.zset_add_all(&members);
            }
        }
    }

    fn remove(&mut self, ids: &[&LeaseId]) {
        let members = ids.iter().map(|id| self.member(id));
        self.key.zset_remove(&members.collect::<SmallVec<[_; 1]>>());
    }

    fn remove_ended(&mut self, now: Timestamp, most: usize) {
        let mut ended = Vec::new();
        if let Some(mut cursor) = Cursor::first(self.key, f64::NEG_INFINITY, now.as_score()) {
            while ended.len() < most
                && let Some((end, member)) = cursor.element()
                && Lease::parse(end, member.bytes()).is_some()
            {
                ended.push(member);
                if !cursor.advance() {
                    break;
                }
            }
        }
        if !ended.is_empty() {
            self.key.zset_remove(&ended);
        }
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.key.expiry()
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.key.expire_at(time);
    }
}
