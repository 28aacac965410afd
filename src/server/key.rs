//! An open key, whatever it holds.

use std::ffi::CStr;

use redis_module::raw::{self, RedisModuleKey};

use super::api::api;
use super::args::KeyName;
use super::context::{Context, EventClass};
use crate::limiter::units::Timestamp;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Nothing,
    Hash,
    SortedSet,
    Other,
}

/// A key, open for reading and writing until dropped.
///
/// Closing tells watchers and tracking clients that it changed, if [`Key::changed`] was called.
#[derive(Debug)]
pub struct Key<'a> {
    pub ctx: Context<'a>,
    pub name: KeyName<'a>,
    raw: *mut RedisModuleKey,
    changed: bool,
}

impl<'a> Key<'a> {
    pub fn open(ctx: Context<'a>, name: KeyName<'a>) -> Self {
        let mode = raw::KeyMode::READ | raw::KeyMode::WRITE;
        // SAFETY: the context and the name belong to the running command. Opened for writing, a
        // key that does not exist gives a handle too.
        let raw = unsafe { api!(RedisModule_OpenKey(ctx.raw, name.raw, mode.bits())) };
        Self {
            ctx,
            name,
            raw: raw.cast(),
            changed: false,
        }
    }

    /// The server's handle, open as long as this.
    pub fn raw(&self) -> *mut RedisModuleKey {
        self.raw
    }

    pub fn holds(&self) -> Holds {
        // SAFETY: the key is open.
        let kind = unsafe { api!(RedisModule_KeyType(self.raw)) };
        match kind as isize {
            raw::REDISMODULE_KEYTYPE_EMPTY => Holds::Nothing,
            raw::REDISMODULE_KEYTYPE_HASH => Holds::Hash,
            raw::REDISMODULE_KEYTYPE_ZSET => Holds::SortedSet,
            _ => Holds::Other,
        }
    }

    /// How many elements the value has.
    pub fn len(&self) -> usize {
        // SAFETY: the key is open.
        unsafe { api!(RedisModule_ValueLength(self.raw)) }
    }

    /// Notes a change, and tells subscribers of keyspace events what it was.
    pub fn changed(&mut self, class: EventClass, event: &CStr) {
        self.changed = true;
        self.ctx.notify(class, event, self.name);
    }

    pub fn expiry(&self) -> Option<Timestamp> {
        // SAFETY: the key is open.
        let at = unsafe { api!(RedisModule_GetAbsExpire(self.raw)) };
        (at != raw::REDISMODULE_NO_EXPIRE.into()).then(|| Timestamp::from_millis(at))
    }

    /// Lets the key, which holds something, expire at `time`: PEXPIREAT.
    pub fn expire_at(&mut self, time: Timestamp) {
        let ms = time.as_millis();
        // SAFETY: the key is open and not empty. The format fits the arguments: a string of the
        // running command and an integer.
        unsafe {
            api!(RedisModule_SetAbsExpire(self.raw, ms));
            api!(RedisModule_Replicate(
                self.ctx.raw,
                c"PEXPIREAT".as_ptr(),
                c"sl".as_ptr(),
                self.name.raw,
                ms
            ));
        }
        self.changed(EventClass::Generic, c"expire");
    }

    /// Removes the key's value: UNLINK.
    pub fn unlink(&mut self) {
        // SAFETY: the key is open for writing, and stays so; the format fits its one string.
        unsafe {
            api!(RedisModule_UnlinkKey(self.raw));
            api!(RedisModule_Replicate(
                self.ctx.raw,
                c"UNLINK".as_ptr(),
                c"s".as_ptr(),
                self.name.raw
            ));
        }
        self.changed(EventClass::Generic, c"del");
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is open, and nothing uses the handle after this. The context and the name
        // outlive it.
        unsafe {
            api!(RedisModule_CloseKey(self.raw));
            if self.changed {
                api!(RedisModule_SignalModifiedKey(self.ctx.raw, self.name.raw));
            }
        }
    }
}
