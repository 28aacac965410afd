//! Random histories against the naive oracles, reply for reply.
//!
//! A failure prints the seed of its history. `SLIDE_SEED` runs that one alone.

use redis::{Cmd, Value, from_redis_value, pipe};

use crate::key::{Key, add_options, add_shape, delete_expired, move_clock};
use crate::support::clock::{Frozen, START};
use crate::support::oracle::headers::headers;
use crate::support::oracle::{Call, Oracle, Question, Reply};
use crate::support::random::{EARLIEST, Numbers, assert_telling, seeds};
use crate::support::{add_tiers, headers_of, reply, reply_of};

pub const ROUNDS: u64 = 40;
const KEYS: u64 = 4;
const CALLS_PER_KEY: u64 = 3;
const HISTORIES: u64 = 12;

/// One in how many steps is something other than a plain call.
#[derive(Clone, Copy)]
pub struct Rarity {
    peek: u64,
    refund: u64,
    force: u64,
}

const NEVER: u64 = u64::MAX;

pub const PLAIN: Rarity = Rarity {
    peek: NEVER,
    refund: NEVER,
    force: NEVER,
};
pub const MIXED: Rarity = Rarity {
    peek: 6,
    refund: 8,
    force: 8,
};

/// Which numbers of buckets the calls on one key choose from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Buckets {
    /// None: the command has no such option, or it is not given.
    Classic,
    /// One number a key, the calls strict or not.
    OneNumber,
    /// Several a key, so that it has many fields. Its clock does not step back: healing some of the
    /// fields may shorten the life of the others, which the oracles know nothing of.
    Changing,
}

/// Where the clock goes next, from an instant and the length of the longest window.
pub type NextTime = fn(&mut Numbers, i64, u64) -> i64;

/// What a history is made of.
#[derive(Clone)]
pub struct Traffic {
    command: &'static str,
    empty: fn(&[u8]) -> Oracle,
    rarity: Rarity,
    buckets: Buckets,
    clock: NextTime,
}

impl Traffic {
    pub fn on_logs(rarity: Rarity, clock: NextTime) -> Self {
        Traffic {
            command: "SLIDE.LOG",
            empty: |_| Oracle::log(),
            rarity,
            buckets: Buckets::Classic,
            clock,
        }
    }

    pub fn on_counters(rarity: Rarity, buckets: Buckets, clock: NextTime) -> Self {
        Traffic {
            command: "SLIDE.COUNTER",
            empty: Oracle::counter,
            rarity,
            buckets,
            clock,
        }
    }
}

pub struct History {
    traffic: Traffic,
    numbers: Numbers,
    scale: u64,
    keys: Vec<Key>,
    now: i64,
}

impl History {
    pub fn new(traffic: &Traffic, seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let scale = numbers.scale();
        let keys = (0..KEYS)
            .map(|key| {
                let tiers = numbers.tiers(scale);
                let choice = match traffic.buckets {
                    Buckets::Classic => vec![1],
                    Buckets::OneNumber => vec![numbers.buckets()],
                    Buckets::Changing => (0..3).map(|_| numbers.buckets()).collect(),
                };
                let name = format!("{seed}:{key}");
                let empty = (traffic.empty)(name.as_bytes());
                Key::new(name, tiers, choice, empty)
            })
            .collect();
        History {
            traffic: traffic.clone(),
            numbers,
            scale,
            keys,
            now: START,
        }
    }

    /// Compares so many rounds of calls, and says how many were limited.
    pub fn run(&mut self, frozen: &mut Frozen, rounds: u64) -> u64 {
        let mut limited = 0;
        for _ in 0..rounds {
            let next = (self.traffic.clock)(&mut self.numbers, self.now, self.scale);
            move_clock(frozen, &mut self.keys, self.now, next);
            self.now = next;
            limited += self.run_calls(frozen);
            for key in &self.keys {
                key.check_expiry(frozen);
            }
        }
        limited
    }

    /// Puts the history to another instant, which the server's clock need not know of yet.
    pub fn leap(&mut self, frozen: &mut Frozen, step: i64) {
        delete_expired(frozen, &mut self.keys, self.now);
        self.now = (self.now + step).max(EARLIEST);
    }

    /// The longest window of its calls.
    pub fn longest_window(&self) -> i64 {
        i64::try_from(self.scale).unwrap()
    }

    /// Compares what PEEK answers on each key that has not expired.
    pub fn peek_all(&mut self, frozen: &mut Frozen) {
        frozen.set(self.now);
        for key in self.keys.iter().filter(|key| !key.may_forget(self.now)) {
            let shape = key.shape(&mut self.numbers);
            let (tiers, cost) = self.numbers.vary(&key.tiers);
            let call = Call {
                tiers: &tiers,
                cost,
                force: false,
            };
            let mut peek = redis::cmd("SLIDE.PEEK");
            peek.arg(&key.name);
            add_tiers(&mut peek, &tiers);
            add_shape(&mut peek, shape);
            add_options(&mut peek, call);
            assert_eq!(
                reply(&mut frozen.con, &peek),
                key.oracle.peek(self.now, call, shape),
                "peeked at {} at {}, after\n{}",
                key.name,
                self.now,
                key.trace.join("\n")
            );
        }
    }

