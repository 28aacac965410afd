//! What a command can answer instead of a reply.

use std::fmt::{self, Display, Write as _};

use crate::limiter::{Foreign, Kind, decimal};

/// An error reply. Nothing was changed, unless the module itself failed midway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument that is not an integer in its range.
    Integer {
        argument: &'static str,
        least: u64,
        most: u64,
        found: Found,
    },
    /// An argument that is not a duration in its range, in milliseconds.
    Duration {
        argument: &'static str,
        least: u64,
        most: u64,
        found: Found,
    },
    /// A lease's id of a wrong length.
    Id { most: usize, length: usize },
    /// A lease without an id.
    NoId { most: usize },
    /// A limit with no window after it, where a window must follow.
    NoWindow { limit: u64 },
    /// One tier more than a call can name.
    TooManyTiers { most: usize, limit: u64 },
    /// A window in milliseconds that another tier has too.
    SameWindow { window: u64 },
    /// An option that was given before.
    RepeatedOption(Found),
    /// An option that the command, or the clause, does not have.
    UnknownOption(Found),
    /// A tier after the options.
    LateTier(Found),
    /// A key that was given before.
    RepeatedKey(Found),
    /// A number of clauses other than that of the keys, and the argument after them.
    Clauses {
        keys: usize,
        clauses: usize,
        next: Found,
    },
    /// BUCKETS or STRICT for a key that holds a log.
    CounterOption,
    /// More than one tier, or an option, for a key that holds leases.
    MoreThanOneLimit,
    /// No key, although the server checks the number of arguments.
    NoKey,
    /// The key holds a value of another type, which the module did not write.
    WrongType,
    /// The key holds another kind of limiter, of another type.
    WrongKind { holds: Kind, wanted: Kind },
    /// The key holds a value of the right type that the module did not write.
    Foreign(Foreign),
    /// The call would record, and the server has no memory to spare.
    OutOfMemory,
    /// The module itself failed.
    Panic,
}

impl From<Foreign> for Error {
    fn from(foreign: Foreign) -> Self {
        Self::Foreign(foreign)
    }
}

impl Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer {
                argument,
                least,
                most,
                found,
            } => write!(
                out,
                "ERR {argument} must be an integer from {least} to {most}, got {found}"
            ),
            Self::Duration {
                argument,
                least,
                most,
                found,
            } => {
                write!(
                    out,
                    "ERR {argument} must be from {least}ms to {most}ms with its unit (ms, s, m, h or d), \
                     got {found}"
                )?;
                match found
                    .bare_number()
                    .filter(|number| (least..=most).contains(&number))
                {
                    Some(number) => write!(out, ": say {number}s or {number}ms"),
                    None => Ok(()),
                }
            }
            Self::Id { most, length } => {
                write!(out, "ERR id must be 1 to {most} bytes, got {length} bytes")
            }
            Self::NoId { most } => write!(out, "ERR id must be 1 to {most} bytes, got nothing"),
            Self::NoWindow { limit } => write!(
                out,
                "ERR limit '{limit}' has no window, such as 60s: a cost is written COST {limit}"
            ),
            Self::TooManyTiers { most, limit } => write!(
                out,
                "ERR there must be at most {most} tiers, got one more with limit '{limit}'"
            ),
            Self::SameWindow { window } => write!(
                out,
                "ERR window must differ from those of the other tiers, got {window}ms again"
            ),
            Self::RepeatedOption(option) => {
                write!(out, "ERR syntax error: option {option} was given twice")
            }
            Self::UnknownOption(option) => write!(out, "ERR syntax error: unknown option {option}"),
            Self::LateTier(found) => write!(
                out,
                "ERR syntax error: tiers come before the options, got {found}"
            ),
            Self::RepeatedKey(key) => write!(out, "ERR keys must differ, got {key} twice"),
            Self::Clauses {
                keys,
                clauses,
                next,
            } => {
                write!(
                    out,
                    "ERR expected one clause (LOG, COUNTER or LEASE) for each key, {keys} in all, \
                     got {clauses}"
                )?;
                match next {
                    Found(None) => Ok(()),
                    next => write!(out, ", then {next}"),
                }
            }
            Self::CounterOption => {
                out.write_str("ERR BUCKETS and STRICT are for counters, and the key holds a log")
            }
            Self::MoreThanOneLimit => out.write_str(
                "ERR key holds leases: SLIDE.PEEK then takes one limit with any window, and no options",
            ),
            Self::NoKey => out.write_str("ERR key must be given, got nothing"),
            Self::WrongType => {
                out.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Self::WrongKind { holds, wanted } => write!(
                out,
                "WRONGTYPE key holds a {holds}, {wanted} needs a {}",
                wanted.value_type()
            ),
            Self::Foreign(foreign) => write!(out, "ERR key holds {foreign}"),
            Self::OutOfMemory => {
                out.write_str("OOM command not allowed when used memory > 'maxmemory'.")
            }
            Self::Panic => out.write_str("ERR internal error of the slide module, see the log"),
        }
    }
}

/// How much of an argument an error quotes, in bytes.
const MOST_QUOTED: usize = 64;

/// What a caller sent, as an error quotes it: at most 64 bytes, with all but printable ASCII escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found(Option<Box<[u8]>>);

impl Found {
    /// Of an argument, or of none.
    pub fn new(argument: Option<&[u8]>) -> Self {
        Self(argument.map(|bytes| bytes.iter().take(MOST_QUOTED).copied().collect()))
    }

    /// The argument, if it is a number, which lacks only a unit to be a duration.
    fn bare_number(&self) -> Option<u64> {
        decimal::parse(self.0.as_deref()?)
    }
}

impl Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bytes) = &self.0 else {
            return out.write_str("nothing");
        };
        out.write_char('\'')?;
        for byte in bytes {
            match byte {
                32..=126 => out.write_char(char::from(*byte))?,
                _ => write!(out, "\\x{byte:02x}")?,
            }
        }
        out.write_char('\'')
    }
}
