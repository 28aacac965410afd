//! What the module reads by calling the server's commands, because the key API has nothing for it.

use std::slice;

use redis_module::raw::RedisModuleCallReply;

use super::api::api;
use super::effects::{HRANDFIELD, ZCOUNT};
use super::key::Key;
use crate::limiter::units::Timestamp;

/// A reply of the server's, freed when dropped.
#[derive(Debug)]
struct Reply(*mut RedisModuleCallReply);

impl Reply {
    /// An integer reply; `None` if it is anything else.
    fn integer(&self) -> Option<usize> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the reply lives as long as `self`; the server answers a negative number where it is no
        // integer, as no count is.
        usize::try_from(unsafe { api!(RedisModule_CallReplyInteger(self.0)) }).ok()
    }

    /// The elements of an array reply, as bytes; none if it is anything else.
    fn strings(&self) -> Vec<Vec<u8>> {
        if self.0.is_null() {
            return Vec::new();
        }
        // SAFETY: the reply lives as long as `self`; an element lives as long as it, and is null past
        // the end or where the reply is no array.
        unsafe {
            (0..api!(RedisModule_CallReplyLength(self.0)))
                .map_while(|index| {
                    let element = api!(RedisModule_CallReplyArrayElement(self.0, index));
                    if element.is_null() {
                        return None;
                    }
                    let mut length = 0;
                    let start = api!(RedisModule_CallReplyStringPtr(element, &raw mut length));
                    // SAFETY: the server gives the start of `length` bytes that live with the reply.
                    (!start.is_null())
                        .then(|| slice::from_raw_parts(start.cast::<u8>(), length).to_vec())
                })
                .collect()
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the reply is ours, and nothing points into it any more.
            unsafe { api!(RedisModule_FreeCallReply(self.0)) };
        }
    }
}

/// Up to `most` fields of the hash at an open key, each once, at random, with their values.
#[cold]
pub(super) fn random_fields(key: &Key<'_>, most: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    // SAFETY: the format fits the arguments: a string of the running command, an integer and text. The
    // command only reads, so that the open key stays valid.
    let reply = Reply(unsafe {
        api!(RedisModule_Call(
            key.ctx.raw,
            HRANDFIELD.name.as_ptr(),
            c"slc".as_ptr(),
            key.name.raw,
            libc::c_longlong::try_from(most).unwrap_or(0),
            c"WITHVALUES".as_ptr()
        ))
    });
    let mut strings = reply.strings().into_iter();
    let mut fields = Vec::with_capacity(most);
    while let (Some(field), Some(value)) = (strings.next(), strings.next()) {
        fields.push((field, value));
    }
    fields
}

/// How many members of the sorted set at an open key have a score after `after`, and not after `through`.
///
/// # Panics
/// If the server refuses to count, which it has no reason to.
pub(super) fn count_scores(key: &Key<'_>, after: Timestamp, through: Timestamp) -> usize {
    let after = format!("({}", after.as_millis());
    let through = through.as_millis().to_string();
    // SAFETY: the format fits the arguments: a string of the running command, and twice bytes with their
    // number. The command only reads, so that the open key stays valid.
    let reply = Reply(unsafe {
        api!(RedisModule_Call(
            key.ctx.raw,
            ZCOUNT.name.as_ptr(),
            c"sbb".as_ptr(),
            key.name.raw,
            after.as_ptr(),
            after.len(),
            through.as_ptr(),
            through.len()
        ))
    });
    let count = reply.integer();
    assert!(count.is_some(), "the server refused to count");
    count.unwrap_or(0)
}
