//! The algorithms: no server, no clock, no `unsafe`.
//!
//! Each reads through a small trait ([`log::SortedSet`], [`counter::CounterStore`],
//! [`lease::LeaseStore`]), judges, and only then writes, so that a caller can judge several keys before
//! it writes any.

#![forbid(unsafe_code)]

pub mod all;
pub mod counter;
pub mod decimal;
pub mod lease;
pub mod log;
pub mod refund;
pub mod tier;
pub mod units;
pub mod verdict;

#[cfg(test)]
#[path = "../../tests/oracle/mod.rs"]
pub mod oracle;

#[cfg(test)]
pub mod histories;
#[cfg(test)]
pub mod memory;

use std::fmt::{self, Display, Formatter};

use verdict::{Outlook, Verdict};

/// A limiter, named as its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `SLIDE.LOG`.
    Log,
    /// `SLIDE.COUNTER`.
    Counter,
    /// `SLIDE.LEASE`.
    Lease,
}

impl Kind {
    /// The type of value that it is stored in.
    pub fn value_type(self) -> &'static str {
        match self {
            Self::Log | Self::Lease => "sorted set",
            Self::Counter => "hash",
        }
    }
}

impl Display for Kind {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Log => "SLIDE.LOG",
            Self::Counter => "SLIDE.COUNTER",
            Self::Lease => "SLIDE.LEASE",
        })
    }
}

/// The store holds something that the limiter did not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It should be a log.
    Log,
    /// It should be a log, and it holds leases.
    LogOfLeases,
    /// It should be a counter.
    Counter,
    /// It should be leases.
    Lease,
    /// It should be leases, and it holds a log.
    LeasesOfLog,
}

impl Display for Foreign {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Log => "a sorted set that SLIDE.LOG did not write",
            Self::LogOfLeases => "leases, SLIDE.LOG did not write it",
            Self::Counter => "a hash that SLIDE.COUNTER did not write",
            Self::Lease => "a sorted set that SLIDE.LEASE did not write",
            Self::LeasesOfLog => "a log, SLIDE.LEASE did not write it",
        })
    }
}

/// A call that has been read, not yet written.
pub trait Call {
    /// Whether a tier is over its limit.
    fn is_over(&self) -> bool;

    /// Whether there is anything to record.
    fn records(&self) -> bool;

    /// Whether recording takes memory that the store does not use yet.
    fn needs_memory(&self) -> bool {
        self.records()
    }

    /// Whether the dates lay too far in the future, so that [`Call::commit`] writes in any case.
    fn is_healed(&self) -> bool;

    /// Decides whether the cost is recorded, and says how things stand after the call.
    ///
    /// # Errors
    /// [`Foreign`] when a further read finds something that the limiter did not write.
    fn settle(&mut self, record: bool) -> Result<Verdict, Foreign>;

    /// Every tier of the call, once settled, in the caller's order; none where a limit has no window.
    ///
    /// # Errors
    /// As for [`Call::settle`].
    fn outlooks(&mut self) -> Result<Vec<Outlook>, Foreign>;

    /// Writes what was decided, and what a clock fault calls for.
    fn commit(&mut self);
}
