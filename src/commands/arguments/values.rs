//! Single values, each with its range and the error that names it.

use std::num::NonZeroU64;

use super::argument;
use crate::limiter::counter::{BucketCount, MAX_BUCKETS};
use crate::limiter::decimal;
use crate::limiter::units::{Cost, Limit, MAX_UNITS, MAX_WINDOW_MS, Window};
use crate::server::{Error, Quoted};

pub fn parse_limit(word: Option<&[u8]>) -> Result<Limit, Error> {
    integer("limit", 0..=MAX_UNITS, word, Limit::new)
}

pub fn parse_cost(word: Option<&[u8]>) -> Result<Cost, Error> {
    integer("cost", 0..=MAX_UNITS, word, Cost::new)
}

pub fn parse_buckets(word: Option<&[u8]>) -> Result<BucketCount, Error> {
    integer("buckets", 1..=MAX_BUCKETS, word, BucketCount::new)
}

/// Reads how many units a refund asks for.
///
/// # Errors
/// The argument, its range and what was found.
pub fn parse_units(word: Option<&[u8]>) -> Result<NonZeroU64, Error> {
    integer("units", 1..=MAX_UNITS, word, NonZeroU64::new)
}

/// Reads how many keys there are, where there can be `most`.
pub fn parse_numkeys(word: Option<&[u8]>, most: u64) -> Result<usize, Error> {
    integer("numkeys", 1..=most, word, |keys| usize::try_from(keys).ok())
}

fn integer<T>(
    name: &str,
    range: std::ops::RangeInclusive<u64>,
    word: Option<&[u8]>,
    make: impl FnOnce(u64) -> Option<T>,
) -> Result<T, Error> {
    word.and_then(decimal::parse)
        .filter(|value| range.contains(value))
        .and_then(make)
        .ok_or_else(|| {
            argument(format!(
                "{name} must be an integer from {} to {}, got {}",
                range.start(),
                range.end(),
                Quoted(word)
            ))
        })
}

/// Milliseconds, or an integer with a unit.
pub fn parse_window(word: Option<&[u8]>) -> Result<Window, Error> {
    let parse = |word: &[u8]| {
        let mut unit = word;
        let number = decimal::take(&mut unit)?;
        let unit_ms = match unit {
            b"" | b"ms" => 1,
            b"s" => 1_000,
            b"m" => 60_000,
            b"h" => 3_600_000,
            b"d" => 86_400_000,
            _ => return None,
        };
        Window::new(number.checked_mul(unit_ms)?)
    };
    word.and_then(parse).ok_or_else(|| {
        argument(format!(
            "window must be an integer of milliseconds, or an integer with one of the lower-case \
             units ms, s, m, h and d, from 1 to {MAX_WINDOW_MS} ms, got {}",
            Quoted(word)
        ))
    })
}
