//! What a call is told: the five values of a reply.

use super::tier::Tier;
use super::units::Millis;

/// How long until a call fits. `Never` is the longest wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// It fits after this long; at once where that is zero.
    For(Millis),
    /// It costs more than the limit.
    Never,
}

impl Wait {
    /// The call fits at once.
    pub const NONE: Self = Self::For(Millis::ZERO);
}

/// How one tier stands after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The tier itself.
    pub tier: Tier,
    /// Units left in it.
    pub remaining: u64,
    /// Until the same call would fit it.
    pub wait: Wait,
    /// Until nothing is used of it.
    pub reset: Millis,
}

/// The answer to a call: whether it was over a limit, and the tier that says most about why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether a tier was over its limit.
    pub limited: bool,
    /// The reported tier.
    pub reported: Standing,
    /// Until the same call would be admitted: the longest wait of all tiers.
    pub retry_after: Wait,
}

impl Verdict {
    /// The verdict on a call of one tier, or of which this is the first.
    pub fn of(limited: bool, first: Standing) -> Self {
        Self {
            limited,
            reported: first,
            retry_after: first.wait,
        }
    }

    /// Takes one more tier into account. Reported is on a limited call the one with the longest
    /// wait, on an admitted one that with the fewest units left; the first given wins a tie.
    pub fn add(&mut self, standing: Standing) {
        let says_more = if self.limited {
            standing.wait > self.reported.wait
        } else {
            standing.remaining < self.reported.remaining
        };
        if says_more {
            self.reported = standing;
        }
        self.retry_after = self.retry_after.max(standing.wait);
    }
}
