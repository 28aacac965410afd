//! The key that an adversary attacks: its limiter, and what of it is used and for how long.

use std::fmt;

use redis::Cmd;

use crate::support::clock::Frozen;
use crate::support::random::{MOST, Numbers};
use crate::support::{entries, reply, run, shift};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limiter {
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
}

pub struct Victim {
    limiter: Limiter,
    key: String,
    pub tiers: Vec<(u64, i64)>,
}

impl Victim {
    pub fn new(numbers: &mut Numbers, seed: u64) -> Self {
        let limiter = Limiter::nth(numbers, seed);
        let window = [7, 100, 1000, 60_000, 86_400_000][numbers.place(5)];
        let limit = 1 + numbers.below(20);
        let mut tiers = vec![(limit, window)];
        if numbers.one_in(2) {
            tiers.push((1 + limit / 2, window / 3));
        }
        Victim {
            limiter,
            key: format!("adversary:{seed}"),
            tiers,
        }
    }

    pub fn window(&self) -> i64 {
        self.tiers[0].1
    }

    /// What passes of a limit in some span: times the limit, and the span as a part of the window.
    pub fn promise(&self) -> (u64, (i64, i64)) {
        self.limiter.promise()
    }

    /// The limiter call of so many units.
    pub fn call(&self, cost: u64) -> Cmd {
        let name = match self.limiter {
            Limiter::Log => "SLIDE.LOG",
            Limiter::Counter { .. } => "SLIDE.COUNTER",
        };
        let mut command = self.command(name, &self.tiers);
        command.arg("COST").arg(cost);
        command
    }

    fn command(&self, name: &str, tiers: &[(u64, i64)]) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(&self.key);
        for &(limit, window) in tiers {
            command.arg(limit).arg(format!("{window}ms"));
        }
        if let Limiter::Counter { buckets, strict } = self.limiter {
            if buckets > 1 {
                command.arg("BUCKETS").arg(buckets);
            }
            if strict {
                command.arg("STRICT");
            }
        }
        command
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
            let mut peek = self.command("SLIDE.PEEK", &tiers);
            let reply = reply(&mut frozen.con, peek.arg("COST").arg(0));
            MOST / 2 - reply.remaining.unsigned_abs()
        });
        asked.collect()
    }

    /// Until when anything that is stored, or that this call will record, may count.
    pub fn longest_wait(&self, frozen: &mut Frozen, clock: i64) -> i64 {
        let waits = self.tiers.iter().map(|&(_, window)| match self.limiter {
            Limiter::Log => {
                let newest = entries(&mut frozen.con, &self.key).pop();
                let ahead = newest.map_or(0, |newest| (newest.1 - clock).max(0));
                // In a log the longest window decides for all tiers what a wrong date is.
                window + caught_up(ahead, self.window())
            }
            Limiter::Counter { buckets, .. } => {
                let start = self.newest_bucket(frozen, window, buckets);
                let ahead = (start - clock * buckets).max(0);
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
        index.map_or(0, |index| {
            index * window - shift(&self.key, window) * buckets
        })
    }
}

/// How long the clock needs to catch up with something that is so far ahead. What is more than a
/// window ahead is brought back to now at once.
fn caught_up(ahead: i64, window: i64) -> i64 {
    if ahead > window { 0 } else { ahead }
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Victim {
            limiter,
            key,
            tiers,
        } = self;
        write!(f, "{limiter:?} {key} of {tiers:?}")
    }
}