    fn run_calls(&mut self, frozen: &mut Frozen) -> u64 {
        let mut pipeline = pipe();
        let mut expected = Vec::new();
        for _ in 0..CALLS_PER_KEY {
            for place in 0..self.keys.len() {
                let key = &mut self.keys[place];
                if key.forgets(self.now) {
                    pipeline.cmd("UNLINK").arg(&key.name).ignore();
                }
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
                self.traffic.command,
                key.name,
                trace()
            );
            limited += u64::from(matches!(got, Answer::Reply(Reply { limited: 1, .. }, _)));
        }
        limited
    }

    /// A command, and what the oracle says to it.
    fn step(&mut self, place: usize) -> (Cmd, Answer) {
        let History {
            traffic,
            numbers,
            now,
            ..
        } = self;
        let (key, now) = (&mut self.keys[place], *now);
        if numbers.one_in(traffic.rarity.refund)
            && let Some((words, taken)) = key.refund(numbers, now)
        {
            let mut refund = redis::cmd("SLIDE.REFUND");
            refund.arg(&key.name);
            refund.arg(words.split(' ').collect::<Vec<_>>());
            return (refund, Answer::Units(taken));
        }
        let (tiers, cost) = numbers.vary(&key.tiers);
        let shape = key.shape(numbers);
        let call = Call {
            tiers: &tiers,
            cost,
            force: false,
        };
        let (name, call, reply) = if numbers.one_in(traffic.rarity.peek) {
            ("SLIDE.PEEK", call, key.oracle.peek(now, call, shape))
        } else {
            let call = Call {
                force: numbers.one_in(traffic.rarity.force),
                ..call
            };
            (traffic.command, call, key.oracle.call(now, call, shape))
        };
        key.trace
            .push(format!("at {now}: {name} {call:?} {shape:?}: {reply:?}"));
        let mut command = redis::cmd(name);
        command.arg(&key.name);
        add_tiers(&mut command, &tiers);
        let headers = numbers.one_in(4).then(|| {
            command.arg("HEADERS");
            let question = Question::Limit(call, shape);
            let standing = key.oracle.standing(now, question, reply);
            headers(now, reply.limited == 1, &[standing])
        });
        // The options come in any order.
        if numbers.one_in(2) {
            add_options(&mut command, call);
            add_shape(&mut command, shape);
        } else {
            add_shape(&mut command, shape);
            add_options(&mut command, call);
        }
        (command, Answer::Reply(reply, headers))
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    /// The five integers, and the headers if they were asked for.
    Reply(Reply, Option<Vec<(String, String)>>),
    Units(u64),
}

impl Answer {
    fn of(value: Value) -> Self {
        match value {
            Value::Int(units) => Answer::Units(units.unsigned_abs()),
            Value::Array(mut parts) => {
                let headers = (parts.len() == 6).then(|| headers_of(&parts.remove(5)));
                let five: Vec<i64> = from_redis_value(Value::Array(parts)).unwrap();
                Answer::Reply(reply_of(&five), headers)
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Compares so many histories, and says how many clock faults the server saw in them.
pub fn compare(traffic: &Traffic, histories: u64) -> i64 {
    let mut frozen = Frozen::start();
    let seeds = seeds(histories);
    let calls = seeds.len() as u64 * ROUNDS * KEYS * CALLS_PER_KEY;
    let mut limited = 0;
    for seed in seeds {
        println!("{}, SLIDE_SEED={seed}", traffic.command);
        limited += History::new(traffic, seed).run(&mut frozen, ROUNDS);
    }
    assert_telling(
        limited > calls / 10 && limited < calls * 9 / 10,
        format!("{limited} of {calls} limited"),
    );
    frozen.clock_faults()
}

fn compare_logs(rarity: Rarity) {
    compare(&Traffic::on_logs(rarity, Numbers::next_time), HISTORIES);
}

fn compare_counters(rarity: Rarity, buckets: Buckets) {
    let clock = match buckets {
        Buckets::Changing => Numbers::later,
        _ => Numbers::next_time,
    };
    compare(&Traffic::on_counters(rarity, buckets, clock), HISTORIES);
}

#[test]
fn the_log_replies_as_the_oracle_does() {
    compare_logs(PLAIN);
}

#[test]
fn the_log_with_peek_refund_and_force_does_too() {
    compare_logs(MIXED);
}

#[test]
fn the_counter_replies_as_the_oracle_does() {
    compare_counters(PLAIN, Buckets::Classic);
}

#[test]
fn the_counter_with_peek_refund_and_force_does_too() {
    compare_counters(MIXED, Buckets::Classic);
}

#[test]
fn the_counter_in_buckets_replies_as_the_oracle_does() {
    compare_counters(PLAIN, Buckets::OneNumber);
}

#[test]
fn the_counter_in_buckets_with_peek_refund_and_force_does_too() {
    compare_counters(MIXED, Buckets::OneNumber);
}

#[test]
fn fields_of_several_numbers_of_buckets_are_counted_apart() {
    compare_counters(MIXED, Buckets::Changing);
}
