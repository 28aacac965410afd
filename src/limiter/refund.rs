//! Which recorded units a refund gives back.

use super::units::{Age, Millis, Timestamp};

/// How far a caller's account of the time may be off: what its call and its refund spend on their way.
const SLACK: Millis = Millis::new(1000);

/// The time in which a caller's own units were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedAt {
    /// The earliest time, included.
    pub first: Timestamp,
    /// When they were recorded by the caller's account.
    pub told: Timestamp,
    /// The latest time, included.
    pub last: Timestamp,
}

impl RecordedAt {
    /// Units recorded `age` before `now`, give or take a second.
    pub fn ago(now: Timestamp, age: Age) -> Self {
        let told = now - age.into();
        Self {
            first: told - SLACK,
            told,
            last: told + SLACK,
        }
    }
}
