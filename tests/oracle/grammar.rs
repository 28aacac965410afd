//! What the commands take, written from the rules alone: a naive parser that shares nothing with the
//! module's. It says of each command what it asks, or which sentences turn it down.

mod fault;
mod words;

pub use fault::{Fault, Refusal};
use fault::{names, one, out_of_range, syntax};
use words::{Options, Words};

/// The largest limit, cost and number of units.
const MOST_UNITS: u64 = (1 << 53) - 1;

/// Ten years in ms.
pub const LONGEST_WINDOW: u64 = 315_576_000_000;

/// The longest id of a lease, in bytes.
pub const LONGEST_ID: usize = 128;

/// A day in ms.
pub const LONGEST_TTL: u64 = 86_400_000;

const MOST_KEYS: u64 = 64;
const MOST_TIERS: usize = 16;
pub const MOST_BUCKETS: u64 = 64;

const UNITS: [(&str, u64); 5] = [
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
    Lease,
    Peek,
    Refund,
    Release,
    All,
}

impl Name {
    pub const EACH: [Self; 7] = [
        Self::Log,
        Self::Counter,
        Self::Lease,
        Self::Peek,
        Self::Refund,
        Self::Release,
        Self::All,
    ];

    pub fn spelling(self) -> &'static str {
        match self {
            Self::Log => "SLIDE.LOG",
            Self::Counter => "SLIDE.COUNTER",
            Self::Lease => "SLIDE.LEASE",
            Self::Peek => "SLIDE.PEEK",
            Self::Refund => "SLIDE.REFUND",
            Self::Release => "SLIDE.RELEASE",
            Self::All => "SLIDE.ALL",
        }
    }

    /// The options at the end of the command; for ALL, those after the last clause.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::Log => &["COST", "FORCE", "HEADERS"],
            Self::Counter => &["COST", "FORCE", "HEADERS", "BUCKETS", "STRICT"],
            Self::Lease => &["FORCE"],
            Self::Peek => &["COST", "HEADERS", "BUCKETS", "STRICT"],
            Self::Refund => &["AGE"],
            Self::Release => &[],
            Self::All => &["FORCE", "HEADERS"],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Log,
    Counter,
    Lease,
}

impl Kind {
    const EACH: [Self; 3] = [Self::Log, Self::Counter, Self::Lease];

    /// What a clause of this kind begins with.
    pub fn word(self) -> &'static str {
        match self {
            Self::Log => "LOG",
            Self::Counter => "COUNTER",
            Self::Lease => "LEASE",
        }
    }

    /// The options in a clause of this kind.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::Log => &["COST"],
            Self::Counter => &["COST", "BUCKETS", "STRICT"],
            Self::Lease => &[],
        }
    }
}

/// What is asked of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    pub key: Vec<u8>,
    pub asks: Asks,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asks {
    Limit {
        /// What the command or the clause says the limiter is; PEEK does not.
        kind: Option<Kind>,
        /// Limit and window in ms.
        tiers: Vec<(u64, u64)>,
        cost: u64,
        buckets: Option<u64>,
        strict: bool,
    },
    Lease {
        limit: u64,
        /// In ms.
        ttl: u64,
        id: Vec<u8>,
    },
}

/// What a good command asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Of one key, or by ALL of several.
    Limit {
        clauses: Vec<Clause>,
        force: bool,
        headers: bool,
    },
    Refund {
        key: Vec<u8>,
        units: u64,
        /// In ms.
        age: Option<u64>,
    },
    Release {
        key: Vec<u8>,
        ids: Vec<Vec<u8>>,
    },
}

/// A number in its only spelling: the one in which it is printed.
pub fn integer(word: &[u8], least: u64, most: u64) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    let value: u64 = text.parse().ok()?;
    (value.to_string() == text && (least..=most).contains(&value)).then_some(value)
}

