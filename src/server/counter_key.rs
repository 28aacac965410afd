//! A counter in a hash: one field a window, all its buckets packed into the value.

use std::ffi::c_void;

use libc::c_int;
use redis_module::raw::{self, RedisModuleKey, RedisModuleString};

use super::api::api;
use super::args::bytes_of;
use super::error::Error;
use super::field_names::name_of;
use super::key::{Holds, Key};
use super::kind::wrong_type;
use super::module_string::ModuleString;
use super::reading::random_fields;
use crate::limiter::counter::{BucketLayout, Buckets, CounterStore, Phase};
use crate::limiter::units::Timestamp;
use crate::limiter::{Foreign, Kind};

/// An open key that holds a counter, or nothing yet.
#[derive(Debug)]
pub struct CounterKey<'k, 'a> {
    key: &'k mut Key<'a>,
}

impl<'k, 'a> CounterKey<'k, 'a> {
    /// Takes the key as a counter's.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it holds another kind of limiter, and [`Error::WrongType`] if it holds
    /// anything else but a hash.
    pub fn new(key: &'k mut Key<'a>) -> Result<Self, Error> {
        match key.holds() {
            Holds::Nothing | Holds::Hash => Ok(Self { key }),
            Holds::SortedSet | Holds::Other => Err(wrong_type(key, Kind::Counter)),
        }
    }

    fn get(&self, layout: BucketLayout) -> Option<ModuleString<'a>> {
        let field = name_of(layout);
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
            ModuleString::adopt(self.key.ctx, value)
        }
    }
}

/// Whether the first few fields of a hash are a counter's.
pub(super) fn looks_like_counter(key: &Key<'_>) -> bool {
    scan(key, FIELDS_CHECKED).is_ok()
}

/// Reads the fields of a hash one after the other: all, or about the first few.
fn scan(key: &Key<'_>, enough: usize) -> Result<Vec<(BucketLayout, Buckets)>, Foreign> {
    let mut found = Scan {
        enough,
        fields: Ok(Vec::new()),
    };
    // SAFETY: the key is open and a hash; the callback gets `found`, which outlives the scan and which
    // nothing else uses meanwhile. The cursor is freed after its last use.
    unsafe {
        let cursor = api!(RedisModule_ScanCursorCreate());
        while !found.is_done()
            && api!(RedisModule_ScanKey(
                key.raw(),
                cursor,
                Some(visit),
                (&raw mut found).cast()
            )) == 1
        {}
        api!(RedisModule_ScanCursorDestroy(cursor));
    }
    found.fields
}

/// A field's name and its value, if a counter wrote them.
fn parse_field(field: &[u8], value: &[u8]) -> Option<(BucketLayout, Buckets)> {
    let layout = BucketLayout::parse(field)?;
    Some((layout, Buckets::parse(value, layout)?))
}

impl CounterStore for CounterKey<'_, '_> {
    fn phase(&self) -> Phase {
        Phase::of(self.key.name.bytes())
    }

    fn read(&mut self, layout: BucketLayout, buckets: &mut Buckets) -> Result<bool, Foreign> {
        if self.key.holds() == Holds::Nothing {
            return Ok(false);
        }
        match self.get(layout) {
            Some(value) if buckets.assign(value.bytes()) => Ok(true),
            Some(_) => Err(Foreign::Counter),
            // A hash without the field may still be anybody's.
            None => scan(self.key, FIELDS_CHECKED).map(|_| false),
        }
    }

    fn read_all(&mut self) -> Result<Vec<(BucketLayout, Buckets)>, Foreign> {
        if self.key.holds() == Holds::Nothing {
            return Ok(Vec::new());
        }
        scan(self.key, usize::MAX)
    }

    fn write(&mut self, layout: BucketLayout, buckets: &Buckets) {
        let value = ModuleString::new(self.key.ctx, &buckets.value());
        self.key.hash_set(name_of(layout), &value);
    }

    fn fields(&self) -> usize {
        self.key.len()
    }

    fn sample(&mut self, most: usize) -> Vec<(BucketLayout, Buckets)> {
        random_fields(self.key, most)
            .iter()
            .filter_map(|(field, value)| parse_field(field, value))
            .collect()
    }

    fn remove(&mut self, layouts: &[BucketLayout]) {
        let ctx = self.key.ctx;
        let names = layouts.iter();
        let names = names.map(|layout| ModuleString::new(ctx, &layout.field()));
        self.key.hash_delete(&names.collect::<Vec<_>>());
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

/// How many fields of a hash are checked before it is taken for a counter's.
const FIELDS_CHECKED: usize = 4;

/// What a scan has found in a hash.
#[derive(Debug)]
struct Scan {
    enough: usize,
    fields: Result<Vec<(BucketLayout, Buckets)>, Foreign>,
}

impl Scan {
    fn is_done(&self) -> bool {
        self.fields
            .as_ref()
            .map_or(true, |fields| fields.len() >= self.enough)
    }

    fn take(&mut self, field: &[u8], value: &[u8]) {
        match (&mut self.fields, parse_field(field, value)) {
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
