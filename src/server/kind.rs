//! Which kind of limiter a key holds.

use super::counter_key;
use super::cursor::Cursor;
use super::error::Error;
use super::key::{Holds, Key};
use crate::limiter::{Foreign, Kind};

/// The error for a key of another type than `wanted` needs. It names the kind that the key holds
/// where that is one of the module's own.
#[cold]
pub(super) fn wrong_type(key: &mut Key<'_>, wanted: Kind) -> Error {
    match kind_of(key) {
        Some(holds) => Error::WrongKind { holds, wanted },
        None => Error::WrongType,
    }
}

/// The kind of limiter that the key's value looks like.
pub fn kind_of(key: &mut Key<'_>) -> Option<Kind> {
    match key.holds() {
        Holds::Hash => counter_key::looks_like_counter(key).then_some(Kind::Counter),
        Holds::SortedSet => match Cursor::last(key)?.entry() {
            Ok(Some(_)) => Some(Kind::Log),
            Err(Foreign::LogOfLeases) => Some(Kind::Lease),
            _ => None,
        },
        Holds::Nothing | Holds::Other => None,
    }
}
