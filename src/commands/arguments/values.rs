//! Single values, each with its range and the error that names it.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use crate::limiter::counter::{BucketCount, MAX_BUCKETS};
use crate::limiter::decimal;
use crate::limiter::lease::{LeaseId, MAX_ID_BYTES};
use crate::limiter::units::{Age, Cost, Limit, MAX_TTL_MS, MAX_UNITS, MAX_WINDOW_MS, Ttl, Window};
use crate::server::{Error, Found};

/// The most keys that one `SLIDE.ALL` takes: it holds the server while it decides them.
const MAX_KEYS: u64 = 64;

/// Reads a limit, in units.
///
/// # Errors
/// The argument, its range and what was found; so for every function here.
pub fn parse_limit(arg: Option<&[u8]>) -> Result<Limit, Error> {
    integer("limit", 0..=MAX_UNITS, arg, Limit::new)
}

/// Reads the cost of a call, in units.
pub fn parse_cost(arg: Option<&[u8]>) -> Result<Cost, Error> {
    integer("cost", 0..=MAX_UNITS, arg, Cost::new)
}

/// Reads into how many buckets a counter divides its window.
pub fn parse_buckets(arg: Option<&[u8]>) -> Result<BucketCount, Error> {
    integer("buckets", 1..=MAX_BUCKETS, arg, BucketCount::new)
}

/// Reads how many units a refund asks for.
pub fn parse_units(arg: Option<&[u8]>) -> Result<NonZeroU64, Error> {
    integer("units", 1..=MAX_UNITS, arg, NonZeroU64::new)
}

/// Reads how many keys follow.
pub fn parse_numkeys(arg: Option<&[u8]>) -> Result<usize, Error> {
    integer("numkeys", 1..=MAX_KEYS, arg, |keys| {
        usize::try_from(keys).ok()
    })
}

/// Reads the length of a window.
pub fn parse_window(arg: Option<&[u8]>) -> Result<Window, Error> {
    duration("window", 1..=MAX_WINDOW_MS, arg, Window::new)
}

/// Reads how long ago units were recorded.
pub fn parse_age(arg: Option<&[u8]>) -> Result<Age, Error> {
    duration("age", 0..=MAX_WINDOW_MS, arg, Age::new)
}

/// Reads how long a lease lives.
pub fn parse_ttl(arg: Option<&[u8]>) -> Result<Ttl, Error> {
    duration("ttl", 1..=MAX_TTL_MS, arg, Ttl::new)
}

/// Reads whose a lease is: bytes of any value, whatever else they look like.
pub fn parse_id(arg: Option<&[u8]>) -> Result<LeaseId, Error> {
    let most = MAX_ID_BYTES;
    let id = arg.ok_or(Error::NoId { most })?;
    let length = id.len();
    LeaseId::new(id).ok_or(Error::Id { most, length })
}

fn integer<T>(
    argument: &'static str,
    range: RangeInclusive<u64>,
    arg: Option<&[u8]>,
    make: impl FnOnce(u64) -> Option<T>,
) -> Result<T, Error> {
    arg.and_then(decimal::parse)
        .filter(|value| range.contains(value))
        .and_then(make)
        .ok_or_else(|| Error::Integer {
            argument,
            least: *range.start(),
            most: *range.end(),
            found: Found::new(arg),
        })
}

/// Reads an integer with a unit, as milliseconds. The unit is never left out: callers would differ on
/// what a bare number means, and a limit that is off by 1000 fails silently.
fn duration<T>(
    argument: &'static str,
    range: RangeInclusive<u64>,
    arg: Option<&[u8]>,
    make: impl FnOnce(u64) -> Option<T>,
) -> Result<T, Error> {
    arg.and_then(milliseconds)
        .filter(|ms| range.contains(ms))
        .and_then(make)
        .ok_or_else(|| Error::Duration {
            argument,
            least: *range.start(),
            most: *range.end(),
            found: Found::new(arg),
        })
}

fn milliseconds(arg: &[u8]) -> Option<u64> {
    let mut unit = arg;
    let number = decimal::take(&mut unit)?;
    let unit_ms = match unit {
        b"ms" => 1,
        b"s" => 1_000,
        b"m" => 60_000,
        b"h" => 3_600_000,
        b"d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit_ms)
}
