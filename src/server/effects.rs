//! What the writes of a call lead to outside the keys: the commands that replicas and the AOF get,
//! and what watchers, tracking clients and subscribers are told.
//!
//! A write is propagated at once. The rest waits in [`Effects`] until the command has closed all its
//! keys, so that nothing a subscriber does can meet an open key.

use std::cell::RefCell;
use std::ffi::CStr;

use libc::c_int;
use redis_module::raw::{self, RedisModuleCtx, RedisModuleString};
use smallvec::SmallVec;

use super::api::api;

/// A command of the server that the module propagates or calls.
#[derive(Debug)]
pub(super) struct ServerCommand {
    pub(super) name: &'static CStr,
    /// Arguments that fit it.
    pub(super) sample: &'static [&'static CStr],
}

pub(super) const ZADD: ServerCommand = ServerCommand {
    name: c"ZADD",
    sample: &[c"key", c"1", c"member"],
};
pub(super) const ZREM: ServerCommand = ServerCommand {
    name: c"ZREM",
    sample: &[c"key", c"member"],
};
pub(super) const ZREMRANGEBYSCORE: ServerCommand = ServerCommand {
    name: c"ZREMRANGEBYSCORE",
    sample: &[c"key", c"1", c"2"],
};
pub(super) const HSET: ServerCommand = ServerCommand {
    name: c"HSET",
    sample: &[c"key", c"field", c"value"],
};
pub(super) const HDEL: ServerCommand = ServerCommand {
    name: c"HDEL",
    sample: &[c"key", c"field"],
};
pub(super) const PEXPIREAT: ServerCommand = ServerCommand {
    name: c"PEXPIREAT",
    sample: &[c"key", c"1"],
};
pub(super) const UNLINK: ServerCommand = ServerCommand {
    name: c"UNLINK",
    sample: &[c"key"],
};
/// Only read.
pub(super) const HRANDFIELD: ServerCommand = ServerCommand {
    name: c"HRANDFIELD",
    sample: &[c"key", c"1"],
};

/// Only read.
pub(super) const ZCOUNT: ServerCommand = ServerCommand {
    name: c"ZCOUNT",
    sample: &[c"key", c"1", c"2"],
};

/// All that must be there for the module to work: the server looks them up by their current names,
/// and would propagate nothing, silently, under another.
pub(super) const NEEDED: [&ServerCommand; 9] = [
    &ZADD,
    &ZREM,
    &ZREMRANGEBYSCORE,
    &HSET,
    &HDEL,
    &PEXPIREAT,
    &UNLINK,
    &HRANDFIELD,
    &ZCOUNT,
];

/// A keyspace event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    class: raw::NotifyEvent,
    name: &'static CStr,
    /// Whether the key has changed.
    modifies: bool,
}

impl Event {
    pub(super) const ADDED: Self = Self::change(raw::NotifyEvent::ZSET, c"zadd");
    pub(super) const REMOVED: Self = Self::change(raw::NotifyEvent::ZSET, c"zrem");
    pub(super) const RANGE_REMOVED: Self =
        Self::change(raw::NotifyEvent::ZSET, c"zremrangebyscore");
    pub(super) const SET: Self = Self::change(raw::NotifyEvent::HASH, c"hset");
    pub(super) const FIELDS_DELETED: Self = Self::change(raw::NotifyEvent::HASH, c"hdel");
    pub(super) const EXPIRY: Self = Self::change(raw::NotifyEvent::GENERIC, c"expire");
    pub(super) const DELETED: Self = Self::change(raw::NotifyEvent::GENERIC, c"del");
    pub(super) const LIMITED: Self = Self {
        class: raw::NotifyEvent::MODULE,
        name: c"slide.limited",
        modifies: false,
    };

    const fn change(class: raw::NotifyEvent, name: &'static CStr) -> Self {
        Self {
            class,
            name,
            modifies: true,
        }
    }
}

type KeyName = *mut RedisModuleString;

/// What is left to do once the command has closed its keys.
#[derive(Debug, Default)]
pub(super) struct Effects {
    events: RefCell<SmallVec<[(KeyName, &'static Event); 6]>>,
}

impl Effects {
    /// Notes an event on a key, whose name lives as long as the command.
    pub(super) fn note(&self, key: KeyName, event: &'static Event) {
        self.events.borrow_mut().push((key, event));
    }

    /// Does what is left, in this order: watchers and tracking clients, subscribers.
    ///
    /// # Safety
    /// `ctx` is the running command's, it has no open key, and the names that were noted are alive.
    pub(super) unsafe fn tell(&self, ctx: *mut RedisModuleCtx) {
        let events = self.events.borrow();
        let mut signalled = std::ptr::null_mut();
        for (key, event) in events.iter() {
            if event.modifies && *key != signalled {
                signalled = *key;
                // SAFETY: the caller vouches for both.
                unsafe { api!(RedisModule_SignalModifiedKey(ctx, *key)) };
            }
        }
        for (key, event) in events.iter() {
            let class: c_int = event.class.bits();
            // SAFETY: the caller vouches for both; the event's name is static.
            unsafe {
                api!(RedisModule_NotifyKeyspaceEvent(
                    ctx,
                    class,
                    event.name.as_ptr(),
                    *key
                ));
            }
        }
    }
}
