//! Random histories against the naive oracles, reply for reply.
//!
//! A failure prints the seed of its history. `SLIDE_SEED` runs that one alone.

use std::env;

use redis::{Cmd, Value, from_redis_value, pipe};

use crate::faketime::{Frozen, START};
use crate::support::oracle::{Call, Counter, Log, Reply};
use crate::support::{entries, reply_of, run};

const ROUNDS: u64 = 40;
const KEYS: u64 = 4;
const CALLS_PER_KEY: u64 = 3;
const HISTORIES: u64 = 12;

/// The length of the longest windows of a history: from a few ms to the most there is.
const SCALES: [u64; 6] = [7, 100, 1000, 60_000, 86_400_000, 315_576_000_000];

/// No clock is put before this, 2001-09-09.
const EARLIEST: i64 = 1_000_000_000_000;

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_to(&mut self, most: u64) -> u64 {
        1 + self.below(most)
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

#[derive(Clone)]
enum Oracle {
    Log(Log),
    Counter(Counter),
}

impl Oracle {
    fn call(&mut self, now: i64, call: Call) -> Reply {
        match self {
            Oracle::Log(log) => log.call(now, call),
            Oracle::Counter(counter) => counter.call(now, call, 1, false),
        }
    }

    fn peek(&self, now: i64, call: Call) -> Reply {
        match self {
            Oracle::Log(log) => log.peek(now, call),
            Oracle::Counter(counter) => counter.peek(now, call, 1, false),
        }
    }

    fn refund(&mut self, units: u64) -> u64 {
        match self {
            Oracle::Log(log) => log.refund(units),
            Oracle::Counter(counter) => counter.refund(units),
        }
    }

    fn may_forget(&self, now: i64, call: Call) -> bool {
        match self {
            Oracle::Log(log) => log.may_forget(now, call),
            Oracle::Counter(counter) => counter.may_forget(now),
        }
    }
}

/// One in how many steps is something other than a plain call.
#[derive(Clone, Copy)]
struct Rarity {
    peek: u64,
    refund: u64,
    force: u64,
}

const NEVER: u64 = u64::MAX;

struct Key {
    name: String,
    tiers: Vec<(u64, u64)>,
    oracle: Oracle,
    /// The latest time of a call since the key was new.
    latest: i64,
    refunded: bool,
    /// All that happened, for the message of a failure.
    trace: Vec<String>,
}

struct History {
    command: &'static str,
    empty: Oracle,
    rarity: Rarity,
    numbers: Numbers,
    scale: u64,
    keys: Vec<Key>,
    now: i64,
}

impl History {
    fn new(command: &'static str, empty: &Oracle, rarity: Rarity, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let scale = SCALES[usize::try_from(numbers.below(SCALES.len() as u64)).unwrap()];
        let keys = (0..KEYS)
            .map(|key| Key {
                name: format!("{seed}:{key}"),
                tiers: tiers(&mut numbers, scale),
                oracle: empty.clone(),
                latest: START,
                refunded: false,
                trace: Vec::new(),
            })
            .collect();
        History {
            command,
            empty: empty.clone(),
            rarity,
            numbers,
            scale,
            keys,
            now: START,
        }
    }

    /// Where the clock goes next: mostly on, sometimes far, sometimes back, even beyond a window.
    fn next_time(&mut self) -> i64 {
        let scale = self.scale;
        let step = |numbers: &mut Numbers, most: u64| {
            i64::try_from(numbers.one_to(most)).expect("a step of a few windows")
        };
        let numbers = &mut self.numbers;
        let next = match numbers.below(20) {
            0..2 => self.now,
            2..5 => self.now + step(numbers, 3),
            5..14 => self.now + step(numbers, scale / 5 + 1),
            14..16 => self.now + step(numbers, scale * 5 / 2),
            16 => self.now - step(numbers, 3),
            17..19 => self.now - step(numbers, scale),
            _ => self.now - step(numbers, scale * 3),
        };
        next.max(EARLIEST)
    }

    fn run(mut self, frozen: &mut Frozen) -> u64 {
        let mut limited = 0;
        for _ in 0..ROUNDS {
            let next = self.next_time();
            if next < self.now {
                self.forget_what_the_server_may_forget(frozen);
            }
            self.now = next;
            frozen.set(next);
            limited += self.run_calls(frozen);
            for key in &self.keys {
                check_expiry(frozen, key);
            }
        }
        limited
    }

    /// A key that has expired, or may have, would come back in the oracle with a step back.
    fn forget_what_the_server_may_forget(&mut self, frozen: &mut Frozen) {
        for key in &mut self.keys {
            if key.may_forget(self.now) {
                frozen.delete(&key.name);
                key.oracle = self.empty.clone();
                key.latest = self.now;
                key.refunded = false;
                key.trace.push("DEL".to_owned());
            }
        }
    }

    fn run_calls(&mut self, frozen: &mut Frozen) -> u64 {
        let mut pipeline = pipe();
        let mut expected = Vec::new();
        for _ in 0..CALLS_PER_KEY {
            for place in 0..self.keys.len() {
                let (command, answer) = self.step(place);
                pipeline.add_command(command);
                expected.push((place, self.keys[place].trace.len(), answer));
            }
        }
        let replies: Vec<Value> = pipeline.query(&mut frozen.con).unwrap();
        let mut limited = 0;
        for ((place, length, answer), reply) in expected.into_iter().zip(replies) {
            let key = &self.keys[place];
            let got = Answer::of(reply);
            let trace = || key.trace[..length].join("\n");
            assert_eq!(
                got,
                answer,
                "{} {}, after\n{}",
                self.command,
                key.name,
                trace()
            );
            limited += u64::from(matches!(got, Answer::Reply(Reply { limited: 1, .. })));
        }
        limited
    }

    /// A command, and what the oracle says to it.
    fn step(&mut self, place: usize) -> (Cmd, Answer) {
        let History {
            command,
            empty,
            rarity,
            numbers,
            now,
            ..
        } = self;
        let key = &mut self.keys[place];
        let now = *now;
        key.latest = key.latest.max(now);
        if numbers.one_in(rarity.refund)
            && let Some(units) = key.units_to_refund(numbers, now)
        {
            let taken = key.oracle.refund(units);
            key.refunded = true;
            key.trace.push(format!("at {now}: REFUND {units}: {taken}"));
            let mut refund = redis::cmd("SLIDE.REFUND");
            refund.arg(&key.name).arg(units);
            return (refund, Answer::Units(taken));
        }
        if now < key.latest && key.may_forget(now) {
            key.oracle = empty.clone();
            key.latest = now;
            key.refunded = false;
            key.trace.push("DEL".to_owned());
            let mut delete = redis::cmd("UNLINK");
            delete.arg(&key.name);
            return (delete, Answer::Anything);
        }
        let (tiers, cost) = vary(numbers, &key.tiers);
        let call = Call {
            tiers: &tiers,
            cost,
            force: false,
        };
        let (name, call, reply) = if numbers.one_in(rarity.peek) {
            ("SLIDE.PEEK", call, key.oracle.peek(now, call))
        } else {
            let call = Call {
                force: numbers.one_in(rarity.force),
                ..call
            };
            (*command, call, key.oracle.call(now, call))
        };
        key.trace
            .push(format!("at {now}: {name} {call:?}: {reply:?}"));
        (call_command(name, &key.name, call), Answer::Reply(reply))
    }
}

impl Key {
    fn may_forget(&self, now: i64) -> bool {
        self.oracle.may_forget(
            now,
            Call {
                tiers: &self.tiers,
                cost: 0,
                force: false,
            },
        )
    }

    /// Some of what surely is on the server too: of a log, its live units, as the server may have
    /// trimmed the others.
    fn units_to_refund(&self, numbers: &mut Numbers, now: i64) -> Option<u64> {
        if self.may_forget(now) {
            return None;
        }
        let most = (1 << 53) - 1;
        let longest = *self.tiers.iter().max_by_key(|tier| tier.1)?;
        let tiers = [(most, longest.1)];
        let reply = self.oracle.peek(
            now,
            Call {
                tiers: &tiers,
                cost: 0,
                force: false,
            },
        );
        let used = most - reply.remaining.unsigned_abs();
        let bound = match self.oracle {
            Oracle::Log(_) => used,
            Oracle::Counter(_) => (used * 2).min(most),
        };
        (bound > 0).then(|| numbers.one_to(bound))
    }
}

#[derive(Debug)]
enum Answer {
    Reply(Reply),
    Units(u64),
    Anything,
}

impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Answer::Reply(one), Answer::Reply(other)) => one == other,
            (Answer::Units(one), Answer::Units(other)) => one == other,
            (_, Answer::Anything) => true,
            _ => false,
        }
    }
}

