//! The arguments of `SLIDE.ALL`.

use std::collections::HashSet;
use std::iter::Peekable;

use super::declared::{COUNTER_CLAUSE, LOG_CLAUSE};
use super::values::parse_numkeys;
use super::{Options, take_lease, take_more_tiers, take_tier, unexpected};
use crate::limiter::counter::Shape;
use crate::limiter::lease::Take;
use crate::limiter::tier::Tiers;
use crate::limiter::units::Cost;
use crate::server::{Argument, Error, Found};

/// What a caller asks of the limiters of several keys.
#[derive(Clone, Debug)]
pub struct AllRequest {
    /// One clause for each key, in their order.
    pub clauses: Vec<Clause>,
    /// The arguments after the last clause.
    pub options: Options,
}

/// What a caller asks of one key's limiter.
#[derive(Clone, Debug)]
pub enum Clause {
    /// `LOG`.
    Log(Limits),
    /// `COUNTER`, and how it counts.
    Counter(Limits, Shape),
    /// `LEASE`.
    Lease(Take),
}

/// What a caller asks of a limiter that has windows.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The tiers that the call has to pass.
    pub tiers: Tiers,
    /// The units that the call takes.
    pub cost: Cost,
}

/// Reads `numkeys key [key ...] clause [clause ...] [option ...]`, with the options among the
/// `declared` arguments.
///
/// # Errors
/// The argument at fault, its range and what was found.
pub fn parse_all<'a>(
    args: impl Iterator<Item = &'a [u8]>,
    declared: &[Argument],
) -> Result<AllRequest, Error> {
    let mut args = args.peekable();
    let keys = parse_numkeys(args.next())?;
    let mut seen = HashSet::new();
    for key in args.by_ref().take(keys) {
        if !seen.insert(key) {
            return Err(Error::RepeatedKey(Found::new(Some(key))));
        }
    }

    let mut clauses = Vec::with_capacity(keys);
    while let Some(clause) = take_clause(&mut args)? {
        clauses.push(clause);
    }
    if clauses.len() != keys {
        return Err(Error::Clauses {
            keys,
            clauses: clauses.len(),
            next: Found::new(args.next()),
        });
    }
    let mut options = Options::default();
    options.take(&mut args, declared)?;
    match args.next() {
        None => Ok(AllRequest { clauses, options }),
        rest => Err(unexpected(rest)),
    }
}

/// Takes a clause, if the next argument begins one.
fn take_clause<'a>(
    args: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
) -> Result<Option<Clause>, Error> {
    let spelled = |spelling: &'static [u8]| move |arg: &&[u8]| arg.eq_ignore_ascii_case(spelling);
    if args.next_if(spelled(b"LOG")).is_some() {
        let (limits, _) = take_limits(args, LOG_CLAUSE)?;
        return Ok(Some(Clause::Log(limits)));
    }
    if args.next_if(spelled(b"COUNTER")).is_some() {
        let (limits, options) = take_limits(args, COUNTER_CLAUSE)?;
        return Ok(Some(Clause::Counter(limits, options.shape())));
    }
    if args.next_if(spelled(b"LEASE")).is_some() {
        return Ok(Some(Clause::Lease(take_lease(args)?)));
    }
    Ok(None)
}

fn take_limits<'a>(
    args: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
    declared: &[Argument],
) -> Result<(Limits, Options), Error> {
    let mut tiers = Tiers::new(take_tier(args)?);
    take_more_tiers(args, &mut tiers)?;
    let mut options = Options::default();
    options.take(args, declared)?;
    let cost = options.cost();
    Ok((Limits { tiers, cost }, options))
}
