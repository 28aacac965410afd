//! The words of a command, as bytes.

use std::marker::PhantomData;

use libc::c_int;
use redis_module::raw::RedisModuleString;

use super::api::api;
use super::error::Error;

/// A command's arguments; they live as long as the command.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    words: &'a [*mut RedisModuleString],
}

/// One word, as the server holds it.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    pub(super) raw: *mut RedisModuleString,
    command: PhantomData<&'a ()>,
}

impl<'a> Args<'a> {
    /// # Safety
    /// `words` points to `count` strings that live for `'a`.
    pub(super) unsafe fn new(words: *mut *mut RedisModuleString, count: c_int) -> Self {
        let length = usize::try_from(count).unwrap_or(0);
        let words = if words.is_null() {
            &[]
        } else {
            // SAFETY: the caller promises that so many strings stand there.
            unsafe { std::slice::from_raw_parts(words, length) }
        };
        Self { words }
    }

    /// The key, word 1; the command's name is word 0.
    ///
    /// # Errors
    /// When it is missing, which the server's check of the arity does not let happen.
    pub fn key(self) -> Result<Word<'a>, Error> {
        match self.words.get(1) {
            Some(raw) => Ok(Word::new(*raw)),
            None => Err(Error::Argument("key must be given".to_owned())),
        }
    }

    /// Up to `count` words from `index` on.
    pub fn words(self, index: usize, count: usize) -> impl Iterator<Item = Word<'a>> + Clone {
        self.words
            .iter()
            .skip(index)
            .take(count)
            .copied()
            .map(Word::new)
    }

    /// How many words there are from `index` on.
    pub(super) fn count_from(self, index: usize) -> usize {
        self.words.len().saturating_sub(index)
    }

    /// The words from `index` on.
    pub fn from(self, index: usize) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.words
            .iter()
            .skip(index)
            .map(|raw| Word::new(*raw).bytes())
    }
}

impl<'a> Word<'a> {
    fn new(raw: *mut RedisModuleString) -> Self {
        Self {
            raw,
            command: PhantomData,
        }
    }

    fn bytes(self) -> &'a [u8] {
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
