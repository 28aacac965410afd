//! A counter in a hash: one field a window, all its buckets packed into the value.

use std::ffi::c_void;

use redis_module::raw::{self, RedisModuleKey, RedisModuleString};

use super::api::api;
use super::args::KeyName;
use super::context::{Context, EventClass};
use super::error::Error;
use super::key::{Holds, Key};
use super::text::{Text, bytes_of};
use crate::limiter::Foreign;
use crate::limiter::counter::{Buckets, CounterStore, Division};
use crate::limiter::units::Timestamp;

/// An open key that holds a counter, or nothing yet.
#[derive(Debug)]
pub struct CounterKey<'a> {
    key: Key<'a>,
}

impl<'a> CounterKey<'a> {
    /// Opens the key.
    ///
    /// # Errors
    /// [`Error::WrongType`] if it holds anything but a hash.
    pub fn open(ctx: Context<'a>, name: KeyName<'a>) -> Result<Self, Error> {
        let key = Key::open(ctx, name);
        match key.holds() {
            Holds::Nothing | Holds::Hash => Ok(Self { key }),
            Holds::SortedSet | Holds::Other => Err(Error::WrongType),
        }
    }

    fn get(&mut self, field: &Text) -> Option<Text> {
        let mut value: *mut RedisModuleString = std::ptr::null_mut();
        // SAFETY: the key is open and empty or a hash; the variadic list is one field, the place
        // for its value, and the NULL that ends it. The value, if any, is ours to free.
        unsafe {
            api!(RedisModule_HashGet(
                self.key.raw(),
                NO_FLAGS,
                field.raw(),
                &raw mut value,
                std::ptr::null::<c_void>()
            ));
            Text::adopt(self.key.ctx.raw, value)
        }
    }

    /// Whether the first few fields are a counter's.
    fn is_a_counters(&mut self) -> bool {
        let mut sample = Sample::default();
        // SAFETY: the key is open and a hash; the callback gets the sample, which outlives the
        // scan, and changes nothing else. The cursor is freed after its last use.
        unsafe {
            let cursor = api!(RedisModule_ScanCursorCreate());
            let mut steps = 0;
            while sample.seen == 0
                && steps < MOST_SCAN_STEPS
                && api!(RedisModule_ScanKey(
                    self.key.raw(),
                    cursor,
                    Some(inspect),
                    (&raw mut sample).cast()
                )) == 1
            {
                steps += 1;
            }
            api!(RedisModule_ScanCursorDestroy(cursor));
        }
        sample.seen > 0 && !sample.foreign
    }
}

impl CounterStore for CounterKey<'_> {
    fn read(&mut self, division: Division) -> Result<Option<Buckets>, Foreign> {
        if self.key.holds() == Holds::Nothing {
            return Ok(None);
        }
        let field = Text::new(self.key.ctx.raw, &division.field());
        match self.get(&field) {
            Some(value) => Buckets::parse(value.bytes(), division)
                .map(Some)
                .ok_or(Foreign),
            None if self.is_a_counters() => Ok(None),
            None => Err(Foreign),
        }
    }

    fn write(&mut self, division: Division, buckets: &Buckets) {
        let field = Text::new(self.key.ctx.raw, &division.field());
        let value = Text::new(self.key.ctx.raw, &buckets.value());
        // SAFETY: the key is open and empty or a hash; the variadic list is one field, its value,
        // and the NULL that ends it, and the server copies both. The format fits the arguments:
        // three strings.
        unsafe {
            api!(RedisModule_HashSet(
                self.key.raw(),
                NO_FLAGS,
                field.raw(),
                value.raw(),
                std::ptr::null::<c_void>()
            ));
            api!(RedisModule_Replicate(
                self.key.ctx.raw,
                c"HSET".as_ptr(),
                c"sss".as_ptr(),
                self.key.name.raw,
                field.raw(),
                value.raw()
            ));
        }
        self.key.changed(EventClass::Hash, c"hset");
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.key.expiry()
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.key.expire_at(time);
    }
}

#[expect(clippy::cast_possible_wrap, reason = "it is 0")]
const NO_FLAGS: libc::c_int = raw::REDISMODULE_HASH_NONE as libc::c_int;

/// How many of a hash's fields are looked at to tell whose it is.
const SAMPLE: u32 = 4;

/// How often a scan may come back empty: tables are at least a tenth full.
const MOST_SCAN_STEPS: u32 = 100;

/// What a scan has seen of a hash.
#[derive(Debug, Default)]
struct Sample {
    seen: u32,
    foreign: bool,
}

/// Looks at one field of a scan.
///
/// # Safety
/// `sample` points to a [`Sample`] that nothing else uses; the strings, where not null, are alive.
unsafe extern "C" fn inspect(
    _key: *mut RedisModuleKey,
    field: *mut RedisModuleString,
    value: *mut RedisModuleString,
    sample: *mut c_void,
) {
    // SAFETY: the caller of the scan passes its sample, and waits for the scan to end.
    let sample = unsafe { &mut *sample.cast::<Sample>() };
    if sample.seen == SAMPLE || field.is_null() || value.is_null() {
        return;
    }
    // SAFETY: the server's strings live until the callback returns.
    let (field, value) = unsafe { (bytes_of(field), bytes_of(value)) };
    let buckets = Division::parse(field).and_then(|division| Buckets::parse(value, division));
    sample.seen += 1;
    sample.foreign |= buckets.is_none();
}
