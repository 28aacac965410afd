//! What the commands take, written from the rules alone: a naive parser that shares nothing with the
//! module's. It says of each command what it asks, or which sentences turn it down.

mod fault;
mod words;

pub use fault::{Fault, Refusal};
use fault::{names, one, out_of_range, quoted, syntax};
use words::{Options, Words};

/// The largest limit, cost and number of units.
const MOST_UNITS: u64 = (1 << 53) - 1;

/// Ten years in ms.
pub const LONGEST_WINDOW: u64 = 315_576_000_000;

/// The longest id of a lease, in bytes.
pub const LONGEST_ID: usize = 128;

const MOST_TIERS: usize = 16;
pub const MOST_BUCKETS: u64 = 64;

const UNITS: [(&str, u64); 6] = [
    ("", 1),
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Log,
    Counter,
    Peek,
    Refund,
    All,
}

impl Name {
    pub const EACH: [Self; 5] = [
        Self::Log,
        Self::Counter,
        Self::Peek,
        Self::Refund,
        Self::All,
    ];

    pub fn spelling(self) -> &'static str {
        match self {
            Self::Log => "SLIDE.LOG",
            Self::Counter => "SLIDE.COUNTER",
            Self::Peek => "SLIDE.PEEK",
            Self::Refund => "SLIDE.REFUND",
            Self::All => "SLIDE.ALL",
        }
    }

    /// The options that may follow the tiers; for ALL, those after the last clause.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::Log => &["COST", "FORCE", "HEADERS"],
            Self::Counter => &["COST", "FORCE", "HEADERS", "BUCKETS", "STRICT"],
            Self::Peek => &["COST", "HEADERS", "BUCKETS", "STRICT"],
            Self::Refund => &[],
            Self::All => &["COST", "FORCE"],
        }
    }
}

/// What is asked of one key's limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    pub key: Vec<u8>,
    /// What ALL says the limiter is.
    pub kind: Option<Kind>,
    /// Limit and window in ms.
    pub tiers: Vec<(u64, u64)>,
    pub buckets: Option<u64>,
    pub strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Log,
    Counter,
}

/// What a good command asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Limit {
        clauses: Vec<Clause>,
        cost: u64,
        force: bool,
        headers: bool,
    },
    Refund {
        key: Vec<u8>,
        units: u64,
    },
}

/// A number in its only spelling: the one in which it is printed.
pub fn integer(word: &[u8], least: u64, most: u64) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    let value: u64 = text.parse().ok()?;
    (value.to_string() == text && (least..=most).contains(&value)).then_some(value)
}

fn window(word: &[u8]) -> Option<u64> {
    UNITS.iter().find_map(|(unit, ms)| {
        let number = integer(word.strip_suffix(unit.as_bytes())?, 1, LONGEST_WINDOW)?;
        number.checked_mul(*ms).filter(|ms| *ms <= LONGEST_WINDOW)
    })
}

fn is(word: &[u8], spelling: &str) -> bool {
    word.eq_ignore_ascii_case(spelling.as_bytes())
}

fn begins_tier(word: &[u8]) -> bool {
    matches!(word.first(), Some(b'0'..=b'9' | b'+' | b'-'))
}

/// What a command asks, given all words after its name.
///
/// # Errors
/// Why it is turned down.
pub fn read(name: Name, words: &[&[u8]]) -> Result<Request, Refusal> {
    match (name, words) {
        (Name::Refund, &[key, units]) => match integer(units, 1, MOST_UNITS) {
            Some(units) => Ok(Request::Refund {
                key: key.to_vec(),
                units,
            }),
            None => Err(one(out_of_range("units", 1, MOST_UNITS, Some(units)))),
        },
        (Name::Log | Name::Counter | Name::Peek, [key, rest @ ..]) if rest.len() >= 2 => {
            read_one(name, key, Words(rest))
        }
        (Name::All, [numkeys, rest @ ..]) if rest.len() >= 4 => read_all(numkeys, rest),
        _ => Err(Refusal::Arity),
    }
}

fn read_one(name: Name, key: &[u8], mut words: Words<'_>) -> Result<Request, Refusal> {
    let tiers = words.tiers()?;
    let mut options = Options::default();
    words.options(name.options(), &mut options)?;
    words.end()?;
    let clause = Clause {
        key: key.to_vec(),
        kind: None,
        tiers,
        buckets: options.buckets,
        strict: options.strict,
    };
    Ok(request(vec![clause], &options))
}

fn read_all(numkeys: &[u8], words: &[&[u8]]) -> Result<Request, Refusal> {
    let Some(count) = integer(numkeys, 1, words.len() as u64) else {
        return Err(one(Fault::Names(vec![
            "numkeys".to_owned(),
            quoted(numkeys),
        ])));
    };
    let (keys, words) = words.split_at(usize::try_from(count).unwrap_or(words.len()));
    let mut seen = std::collections::HashSet::new();
    if let Some(again) = keys.iter().find(|key| !seen.insert(**key)) {
        return Err(one(Fault::Names(vec!["key".to_owned(), quoted(again)])));
    }
    let mut words = Words(words);
    let mut clauses = Vec::new();
    while let Some(kind) = words.peek().and_then(kind) {
        words.next();
        match read_clause(kind, keys.get(clauses.len()), &mut words) {
            Ok(clause) => clauses.push(clause),
            // A clause too many is a fault before anything in it is.
            Err(Refusal::Faults(mut faults)) if clauses.len() >= keys.len() => {
                faults.push(names(&["clause"]));
                return Err(Refusal::Faults(faults));
            }
            Err(refusal) => return Err(refusal),
        }
    }
    if clauses.len() != keys.len() {
        let mut faults = vec![names(&["clause"])];
        faults.extend(words.peek().map(syntax));
        return Err(Refusal::Faults(faults));
    }
    let mut options = Options::default();
    words.options(Name::All.options(), &mut options)?;
    words.end()?;
    Ok(request(clauses, &options))
}

fn kind(word: &[u8]) -> Option<Kind> {
    match word {
        word if is(word, "LOG") => Some(Kind::Log),
        word if is(word, "COUNTER") => Some(Kind::Counter),
        _ => None,
    }
}

fn read_clause(kind: Kind, key: Option<&&[u8]>, words: &mut Words<'_>) -> Result<Clause, Refusal> {
    let tiers = words.tiers()?;
    let mut options = Options::default();
    if kind == Kind::Counter {
        words.options(&["BUCKETS", "STRICT"], &mut options)?;
    }
    Ok(Clause {
        key: key.map(|key| key.to_vec()).unwrap_or_default(),
        kind: Some(kind),
        tiers,
        buckets: options.buckets,
        strict: options.strict,
    })
}

fn request(clauses: Vec<Clause>, options: &Options) -> Request {
    Request::Limit {
        clauses,
        cost: options.cost.unwrap_or(1),
        force: options.force,
        headers: options.headers,
    }
}
