//! What is measured, against the rule itself: no trailing window holds more than the limit.

use std::collections::VecDeque;

use crate::limiters::{LIMIT, WINDOW};
use crate::traffic::History;

#[derive(Debug, Clone, Copy, Default)]
pub struct Score {
    pub calls: u64,
    pub admitted: u64,
    /// The most calls that were admitted in any trailing window.
    pub worst: u64,
    /// Refused, though an exact log that had recorded the same calls would admit it.
    pub wrongly_refused: u64,
    /// Admitted, though an exact log that had recorded the same calls would refuse it.
    pub wrongly_admitted: u64,
}

impl Score {
    /// Adds the calls of one client.
    pub fn add(&mut self, history: &History) {
        let mut live = VecDeque::new();
        for call in history {
            while live
                .front()
                .is_some_and(|&oldest| oldest <= call.at - WINDOW)
            {
                live.pop_front();
            }
            let limited = call.reply.limited == 1;
            let full = live.len() as u64 >= LIMIT.unsigned_abs();
            if !limited {
                live.push_back(call.at);
            }
            self.calls += 1;
            self.admitted += u64::from(!limited);
            self.worst = self.worst.max(live.len() as u64);
            self.wrongly_refused += u64::from(limited && !full);
            self.wrongly_admitted += u64::from(!limited && full);
        }
    }

    /// The worst trailing window as a multiple of the limit.
    pub fn worst_of_limit(self) -> f64 {
        ratio(self.worst, LIMIT.unsigned_abs())
    }

    /// Calls admitted as a multiple of what another limiter admitted.
    pub fn admitted_of(self, other: Score) -> f64 {
        ratio(self.admitted, other.admitted)
    }

    pub fn percent_refused(self) -> f64 {
        100.0 * ratio(self.wrongly_refused, self.calls)
    }

    pub fn percent_admitted(self) -> f64 {
        100.0 * ratio(self.wrongly_admitted, self.calls)
    }

    pub fn wrong(self) -> u64 {
        self.wrongly_refused + self.wrongly_admitted
    }

    pub fn percent_wrong(self) -> f64 {
        100.0 * ratio(self.wrong(), self.calls)
    }
}

#[allow(clippy::cast_precision_loss)] // counts far below 2^53
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
