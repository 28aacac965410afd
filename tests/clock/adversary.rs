//! Somebody who takes all that a limiter lets through while the clock steps, and who sees that its
//! promises are kept. What they are stands in `promises`.

use crate::support::faketime::{Frozen, START};
use crate::support::random::{EARLIEST, MOST, Numbers, is_replay};
use crate::support::{Reply, entries, reply, run};

const YEAR: i64 = 31_557_600_000;

/// Each try is a gap, perhaps a fault, and some calls.
const TRIES: u64 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    Log,
    Counter { buckets: i64, strict: bool },
}

impl Limiter {
    /// All of them in turn, the counters in various numbers of buckets.
    fn nth(numbers: &mut Numbers, seed: u64) -> Self {
        let buckets = i64::try_from(numbers.buckets()).unwrap();
        match seed % 4 {
            0 => Limiter::Log,
            1 => Limiter::Counter {
                buckets: 1,
                strict: false,
            },
            which => Limiter::Counter {
                buckets,
                strict: which == 2,
            },
        }
    }

    /// What passes of a limit in some span: times the limit, and the span as a part of the window.
    fn promise(self) -> (u64, (i64, i64)) {
        match self {
            Limiter::Counter {
                buckets: 1,
                strict: false,
            } => (2, (1, 1)),
            Limiter::Log | Limiter::Counter { strict: true, .. } => (1, (1, 1)),
            Limiter::Counter { buckets, .. } => (1, (buckets - 1, buckets)),
        }
    }

    fn command(self, name: &str, key: &str, tiers: &[(u64, i64)]) -> redis::Cmd {
        let mut command = redis::cmd(name);
        command.arg(key);
        for &(limit, window) in tiers {
            command.arg(limit).arg(window);
        }
        if let Limiter::Counter { buckets, strict } = self {
            if buckets > 1 {
                command.arg("BUCKETS").arg(buckets);
            }
            if strict {
                command.arg("STRICT");
            }
        }
        command
    }
}

/// Which ways the clock may step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    Back,
    BackAndForward,
}

/// How often something happened without which the test would say nothing.
#[derive(Debug, Default)]
pub struct Tally {
    limited: u64,
    steps_back: u64,
    pub steps_forward: u64,
    usage_kept: u64,
    pub left_alone: u64,
    healed: u64,
    /// Windows that held all that was promised.
    full: u64,
}

pub struct Adversary {
    numbers: Numbers,
    limiter: Limiter,
    key: String,
    tiers: Vec<(u64, i64)>,
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
        let limiter = Limiter::nth(&mut numbers, seed);
        let window = [7, 100, 1000, 60_000, 86_400_000][numbers.place(5)];
        let limit = 1 + numbers.below(20);
        let mut tiers = vec![(limit, window)];
        if numbers.one_in(2) {
            tiers.push((1 + limit / 2, window / 3));
        }
        println!("{limiter:?} of {tiers:?}, SLIDE_SEED={seed}");
        Adversary {
            numbers,
            limiter,
            key: format!("adversary:{seed}"),
            tiers,
            steps,
            clock: START,
            passage: 0,
            admitted: Vec::new(),
            tally: Tally::default(),
        }
    }

    pub fn window(&self) -> i64 {
        self.tiers[0].1
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

    /// The units used of each tier, whole or begun. The reported tier has the fewest left, so the
    /// one asked about has half the limit of the others.
    pub fn usage(&self, frozen: &mut Frozen) -> Vec<u64> {
        let places = 0..self.tiers.len();
        // What is missing counts as a log to PEEK, which then takes no BUCKETS.
        if !run::<bool>(&mut frozen.con, "EXISTS", &[&self.key]) {
            return places.map(|_| 0).collect();
        }
        let asked = places.map(|place| {
            let mut tiers = self.tiers.clone();
            for (other, (limit, _)) in tiers.iter_mut().enumerate() {
                *limit = if other == place { MOST / 2 } else { MOST };
            }
            let mut peek = self.limiter.command("SLIDE.PEEK", &self.key, &tiers);
            let reply = reply(&mut frozen.con, peek.arg("COST").arg(0));
            MOST / 2 - reply.remaining.unsigned_abs()
        });
        asked.collect()
    }

    fn call(&mut self, frozen: &mut Frozen, cost: u64) -> Reply {
        let name = match self.limiter {
            Limiter::Log => "SLIDE.LOG",
            Limiter::Counter { .. } => "SLIDE.COUNTER",
        };
        let mut command = self.limiter.command(name, &self.key, &self.tiers);
        let bound = self.longest_wait(frozen);
        let reply = reply(&mut frozen.con, command.arg("COST").arg(cost));
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
        let least = self.tiers.iter().map(|tier| tier.0).min().unwrap();
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
        let bound = self.longest_wait(frozen);
        self.pass(frozen, bound);
        let usage = self.usage(frozen);
        assert!(
            usage.iter().all(|&used| used == 0),
            "{self}: {usage:?} are still used after {bound} ms"
        );
        assert_eq!(self.call(frozen, 1).limited, 0, "{self}: locked");
        self.tally.left_alone += 1;
    }

    /// Until when anything that is stored, or that this call will record, may count.
    fn longest_wait(&self, frozen: &mut Frozen) -> i64 {
        let waits = self.tiers.iter().map(|&(_, window)| match self.limiter {
            Limiter::Log => {
                let newest = entries(&mut frozen.con, &self.key).pop();
                let ahead = newest.map_or(0, |newest| (newest.1 - self.clock).max(0));
                // In a log the longest window decides for all tiers what a wrong date is.
                window + caught_up(ahead, self.window())
            }
            Limiter::Counter { buckets, .. } => {
                let start = self.newest_bucket(frozen, window, buckets);
                let ahead = (start - self.clock * buckets).max(0);
                let ticks = window * (buckets + 1) + caught_up(ahead, window * buckets);
                (ticks + buckets - 1) / buckets
            }
        });
        waits.max().unwrap()
    }

    /// Where the newest bucket of a field starts, in 1/n ms; 0 without one.
    fn newest_bucket(&self, frozen: &mut Frozen, window: i64, buckets: i64) -> i64 {
        let field = match buckets {
            1 => window.to_string(),
            _ => format!("{window}/{buckets}"),
        };
        let value: Option<String> = run(&mut frozen.con, "HGET", &[&self.key, &field]);
        let index = value.map(|value| {
            let index = value.split(':').next().unwrap();
            index.parse::<i64>().unwrap()
        });
        index.map_or(0, |index| index * window)
    }

    /// No span that ends with the newest admitted call holds more than is promised.
    fn check_worst_window(&mut self) {
        let (times, (part, whole)) = self.limiter.promise();
        let &(end, _) = self.admitted.last().unwrap();
        for &(limit, window) in &self.tiers {
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

/// How long the clock needs to catch up with something that is so far ahead. What is more than a
/// window ahead is brought back to now at once.
fn caught_up(ahead: i64, window: i64) -> i64 {
    if ahead > window { 0 } else { ahead }
}

impl std::fmt::Display for Adversary {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Adversary {
            limiter,
            key,
            tiers,
            clock,
            ..
        } = self;
        write!(f, "{limiter:?} at {key}, {tiers:?}, {clock}")
    }
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
        let telling = counts.iter().all(|&count| count >= rounds);
        assert!(is_replay() || telling, "{self:?}");
    }
}
