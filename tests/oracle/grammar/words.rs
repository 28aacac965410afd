//! Reads a command word by word.

use super::fault::{Fault, Refusal, limit_fault, names, one, out_of_range, syntax, window_fault};
use super::{MOST_BUCKETS, MOST_TIERS, MOST_UNITS, begins_tier, integer, is, window};

/// The words not read yet.
pub struct Words<'a>(pub &'a [&'a [u8]]);

/// The options read so far.
#[derive(Default)]
pub struct Options {
    pub cost: Option<u64>,
    pub force: bool,
    pub headers: bool,
    pub buckets: Option<u64>,
    pub strict: bool,
}

impl<'a> Words<'a> {
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.0.first().copied()
    }

    pub fn next(&mut self) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub fn tiers(&mut self) -> Result<Vec<(u64, u64)>, Refusal> {
        let mut tiers: Vec<(u64, u64)> = Vec::new();
        while tiers.is_empty() || self.peek().is_some_and(begins_tier) {
            let (first, second) = (self.next(), self.next());
            let limit = first.and_then(|word| integer(word, 0, MOST_UNITS));
            let window = second.and_then(window);
            let mut faults = Vec::new();
            if tiers.len() == MOST_TIERS {
                faults.push(names(&["tier", "16"]));
            }
            match (limit, window) {
                (None, _) => {
                    faults.push(limit_fault(first));
                    // What does not begin like a tier can be taken for an option, too.
                    faults.extend(first.filter(|word| !begins_tier(word)).map(syntax));
                }
                (Some(_), None) => faults.push(window_fault(second)),
                (Some(_), Some(window)) if tiers.iter().any(|tier| tier.1 == window) => {
                    faults.push(names(&["window"]));
                }
                (Some(limit), Some(window)) => tiers.push((limit, window)),
            }
            if !faults.is_empty() {
                return Err(Refusal::Faults(faults));
            }
        }
        Ok(tiers)
    }

    /// Reads options up to a word that is none of these.
    pub fn options(&mut self, known: &[&str], options: &mut Options) -> Result<(), Refusal> {
        while let Some(word) = self.peek()
            && let Some(option) = known.iter().find(|option| is(word, option))
        {
            self.next();
            let (repeated, fault) = match *option {
                "COST" => self.value(&mut options.cost, "cost", 0, MOST_UNITS),
                "BUCKETS" => self.value(&mut options.buckets, "buckets", 1, MOST_BUCKETS),
                "FORCE" => (std::mem::replace(&mut options.force, true), None),
                "HEADERS" => (std::mem::replace(&mut options.headers, true), None),
                _ => (std::mem::replace(&mut options.strict, true), None),
            };
            let faults: Vec<Fault> = repeated
                .then(|| syntax(word))
                .into_iter()
                .chain(fault)
                .collect();
            if !faults.is_empty() {
                return Err(Refusal::Faults(faults));
            }
        }
        Ok(())
    }

    /// Reads an option's value: whether it had one before, and what is wrong with this one.
    fn value(
        &mut self,
        option: &mut Option<u64>,
        argument: &str,
        least: u64,
        most: u64,
    ) -> (bool, Option<Fault>) {
        let found = self.next();
        match found.and_then(|word| integer(word, least, most)) {
            Some(value) => (option.replace(value).is_some(), None),
            None => (
                option.is_some(),
                Some(out_of_range(argument, least, most, found)),
            ),
        }
    }

    pub fn end(&self) -> Result<(), Refusal> {
        match self.peek() {
            Some(word) => Err(one(syntax(word))),
            None => Ok(()),
        }
    }
}
