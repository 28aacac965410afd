//! The running command's view of the server.

use std::ffi::CString;

use libc::{c_int, c_long};
use redis_module::raw::{self, RedisModuleCtx};

use super::api::api;
use super::args::Arg;
use super::effects::{Effects, Event};
use super::error::Error;
use crate::limiter::units::Timestamp;

/// A running command. Lives no longer than it.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub(super) raw: *mut RedisModuleCtx,
    /// What is left to do once the command has closed its keys.
    pub(super) effects: &'a Effects,
}

impl<'a> Context<'a> {
    /// # Safety
    /// `raw` is the context of a command, or of loading, that lasts for the result's lifetime.
    pub(super) unsafe fn new(raw: *mut RedisModuleCtx, effects: &'a Effects) -> Self {
        Self { raw, effects }
    }

    /// The server's clock: the time that TIME reports.
    #[expect(clippy::unused_self, reason = "only a running command may ask")]
    pub fn now(self) -> Timestamp {
        // SAFETY: both clocks only read. The first, which stands still while a script or a
        // transaction runs, is missing on 7.0.
        let ms = unsafe {
            match raw::RedisModule_CachedMicroseconds {
                Some(cached_microseconds) => cached_microseconds() / 1000,
                None => api!(RedisModule_Milliseconds()),
            }
        };
        Timestamp::from_millis(ms.max(0))
    }

    /// Fails when new data would have to be refused, as the server does for its own commands.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] over maxmemory, unless an eviction policy makes room.
    pub fn ensure_memory(self) -> Result<(), Error> {
        const FULL: u32 = raw::REDISMODULE_CTX_FLAGS_OOM;
        const EVICTS: u32 = raw::REDISMODULE_CTX_FLAGS_EVICT;
        // SAFETY: the ratio is a reading.
        let ratio = unsafe { api!(RedisModule_GetUsedMemoryRatio()) };
        if ratio <= 1.0 {
            return Ok(());
        }
        // SAFETY: the flags are a reading of the running command's context.
        let flags = unsafe { api!(RedisModule_GetContextFlags(self.raw)) };
        let flags = u32::try_from(flags).unwrap_or(0);
        if flags & FULL != 0 && flags & EVICTS == 0 {
            return Err(Error::OutOfMemory);
        }
        Ok(())
    }

    /// Whether the server runs the command only to ask for its keys' positions.
    pub(super) fn wants_keys(self) -> bool {
        // SAFETY: the flag is a reading of the running command's context.
        unsafe { api!(RedisModule_IsKeysPositionRequest(self.raw)) != 0 }
    }

    /// Answers a request for key positions with one of them.
    pub(super) fn report_key(self, position: c_int) {
        // SAFETY: the context is the running command's; the server takes any position.
        unsafe { api!(RedisModule_KeyAtPos(self.raw, position)) };
    }

    /// Opens an array reply of `length` elements.
    pub fn reply_array(self, length: usize) {
        let length = c_long::try_from(length).unwrap_or(0);
        // SAFETY: the running command's context takes replies.
        unsafe { api!(RedisModule_ReplyWithArray(self.raw, length)) };
    }

    /// Replies an integer, alone or as an array's next element.
    pub fn reply_integer(self, value: i64) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithLongLong(self.raw, value)) };
    }

    /// Replies text, as an element of an array or a map.
    pub fn reply_text(self, text: &str) {
        // SAFETY: as above; the server copies the text.
        unsafe {
            api!(RedisModule_ReplyWithStringBuffer(
                self.raw,
                text.as_ptr().cast(),
                text.len()
            ));
        }
    }

    /// Opens a map reply of `length` pairs; RESP2 shows it as a flat array.
    pub fn reply_map(self, length: usize) {
        let length = c_long::try_from(length).unwrap_or(0);
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithMap(self.raw, length)) };
    }

    /// Tells subscribers of keyspace events, once all keys are closed, that a call on this key was over
    /// a limit.
    pub fn notify_limited(self, key: Arg<'a>) {
        self.effects.note(key.raw, &Event::LIMITED);
    }

    /// Replies an error.
    pub(super) fn reply_error(self, error: &Error) {
        // Quoting leaves no NUL in a sentence; without one this cannot fail.
        let sentence = CString::new(error.to_string()).unwrap_or_default();
        // SAFETY: the server copies the sentence.
        unsafe { api!(RedisModule_ReplyWithError(self.raw, sentence.as_ptr())) };
    }

    /// Writes a line at level `warning` to the server's log.
    pub(super) fn log_warning(self, line: &str) {
        let line = CString::new(line).unwrap_or_default();
        // SAFETY: the server copies what the format asks for, one string that ends with NUL.
        unsafe {
            api!(RedisModule_Log(
                self.raw,
                c"warning".as_ptr(),
                c"%s".as_ptr(),
                line.as_ptr()
            ));
        }
    }
}