impl Answer {
    fn of(value: Value) -> Self {
        match value {
            Value::Int(units) => Answer::Units(units.unsigned_abs()),
            five => Answer::Reply(reply_of(&from_redis_value::<Vec<i64>>(five).unwrap())),
        }
    }
}

fn check_expiry(frozen: &mut Frozen, key: &Key) {
    let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &[&key.name]);
    if expiry == -2 {
        return;
    }
    let trace = || key.trace.join("\n");
    let longest = key
        .tiers
        .iter()
        .map(|tier| i64::try_from(tier.1).unwrap())
        .max()
        .unwrap();
    if let Oracle::Log(_) = key.oracle {
        let newest = entries(&mut frozen.con, &key.name).pop().unwrap().1;
        // A refund may take back the entry that the expiry was set for.
        let latest = if key.refunded { key.latest } else { newest };
        assert!(
            (newest + longest..=latest + longest + longest / 4).contains(&expiry),
            "lives {} ms after\n{}",
            expiry - newest,
            trace()
        );
    } else {
        let fields: Vec<(String, String)> = run(&mut frozen.con, "HGETALL", &[&key.name]);
        let end = |(window, value): &(String, String)| {
            let index: i64 = value.split(':').next().unwrap().parse().unwrap();
            (index + 2) * window.parse::<i64>().unwrap()
        };
        let last = fields.iter().map(end).max().unwrap();
        assert_eq!(expiry, last, "{fields:?} after\n{}", trace());
    }
}

