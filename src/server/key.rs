//! An open key, whatever it holds.

use libc::c_int;
use redis_module::raw::{self, RedisModuleKey};
use smallvec::SmallVec;

use super::api::{OK, api};
use super::args::Word;
use super::context::{Context, EventClass};
use crate::limiter::units::Timestamp;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It is missing.
    Nothing,
    /// A hash.
    Hash,
    /// A sorted set.
    SortedSet,
    /// Any other type.
    Other,
}

/// What a call did to a key, as its keyspace event tells.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Added,
    Removed,
    Set,
    Expiry,
    Deleted,
}

impl Change {
    fn notify(self, ctx: Context<'_>, key: Word<'_>) {
        let (class, event) = match self {
            Self::Added => (EventClass::SortedSet, c"zadd"),
            Self::Removed => (EventClass::SortedSet, c"zrem"),
            Self::Set => (EventClass::Hash, c"hset"),
            Self::Expiry => (EventClass::Generic, c"expire"),
            Self::Deleted => (EventClass::Generic, c"del"),
        };
        ctx.notify(class, event, key);
    }
}

/// An open key, until dropped.
///
/// Only once it is closed are watchers, tracking clients and subscribers told of its changes: what
/// they do then cannot meet an open handle.
#[derive(Debug)]
pub struct Key<'a> {
    pub(super) ctx: Context<'a>,
    pub(super) name: Word<'a>,
    raw: *mut RedisModuleKey,
    holds: Holds,
    writable: bool,
    changes: SmallVec<[Change; 8]>,
    /// What is to be removed once the key is closed. Few calls have that.
    removal: Option<Box<ScoreRange>>,
}

/// A part of a sorted set, as ZREMRANGEBYSCORE takes it.
#[derive(Debug)]
pub(super) struct ScoreRange {
    pub(super) first: String,
    pub(super) last: String,
}

impl<'a> Key<'a> {
    /// Opens a key for reading and writing; it may be missing.
    pub fn open(ctx: Context<'a>, name: Word<'a>) -> Self {
        let mode = raw::KeyMode::READ | raw::KeyMode::WRITE;
        Self::with_mode(ctx, name, mode.bits(), true)
    }

    /// Opens a key only to look at it: its last use stays what it was and, from Redis 7.2 on, an
    /// expired one is not removed.
    pub fn open_to_peek(ctx: Context<'a>, name: Word<'a>) -> Self {
        let leave_alone = raw::REDISMODULE_OPEN_KEY_NOTOUCH | raw::REDISMODULE_OPEN_KEY_NOEXPIRE;
        let leave_alone = c_int::try_from(leave_alone).unwrap_or(0);
        Self::with_mode(ctx, name, raw::KeyMode::READ.bits() | leave_alone, false)
    }

    fn with_mode(ctx: Context<'a>, name: Word<'a>, mode: c_int, writable: bool) -> Self {
        // SAFETY: the context and the name belong to the running command. A missing key gives a
        // handle when opened for writing, else null, which has no type and can be closed.
        let (raw, kind) = unsafe {
            let raw = api!(RedisModule_OpenKey(ctx.raw, name.raw, mode));
            (raw, api!(RedisModule_KeyType(raw)))
        };
        Self {
            ctx,
            name,
            raw,
            holds: match kind as isize {
                raw::REDISMODULE_KEYTYPE_EMPTY => Holds::Nothing,
                raw::REDISMODULE_KEYTYPE_HASH => Holds::Hash,
                raw::REDISMODULE_KEYTYPE_ZSET => Holds::SortedSet,
                _ => Holds::Other,
            },
            writable,
            changes: SmallVec::new(),
            removal: None,
        }
    }

    /// The server's handle, open as long as this; null if a key to peek at is missing.
    pub(super) fn raw(&self) -> *mut RedisModuleKey {
        self.raw
    }

