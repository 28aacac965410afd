//! How often an adversary met what the promises are about.

use crate::support::random::assert_telling;

/// How often something happened without which the test would say nothing.
#[derive(Debug, Default)]
pub struct Tally {
    pub limited: u64,
    pub steps_back: u64,
    pub steps_forward: u64,
    pub usage_kept: u64,
    pub left_alone: u64,
    pub healed: u64,
    /// Windows that held all that was promised.
    pub full: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.limited += other.limited;
        self.steps_back += other.steps_back;
        self.steps_forward += other.steps_forward;
        self.usage_kept += other.usage_kept;
        self.left_alone += other.left_alone;
        self.healed += other.healed;
        self.full += other.full;
    }

    /// Whether so many rounds had all that the promises are about.
    #[track_caller]
    pub fn assert_telling(&self, rounds: usize) {
        let rounds = rounds as u64;
        println!("{self:?} in {rounds} rounds");
        let counts = [
            self.limited,
            self.steps_back,
            self.usage_kept,
            self.healed,
            self.full,
        ];
        let enough = counts.iter().all(|&count| count >= rounds);
        assert_telling(enough, format!("{self:?}"));
    }
}
