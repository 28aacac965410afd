//! The calls that are offered: when each client calls, whatever it is answered.

use crate::limiters::{Kind, LIMIT, WINDOW};
use crate::{adversary, replay};

/// The start of the minute in which every client begins: 2026-01-02 03:05:00 UTC.
pub const BEGIN: i64 = 1_767_323_100_000;

/// How long one client calls, in windows.
pub const WINDOWS: i64 = 10;

/// How many calls each traffic has at least, those of the adversary left out.
pub const CALLS: usize = 200_000;

/// Half the time that the calls around the start of a minute take.
const BURST: i64 = 2_000;

/// In minutes, from one burst to the next: usage has ended by then.
const BURST_EVERY: i64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Calls at random instants, in the mean so many per cent of the limit in a window.
    Steady(i64),
    Bursts,
    Adversary,
}

/// One call, as it was answered.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    pub at: i64,
    pub reply: crate::support::Reply,
}

/// What one client called, in the order of time.
pub type History = Vec<Answered>;

impl Traffic {
    pub const ALL: [Traffic; 5] = [
        Traffic::Steady(80),
        Traffic::Steady(150),
        Traffic::Steady(1000),
        Traffic::Bursts,
        Traffic::Adversary,
    ];

    pub fn name(self) -> String {
        match self {
            Traffic::Steady(1000) => "overload, 10 × the limit".to_owned(),
            Traffic::Steady(percent) => format!("steady, {percent} % of the limit"),
            Traffic::Bursts => "bursts at the minute".to_owned(),
            Traffic::Adversary => "greedy adversary".to_owned(),
        }
    }

    /// What this traffic's clients get from a limiter.
    pub fn play(self, kind: Kind) -> Vec<History> {
        if self == Traffic::Adversary {
            return vec![adversary::attacks(kind, &self.key(kind, 0))];
        }
        let mut calls = 0;
        let arrivals = (0..).map(|client| self.arrivals(client));
        arrivals
            .take_while(|arrivals| {
                let enough = calls >= CALLS;
                calls += arrivals.len();
                !enough
            })
            .enumerate()
            .map(|(client, arrivals)| replay(kind, &self.key(kind, client), &arrivals))
            .collect()
    }

    /// The key of one client: a counter's windows begin at moments that depend on it.
    pub fn key(self, kind: Kind, client: usize) -> String {
        format!("{self:?}:{kind:?}:{client}")
    }

    fn arrivals(self, client: u64) -> Vec<i64> {
        // A seed of its own for each client, and the same clients for each limiter.
        let mut random = Random(client);
        match self {
            Traffic::Steady(percent) => steady(&mut random, percent * LIMIT / 100),
            Traffic::Bursts => {
                let mut arrivals = steady(&mut random, LIMIT / 5);
                for minute in (1..=WINDOWS).filter(|minute| minute % BURST_EVERY == 0) {
                    let from = BEGIN + minute * WINDOW - BURST;
                    arrivals.extend((0..2 * LIMIT).map(|_| from + random.below(2 * BURST)));
                }
                arrivals.sort_unstable();
                arrivals
            }
            Traffic::Adversary => Vec::new(),
        }
    }
}

/// At most one call a ms, each ms with the same probability: at these rates as good as a Poisson
/// process, in integers, and so the same on every machine. The client begins anywhere in a minute:
/// its start would flatter the limiters that count by the clock.
fn steady(random: &mut Random, per_window: i64) -> Vec<i64> {
    let begin = BEGIN + random.below(WINDOW);
    (begin..begin + WINDOWS * WINDOW)
        .filter(|_| random.below(WINDOW) < per_window)
        .collect()
}

/// `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below the bound, which is so small that the remainder is even enough.
    fn below(&mut self, bound: i64) -> i64 {
        (self.next() % bound.unsigned_abs()).cast_signed()
    }
}
