//! Leases under a clock that goes on, jumps and steps back, against the naive oracle.

use redis::cmd;

use crate::support::clock::{Frozen, START};
use crate::support::oracle::stored::{self, Place};
use crate::support::oracle::{Lease, Take};
use crate::support::random::{EARLIEST, Numbers, assert_telling, effort, seeds};
use crate::support::{line, reply, reply_of, run};

const DAY: i64 = 86_400_000;

/// The longest ttl of a history, in ms.
const SCALES: [u64; 5] = [5, 100, 5_000, 600_000, 86_400_000];

struct History {
    numbers: Numbers,
    scale: u64,
    key: String,
    leases: Lease,
    now: i64,
    /// The latest time since the key was read last.
    latest: i64,
    trace: Vec<String>,
}

#[derive(Default)]
struct Tally {
    limited: usize,
    healed: usize,
}

fn places(frozen: &mut Frozen, key: &str) -> Vec<Place> {
    let members: Vec<(Vec<u8>, f64)> =
        run(&mut frozen.con, "ZRANGE", &[key, "0", "-1", "WITHSCORES"]);
    stored::places(&members).expect("leases and nothing else")
}

impl History {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let scale = SCALES[numbers.place(SCALES.len())];
        History {
            numbers,
            scale,
            key: format!("leases:{seed}"),
            leases: Lease::new(),
            now: START,
            latest: START,
            trace: Vec::new(),
        }
    }

    /// Mostly on, sometimes past all ttls; back by a little, or by more than any ttl is long.
    fn move_clock(&mut self, frozen: &mut Frozen) {
        let scale = i64::try_from(self.scale).unwrap();
        let step = |numbers: &mut Numbers, most: i64| {
            i64::try_from(numbers.below(most.unsigned_abs() + 1)).unwrap()
        };
        let elapsed = match self.numbers.below(16) {
            0..4 => 0,
            4..12 => step(&mut self.numbers, scale / 4),
            12 => step(&mut self.numbers, 3 * scale),
            13 => -step(&mut self.numbers, scale / 4),
            14 => -step(&mut self.numbers, 3 * scale),
            _ => -step(&mut self.numbers, 3 * DAY),
        };
        self.now = (self.now + elapsed).max(EARLIEST);
        self.latest = self.latest.max(self.now);
        frozen.set(self.now);
        // The server may have removed the key at the time before.
        self.compare_stored(frozen);
    }

    /// The server may have removed what had ended; then the oracle forgets it too.
    fn compare_stored(&mut self, frozen: &mut Frozen) {
        let stored = places(frozen, &self.key);
        let (kept, gone): (Vec<Place>, Vec<Place>) = self
            .leases
            .places()
            .into_iter()
            .partition(|place| stored.contains(place));
        let trace = || self.trace.join("\n");
        assert_eq!(kept, stored, "after\n{}", trace());
        let ended = gone.iter().all(|place| place.end <= self.latest);
        assert!(
            ended,
            "{gone:?} are gone at {}, after\n{}",
            self.latest,
            trace()
        );
        self.leases = Lease::holding(&stored);
        self.latest = self.now;
    }

    fn run(&mut self, frozen: &mut Frozen, steps: usize, tally: &mut Tally) {
        for _ in 0..steps {
            self.move_clock(frozen);
            if self.numbers.one_in(5) {
                self.release(frozen);
            } else if self.numbers.one_in(6) {
                self.peek(frozen);
            } else {
                self.take(frozen, tally);
            }
            self.compare_stored(frozen);
        }
    }

    fn id(&mut self) -> String {
        self.numbers.below(9).to_string()
    }

    fn release(&mut self, frozen: &mut Frozen) {
        let ids = [self.id(), self.id()];
        let mut release = cmd("SLIDE.RELEASE");
        release.arg(&self.key).arg(&ids);
        let released: u64 = release.query(&mut frozen.con).unwrap();
        let names = [ids[0].as_bytes(), ids[1].as_bytes()];
        let expected = self.leases.release(self.now, &names);
        self.trace
            .push(format!("at {}: RELEASE {ids:?}: {expected}", self.now));
        assert_eq!(released, expected, "after\n{}", self.trace.join("\n"));
    }

    fn peek(&mut self, frozen: &mut Frozen) {
        let limit = self.numbers.below(7);
        let mut peek = cmd("SLIDE.PEEK");
        peek.arg(&self.key).arg(limit).arg("1ms");
        let trace = self.trace.join("\n");
        let seen = reply(&mut frozen.con, &peek);
        let expected = self.leases.peek(self.now, limit);
        assert_eq!(
            seen, expected,
            "peeked {limit} at {}, after\n{trace}",
            self.now
        );
    }

    fn take(&mut self, frozen: &mut Frozen, tally: &mut Tally) {
        let limit = self.numbers.below(7);
        let ttl = self.numbers.one_to(self.scale);
        let id = self.id();
        let force = self.numbers.one_in(6);
        let mut call = cmd("SLIDE.LEASE");
        call.arg(&self.key)
            .arg(limit)
            .arg(format!("{ttl}ms"))
            .arg(&id);
        if force {
            call.arg("FORCE");
        }
        let faults = frozen.clock_faults();
        let got = reply(&mut frozen.con, &call);
        let take = Take {
            limit,
            ttl,
            id: id.as_bytes(),
            force,
        };
        let is_misdated = |place: &Place| place.end > self.now + DAY;
        let healed = self.leases.places().iter().any(is_misdated);
        let expected = self.leases.call(self.now, take);
        self.trace
            .push(format!("at {}: {take:?}: {expected:?}", self.now));
        let trace = self.trace.join("\n");
        assert_eq!(got, expected, "after\n{trace}");
        let seen = frozen.clock_faults() - faults;
        assert_eq!(seen, i64::from(healed), "faults after\n{trace}");
        tally.limited += usize::from(got.limited == 1);
        tally.healed += usize::from(healed);

        let last = self.leases.places().last().map(|place| place.end);
        if healed || got.limited == 0 || force {
            let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &[&self.key]);
            if healed {
                assert_eq!(Some(expiry), last, "after\n{trace}");
            }
            assert!(Some(expiry) >= last, "after\n{trace}");
        }
    }
}

