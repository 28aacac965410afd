//! One entry of the log and its spelling as a sorted-set member.

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
    /// Reads a score and a member; `None` for anything that [`Entry::member`] did not spell.
    pub fn parse(score: f64, member: &[u8]) -> Option<Self> {
        let mut rest = member;
        let total = decimal::take(&mut rest)?;
        let cost = decimal::parse(rest.strip_prefix(b":")?)?;
        (1..=MAX_USAGE).contains(&cost).then_some(Self {
            time: time_of(score)?,
            total,
            cost,
        })
    }

    /// The member `<total>:<cost>`.
    pub fn member(&self) -> DecimalBuf {
        let mut text = DecimalBuf::new();
        decimal::push(&mut text, self.total);
        text.push(b':');
        decimal::push(&mut text, self.cost);
        text
    }

    /// Whether both have the same member, at the same time or not.
    pub fn is_same_member(&self, other: &Self) -> bool {
        (self.total, self.cost) == (other.total, other.cost)
    }

    /// The running total just before this entry.
    pub fn total_before(&self) -> u64 {
        self.total.wrapping_sub(self.cost)
    }
}

/// A score that is a whole number of milliseconds, not before the epoch.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "the range check leaves only integers that both types hold exactly"
)]
fn time_of(score: f64) -> Option<Timestamp> {
    let in_range = (0.0..=Timestamp::MAX.as_millis() as f64).contains(&score);
    let ms = score as i64;
    (in_range && ms as f64 == score).then(|| Timestamp::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::{Entry, MAX_USAGE};
    use crate::limiter::units::Timestamp;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_it_did_not_write() {
        for member in [
            "", ":", "1", "1:", ":1", "1:0", "01:1", "1:01", "1:1:1", "a:1", "-1:1",
        ] {
            assert_eq!(Entry::parse(1.0, member.as_bytes()), None, "{member:?}");
        }
        assert_eq!(
            Entry::parse(1.0, b"1:9223372036854775809"),
            None,
            "above 2^63"
        );
        for score in [f64::NAN, f64::INFINITY, -1.0, 0.5, 9_007_199_254_740_992.0] {
            assert_eq!(Entry::parse(score, b"1:1"), None, "{score}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(
            time in 0..=u32::MAX,
            total: u64,
            cost in 1..=MAX_USAGE,
        ) {
            let entry = Entry { time: Timestamp::from_millis(time.into()), total, cost };
            prop_assert_eq!(Entry::parse(time.into(), &entry.member()), Some(entry));
        }
    }
}