/// One to three tiers with different windows, small limits mostly.
fn tiers(numbers: &mut Numbers, scale: u64) -> Vec<(u64, u64)> {
    let mut windows = vec![scale];
    for _ in 0..numbers.below(3) {
        let window = numbers.one_to(scale);
        if !windows.contains(&window) {
            let place = numbers.below(windows.len() as u64 + 1);
            windows.insert(usize::try_from(place).unwrap(), window);
        }
    }
    let most = [5, 20, 1000, (1 << 53) - 1][usize::try_from(numbers.below(4)).unwrap()];
    windows
        .into_iter()
        .map(|window| (numbers.one_to(most), window))
        .collect()
}

/// Limits as they are, or raised or lowered for once, and a cost that fits them in some way.
fn vary(numbers: &mut Numbers, tiers: &[(u64, u64)]) -> (Vec<(u64, u64)>, u64) {
    let mut tiers = tiers.to_vec();
    if numbers.one_in(10) {
        let place = usize::try_from(numbers.below(tiers.len() as u64)).unwrap();
        let limit = tiers[place].0;
        tiers[place].0 = match numbers.below(3) {
            0 => limit / 2,
            1 => (limit * 2).min((1 << 53) - 1),
            _ => numbers.below(3),
        };
    }
    let least = tiers.iter().map(|tier| tier.0).min().unwrap();
    let cost = match numbers.below(12) {
        0 => 0,
        1 => least,
        2 => (least + 1).min((1 << 53) - 1),
        3..7 => 1,
        _ => numbers.one_to(least / 3 + 1),
    };
    (tiers, cost)
}

fn call_command(name: &str, key: &str, call: Call) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(key);
    for &(limit, window) in call.tiers {
        command.arg(limit).arg(window);
    }
    if call.cost != 1 {
        command.arg("COST").arg(call.cost);
    }
    if call.force {
        command.arg("FORCE");
    }
    command
}

fn compare(command: &'static str, empty: &Oracle, rarity: Rarity) {
    let mut frozen = Frozen::start();
    let seeds = match env::var("SLIDE_SEED") {
        Ok(seed) => vec![seed.parse().expect("SLIDE_SEED is a number")],
        Err(_) => (1..=HISTORIES).collect::<Vec<u64>>(),
    };
    let calls = seeds.len() as u64 * ROUNDS * KEYS * CALLS_PER_KEY;
    let mut limited = 0;
    for seed in &seeds {
        println!("{command}, SLIDE_SEED={seed}");
        limited += History::new(command, empty, rarity, *seed).run(&mut frozen);
    }
    assert!(
        limited > calls / 10 && limited < calls * 9 / 10,
        "{limited} of {calls} limited"
    );
}

const PLAIN: Rarity = Rarity {
    peek: NEVER,
    refund: NEVER,
    force: NEVER,
};
const MIXED: Rarity = Rarity {
    peek: 6,
    refund: 8,
    force: 8,
};

#[test]
fn the_log_replies_as_the_oracle_does() {
    compare("SLIDE.LOG", &Oracle::Log(Log::new()), PLAIN);
}

#[test]
fn the_log_with_peek_refund_and_force_does_too() {
    compare("SLIDE.LOG", &Oracle::Log(Log::new()), MIXED);
}

#[test]
fn the_counter_replies_as_the_oracle_does() {
    compare("SLIDE.COUNTER", &Oracle::Counter(Counter::new()), PLAIN);
}

#[test]
fn the_counter_with_peek_refund_and_force_does_too() {
    compare("SLIDE.COUNTER", &Oracle::Counter(Counter::new()), MIXED);
}
