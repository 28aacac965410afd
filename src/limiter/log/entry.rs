//! One entry of the log.

use crate::limiter::decimal::{self, DecimalBuf};
use crate::limiter::units::Timestamp;

/// The most usage that a log records, 2^63; beyond it a forced call adds nothing.
pub const MAX_USAGE: u64 = 1 << 63;

/// All that was recorded in one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When: the member's score, in milliseconds.
    pub time: Timestamp,
    /// The sum of all costs up to and including this entry, modulo 2^64.
    pub total: u64,
    /// This entry's own cost, 1 to [`MAX_USAGE`].
    pub cost: u64,
}

impl Entry {
    /// The member `<total>:<cost>` of this entry alone.
    pub fn member(&self) -> DecimalBuf {
        let mut text = DecimalBuf::new();
        decimal::push(&mut text, self.total);
        text.push(b':');
        decimal::push(&mut text, self.cost);
        text
    }

    /// The length of that member.
    pub fn length(&self) -> usize {
        let digits = |value: u64| value.checked_ilog10().unwrap_or(0) as usize + 1;
        digits(self.total) + 1 + digits(self.cost)
    }

    /// The running total just before this entry.
    pub fn total_before(&self) -> u64 {
        self.total.wrapping_sub(self.cost)
    }

    /// Whether this entry can come right after `other` in a log.
    pub fn follows(&self, other: &Self) -> bool {
        other.time < self.time && other.total == self.total_before()
    }
}
