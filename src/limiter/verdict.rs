//! What a call is told: the five values of a reply.

use super::tier::{PerTier, Tier};
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
    /// Picks the reported tier: on a limited call the one with the longest wait, on an admitted
    /// one that with the fewest units left; the first given wins a tie.
    pub fn of(limited: bool, standings: &PerTier<Standing>) -> Self {
        let says_more = |standing: &Standing, than: &Standing| {
            if limited {
                standing.wait > than.wait
            } else {
                standing.remaining < than.remaining
            }
        };
        let mut reported = &standings.first;
        let mut retry_after = reported.wait;
        for standing in &standings.rest {
            if says_more(standing, reported) {
                reported = standing;
            }
            retry_after = retry_after.max(standing.wait);
        }
        Self {
            limited,
            reported: *reported,
            retry_after,
        }
    }
}
