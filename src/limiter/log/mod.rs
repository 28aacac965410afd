//! The exact limiter: a log of what was recorded, kept as running totals.
//!
//! An entry is live in a window `w` while `time > t - w`, where `t` is the clock, or the newest
//! entry's time if that is later. As each entry carries the running total, the usage of a window
//! is the difference of two entries, whatever their number and costs.

mod call;
mod entry;
mod moment;
mod refund;
mod store;
#[cfg(test)]
mod tests;

pub use call::LogCall;
pub use entry::Entry;
pub use refund::{refund, refund_aged};
pub use store::LogStore;
