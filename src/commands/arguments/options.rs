//! The options: arguments in any order, each at most once.

use std::iter::Peekable;
use std::mem::replace;

use super::values::{parse_age, parse_buckets, parse_cost};
use crate::limiter::counter::{BucketCount, Shape};
use crate::limiter::units::{Age, Cost};
use crate::server::{Argument, Error, Found};

/// What the options of a call say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    cost: Option<Cost>,
    /// Whether to record the call even over a limit.
    pub force: bool,
    /// Whether to reply headers too.
    pub headers: bool,
    buckets: Option<BucketCount>,
    strict: bool,
    /// How long ago the units of a refund were recorded.
    pub age: Option<Age>,
}

impl Options {
    /// The units that the call takes.
    pub fn cost(&self) -> Cost {
        self.cost.unwrap_or(Cost::ONE)
    }

    /// How a counter counts.
    pub fn shape(&self) -> Shape {
        Shape {
            buckets: self.buckets.unwrap_or(BucketCount::ONE),
            strict: self.strict,
        }
    }

    /// Whether there is an option that only a counter has.
    pub fn name_a_shape(&self) -> bool {
        self.buckets.is_some() || self.strict
    }

    /// Whether there is any.
    pub fn are_given(&self) -> bool {
        *self != Self::default()
    }

    /// Takes the options among the `declared` arguments, up to the first argument that is none of them.
    ///
    /// # Errors
    /// A value out of its range, or an option that was given before.
    pub fn take<'a>(
        &mut self,
        args: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
        declared: &[Argument],
    ) -> Result<(), Error> {
        while let Some(&arg) = args.peek()
            && let Some(token) = option(declared, arg)
        {
            args.next();
            let repeated = match token {
                b"COST" => self.cost.replace(parse_cost(args.next())?).is_some(),
                b"BUCKETS" => self.buckets.replace(parse_buckets(args.next())?).is_some(),
                b"AGE" => self.age.replace(parse_age(args.next())?).is_some(),
                b"FORCE" => replace(&mut self.force, true),
                b"HEADERS" => replace(&mut self.headers, true),
                b"STRICT" => replace(&mut self.strict, true),
                _ => return Err(Error::UnknownOption(Found::new(Some(arg)))),
            };
            if repeated {
                return Err(Error::RepeatedOption(Found::new(Some(arg))));
            }
        }
        Ok(())
    }
}

/// The token of the declared option that `arg` spells, in any case.
fn option(declared: &[Argument], arg: &[u8]) -> Option<&'static [u8]> {
    let mut options = declared.iter().filter(|argument| argument.optional);
    options.find_map(|argument| {
        let token = argument.token?.to_bytes();
        token.eq_ignore_ascii_case(arg).then_some(token)
    })
}
