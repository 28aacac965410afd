//! A log in a sorted set: score = time in ms, member = `<total>:<cost>`.

use smallvec::SmallVec;

use super::cursor::Cursor;
use super::effects::ScoreRange;
use super::error::Error;
use super::key::{Holds, Key};
use super::kind::wrong_type;
use super::module_string::ModuleString;
use super::writes::score;
use crate::limiter::log::{Entry, LogStore};
use crate::limiter::units::Timestamp;
use crate::limiter::{Foreign, Kind};
use crate::stats::STATS;

/// Above this many entries a range is removed instead of each entry.
const MOST_REMOVED_SINGLY: usize = 64;

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

    /// Removes the newest entries, newest first in `entries`, except for members in `kept`: by ZREM,
    /// and where they are many and none is kept, all but the oldest by a range, which takes less time.
    fn remove_newest(&mut self, entries: &[Entry], kept: &[Entry]) {
        match entries {
            // A range does not separate two entries of the same time, which no log writes.
            [.., next, oldest]
                if entries.len() > MOST_REMOVED_SINGLY
                    && next.time > oldest.time
                    && kept.iter().all(|kept| kept.time == oldest.time) =>
            {
                self.remove([oldest].into_iter());
                self.key.zset_remove_later(ScoreRange {
                    first: format!("({}", oldest.time.as_millis()),
                    last: "+inf".to_owned(),
                });
            }
            entries => {
                let is_kept = |entry: &Entry| kept.iter().any(|kept| kept.is_same_member(entry));
                self.remove(entries.iter().filter(|entry| !is_kept(entry)));
            }
        }
    }

    fn remove<'e>(&mut self, entries: impl Iterator<Item = &'e Entry>) {
        let ctx = self.key.ctx;
        let members = entries.map(|entry| ModuleString::new(ctx, &entry.member()));
        let members = members.collect::<SmallVec<[_; 1]>>();
        if !members.is_empty() {
            self.key.zset_remove(&members);
        }
    }

    fn member(&self, entry: Entry) -> ModuleString<'a> {
        ModuleString::new(self.key.ctx, &entry.member())
    }

    /// The score that parts the oldest `count` entries from the rest; `None` where it does not part
    /// them, because two entries have the same time, which no log writes.
    fn score_through(&mut self, count: usize) -> Option<f64> {
        let mut cursor = Cursor::first(self.key, f64::NEG_INFINITY, f64::INFINITY)?;
        for _ in 1..count {
            cursor.advance();
        }
        let (last, _) = cursor.element()?;
        let (next, _) = cursor.advance().then(|| cursor.element())??;
        (last < next).then_some(last)
    }
}

impl LogStore for LogKey<'_, '_> {
    fn newest(&mut self) -> Result<Option<Entry>, Foreign> {
        match Cursor::last(self.key) {
            Some(mut cursor) => cursor.entry(),
            None => Ok(None),
        }
    }

    fn first_after(&mut self, time: Timestamp) -> Result<Option<Entry>, Foreign> {
        match Cursor::first(self.key, score(time), f64::INFINITY) {
            Some(mut cursor) => cursor.entry(),
            None => Ok(None),
        }
    }

    fn oldest_first(
        &mut self,
        time: Timestamp,
        mut visit: impl FnMut(Entry) -> bool,
    ) -> Result<(), Foreign> {
        let Some(mut cursor) = Cursor::first(self.key, score(time), f64::INFINITY) else {
            return Ok(());
        };
        while let Some(entry) = cursor.entry()?
            && visit(entry)
            && cursor.advance()
        {}
        Ok(())
    }

    fn newest_first(&mut self, mut visit: impl FnMut(Entry) -> bool) -> Result<(), Foreign> {
        let Some(mut cursor) = Cursor::last(self.key) else {
            return Ok(());
        };
        while let Some(entry) = cursor.entry()?
            && visit(entry)
            && cursor.retreat()
        {}
        Ok(())
    }

    fn len(&self) -> usize {
        self.key.len()
    }

    fn count_through(&mut self, time: Timestamp, most: usize) -> usize {
        match Cursor::first(self.key, f64::NEG_INFINITY, score(time)) {
            Some(mut cursor) if !cursor.is_at_end() => {
                1 + (1..most).take_while(|_| cursor.advance()).count()
            }
            _ => 0,
        }
    }

    fn append(&mut self, entry: Entry) {
        let member = self.member(entry);
        self.key.zset_add(entry.time, &member);
    }

    fn replace(&mut self, old: &[Entry], new: &[Entry]) {
        match new {
            [] => {}
            [new] => self.append(*new),
            new => {
                let members = new.iter().map(|entry| (entry.time, self.member(*entry)));
                let members = members.collect::<Vec<_>>();
                self.key.zset_add_all(&members);
            }
        }
        self.remove_newest(old, new);
    }

    fn trim(&mut self, count: usize) {
        if let Some(last) = self.score_through(count) {
            let (first, last) = ("-inf".to_owned(), last.to_string());
            self.key.zset_remove_later(ScoreRange { first, last });
            STATS.trimmed_entries.add(count.try_into().unwrap_or(0));
        }
    }

    fn restart(&mut self, entry: Entry) {
        self.key.unlink();
        self.append(entry);
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.key.expiry()
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.key.expire_at(time);
    }
}