#[test]
fn leases_are_answered_as_by_the_oracle() {
    let mut frozen = Frozen::start();
    let seeds = seeds(effort(12, 40));
    let calls = seeds.len() * 200;
    let mut tally = Tally::default();
    for seed in seeds {
        println!("SLIDE_SEED={seed}");
        History::new(seed).run(&mut frozen, 200, &mut tally);
    }
    let Tally { limited, healed } = tally;
    let enough = limited > calls / 10 && healed > calls / 100;
    assert_telling(
        enough,
        format!("{limited} limited, {healed} healed of {calls}"),
    );
}

#[test]
fn a_wait_is_right_to_the_ms_and_an_end_is_no_part_of_a_lease() {
    let mut frozen = Frozen::start();
    let five = |frozen: &mut Frozen, words: &str| {
        let five: Vec<i64> = line(words).query(&mut frozen.con).unwrap();
        reply_of(&five)
    };
    for (id, ttl) in [("a", 500), ("b", 200), ("c", 300)] {
        five(&mut frozen, &format!("SLIDE.LEASE k 3 {ttl}ms {id}"));
    }
    for (limit, wait) in [(3, 200), (2, 300), (1, 500)] {
        let limited = five(&mut frozen, &format!("SLIDE.LEASE k {limit} 1s x"));
        assert_eq!((limited.limited, limited.retry_after), (1, wait));
    }
    frozen.set(START + 299);
    assert_eq!(five(&mut frozen, "SLIDE.PEEK k 2 1s").retry_after, 1);
    frozen.set(START + 300);
    assert_eq!(five(&mut frozen, "SLIDE.PEEK k 2 1s").limited, 0);
    assert_eq!(five(&mut frozen, "SLIDE.LEASE k 2 1s x").limited, 0);
    frozen.set(START + 499);
    assert_eq!(five(&mut frozen, "SLIDE.PEEK k 2 1s").limited, 1);
    let released: i64 = line("SLIDE.RELEASE k a x").query(&mut frozen.con).unwrap();
    assert_eq!(released, 2);
}

/// A server whose clock was wrong when places were taken: they come back at the latest one ttl after
/// the first call that sees it, not in years.
#[test]
fn places_of_a_wrong_future_come_back() {
    let mut frozen = Frozen::start();
    frozen.set(START + 400 * DAY);
    for id in 0..5 {
        let call = line(&format!("SLIDE.LEASE k 5 60s {id}"));
        call.query::<()>(&mut frozen.con).unwrap();
    }
    frozen.set(START);
    let limited = reply(&mut frozen.con, &line("SLIDE.LEASE k 5 30s x"));
    assert_eq!((limited.limited, limited.retry_after), (1, 30_000));
    let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &["k"]);
    assert_eq!(expiry, START + 30_000);
    frozen.set(START + 30_000);
    let free = reply(&mut frozen.con, &line("SLIDE.LEASE k 5 30s x"));
    assert_eq!((free.limited, free.remaining), (0, 4));
}

/// Ended leases that are still stored are live again when the clock steps back before their end.
#[test]
fn a_step_back_finds_what_was_not_removed() {
    let mut frozen = Frozen::start();
    for id in 0..100 {
        let call = line(&format!("SLIDE.LEASE k 200 1s {id}"));
        call.query::<()>(&mut frozen.con).unwrap();
    }
    line("SLIDE.LEASE k 200 1h last")
        .query::<()>(&mut frozen.con)
        .unwrap();
    frozen.set(START + 1_000);
    let taken = reply(&mut frozen.con, &line("SLIDE.LEASE k 200 1h next"));
    assert_eq!(taken.remaining, 198);
    frozen.set(START + 999);
    let mut look = cmd("SLIDE.PEEK");
    look.arg(&["k", "200", "1s"]);
    assert_eq!(reply(&mut frozen.con, &look).remaining, 198 - 36);
    assert_eq!(run::<i64>(&mut frozen.con, "ZCARD", &["k"]), 38);
}
