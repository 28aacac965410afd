//! What a command can answer instead of a reply.

use std::fmt::{self, Display, Write as _};

use crate::limiter::Foreign;

/// An error reply. Nothing was changed, unless the module itself failed midway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument is missing, malformed or out of its range; the sentence says all of it.
    Argument(String),
    /// The key holds a value of another type.
    WrongType,
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
            Self::Argument(sentence) => write!(out, "ERR {sentence}"),
            Self::WrongType => {
                out.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Self::Foreign(Foreign::Log) => {
                out.write_str("ERR key holds a sorted set that SLIDE.LOG did not write")
            }
            Self::Foreign(Foreign::Counter) => {
                out.write_str("ERR key holds a hash that SLIDE.COUNTER did not write")
            }
            Self::OutOfMemory => {
                out.write_str("OOM command not allowed when used memory > 'maxmemory'.")
            }
            Self::Panic => out.write_str("ERR internal error of the slide module, see the log"),
        }
    }
}

/// What a caller sent, quoted for an error: at most 64 bytes of it, only printable ASCII.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub Option<&'a [u8]>);

impl Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 64;
        let Some(bytes) = self.0 else {
            return out.write_str("nothing");
        };
        out.write_char('\'')?;
        for byte in bytes.iter().take(MOST) {
            match byte {
                32..=126 => out.write_char(char::from(*byte))?,
                _ => write!(out, "\\x{byte:02x}")?,
            }
        }
        out.write_char('\'')
    }
}
