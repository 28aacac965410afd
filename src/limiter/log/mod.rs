//! The exact limiter: a log of what was recorded, kept as running totals.
//!
//! An entry is live in a window `w` while `time > t - w`, where `t` is the clock, or the newest
//! entry's time if that is later. As each entry carries the running total, the usage of a window
//! is the difference of two entries, whatever their number and costs.
//!
//! From the stored form up to the calls:
//!
//! - [`set`]: the sorted set that keeps a log, as a trait;
//! - [`member`] and [`number`]: how a member of it spells one entry, or several;
//! - [`read`]: entries from members, [`search`] for one of them;
//! - [`record`] and [`packing`]: entries to members, a bounded part of which is tidied up each time;
//! - [`call`] and [`refund`]: what the commands do, which know only entries.

mod call;
mod entry;
pub mod member;
mod moment;
mod number;
mod packing;
mod read;
mod record;
mod refund;
mod rewrite;
mod search;
mod set;
#[cfg(test)]
mod tests;

pub use call::LogCall;
pub use entry::Entry;
pub use member::Member;
pub use refund::{refund, refund_aged};
pub use set::{Cursor, ScoreRange, SortedSet};
