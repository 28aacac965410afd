//! Reads a command word by word.

use super::fault::{Fault, Refusal, duration_fault, limit_fault, names, one, out_of_range, syntax};
use super::{
    LONGEST_ID, LONGEST_TTL, LONGEST_WINDOW, MOST_BUCKETS, MOST_TIERS, MOST_UNITS, begins_tier,
    duration, integer, is,
};

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
    pub age: Option<u64>,
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
            let window = second.and_then(|word| duration(word, 1, LONGEST_WINDOW));
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
                (Some(_), None) => faults.extend(duration_fault("window", LONGEST_WINDOW, second)),
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

    pub fn limit(&mut self) -> Result<u64, Refusal> {
        let found = self.next();
        let limit = found.and_then(|word| integer(word, 0, MOST_UNITS));
        limit.ok_or_else(|| one(limit_fault(found)))
    }

    pub fn ttl(&mut self) -> Result<u64, Refusal> {
        let found = self.next();
        let ttl = found.and_then(|word| duration(word, 1, LONGEST_TTL));
        ttl.ok_or_else(|| Refusal::Faults(duration_fault("ttl", LONGEST_TTL, found)))
    }

    pub fn id(&mut self) -> Result<Vec<u8>, Refusal> {
        match self.next() {
            Some(id) if (1..=LONGEST_ID).contains(&id.len()) => Ok(id.to_vec()),
            _ => Err(one(names(&["id", "1", &LONGEST_ID.to_string()]))),
        }
    }

    /// Reads options up to a word that is none of these.
    pub fn options(&mut self, known: &[&str], options: &mut Options) -> Result<(), Refusal> {
        while let Some(word) = self.peek()
            && let Some(option) = known.iter().find(|option| is(word, option))
        {
            self.next();
            let (repeated, wrong) = match *option {
                "COST" => self.value(&mut options.cost, "cost", 0, MOST_UNITS),
                "BUCKETS" => self.value(&mut options.buckets, "buckets", 1, MOST_BUCKETS),
                "AGE" => self.age(&mut options.age),
                "FORCE" => (std::mem::replace(&mut options.force, true), vec![]),
                "HEADERS" => (std::mem::replace(&mut options.headers, true), vec![]),
                _ => (std::mem::replace(&mut options.strict, true), vec![]),
            };
            let faults: Vec<Fault> = repeated
                .then(|| syntax(word))
                .into_iter()
                .chain(wrong)
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
    ) -> (bool, Vec<Fault>) {
        let found = self.next();
        match found.and_then(|word| integer(word, least, most)) {
            Some(value) => (option.replace(value).is_some(), vec![]),
            None => (
                option.is_some(),
                vec![out_of_range(argument, least, most, found)],
            ),
        }
    }

    fn age(&mut self, option: &mut Option<u64>) -> (bool, Vec<Fault>) {
        let found = self.next();
        match found.and_then(|word| duration(word, 0, LONGEST_WINDOW)) {
            Some(age) => (option.replace(age).is_some(), vec![]),
            None => (
                option.is_some(),
                duration_fault("age", LONGEST_WINDOW, found),
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
