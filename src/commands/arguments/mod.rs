//! From words to a request: every argument is parsed here, once.

mod all;
#[cfg(test)]
mod tests;
mod values;

pub use all::{Clause, Limiter, parse_all};
pub use values::parse_units;

use std::iter::Peekable;
use std::mem::replace;

use crate::limiter::counter::{BucketCount, Shape};
use crate::limiter::tier::{MAX_TIERS, Tier, TierError, Tiers};
use crate::limiter::units::Cost;
use crate::server::{Error, Quoted};
use values::{parse_buckets, parse_cost, parse_limit, parse_window};

/// What a caller asks of the limiter of one key.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tiers that the call has to pass.
    pub tiers: Tiers,
    /// The words after them.
    pub options: Options,
}

/// What the words after the tiers say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    cost: Option<Cost>,
    /// Whether to record the call even over a limit.
    pub force: bool,
    /// Whether to reply headers too.
    pub headers: bool,
    buckets: Option<BucketCount>,
    strict: bool,
}

impl Options {
    /// The units that the call takes.
    pub fn cost(&self) -> Cost {
        self.cost.unwrap_or(Cost::ONE)
    }

    /// How a counter is to count.
    pub fn shape(&self) -> Shape {
        Shape {
            buckets: self.buckets.unwrap_or(BucketCount::ONE),
            strict: self.strict,
        }
    }

    /// Whether an option makes sense for a counter only.
    pub fn name_a_shape(&self) -> bool {
        self.buckets.is_some() || self.strict
    }
}

/// A word that can stand after the tiers, each at most once and in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// `COST n`.
    Cost,
    /// `FORCE`.
    Force,
    /// `HEADERS`.
    Headers,
    /// `BUCKETS n`.
    Buckets,
    /// `STRICT`.
    Strict,
}

impl Keyword {
    fn spelling(self) -> &'static [u8] {
        match self {
            Self::Cost => b"COST",
            Self::Force => b"FORCE",
            Self::Headers => b"HEADERS",
            Self::Buckets => b"BUCKETS",
            Self::Strict => b"STRICT",
        }
    }
}

/// Reads `limit window [limit window ...] [option ...]`, taking only the options in `known`.
///
/// # Errors
/// The argument at fault, its range and what was found.
#[inline(always)]
pub fn parse<'a>(
    words: impl Iterator<Item = &'a [u8]>,
    known: &[Keyword],
) -> Result<Request, Error> {
    let mut words = words.peekable();
    let mut request = Request {
        tiers: Tiers::new(take_tier(&mut words)?),
        options: Options::default(),
    };
    take_more_tiers(&mut words, &mut request.tiers)?;
    take_options(&mut words, known, &mut request.options)?;
    end(words.next())?;
    Ok(request)
}

/// Takes the tiers that follow the first.
#[inline(always)]
fn take_more_tiers<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
    tiers: &mut Tiers,
) -> Result<(), Error> {
    while words.peek().is_some_and(|word| begins_tier(word)) {
        let tier = take_tier(words)?;
        tiers.push(tier).map_err(|error| match error {
            TierError::TooMany => argument(format!(
                "there must be at most {MAX_TIERS} tiers, got one more with limit '{}'",
                tier.limit.get()
            )),
            TierError::SameWindow => argument(format!(
                "window must differ from those of the other tiers, got {} ms again",
                tier.window.get()
            )),
        })?;
    }
    Ok(())
}

#[inline(always)]
fn take_tier<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Result<Tier, Error> {
    Ok(Tier {
        limit: parse_limit(words.next())?,
        window: parse_window(words.next())?,
    })
}

/// A word that begins so is meant as a number, even if it is none.
fn begins_tier(word: &[u8]) -> bool {
    matches!(word.first(), Some(b'0'..=b'9' | b'+' | b'-'))
}

/// Takes the options in `known`, up to the first word that is none of them.
fn take_options<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
    known: &[Keyword],
    options: &mut Options,
) -> Result<(), Error> {
    let find = |word: &[u8]| {
        let mut known = known.iter();
        known.find(|known| word.eq_ignore_ascii_case(known.spelling()))
    };
    while let Some(&word) = words.peek()
        && let Some(keyword) = find(word)
    {
        words.next();
        let repeated = match keyword {
            Keyword::Cost => options.cost.replace(parse_cost(words.next())?).is_some(),
            Keyword::Force => replace(&mut options.force, true),
            Keyword::Headers => replace(&mut options.headers, true),
            Keyword::Buckets => {
                let buckets = parse_buckets(words.next())?;
                options.buckets.replace(buckets).is_some()
            }
            Keyword::Strict => replace(&mut options.strict, true),
        };
        if repeated {
            return Err(argument(format!(
                "syntax error: option {} stands twice",
                Quoted(Some(word))
            )));
        }
    }
    Ok(())
}

/// Fails if there is a word left.
fn end(word: Option<&[u8]>) -> Result<(), Error> {
    match word {
        None => Ok(()),
        Some(word) if begins_tier(word) => Err(argument(format!(
            "syntax error: tiers stand before the options, got {}",
            Quoted(Some(word))
        ))),
        Some(word) => Err(argument(format!(
            "syntax error: unknown option {}",
            Quoted(Some(word))
        ))),
    }
}

fn argument(sentence: String) -> Error {
    Error::Argument(sentence)
}
