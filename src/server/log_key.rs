//! A log in a sorted set: score = time in ms, member = `<total>:<cost>`.

use std::slice;

use redis_module::raw::RedisModuleString;
use smallvec::SmallVec;

use super::api::{OK, api};
use super::cursor::Cursor;
use super::error::Error;
use super::key::{Change, Holds, Key, ScoreRange, written};
use super::text::Text;
use crate::limiter::Foreign;
use crate::limiter::log::{Entry, LogStore};
use crate::limiter::units::Timestamp;
use crate::stats::STATS;

/// Above this many entries a range is removed instead of each.
const MANY: usize = 64;

/// An open key that holds a log, or nothing yet.
#[derive(Debug)]
pub struct LogKey<'k, 'a> {
    key: &'k mut Key<'a>,
}

impl<'k, 'a> LogKey<'k, 'a> {
    /// Takes the key as a log's.
    ///
    /// # Errors
    /// [`Error::WrongType`] if it holds anything but a sorted set.
    pub fn new(key: &'k mut Key<'a>) -> Result<Self, Error> {
        match key.holds() {
            Holds::Nothing | Holds::SortedSet => Ok(Self { key }),
            Holds::Hash | Holds::Other => Err(Error::WrongType),
        }
    }

    /// ZADD.
    fn add(&mut self, entry: Entry) {
        let key = &mut *self.key;
        let member = Text::new(key.ctx, &entry.member());
        // SAFETY: the key is open for writing; no flags are passed or asked for.
        let status = unsafe {
            api!(RedisModule_ZsetAdd(
                key.writable(),
                score(entry.time),
                member.raw(),
                std::ptr::null_mut()
            ))
        };
        written(status == OK);
        // The server would format an integer too, but takes longer.
        let mut digits = itoa::Buffer::new();
        let time = digits.format(entry.time.as_millis());
        // SAFETY: the format fits the arguments: a string, bytes with their number, a string.
        unsafe {
            api!(RedisModule_Replicate(
                key.ctx.raw,
                c"ZADD".as_ptr(),
                c"sbs".as_ptr(),
                key.name.raw,
                time.as_ptr(),
                time.len(),
                member.raw()
            ));
        }
        key.changed(Change::Added);
    }

    /// Removes the newest entries, which stand newest first: ZREM, and where they are many a range,
    /// which takes less time, for all but the oldest of them.
    fn remove_newest(&mut self, entries: &[Entry]) {
        match entries {
            // Of two entries with the same time, which no log writes, a range parts neither.
            [.., next, oldest] if entries.len() > MANY && next.time > oldest.time => {
                self.remove(slice::from_ref(oldest));
                let first = format!("({}", oldest.time.as_millis());
                let last = "+inf".to_owned();
                self.key.remove_later(ScoreRange { first, last });
            }
            entries => self.remove(entries),
        }
    }

    /// ZREM.
    fn remove(&mut self, entries: &[Entry]) {
        type Few<T> = SmallVec<[T; 1]>;
        let key = &mut *self.key;
        let members = entries
            .iter()
            .map(|entry| Text::new(key.ctx, &entry.member()));
        let members = members.collect::<Few<Text<'_>>>();
        let handles = members
            .iter()
            .map(Text::raw)
            .collect::<Few<*mut RedisModuleString>>();
        for member in &handles {
            // SAFETY: the key is open for writing; nothing is asked back.
            let status = unsafe {
                api!(RedisModule_ZsetRem(
                    key.writable(),
                    *member,
                    std::ptr::null_mut()
                ))
            };
            written(status == OK);
        }
        // SAFETY: the format fits the arguments: a string, and strings with their number.
        unsafe {
            api!(RedisModule_Replicate(
                key.ctx.raw,
                c"ZREM".as_ptr(),
                c"sv".as_ptr(),
                key.name.raw,
                handles.as_ptr(),
                handles.len()
            ));
        }
        key.changed(Change::Removed);
        if key.len() == 0 {
            key.changed(Change::Deleted);
        }
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
        self.add(entry);
    }

    fn replace(&mut self, old: &[Entry], new: Option<Entry>) {
        if let Some(new) = new {
            self.add(new);
        }
        self.remove_newest(old);
    }

    fn trim(&mut self, count: usize) {
        if let Some(last) = self.score_through(count) {
            let (first, last) = ("-inf".to_owned(), last.to_string());
            self.key.remove_later(ScoreRange { first, last });
            STATS.trimmed_entries.add(count.try_into().unwrap_or(0));
        }
    }

    fn restart(&mut self, entry: Entry) {
        self.key.unlink();
        self.add(entry);
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.key.expiry()
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.key.expire_at(time);
    }
}

/// A time as a score. Times that are written are below 2^53 and therefore exact.
#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn score(time: Timestamp) -> f64 {
    time.as_millis() as f64
}
