//! A command's arguments, as bytes.

use std::marker::PhantomData;

use libc::c_int;
use redis_module::raw::RedisModuleString;

use super::api::api;
use super::error::Error;

/// A command's arguments; they live as long as the command.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    argv: &'a [*mut RedisModuleString],
}

/// One argument, as the server holds it.
#[derive(Clone, Copy, Debug)]
pub struct Arg<'a> {
    pub(super) raw: *mut RedisModuleString,
    command: PhantomData<&'a ()>,
}

impl<'a> Args<'a> {
    /// # Safety
    /// `argv` points to `count` strings that live for `'a`.
    pub(super) unsafe fn new(argv: *mut *mut RedisModuleString, count: c_int) -> Self {
        let length = usize::try_from(count).unwrap_or(0);
        let argv = if argv.is_null() {
            &[]
        } else {
            // SAFETY: the caller promises that there are `count` strings.
            unsafe { std::slice::from_raw_parts(argv, length) }
        };
        Self { argv }
    }

    /// The key, argument 1; the command's name is argument 0.
    ///
    /// # Errors
    /// When it is missing, which the server's check of the arity does not let happen.
    pub fn key(self) -> Result<Arg<'a>, Error> {
        match self.argv.get(1) {
            Some(raw) => Ok(Arg::new(*raw)),
            None => Err(Error::NoKey),
        }
    }

    /// Up to `count` arguments from `index` on.
    pub fn range(self, index: usize, count: usize) -> impl Iterator<Item = Arg<'a>> + Clone {
        self.argv
            .iter()
            .skip(index)
            .take(count)
            .copied()
            .map(Arg::new)
    }

    /// How many arguments there are from `index` on.
    pub(super) fn count_from(self, index: usize) -> usize {
        self.argv.len().saturating_sub(index)
    }

    /// The arguments from `index` on.
    pub fn from(self, index: usize) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.argv
            .iter()
            .skip(index)
            .map(|raw| Arg::new(*raw).bytes())
    }
}

impl<'a> Arg<'a> {
    fn new(raw: *mut RedisModuleString) -> Self {
        Self {
            raw,
            command: PhantomData,
        }
    }

    /// The argument's bytes.
    pub(super) fn bytes(self) -> &'a [u8] {
        // SAFETY: the arguments live for 'a and are not changed.
        unsafe { bytes_of(self.raw) }
    }
}

/// The bytes of a string.
///
/// # Safety
/// `raw` is a string that lives, unchanged, for `'a`.
pub unsafe fn bytes_of<'a>(raw: *const RedisModuleString) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: `raw` is a live string, and `length` outlives the call.
    let start = unsafe { api!(RedisModule_StringPtrLen(raw, &raw mut length)) };
    if start.is_null() {
        return &[];
    }
    // SAFETY: the server gives the start of `length` bytes that live with the string.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}
