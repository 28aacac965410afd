//! The oracle of a key that may hold any of the kinds.

use super::headers::Standing;
use super::{Call, Counter, Lease, Log, Reply, Take};

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
    Lease(Lease),
}

/// What is asked of a key, by a command of its own or in a clause.
#[derive(Debug, Clone, Copy)]
pub enum Question<'a> {
    Limit(Call<'a>, Shape),
    Lease(Take<'a>),
}

impl Oracle {
    pub fn log() -> Self {
        Oracle::Log(Log::new())
    }

    pub fn counter(key: &[u8]) -> Self {
        Oracle::Counter(Counter::new(key))
    }

    pub fn lease() -> Self {
        Oracle::Lease(Lease::new())
    }

    pub fn ask(&mut self, now: i64, question: Question) -> Reply {
        match (self, question) {
            (Oracle::Log(log), Question::Limit(call, _)) => log.call(now, call),
            (Oracle::Counter(counter), Question::Limit(call, Shape { buckets, strict })) => {
                counter.call(now, call, buckets, strict)
            }
            (Oracle::Lease(lease), Question::Lease(take)) => lease.call(now, take),
            (this, question) => panic!("{question:?} is not asked of {this:?}"),
        }
    }

    /// Judged, but not recorded for another key's sake.
    pub fn refuse(&mut self, now: i64, question: Question) -> Reply {
        match (self, question) {
            (Oracle::Log(log), Question::Limit(call, _)) => log.refuse(now, call),
            (Oracle::Counter(counter), Question::Limit(call, Shape { buckets, strict })) => {
                counter.refuse(now, call, buckets, strict)
            }
            (Oracle::Lease(lease), Question::Lease(take)) => lease.refuse(now, take),
            (this, question) => panic!("{question:?} is not asked of {this:?}"),
        }
    }

    pub fn call(&mut self, now: i64, call: Call, shape: Shape) -> Reply {
        self.ask(now, Question::Limit(call, shape))
    }

    /// On leases, the first tier's limit counts and its window does not.
    pub fn peek(&self, now: i64, call: Call, Shape { buckets, strict }: Shape) -> Reply {
        match self {
            Oracle::Log(log) => log.peek(now, call),
            Oracle::Counter(counter) => counter.peek(now, call, buckets, strict),
            Oracle::Lease(lease) => lease.peek(now, call.tiers[0].0),
        }
    }

    /// How the key stands after a question that was given this reply, for its headers.
    pub fn standing(&self, now: i64, question: Question, reply: Reply) -> Standing {
        match (self, question) {
            (Oracle::Log(log), Question::Limit(call, _)) => log.standing(now, call, reply),
            (Oracle::Counter(counter), Question::Limit(call, Shape { buckets, strict })) => {
                counter.standing(now, call, (buckets, strict), reply)
            }
            (Oracle::Lease(_), _) => Standing::of_leases(reply),
            (this, question) => panic!("{question:?} is not asked of {this:?}"),
        }
    }

    pub fn release(&mut self, now: i64, ids: &[&[u8]]) -> u64 {
        match self {
            Oracle::Lease(lease) => lease.release(now, ids),
            this => panic!("no leases in {this:?}"),
        }
    }

    pub fn refund(&mut self, now: i64, units: u64) -> u64 {
        match self {
            Oracle::Log(log) => log.refund(units),
            Oracle::Counter(counter) => counter.refund(now, units),
            this @ Oracle::Lease(_) => panic!("no units in {this:?}"),
        }
    }

    pub fn refund_aged(&mut self, now: i64, units: u64, age: u64) -> u64 {
        match self {
            Oracle::Log(log) => log.refund_aged(now, units, age),
            Oracle::Counter(counter) => counter.refund_aged(now, units, age),
            this @ Oracle::Lease(_) => panic!("no units in {this:?}"),
        }
    }

    /// Whether the server may have forgotten what the oracle has not.
    pub fn may_forget(&self, now: i64, call: Call) -> bool {
        match self {
            Oracle::Log(log) => log.may_forget(now, call),
            Oracle::Counter(counter) => counter.may_forget(now),
            Oracle::Lease(lease) => lease.may_forget(now),
        }
    }
}
