//! Somebody who takes all that a limiter lets through while the clock steps, and who sees that its
//! promises are kept. What they are stands in `promises`.

mod tally;
mod victim;

use std::fmt;

use crate::support::clock::{Frozen, START};
use crate::support::random::{EARLIEST, Numbers};
use crate::support::{Reply, reply};

pub use tally::Tally;
use victim::Victim;

const YEAR: i64 = 31_557_600_000;

/// Each try is a gap, perhaps a fault, and some calls.
const TRIES: u64 = 60;

/// Which ways the clock may step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    Back,
    BackAndForward,
}

pub struct Adversary {
    numbers: Numbers,
    victim: Victim,
    steps: Steps,
    clock: i64,
    passage: i64,
    /// The passage and the cost of each admitted call.
    admitted: Vec<(i64, u64)>,
    pub tally: Tally,
}

impl Adversary {
    pub fn new(seed: u64, steps: Steps) -> Self {
        let mut numbers = Numbers::new(seed);
        let victim = Victim::new(&mut numbers, seed);
        println!("{victim}, SLIDE_SEED={seed}");
        Adversary {
            numbers,
            victim,
            steps,
            clock: START,
            passage: 0,
            admitted: Vec::new(),
            tally: Tally::default(),
        }
    }

    pub fn window(&self) -> i64 {
        self.victim.window()
    }

    /// The units used of each tier.
    pub fn usage(&self, frozen: &mut Frozen) -> Vec<u64> {
        self.victim.usage(frozen)
    }

    pub fn attack(&mut self, frozen: &mut Frozen) {
        for _ in 0..TRIES {
            let gap = self.gap();
            self.pass(frozen, gap);
            if self.numbers.one_in(3) {
                let size = self.size();
                let back = self.steps == Steps::Back || self.numbers.one_in(2);
                let step = if back { -size } else { size };
                self.put_clock(frozen, step.max(EARLIEST - self.clock));
            }
            self.take(frozen);
            if self.numbers.one_in(8) {
                self.leave_alone(frozen);
            }
        }
    }

    fn up_to(&mut self, most: i64) -> i64 {
        i64::try_from(self.numbers.below(most.unsigned_abs() + 1)).unwrap()
    }

    fn gap(&mut self) -> i64 {
        let window = self.window();
        match self.numbers.below(8) {
            0..4 => self.up_to(window / 8),
            4 => self.up_to(window),
            5 => (1 + self.up_to(2)) * window / 4,
            6 => window - 1,
            _ => 1,
        }
    }

    fn size(&mut self) -> i64 {
        let window = self.window();
        let some = self.up_to(3 * window);
        let sizes = [1, window / 2, window, window + 1, 2 * window, YEAR, some];
        sizes[self.numbers.place(sizes.len())]
    }

    /// Real time passes.
    fn pass(&mut self, frozen: &mut Frozen, ms: i64) {
        self.clock += ms;
        self.passage += ms;
        frozen.set(self.clock);
    }

    /// The clock is put forward or back.
    fn put_clock(&mut self, frozen: &mut Frozen, step: i64) {
        let before = self.usage(frozen);
        self.go_on(frozen, step, &before);
    }

    /// At one moment the clock is put forward or back, perhaps because another server answers from
    /// now on. `before` is what was used of each tier.
    pub fn go_on(&mut self, frozen: &mut Frozen, step: i64, before: &[u64]) {
        self.clock += step;
        frozen.set(self.clock);
        if step > 0 {
            self.passage += step;
            self.tally.steps_forward += 1;
            return;
        }
        self.tally.steps_back += 1;
        let peeked = self.usage(frozen);
        // A call, which heals, and not only a peek, which does as if.
        let faults = frozen.clock_faults();
        self.call(frozen, 0);
        self.tally.healed += u64::from(frozen.clock_faults() > faults);
        let called = self.usage(frozen);
        for (place, before) in before.iter().enumerate() {
            let after = peeked[place].min(called[place]);
            assert!(
                after >= *before,
                "{self}: a step of {step} ms forgot {before} - {after} of tier {place}"
            );
            self.tally.usage_kept += u64::from(*before > 0);
        }
    }

    fn call(&mut self, frozen: &mut Frozen, cost: u64) -> Reply {
        let bound = self.victim.longest_wait(frozen, self.clock);
        let reply = reply(&mut frozen.con, &self.victim.call(cost));
        let wait = reply.retry_after.max(reply.reset_after);
        assert!(wait <= bound, "{self}: locked for {wait} ms, not {bound}");
        if reply.limited == 0 && cost > 0 {
            self.admitted.push((self.passage, cost));
            self.check_worst_window();
        }
        self.tally.limited += u64::from(reply.limited == 1);
        reply
    }

    /// One unit, some units, or all that is left.
    fn take(&mut self, frozen: &mut Frozen) {
        let least = self.victim.tiers.iter().map(|tier| tier.0).min().unwrap();
        match self.numbers.below(3) {
            0 => {
                self.call(frozen, 1);
            }
            1 => {
                let cost = self.numbers.one_to(least);
                self.call(frozen, cost);
            }
            _ => {
                let left = self.call(frozen, 0);
                if left.limited == 0 && left.remaining > 0 {
                    let all = self.call(frozen, left.remaining.unsigned_abs());
                    assert_eq!(all.limited, 0, "{self}: {left:?} was not there");
                }
                self.call(frozen, 1);
            }
        }
    }

    /// Nobody calls for as long as the key may be locked: then it is empty and a call passes.
    fn leave_alone(&mut self, frozen: &mut Frozen) {
        // Only a call brings a wrong date to an end.
        self.call(frozen, 0);
        let bound = self.victim.longest_wait(frozen, self.clock);
        self.pass(frozen, bound);
        let usage = self.usage(frozen);
        assert!(
            usage.iter().all(|&used| used == 0),
            "{self}: {usage:?} are still used after {bound} ms"
        );
        assert_eq!(self.call(frozen, 1).limited, 0, "{self}: locked");
        self.tally.left_alone += 1;
    }

    /// No span that ends with the newest admitted call holds more than is promised.
    fn check_worst_window(&mut self) {
        let (times, (part, whole)) = self.victim.promise();
        let &(end, _) = self.admitted.last().unwrap();
        for &(limit, window) in &self.victim.tiers {
            let inside: u64 = self
                .admitted
                .iter()
                .rev()
                .take_while(|(at, _)| (end - at) * whole < window * part)
                .map(|(_, cost)| cost)
                .sum();
            assert!(
                inside <= times * limit,
                "{self}: {inside} of {limit} in {part}/{whole} of {window} ms, {:?}",
                self.admitted
            );
            self.tally.full += u64::from(inside == limit);
        }
    }
}

impl fmt::Display for Adversary {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} at {}", self.victim, self.clock)
    }
}
