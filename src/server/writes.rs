//! Writing to an open key: each write is made, propagated, and noted for those who are told of it.

use std::ffi::c_void;
use std::ops::Bound;

use redis_module::raw::{self, RedisModuleString};
use smallvec::SmallVec;

use super::api::{OK, api};
use super::effects::{Event, HDEL, HSET, PEXPIREAT, UNLINK, ZADD, ZREM, ZREMRANGEBYSCORE};
use super::key::Key;
use super::module_string::ModuleString;
use crate::limiter::log::ScoreRange;
use crate::limiter::units::Timestamp;

/// Propagates a command on the key with these further arguments, which must fit the format.
macro_rules! replicate {
    ($key:expr, $command:expr, $format:literal $(, $argument:expr)*) => {
        // SAFETY: the format begins with `s` for the key's name, and fits the arguments; all of them
        // outlive the call.
        unsafe {
            api!(RedisModule_Replicate(
                $key.ctx.raw,
                $command.name.as_ptr(),
                $format.as_ptr(),
                $key.name.raw
                $(, $argument)*
            ))
        }
    };
}

/// Handles of strings, usually one.
type Handles = SmallVec<[*mut RedisModuleString; 1]>;

fn handles(strings: &[ModuleString<'_>]) -> Handles {
    strings.iter().map(ModuleString::raw).collect()
}

impl Key<'_> {
    /// ZADD of one member with a time as its score.
    pub(super) fn zset_add(&mut self, time: Timestamp, member: &ModuleString<'_>) {
        self.zset_put(time, member);
        // The server would format an integer too, but takes longer.
        let mut digits = itoa::Buffer::new();
        let score = digits.format(time.as_millis());
        replicate!(
            self,
            ZADD,
            c"sbs",
            score.as_ptr(),
            score.len(),
            member.raw()
        );
        self.note(&Event::ADDED);
    }

    /// ZADD of several members, one or more.
    pub(super) fn zset_add_all(&mut self, members: &[(Timestamp, ModuleString<'_>)]) {
        let mut scores = Vec::with_capacity(members.len());
        let mut words = Vec::with_capacity(2 * members.len());
        for (time, member) in members {
            self.zset_put(*time, member);
            let mut digits = itoa::Buffer::new();
            let score = ModuleString::new(self.ctx, digits.format(time.as_millis()).as_bytes());
            words.extend([score.raw(), member.raw()]);
            scores.push(score);
        }
        replicate!(self, ZADD, c"sv", words.as_ptr(), words.len());
        self.note(&Event::ADDED);
    }

    fn zset_put(&mut self, time: Timestamp, member: &ModuleString<'_>) {
        // SAFETY: the key is open for writing; no flags are passed or asked for.
        let status = unsafe {
            api!(RedisModule_ZsetAdd(
                self.writable(),
                time.as_score(),
                member.raw(),
                std::ptr::null_mut()
            ))
        };
        assert_written(status == OK);
    }

    /// ZREM of members, one or more, all of which are there.
    pub(super) fn zset_remove(&mut self, members: &[ModuleString<'_>]) {
        let members = handles(members);
        members.iter().for_each(|member| self.zset_take(*member));
        replicate!(self, ZREM, c"sv", members.as_ptr(), members.len());
        self.note(&Event::REMOVED);
        self.note_if_gone();
    }

    /// ZREMRANGEBYSCORE of a range that has exactly these members, one or more.
    pub(super) fn zset_remove_range(&mut self, range: ScoreRange, members: &[ModuleString<'_>]) {
        for member in members {
            self.zset_take(member.raw());
        }
        let first = bound("-inf", range.0);
        let last = bound("+inf", range.1);
        replicate!(
            self,
            ZREMRANGEBYSCORE,
            c"sbb",
            first.as_ptr(),
            first.len(),
            last.as_ptr(),
            last.len()
        );
        self.note(&Event::RANGE_REMOVED);
        self.note_if_gone();
    }

    fn zset_take(&mut self, member: *mut RedisModuleString) {
        // SAFETY: the key is open for writing; nothing is asked back.
        let status = unsafe {
            api!(RedisModule_ZsetRem(
                self.writable(),
                member,
                std::ptr::null_mut()
            ))
        };
        assert_written(status == OK);
    }

    fn note_if_gone(&self) {
        if self.len() == 0 {
            self.note(&Event::DELETED);
        }
    }

    /// HSET of one field.
    pub(super) fn hash_set(&mut self, field: *mut RedisModuleString, value: &ModuleString<'_>) {
        self.hash_put(field, value.raw());
        replicate!(self, HSET, c"sss", field, value.raw());
        self.note(&Event::SET);
    }

    /// HDEL of fields, one or more, all of which are there.
    pub(super) fn hash_delete(&mut self, fields: &[ModuleString<'_>]) {
        let fields = handles(fields);
        for field in &fields {
            self.hash_put(*field, raw::REDISMODULE_HASH_DELETE);
        }
        replicate!(self, HDEL, c"sv", fields.as_ptr(), fields.len());
        self.note(&Event::FIELDS_DELETED);
    }

    fn hash_put(&mut self, field: *mut RedisModuleString, value: *const RedisModuleString) {
        // SAFETY: the key is open for writing; the variadic list is one field, its value, and the
        // NULL that ends it, and the server copies both.
        let count = unsafe {
            api!(RedisModule_HashSet(
                self.writable(),
                i32::try_from(raw::REDISMODULE_HASH_COUNT_ALL).unwrap_or(0),
                field,
                value,
                std::ptr::null::<c_void>()
            ))
        };
        assert_written(count == 1);
    }

    /// Lets the key, which holds something, expire at `time`: PEXPIREAT.
    pub(super) fn expire_at(&mut self, time: Timestamp) {
        let ms = time.as_millis();
        // SAFETY: the key is open for writing.
        let status = unsafe { api!(RedisModule_SetAbsExpire(self.writable(), ms)) };
        assert_written(status == OK);
        replicate!(self, PEXPIREAT, c"sl", ms);
        self.note(&Event::EXPIRY);
    }

    /// Removes the key's value: UNLINK.
    pub(super) fn unlink(&mut self) {
        // SAFETY: the key is open for writing, and stays so.
        let status = unsafe { api!(RedisModule_UnlinkKey(self.writable())) };
        assert_written(status == OK);
        replicate!(self, UNLINK, c"s");
        self.note(&Event::DELETED);
    }

    fn note(&self, event: &'static Event) {
        self.ctx.effects.note(self.name.raw, event);
    }
}

/// Checks that a write was made before it is propagated: no replica may get what the primary lacks.
///
/// # Panics
/// If the server refused the write, which it has no reason to on a key of the right type.
fn assert_written(done: bool) {
    assert!(done, "the server refused to write to an open key");
}

/// The end of a range of scores, as ZREMRANGEBYSCORE reads it.
fn bound(unbounded: &str, end: Bound<f64>) -> String {
    match end {
        Bound::Unbounded => unbounded.to_owned(),
        Bound::Included(score) => spelled(score),
        Bound::Excluded(score) => format!("({}", spelled(score)),
    }
}

/// A score. Those of a log are whole numbers, for which there is a faster way.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "a number that is not the same afterwards takes the other way"
)]
fn spelled(score: f64) -> String {
    let whole = score as i64;
    if whole as f64 == score {
        itoa::Buffer::new().format(whole).to_owned()
    } else {
        score.to_string()
    }
}