    /// The server's handle for writing: never null.
    ///
    /// # Panics
    /// If the key was opened to peek at.
    pub(super) fn writable(&self) -> *mut RedisModuleKey {
        assert!(self.writable, "a key opened to peek at is not written");
        self.raw
    }

    /// What the key held when it was opened.
    pub fn holds(&self) -> Holds {
        self.holds
    }

    /// How many elements the value has.
    pub(super) fn len(&self) -> usize {
        // SAFETY: the key is open.
        unsafe { api!(RedisModule_ValueLength(self.raw)) }
    }

    /// Notes a change, for when the key is closed.
    pub(super) fn changed(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Has a part of the sorted set removed, by ZREMRANGEBYSCORE, once the key is closed: the server
    /// tells of that by itself, at once.
    pub(super) fn remove_later(&mut self, range: ScoreRange) {
        self.removal = Some(Box::new(range));
    }

    pub(super) fn expiry(&self) -> Option<Timestamp> {
        // SAFETY: the key is open.
        let at = unsafe { api!(RedisModule_GetAbsExpire(self.writable())) };
        (at != raw::REDISMODULE_NO_EXPIRE.into()).then(|| Timestamp::from_millis(at))
    }

    /// Lets the key, which holds something, expire at `time`: PEXPIREAT.
    pub(super) fn expire_at(&mut self, time: Timestamp) {
        let ms = time.as_millis();
        // SAFETY: the key is open for writing.
        let status = unsafe { api!(RedisModule_SetAbsExpire(self.writable(), ms)) };
        written(status == OK);
        // SAFETY: the format fits the arguments: a string of the running command, and an integer.
        unsafe {
            api!(RedisModule_Replicate(
                self.ctx.raw,
                c"PEXPIREAT".as_ptr(),
                c"sl".as_ptr(),
                self.name.raw,
                ms
            ));
        }
        self.changed(Change::Expiry);
    }

    /// Removes the key's value: UNLINK.
    pub(super) fn unlink(&mut self) {
        // SAFETY: the key is open for writing, and stays so.
        let status = unsafe { api!(RedisModule_UnlinkKey(self.writable())) };
        written(status == OK);
        // SAFETY: the format fits its one string, of the running command.
        unsafe {
            api!(RedisModule_Replicate(
                self.ctx.raw,
                c"UNLINK".as_ptr(),
                c"s".as_ptr(),
                self.name.raw
            ));
        }
        self.changed(Change::Deleted);
    }
}

impl ScoreRange {
    /// ZREMRANGEBYSCORE on a key that is not open. The server has no reason to refuse it.
    #[cold]
    fn remove(&self, ctx: Context<'_>, key: Word<'_>) {
        // SAFETY: the format fits the arguments (`!` propagates): a string of the running command, and
        // twice bytes with their number. The reply is ours to free; it is null after a refusal.
        unsafe {
            let reply = api!(RedisModule_Call(
                ctx.raw,
                c"ZREMRANGEBYSCORE".as_ptr(),
                c"!sbb".as_ptr(),
                key.raw,
                self.first.as_ptr(),
                self.first.len(),
                self.last.as_ptr(),
                self.last.len()
            ));
            if !reply.is_null() {
                api!(RedisModule_FreeCallReply(reply));
            }
        }
    }
}

/// Holds each write to its word before it is propagated: what the primary does not have, no replica
/// may get.
///
/// # Panics
/// If the server refused the write, which it has no reason to on a key of the right type.
pub fn written(done: bool) {
    assert!(done, "the server refused to write to an open key");
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is open, and nothing uses the handle after this.
        unsafe { api!(RedisModule_CloseKey(self.raw)) };
        if !self.changes.is_empty() {
            // SAFETY: the context and the name outlive the key.
            unsafe { api!(RedisModule_SignalModifiedKey(self.ctx.raw, self.name.raw)) };
        }
        for change in &self.changes {
            change.notify(self.ctx, self.name);
        }
        if let Some(range) = &self.removal {
            range.remove(self.ctx, self.name);
        }
    }
}
