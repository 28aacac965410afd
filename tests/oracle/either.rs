//! The oracle of a key that may hold either.

use super::{Call, Counter, Log, Reply};

/// How a counter counts; nothing to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub buckets: u64,
    pub strict: bool,
}

pub const CLASSIC: Shape = Shape {
    buckets: 1,
    strict: false,
};

#[derive(Debug, Clone)]
pub enum Oracle {
    Log(Log),
    Counter(Counter),
}

impl Oracle {
    pub fn log() -> Self {
        Oracle::Log(Log::new())
    }

    pub fn counter(key: &[u8]) -> Self {
        Oracle::Counter(Counter::new(key))
    }

    pub fn call(&mut self, now: i64, call: Call, Shape { buckets, strict }: Shape) -> Reply {
        match self {
            Oracle::Log(log) => log.call(now, call),
            Oracle::Counter(counter) => counter.call(now, call, buckets, strict),
        }
    }

    pub fn peek(&self, now: i64, call: Call, Shape { buckets, strict }: Shape) -> Reply {
        match self {
            Oracle::Log(log) => log.peek(now, call),
            Oracle::Counter(counter) => counter.peek(now, call, buckets, strict),
        }
    }

    /// Judged, but not recorded for another key's sake.
    pub fn refuse(&mut self, now: i64, call: Call, Shape { buckets, strict }: Shape) -> Reply {
        match self {
            Oracle::Log(log) => log.refuse(now, call),
            Oracle::Counter(counter) => counter.refuse(now, call, buckets, strict),
        }
    }

    pub fn refund(&mut self, now: i64, units: u64) -> u64 {
        match self {
            Oracle::Log(log) => log.refund(units),
            Oracle::Counter(counter) => counter.refund(now, units),
        }
    }

    pub fn refund_aged(&mut self, now: i64, units: u64, age: u64) -> u64 {
        match self {
            Oracle::Log(log) => log.refund_aged(now, units, age),
            Oracle::Counter(counter) => counter.refund_aged(now, units, age),
        }
    }

    /// Whether the server may have forgotten what the oracle has not.
    pub fn may_forget(&self, now: i64, call: Call) -> bool {
        match self {
            Oracle::Log(log) => log.may_forget(now, call),
            Oracle::Counter(counter) => counter.may_forget(now),
        }
    }
}
