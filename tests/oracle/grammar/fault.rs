//! Which sentences turn a command down.

use super::{MOST_UNITS, integer};

/// How much of a word an error quotes.
const MOST_QUOTED: usize = 64;

/// Why a command is turned down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There are too few words, or too many: the server itself says so.
    Arity,
    /// One of these is what the error must say. More than one where the rules do not say which of
    /// two faults comes first.
    Faults(Vec<Fault>),
}

/// What an error must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This and nothing else.
    Exactly(String),
    /// A sentence with all of these in it, in any case.
    Names(Vec<String>),
    /// A syntax error that quotes this word.
    Syntax(Vec<u8>),
}

impl Fault {
    pub fn is_told_by(&self, error: &str) -> bool {
        match self {
            Self::Exactly(sentence) => error == sentence,
            Self::Names(parts) => {
                let sentence = error.strip_prefix("ERR ").map(str::to_lowercase);
                sentence.is_some_and(|sentence| {
                    parts.iter().all(|p| sentence.contains(&p.to_lowercase()))
                })
            }
            Self::Syntax(word) => error
                .strip_prefix("ERR syntax error: ")
                .is_some_and(|sentence| sentence.contains(&quoted(word))),
        }
    }
}

/// A word as errors quote it.
pub fn quoted(word: &[u8]) -> String {
    let byte = |byte: &u8| match byte {
        32..=126 => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    let text: String = word.iter().take(MOST_QUOTED).map(byte).collect();
    format!("'{text}'")
}

/// A value outside its range, or none at all.
pub fn out_of_range(argument: &str, least: u64, most: u64, found: Option<&[u8]>) -> Fault {
    let mut parts = vec![argument.to_owned(), least.to_string(), most.to_string()];
    parts.extend(found.map(quoted));
    Fault::Names(parts)
}

pub fn limit_fault(found: Option<&[u8]>) -> Fault {
    match found {
        Some(word) => Fault::Exactly(format!(
            "ERR limit must be an integer from 0 to {MOST_UNITS}, got {}",
            quoted(word)
        )),
        None => out_of_range("limit", 0, MOST_UNITS, None),
    }
}

/// What may be said of a duration that is none, or is not there.
pub fn duration_fault(argument: &str, most: u64, found: Option<&[u8]>) -> Vec<Fault> {
    let Some(word) = found else {
        // What has no window after it may be meant as a cost.
        let hint = (argument == "window").then(|| names(&["COST"]));
        return [names(&[argument])].into_iter().chain(hint).collect();
    };
    let mut parts = vec![argument.to_owned(), quoted(word)];
    // What would be out of range with any unit needs no advice.
    if let Some(bare) = integer(word, 1, most) {
        parts.push(format!("got '{bare}': say {bare}s or {bare}ms"));
    }
    vec![Fault::Names(parts)]
}

pub fn names(parts: &[&str]) -> Fault {
    Fault::Names(parts.iter().map(|&part| part.to_owned()).collect())
}

pub fn one(fault: Fault) -> Refusal {
    Refusal::Faults(vec![fault])
}

pub fn syntax(word: &[u8]) -> Fault {
    Fault::Syntax(word.to_vec())
}
