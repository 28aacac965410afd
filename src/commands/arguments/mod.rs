//! From arguments to a request: every argument is parsed here, once.

mod all;
pub mod declared;
mod options;
#[cfg(test)]
mod tests;
mod values;

pub use all::{AllRequest, Clause, Limits, parse_all};

use std::iter::Peekable;
use std::num::NonZeroU64;

use crate::limiter::lease::{LeaseId, Take};
use crate::limiter::tier::{MAX_TIERS, Tier, TierError, Tiers};
use crate::limiter::units::Age;
use crate::server::{Argument, Error, Found};
pub use options::Options;
use values::{parse_id, parse_limit, parse_ttl, parse_units, parse_window};

/// What a caller asks of the limiter of one key.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tiers that the call has to pass.
    pub tiers: Tiers,
    /// The arguments after them.
    pub options: Options,
}

/// Reads `limit window [limit window ...] [option ...]`, with the options among the `declared`
/// arguments.
///
/// # Errors
/// The argument at fault, its range and what was found.
#[inline(always)]
pub fn parse<'a>(
    args: impl Iterator<Item = &'a [u8]>,
    declared: &[Argument],
) -> Result<Request, Error> {
    let mut args = args.peekable();
    let mut request = Request {
        tiers: Tiers::new(take_tier(&mut args)?),
        options: Options::default(),
    };
    take_more_tiers(&mut args, &mut request.tiers)?;
    request.options.take(&mut args, declared)?;
    match args.next() {
        None => Ok(request),
        rest => Err(unexpected(rest)),
    }
}

/// Reads `units [option ...]`.
///
/// # Errors
/// As for [`parse`].
pub fn parse_refund<'a>(
    args: impl Iterator<Item = &'a [u8]>,
    declared: &[Argument],
) -> Result<(NonZeroU64, Option<Age>), Error> {
    let mut args = args.peekable();
    let units = parse_units(args.next())?;
    let mut options = Options::default();
    options.take(&mut args, declared)?;
    match args.next() {
        None => Ok((units, options.age)),
        rest => Err(Error::UnknownOption(Found::new(rest))),
    }
}

/// Reads `limit ttl id [option ...]`.
///
/// # Errors
/// As for [`parse`].
pub fn parse_lease<'a>(
    args: impl Iterator<Item = &'a [u8]>,
    declared: &[Argument],
) -> Result<(Take, Options), Error> {
    let mut args = args.peekable();
    let take = take_lease(&mut args)?;
    let mut options = Options::default();
    options.take(&mut args, declared)?;
    match args.next() {
        None => Ok((take, options)),
        rest => Err(Error::UnknownOption(Found::new(rest))),
    }
}

/// Reads `id [id ...]`.
///
/// # Errors
/// As for [`parse`].
pub fn parse_ids<'a>(args: impl Iterator<Item = &'a [u8]>) -> Result<Vec<LeaseId>, Error> {
    args.map(|id| parse_id(Some(id))).collect()
}

/// Takes `limit ttl id`.
fn take_lease<'a>(args: &mut impl Iterator<Item = &'a [u8]>) -> Result<Take, Error> {
    Ok(Take {
        limit: parse_limit(args.next())?,
        ttl: parse_ttl(args.next())?,
        id: parse_id(args.next())?,
    })
}

/// Takes the tiers that follow the first.
#[inline(always)]
fn take_more_tiers<'a>(
    args: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
    tiers: &mut Tiers,
) -> Result<(), Error> {
    while args.peek().is_some_and(|arg| begins_tier(arg)) {
        let limit = parse_limit(args.next())?;
        let Some(window) = args.next() else {
            return Err(Error::NoWindow { limit: limit.get() });
        };
        let window = parse_window(Some(window))?;
        tiers
            .push(Tier { limit, window })
            .map_err(|error| match error {
                TierError::TooMany => Error::TooManyTiers {
                    most: MAX_TIERS,
                    limit: limit.get(),
                },
                TierError::SameWindow => Error::SameWindow {
                    window: window.get(),
                },
            })?;
    }
    Ok(())
}

#[inline(always)]
fn take_tier<'a>(args: &mut impl Iterator<Item = &'a [u8]>) -> Result<Tier, Error> {
    Ok(Tier {
        limit: parse_limit(args.next())?,
        window: parse_window(args.next())?,
    })
}

/// An argument that begins so is meant as a number, even if it is none.
fn begins_tier(arg: &[u8]) -> bool {
    matches!(arg.first(), Some(b'0'..=b'9' | b'+' | b'-'))
}

/// The error for an argument that is left after all options.
fn unexpected(arg: Option<&[u8]>) -> Error {
    let found = Found::new(arg);
    if arg.is_some_and(begins_tier) {
        Error::LateTier(found)
    } else {
        Error::UnknownOption(found)
    }
}
