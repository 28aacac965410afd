//! A log in a sorted set: score = time in ms, member = `<total>:<cost>`.

use super::api::{OK, api};
use super::args::KeyName;
use super::context::{Context, EventClass};
use super::error::Error;
use super::key::{Holds, Key};
use super::text::Text;
use crate::limiter::Foreign;
use crate::limiter::log::{Entry, LogStore};
use crate::limiter::units::Timestamp;
use crate::stats::STATS;

/// An open key that holds a log, or nothing yet.
#[derive(Debug)]
pub struct LogKey<'a> {
    key: Key<'a>,
}

impl<'a> LogKey<'a> {
    /// Opens the key.
    ///
    /// # Errors
    /// [`Error::WrongType`] if it holds anything but a sorted set.
    pub fn open(ctx: Context<'a>, name: KeyName<'a>) -> Result<Self, Error> {
        let key = Key::open(ctx, name);
        match key.holds() {
            Holds::Nothing | Holds::SortedSet => Ok(Self { key }),
            Holds::Hash | Holds::Other => Err(Error::WrongType),
        }
    }

    /// Points the range cursor at the first element with a score in the range.
    fn seek_first(&mut self, above: f64, exclusive: bool, through: f64) -> bool {
        // SAFETY: the key is open. On an empty key the call fails and sets no cursor.
        let status = unsafe {
            api!(RedisModule_ZsetFirstInScoreRange(
                self.key.raw(),
                above,
                through,
                exclusive.into(),
                0
            ))
        };
        status == OK
    }

    /// The element under the cursor, if there is one.
    fn current(&mut self) -> Option<(f64, Text)> {
        let mut score = 0.0;
        // SAFETY: a cursor was set on this key by a successful seek; the server answers null past
        // the end, and otherwise a string that is ours to free.
        unsafe {
            let member = api!(RedisModule_ZsetRangeCurrentElement(
                self.key.raw(),
                &raw mut score
            ));
            Text::adopt(self.key.ctx.raw, member).map(|member| (score, member))
        }
    }

    fn entry(&mut self) -> Result<Option<Entry>, Foreign> {
        match self.current() {
            None => Ok(None),
            Some((score, member)) => Entry::parse(score, member.bytes()).map(Some).ok_or(Foreign),
        }
    }

    /// Moves the cursor on; `false` at the end of the range.
    fn advance(&mut self) -> bool {
        // SAFETY: as in `current`.
        unsafe { api!(RedisModule_ZsetRangeNext(self.key.raw())) == 1 }
    }

    fn add(&mut self, entry: Entry) {
        let member = Text::new(self.key.ctx.raw, &entry.member());
        // SAFETY: the key is open and empty or a sorted set; no flags are passed or asked for. The
        // format fits the arguments: the key's name, an integer and a string of our own.
        unsafe {
            api!(RedisModule_ZsetAdd(
                self.key.raw(),
                score(entry.time),
                member.raw(),
                std::ptr::null_mut()
            ));
            api!(RedisModule_Replicate(
                self.key.ctx.raw,
                c"ZADD".as_ptr(),
                c"sls".as_ptr(),
                self.key.name.raw,
                entry.time.as_millis(),
                member.raw()
            ));
        }
        self.key.changed(EventClass::SortedSet, c"zadd");
    }

    fn remove(&mut self, entry: Entry) {
        let member = Text::new(self.key.ctx.raw, &entry.member());
        // SAFETY: the key is open and a sorted set. The format fits the arguments: the key's name
        // and a string of our own.
        unsafe {
            api!(RedisModule_ZsetRem(
                self.key.raw(),
                member.raw(),
                std::ptr::null_mut()
            ));
            api!(RedisModule_Replicate(
                self.key.ctx.raw,
                c"ZREM".as_ptr(),
                c"ss".as_ptr(),
                self.key.name.raw,
                member.raw()
            ));
        }
        self.key.changed(EventClass::SortedSet, c"zrem");
    }

    /// The score that parts the oldest `count` entries from the rest; `None` where two entries have
    /// the same time, which no log writes.
    fn score_through(&mut self, count: usize) -> Option<f64> {
        if !self.seek_first(f64::NEG_INFINITY, false, f64::INFINITY) {
            return None;
        }
        for _ in 1..count {
            self.advance();
        }
        let (last, _) = self.current()?;
        self.advance();
        let (next, _) = self.current()?;
        (last < next).then_some(last)
    }
}

impl LogStore for LogKey<'_> {
    fn newest(&mut self) -> Result<Option<Entry>, Foreign> {
        // SAFETY: the key is open. On an empty key the call fails and sets no cursor.
        let status = unsafe {
            api!(RedisModule_ZsetLastInScoreRange(
                self.key.raw(),
                f64::NEG_INFINITY,
                f64::INFINITY,
                0,
                0
            ))
        };
        if status == OK { self.entry() } else { Ok(None) }
    }

    fn first_after(&mut self, time: Timestamp) -> Result<Option<Entry>, Foreign> {
        if self.seek_first(score(time), true, f64::INFINITY) {
            self.entry()
        } else {
            Ok(None)
        }
    }

    fn len(&self) -> usize {
        self.key.len()
    }

    fn count_through(&mut self, time: Timestamp, most: usize) -> usize {
        if !self.seek_first(f64::NEG_INFINITY, false, score(time)) {
            return 0;
        }
        // SAFETY: a cursor was set just now.
        if unsafe { api!(RedisModule_ZsetRangeEndReached(self.key.raw())) } != 0 {
            return 0;
        }
        let mut count = 1;
        while count < most && self.advance() {
            count += 1;
        }
        count
    }

    fn append(&mut self, entry: Entry) {
        self.add(entry);
    }

    fn replace(&mut self, old: Entry, entry: Entry) {
        self.add(entry);
        self.remove(old);
    }

    fn trim(&mut self, count: usize) {
        let Some(last) = self.score_through(count) else {
            return;
        };
        let last = last.to_string();
        // SAFETY: the cursor is given up before the set changes under it, and the set keeps its
        // newest entry, so that the open key stays good. The format fits the arguments (`!`
        // propagates): the key's name, a C string, and bytes with their length. The reply is ours
        // to free; it is null if the server refuses, and then nothing was changed.
        unsafe {
            api!(RedisModule_ZsetRangeStop(self.key.raw()));
            let reply = api!(RedisModule_Call(
                self.key.ctx.raw,
                c"ZREMRANGEBYSCORE".as_ptr(),
                c"!scb".as_ptr(),
                self.key.name.raw,
                c"-inf".as_ptr(),
                last.as_ptr(),
                last.len()
            ));
            if !reply.is_null() {
                let removed = api!(RedisModule_CallReplyInteger(reply));
                STATS.trimmed_entries.add(removed.try_into().unwrap_or(0));
                api!(RedisModule_FreeCallReply(reply));
            }
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
