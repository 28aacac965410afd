//! An open key, whatever it holds.

use libc::c_int;
use redis_module::raw::{self, RedisModuleKey};

use super::api::api;
use super::args::Arg;
use super::context::Context;
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

/// An open key, until dropped.
#[derive(Debug)]
pub struct Key<'a> {
    pub(super) ctx: Context<'a>,
    pub(super) name: Arg<'a>,
    raw: *mut RedisModuleKey,
    holds: Holds,
    writable: bool,
}

impl<'a> Key<'a> {
    /// Opens a key for reading and writing; it may be missing.
    pub fn open(ctx: Context<'a>, name: Arg<'a>) -> Self {
        let mode = raw::KeyMode::READ | raw::KeyMode::WRITE;
        Self::with_mode(ctx, name, mode.bits(), true)
    }

    /// Opens a key only to look at it: its last use stays what it was and, from Redis 7.2 on, an
    /// expired one is not removed.
    pub fn open_to_peek(ctx: Context<'a>, name: Arg<'a>) -> Self {
        let leave_alone = raw::REDISMODULE_OPEN_KEY_NOTOUCH | raw::REDISMODULE_OPEN_KEY_NOEXPIRE;
        let leave_alone = c_int::try_from(leave_alone).unwrap_or(0);
        Self::with_mode(ctx, name, raw::KeyMode::READ.bits() | leave_alone, false)
    }

    fn with_mode(ctx: Context<'a>, name: Arg<'a>, mode: c_int, writable: bool) -> Self {
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

    /// When the key will be gone, if that is known.
    pub(super) fn expiry(&self) -> Option<Timestamp> {
        // SAFETY: the key is open.
        let at = unsafe { api!(RedisModule_GetAbsExpire(self.writable())) };
        (at != raw::REDISMODULE_NO_EXPIRE.into()).then(|| Timestamp::from_millis(at))
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is open, and nothing uses the handle after this.
        unsafe { api!(RedisModule_CloseKey(self.raw)) };
    }
}
