//! The search for the entry whose expiry leaves room enough.

use super::entry::Entry;
use super::member::Member;
use super::read;
use super::set::SortedSet;
use crate::limiter::Foreign;
use crate::limiter::units::{Millis, Timestamp};

/// How many members from the oldest live one on are looked at one by one before the search bisects.
const WALK: usize = 4;

/// What a member says of the sum that is searched for.
#[derive(Clone, Copy)]
enum Reached {
    /// The sum through this entry, its newest, is too small.
    After(Entry),
    /// This entry of it is the earliest through which the sum is enough.
    At(Entry),
    /// The sum before this entry, its oldest, is enough already.
    Before(Entry),
}

/// A search for the earliest entry up to which the oldest live one and its followers sum up to some
/// number of units.
#[derive(Debug)]
pub struct Search {
    oldest: Entry,
    units: u64,
    /// A time up to which the sum is too small, and that sum.
    short: (Timestamp, u64),
    /// A time up to which the sum is enough, and that sum.
    enough: (Timestamp, u64),
}

impl Search {
    /// A search from `oldest` on to the time `newest`, up to which the sum is `used`, at least `units`.
    pub fn new(oldest: Entry, newest: Timestamp, used: u64, units: u64) -> Self {
        Self {
            oldest,
            units,
            short: (oldest.time, oldest.cost),
            enough: (newest, used),
        }
    }

    /// Finds the entry's time.
    ///
    /// # Errors
    /// [`Foreign`] where no log wrote what it reads.
    pub fn run<S: SortedSet>(mut self, set: &mut S) -> Result<Timestamp, Foreign> {
        if self.oldest.cost >= self.units {
            return Ok(self.oldest.time);
        }
        let mut found = None;
        let mut left = WALK;
        read::members_after(set, self.oldest.time, |member| {
            found = self.narrow(self.reached(member)?, self.enough.0);
            left -= 1;
            Ok(left > 0 && found.is_none() && self.enough.0 > member.newest.time)
        })?;
        for step in 0_u32.. {
            if let Some(found) = found {
                return Ok(found);
            }
            let middle = self.guess(step);
            if middle >= self.enough.0 {
                break;
            }
            let mut next = None;
            read::members_after(set, middle, |member| {
                next = Some(self.reached(member)?);
                Ok(false)
            })?;
            match next {
                Some(reached) => found = self.narrow(reached, middle),
                None => break,
            }
        }
        Ok(self.enough.0)
    }

    /// A time to look after. Steady traffic is found at once by its proportions; every other step
    /// halves, so that no traffic takes long.
    fn guess(&self, step: u32) -> Timestamp {
        let (short, enough) = (self.short, self.enough);
        let guess = if step.is_multiple_of(2) {
            let missing = self.units.saturating_sub(short.1).saturating_sub(1);
            Timestamp::between(short.0, enough.0, missing, enough.1.saturating_sub(short.1))
        } else {
            Timestamp::between(short.0, enough.0, 1, 2)
        };
        guess.max(short.0 + Millis::new(1))
    }

    /// Takes into account what the first member that ends after `middle` says; the answer, if it has it.
    fn narrow(&mut self, reached: Reached, middle: Timestamp) -> Option<Timestamp> {
        match reached {
            Reached::After(newest) => self.short = (newest.time, self.through(newest)),
            Reached::At(entry) => return Some(entry.time),
            Reached::Before(oldest) => {
                let before = middle.min(oldest.time - Millis::new(1));
                self.enough = (before, self.before(oldest));
            }
        }
        None
    }

    fn reached(&self, member: &Member<'_>) -> Result<Reached, Foreign> {
        if self.through(member.newest) < self.units {
            return Ok(Reached::After(member.newest));
        }
        let mut oldest = member.newest;
        for entry in member.entries() {
            oldest = entry?;
            if self.before(oldest) < self.units {
                return Ok(Reached::At(oldest));
            }
        }
        Ok(Reached::Before(oldest))
    }

    /// The sum through an entry.
    fn through(&self, entry: Entry) -> u64 {
        entry.total.wrapping_sub(self.oldest.total_before())
    }

    /// The sum before an entry.
    fn before(&self, entry: Entry) -> u64 {
        entry
            .total_before()
            .wrapping_sub(self.oldest.total_before())
    }
}