/// A duration in ms: a number and its unit.
fn duration(word: &[u8], least: u64, most: u64) -> Option<u64> {
    UNITS.iter().find_map(|(unit, ms)| {
        let number = integer(word.strip_suffix(unit.as_bytes())?, 0, most)?;
        number
            .checked_mul(*ms)
            .filter(|ms| (least..=most).contains(ms))
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
        (Name::Refund, &[key, units, ref rest @ ..]) => read_refund(key, units, Words(rest)),
        (Name::Release, [key, ids @ ..]) if !ids.is_empty() => read_release(key, Words(ids)),
        (Name::Log, [key, rest @ ..]) if rest.len() >= 2 => {
            read_one(name, Some(Kind::Log), key, Words(rest))
        }
        (Name::Counter, [key, rest @ ..]) if rest.len() >= 2 => {
            read_one(name, Some(Kind::Counter), key, Words(rest))
        }
        (Name::Lease, [key, rest @ ..]) if rest.len() >= 3 => {
            read_one(name, Some(Kind::Lease), key, Words(rest))
        }
        (Name::Peek, [key, rest @ ..]) if rest.len() >= 2 => read_one(name, None, key, Words(rest)),
        (Name::All, [numkeys, rest @ ..]) if rest.len() >= 4 => read_all(numkeys, rest),
        _ => Err(Refusal::Arity),
    }
}

fn read_refund(key: &[u8], units: &[u8], mut words: Words<'_>) -> Result<Request, Refusal> {
    let Some(number) = integer(units, 1, MOST_UNITS) else {
        return Err(one(out_of_range("units", 1, MOST_UNITS, Some(units))));
    };
    let mut options = Options::default();
    words.options(Name::Refund.options(), &mut options)?;
    words.end()?;
    Ok(Request::Refund {
        key: key.to_vec(),
        units: number,
        age: options.age,
    })
}

fn read_release(key: &[u8], mut words: Words<'_>) -> Result<Request, Refusal> {
    let mut ids = Vec::new();
    while words.peek().is_some() {
        ids.push(words.id()?);
    }
    let key = key.to_vec();
    Ok(Request::Release { key, ids })
}

fn read_one(
    name: Name,
    kind: Option<Kind>,
    key: &[u8],
    mut words: Words<'_>,
) -> Result<Request, Refusal> {
    let mut options = Options::default();
    let asks = read_asks(kind, name.options(), &mut words, &mut options)?;
    words.end()?;
    let key = key.to_vec();
    Ok(request(vec![Clause { key, asks }], &options))
}

/// What is asked of one key, with the options that follow.
fn read_asks(
    kind: Option<Kind>,
    known: &[&str],
    words: &mut Words<'_>,
    options: &mut Options,
) -> Result<Asks, Refusal> {
    if kind == Some(Kind::Lease) {
        let (limit, ttl, id) = (words.limit()?, words.ttl()?, words.id()?);
        words.options(known, options)?;
        return Ok(Asks::Lease { limit, ttl, id });
    }
    let tiers = words.tiers()?;
    words.options(known, options)?;
    Ok(Asks::Limit {
        kind,
        tiers,
        cost: options.cost.unwrap_or(1),
        buckets: options.buckets,
        strict: options.strict,
    })
}

fn read_all(numkeys: &[u8], words: &[&[u8]]) -> Result<Request, Refusal> {
    let Some(count) = integer(numkeys, 1, MOST_KEYS) else {
        return Err(one(out_of_range("numkeys", 1, MOST_KEYS, Some(numkeys))));
    };
    let count = usize::try_from(count).expect("a small number");
    let keys = &words[..count.min(words.len())];
    let mut seen = std::collections::HashSet::new();
    let again = keys.iter().find(|key| !seen.insert(**key));
    let again = again.map(|key| Fault::Names(vec!["key".to_owned(), fault::quoted(key)]));
    let request = if keys.len() < count {
        Err(Refusal::Faults(vec![
            names(&["numkeys"]),
            names(&["clause"]),
        ]))
    } else {
        read_clauses(keys, Words(&words[count..]))
    };
    // Which of two faults comes first is not said.
    match (again, request) {
        (None, request) => request,
        (Some(again), Err(Refusal::Faults(faults))) => {
            Err(Refusal::Faults([vec![again], faults].concat()))
        }
        (Some(again), _) => Err(one(again)),
    }
}

fn read_clauses(keys: &[&[u8]], mut words: Words<'_>) -> Result<Request, Refusal> {
    let mut clauses = Vec::new();
    while let Some(kind) = words.peek().and_then(kind) {
        words.next();
        // The word after `LEASE limit ttl` is the id, even if it looks like a clause or an option.
        match read_asks(
            Some(kind),
            kind.options(),
            &mut words,
            &mut Options::default(),
        ) {
            Ok(asks) => {
                let key = keys
                    .get(clauses.len())
                    .copied()
                    .unwrap_or_default()
                    .to_vec();
                clauses.push(Clause { key, asks });
            }
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
    match words.peek() {
        None => Ok(request(clauses, &options)),
        // It is a clause behind an option, or one clause too many.
        Some(word) if kind(word).is_some() => {
            Err(Refusal::Faults(vec![syntax(word), names(&["clause"])]))
        }
        Some(word) => Err(one(syntax(word))),
    }
}

fn kind(word: &[u8]) -> Option<Kind> {
    Kind::EACH.into_iter().find(|kind| is(word, kind.word()))
}

fn request(clauses: Vec<Clause>, options: &Options) -> Request {
    Request::Limit {
        clauses,
        force: options.force,
        headers: options.headers,
    }
}
