//! What a caller learns of a call: the five values of a reply, and more of each tier for headers.

use super::tier::Tier;
use super::units::{Cost, Limit, Millis};

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

/// One limit after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The limit itself.
    pub limit: Limit,
    /// Units left below it.
    pub remaining: u64,
    /// Until the same call would fit; none after an admitted call.
    pub wait: Wait,
    /// Until nothing is used.
    pub reset: Millis,
}

/// The answer to a call: whether it was over a limit, and the tier that says most about why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether a tier was over its limit.
    pub over: bool,
    /// The reported tier.
    pub reported: Standing,
    /// The reported tier's position among the tiers of the call.
    pub reported_tier: usize,
    /// Until the same call would be admitted: the longest wait of all tiers.
    pub retry_after: Wait,
    /// How many tiers have been taken into account.
    tiers: usize,
}

impl Verdict {
    /// The verdict on a call with one limit, or of which this is the first.
    pub fn of(over: bool, first: Standing) -> Self {
        Self {
            over,
            reported: first,
            reported_tier: 0,
            retry_after: first.wait,
            tiers: 1,
        }
    }

    /// Takes one more tier into account. A limited call reports the tier with the longest wait, an
    /// admitted call the tier with the fewest units left; the first given wins a tie.
    pub fn add(&mut self, standing: Standing) {
        let says_more = if self.over {
            standing.wait > self.reported.wait
        } else {
            standing.remaining < self.reported.remaining
        };
        if says_more {
            self.reported = standing;
            self.reported_tier = self.tiers;
        }
        self.retry_after = self.retry_after.max(standing.wait);
        self.tiers += 1;
    }
}

/// One tier after a call, as headers describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The tier itself.
    pub tier: Tier,
    /// Units left in it.
    pub remaining: u64,
    /// Until one unit more than remains would fit; `None` where nothing is used or nothing ever fits.
    pub next_unit: Option<Millis>,
}

impl Outlook {
    /// The outlook of a tier with this many units left, where `wait_for` says how long a call of so
    /// many units would wait.
    ///
    /// # Errors
    /// The error of `wait_for`.
    pub fn new<E>(
        tier: Tier,
        remaining: u64,
        wait_for: impl FnOnce(Cost) -> Result<Wait, E>,
    ) -> Result<Self, E> {
        let next_unit = match Cost::new(remaining + 1) {
            Some(cost) => match wait_for(cost)? {
                Wait::For(wait) => Some(wait),
                Wait::Never => None,
            },
            // More than any call can cost: nothing is used of the largest limit.
            None => None,
        };
        Ok(Self {
            tier,
            remaining,
            next_unit,
        })
    }
}
