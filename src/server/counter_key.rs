//! A counter in a hash: one field a window, all its buckets packed into the value.

use std::ffi::c_void;

use libc::c_int;
use redis_module::raw::{self, RedisModuleKey, RedisModuleString};

use super::api::api;
use super::args::bytes_of;
use super::error::Error;
use super::field_names::name_of;
use super::key::{Change, Holds, Key, written};
use super::text::Text;
use crate::limiter::Foreign;
use crate::limiter::counter::{Buckets, CounterStore, Division};
use crate::limiter::units::Timestamp;

/// An open key that holds a counter, or nothing yet.
#[derive(Debug)]
pub struct CounterKey<'k, 'a> {
    key: &'k mut Key<'a>,
}

impl<'k, 'a> CounterKey<'k, 'a> {
    /// Takes the key as a counter's.
    ///
    /// # Errors
    /// [`Error::WrongType`] if it holds anything but a hash.
    pub fn new(key: &'k mut Key<'a>) -> Result<Self, Error> {
        match key.holds() {
            Holds::Nothing | Holds::Hash => Ok(Self { key }),
            Holds::SortedSet | Holds::Other => Err(Error::WrongType),
        }
    }

    fn get(&self, division: Division) -> Option<Text<'a>> {
        let field = name_of(division);
        let mut value: *mut RedisModuleString = std::ptr::null_mut();
        // SAFETY: the key is open and a hash; the variadic list is one field, the place for its
        // value, and the NULL that ends it. The value, if any, is ours to free.
        unsafe {
            api!(RedisModule_HashGet(
                self.key.raw(),
                flags(raw::REDISMODULE_HASH_NONE),
                field,
                &raw mut value,
                std::ptr::null::<c_void>()
            ));
            Text::adopt(self.key.ctx, value)
        }
    }

    /// Reads fields one after the other: all, or about the first few.
    fn scan(&mut self, enough: usize) -> Result<Vec<(Division, Buckets)>, Foreign> {
        let mut found = Scan {
            enough,
            fields: Ok(Vec::new()),
        };
        // SAFETY: the key is open and a hash; the callback gets `found`, which outlives the scan
        // and which nothing else uses meanwhile. The cursor is freed after its last use.
        unsafe {
            let cursor = api!(RedisModule_ScanCursorCreate());
            while !found.is_done()
                && api!(RedisModule_ScanKey(
                    self.key.raw(),
                    cursor,
                    Some(visit),
                    (&raw mut found).cast()
                )) == 1
            {}
            api!(RedisModule_ScanCursorDestroy(cursor));
        }
        found.fields
    }
}

impl CounterStore for CounterKey<'_, '_> {
    fn read(&mut self, division: Division, buckets: &mut Buckets) -> Result<bool, Foreign> {
        if self.key.holds() == Holds::Nothing {
            return Ok(false);
        }
        match self.get(division) {
            Some(value) if buckets.assign(value.bytes()) => Ok(true),
            Some(_) => Err(Foreign::Counter),
            // A hash without the field may still be anybody's.
            None => self.scan(SAMPLE).map(|_| false),
        }
    }

    fn read_all(&mut self) -> Result<Vec<(Division, Buckets)>, Foreign> {
        if self.key.holds() == Holds::Nothing {
            return Ok(Vec::new());
        }
        self.scan(usize::MAX)
    }

    fn write(&mut self, division: Division, buckets: &Buckets) {
        let field = name_of(division);
        let value = Text::new(self.key.ctx, &buckets.value());
        // SAFETY: the key is open for writing; the variadic list is one field, its value, and the
        // NULL that ends it, and the server copies both.
        let count = unsafe {
            api!(RedisModule_HashSet(
                self.key.writable(),
                flags(raw::REDISMODULE_HASH_COUNT_ALL),
                field,
                value.raw(),
                std::ptr::null::<c_void>()
            ))
        };
        written(count == 1);
        // SAFETY: the format fits the arguments: three strings.
        unsafe {
            api!(RedisModule_Replicate(
                self.key.ctx.raw,
                c"HSET".as_ptr(),
                c"sss".as_ptr(),
                self.key.name.raw,
                field,
                value.raw()
            ));
        }
        self.key.changed(Change::Set);
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.key.expiry()
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.key.expire_at(time);
    }
}

/// Flags as the server takes them.
fn flags(flags: u32) -> c_int {
    c_int::try_from(flags).unwrap_or(0)
}

/// How many of a hash's fields are looked at to tell whose it is.
const SAMPLE: usize = 4;

/// What a scan has found in a hash.
#[derive(Debug)]
struct Scan {
    enough: usize,
    fields: Result<Vec<(Division, Buckets)>, Foreign>,
}

impl Scan {
    fn is_done(&self) -> bool {
        self.fields
            .as_ref()
            .map_or(true, |fields| fields.len() >= self.enough)
    }

    fn take(&mut self, field: &[u8], value: &[u8]) {
        let read = Division::parse(field)
            .and_then(|division| Some((division, Buckets::parse(value, division)?)));
        match (&mut self.fields, read) {
            (Ok(fields), Some(read)) => fields.push(read),
            (fields, _) => *fields = Err(Foreign::Counter),
        }
    }
}

/// Looks at one field of a scan.
///
/// # Safety
/// `scan` points to a [`Scan`] that nothing else uses; the strings, where not null, are alive.
unsafe extern "C" fn visit(
    _key: *mut RedisModuleKey,
    field: *mut RedisModuleString,
    value: *mut RedisModuleString,
    scan: *mut c_void,
) {
    // SAFETY: the scan passes what its caller gave it, and that waits for the scan to end. Nothing
    // below panics, which here would end the server.
    let scan = unsafe { &mut *scan.cast::<Scan>() };
    if scan.is_done() || field.is_null() || value.is_null() {
        return;
    }
    // SAFETY: the server's strings live until the callback returns.
    let (field, value) = unsafe { (bytes_of(field), bytes_of(value)) };
    scan.take(field, value);
}
