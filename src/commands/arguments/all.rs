//! The words of `SLIDE.ALL`.

use std::collections::HashSet;
use std::iter::Peekable;

use super::values::parse_numkeys;
use super::{Keyword, Options, argument, end, take_more_tiers, take_options, take_tier};
use crate::limiter::counter::Shape;
use crate::limiter::tier::Tiers;
use crate::server::{Error, Quoted};

/// What a caller asks of the limiters of several keys.
#[derive(Clone, Debug)]
pub struct AllRequest {
    /// One clause for each key, in their order.
    pub clauses: Vec<Clause>,
    /// The words after the last clause.
    pub options: Options,
}

/// What one key's limiter is asked.
#[derive(Clone, Debug)]
pub struct Clause {
    /// Which limiter it is.
    pub limiter: Limiter,
    /// The tiers that the call has to pass.
    pub tiers: Tiers,
}

/// A limiter that a clause can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// `LOG`.
    Log,
    /// `COUNTER`, and how it counts.
    Counter(Shape),
}

/// Reads `numkeys key [key ...] clause [clause ...] [option ...]`.
///
/// # Errors
/// The argument at fault, its range and what was found.
pub fn parse_all<'a>(words: impl Iterator<Item = &'a [u8]> + Clone) -> Result<AllRequest, Error> {
    let most = u64::try_from(words.clone().skip(1).count()).unwrap_or(u64::MAX);
    let mut words = words.peekable();
    let keys = parse_numkeys(words.next(), most)?;
    let mut seen = HashSet::new();
    for key in words.by_ref().take(keys) {
        if !seen.insert(key) {
            return Err(argument(format!(
                "keys must differ, got {} twice",
                Quoted(Some(key))
            )));
        }
    }

    let mut clauses = Vec::new();
    while let Some(clause) = take_clause(&mut words)? {
        clauses.push(clause);
    }
    if clauses.len() != keys {
        return Err(argument(format!(
            "clauses, which begin with LOG or COUNTER, must be as many as keys, {keys}, got {} \
             before {}",
            clauses.len(),
            Quoted(words.next())
        )));
    }
    let mut options = Options::default();
    take_options(&mut words, &[Keyword::Cost, Keyword::Force], &mut options)?;
    end(words.next())?;
    Ok(AllRequest { clauses, options })
}

/// Takes a clause, if the next word begins one.
fn take_clause<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
) -> Result<Option<Clause>, Error> {
    let spelled = |spelling: &'static [u8]| move |word: &&[u8]| word.eq_ignore_ascii_case(spelling);
    if words.next_if(spelled(b"LOG")).is_some() {
        return Ok(Some(Clause {
            limiter: Limiter::Log,
            tiers: take_tiers(words)?,
        }));
    }
    if words.next_if(spelled(b"COUNTER")).is_none() {
        return Ok(None);
    }
    let tiers = take_tiers(words)?;
    let mut options = Options::default();
    take_options(words, &[Keyword::Buckets, Keyword::Strict], &mut options)?;
    Ok(Some(Clause {
        limiter: Limiter::Counter(options.shape()),
        tiers,
    }))
}

/// Takes one tier, and all that follow.
fn take_tiers<'a>(words: &mut Peekable<impl Iterator<Item = &'a [u8]>>) -> Result<Tiers, Error> {
    let mut tiers = Tiers::new(take_tier(words)?);
    take_more_tiers(words, &mut tiers)?;
    Ok(tiers)
}
