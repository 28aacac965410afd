//! The names of counters' fields, as strings of the server's: made once, then kept for later calls.

use std::cell::RefCell;
use std::ptr::null_mut;

use redis_module::raw::{RedisModuleCtx, RedisModuleString};

use super::api::api;
use crate::limiter::counter::BucketLayout;

/// How many names are kept; most servers see a few windows only.
const KEPT: usize = 16;

/// No context: what is made lasts beyond the command.
const LASTING: *mut RedisModuleCtx = null_mut();

#[derive(Debug)]
struct FieldNames {
    names: [Option<(BucketLayout, *mut RedisModuleString)>; KEPT],
    /// Which one the next new name takes the place of.
    oldest: usize,
}

thread_local! {
    // Commands run on one thread, the server's main one.
    static NAMES: RefCell<FieldNames> = const {
        RefCell::new(FieldNames {
            names: [None; KEPT],
            oldest: 0,
        })
    };
}

/// The name of a layout's field, valid until this is called the next time.
pub(super) fn name_of(layout: BucketLayout) -> *mut RedisModuleString {
    NAMES.with_borrow_mut(|names| names.get(layout))
}

/// Frees the names, when the module is unloaded.
pub(super) fn forget() {
    NAMES.with_borrow_mut(|names| names.names.iter_mut().for_each(free));
}

fn free(name: &mut Option<(BucketLayout, *mut RedisModuleString)>) {
    if let Some((_, name)) = name.take() {
        // SAFETY: the string is ours; freeing it gives up our reference only.
        unsafe { api!(RedisModule_FreeString(LASTING, name)) };
    }
}

impl FieldNames {
    fn get(&mut self, layout: BucketLayout) -> *mut RedisModuleString {
        for (known, name) in self.names.iter().flatten() {
            if *known == layout {
                return *name;
            }
        }
        self.make(layout)
    }

    #[cold]
    fn make(&mut self, layout: BucketLayout) -> *mut RedisModuleString {
        let spelling = layout.field();
        let (bytes, length) = (spelling.as_ptr().cast(), spelling.len());
        // SAFETY: the server copies the bytes.
        let name = unsafe { api!(RedisModule_CreateString(LASTING, bytes, length)) };
        if let Some(place) = self.names.get_mut(self.oldest) {
            free(place);
            *place = Some((layout, name));
        }
        self.oldest = (self.oldest + 1) % KEPT;
        name
    }
}
