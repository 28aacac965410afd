//! Random calls and clocks, the same for the same seed.

use std::env;
use std::fmt::Display;

/// The length of the longest windows of a history: from a few ms to the most there is.
const SCALES: [u64; 6] = [7, 100, 1000, 60_000, 86_400_000, 315_576_000_000];

/// No clock is put before this, 2001-09-09.
pub const EARLIEST: i64 = 1_000_000_000_000;

/// The largest limit and cost.
pub const MOST: u64 = (1 << 53) - 1;

/// Tiers of (limit, window in ms).
pub type Tiers = Vec<(u64, u64)>;

pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Numbers(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub fn one_to(&mut self, most: u64) -> u64 {
        1 + self.below(most)
    }

    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// A place in a list of so many.
    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    pub fn scale(&mut self) -> u64 {
        SCALES[self.place(SCALES.len())]
    }

    /// Where the clock goes next: mostly on, sometimes far.
    pub fn later(&mut self, now: i64, scale: u64) -> i64 {
        let most = match self.below(16) {
            0..2 => return now,
            2..5 => 3,
            5..14 => scale / 5 + 1,
            _ => scale * 5 / 2,
        };
        now + self.step(most)
    }

    /// Where the clock goes next: mostly on, but sometimes back, even beyond a window.
    pub fn next_time(&mut self, now: i64, scale: u64) -> i64 {
        let back = match self.below(20) {
            ..16 => return self.later(now, scale),
            16 => 3,
            17..19 => scale,
            _ => scale * 3,
        };
        (now - self.step(back)).max(EARLIEST)
    }

    fn step(&mut self, most: u64) -> i64 {
        i64::try_from(self.one_to(most)).expect("a step of a few windows")
    }

    /// One to three tiers with different windows, small limits mostly.
    pub fn tiers(&mut self, scale: u64) -> Tiers {
        let mut windows = vec![scale];
        for _ in 0..self.below(3) {
            let window = self.one_to(scale);
            if !windows.contains(&window) {
                windows.insert(self.place(windows.len() + 1), window);
            }
        }
        let most = [5, 20, 1000, MOST][self.place(4)];
        windows
            .into_iter()
            .map(|window| (self.one_to(most), window))
            .collect()
    }

    /// Limits as they are, or raised or lowered for once, and a cost that fits them in some way.
    pub fn vary(&mut self, tiers: &[(u64, u64)]) -> (Tiers, u64) {
        let mut tiers = tiers.to_vec();
        if self.one_in(10) {
            let place = self.place(tiers.len());
            let limit = tiers[place].0;
            tiers[place].0 = match self.below(3) {
                0 => limit / 2,
                1 => (limit * 2).min(MOST),
                _ => self.below(3),
            };
        }
        let least = tiers.iter().map(|tier| tier.0).min();
        let least = least.expect("at least one tier");
        let cost = match self.below(12) {
            0 => 0,
            1 => least,
            2 => (least + 1).min(MOST),
            3..7 => 1,
            _ => self.one_to(least / 3 + 1),
        };
        (tiers, cost)
    }

    /// Into how many buckets a counter is divided: all numbers there are, some more often.
    pub fn buckets(&mut self) -> u64 {
        match self.below(6) {
            0 => 1,
            1 => 64,
            2 => self.one_to(10),
            _ => self.one_to(64),
        }
    }
}

/// The seeds of so many rounds: from `SLIDE_FIRST_SEED` on, else from 1, or the one that
/// `SLIDE_SEED` says.
pub fn seeds(rounds: u64) -> Vec<u64> {
    if let Some(seed) = seed("SLIDE_SEED") {
        return vec![seed];
    }
    let first = seed("SLIDE_FIRST_SEED").unwrap_or(1);
    (first..)
        .take(usize::try_from(rounds).expect("a few rounds"))
        .collect()
}

fn seed(name: &str) -> Option<u64> {
    let seed = env::var(name).ok()?;
    Some(seed.parse().expect("a seed is a number"))
}

/// Whether `SLIDE_SEED` replays one round alone. What many rounds together have to contain may be
/// missing from it.
pub fn replays_one() -> bool {
    seed("SLIDE_SEED").is_some()
}

/// Fails a test whose rounds, taken together, contained too little of what it is about; not where
/// one of them is replayed.
#[track_caller]
pub fn assert_telling(enough: bool, what: impl Display) {
    assert!(enough || replays_one(), "the rounds say too little: {what}");
}

/// How much of a long test to do: all of it, or in `SLIDE_EFFORT=short` what is given for that.
pub fn effort<T>(short: T, full: T) -> T {
    match env::var("SLIDE_EFFORT").as_deref() {
        Ok("short") => short,
        Ok("full") | Err(_) => full,
        Ok(other) => panic!("SLIDE_EFFORT is short or full, not {other}"),
    }
}
