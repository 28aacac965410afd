//! The algorithms: no server, no clock, no `unsafe`.
//!
//! Each reads through a small trait ([`log::LogStore`], [`counter::CounterStore`]), judges, and
//! only then writes, so that a caller can judge several keys before it writes any.

pub mod all;
pub mod counter;
pub mod decimal;
pub mod log;
pub mod tier;
pub mod units;
pub mod verdict;

#[cfg(test)]
#[path = "../../tests/oracle/mod.rs"]
mod oracle;

#[cfg(test)]
mod histories;
#[cfg(test)]
mod memory;

use tier::Tier;
use units::Cost;
use verdict::{Verdict, Wait};

/// The store holds something that the limiter did not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It should be a log.
    Log,
    /// It should be a counter.
    Counter,
}

/// A call that has been read, not yet written.
pub trait Call {
    /// Whether a tier is over its limit.
    fn is_over(&self) -> bool;

    /// Whether the dates lay too far in the future, so that [`Call::commit`] writes in any case.
    fn is_healed(&self) -> bool;

    /// Decides whether the cost is recorded, and says how things stand after the call.
    ///
    /// # Errors
    /// [`Foreign`] when a further read finds something that the limiter did not write.
    fn settle(&mut self, record: bool) -> Result<Verdict, Foreign>;

    /// Until a call of `cost` units would fit this one tier of the call, once settled.
    ///
    /// # Errors
    /// As for [`Call::settle`].
    fn wait_for(&mut self, tier: Tier, cost: Cost) -> Result<Wait, Foreign>;

    /// Writes what was decided, and what a clock fault calls for.
    fn commit(&mut self);
}
