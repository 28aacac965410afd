//! The server's strings.

use redis_module::raw::RedisModuleString;

use super::api::api;
use super::args::bytes_of;
use super::context::Context;

/// A string of our own, freed when dropped.
#[derive(Debug)]
pub struct ModuleString<'a> {
    ctx: Context<'a>,
    raw: *mut RedisModuleString,
}

impl<'a> ModuleString<'a> {
    /// A copy of `bytes`.
    pub fn new(ctx: Context<'a>, bytes: &[u8]) -> Self {
        // SAFETY: the context is the running command's, and the server copies the bytes.
        let raw = unsafe {
            api!(RedisModule_CreateString(
                ctx.raw,
                bytes.as_ptr().cast(),
                bytes.len()
            ))
        };
        Self { ctx, raw }
    }

    /// Takes over a string that the server handed out; `None` if it handed out none.
    ///
    /// # Safety
    /// `raw` is null or a string that the caller has to free.
    pub unsafe fn adopt(ctx: Context<'a>, raw: *mut RedisModuleString) -> Option<Self> {
        // Lazily: a value made for null would free it when dropped.
        (!raw.is_null()).then(|| Self { ctx, raw })
    }

    /// The server's handle, valid as long as this.
    pub fn raw(&self) -> *mut RedisModuleString {
        self.raw
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the string lives as long as `self` and nobody changes it.
        unsafe { bytes_of(self.raw) }
    }
}

impl AsRef<[u8]> for ModuleString<'_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for ModuleString<'_> {
    fn drop(&mut self) {
        // SAFETY: the string is ours, and this is the only place that frees it.
        unsafe { api!(RedisModule_FreeString(self.ctx.raw, self.raw)) }
    }
}
