//! `SLIDE.ALL`: random histories against the oracles of its keys, and waits to the ms.

use redis::{Cmd, Value, pipe};

use crate::histories::NextTime;
use crate::key::{Key, add_options, add_shape, move_clock};
use crate::support::clock::{Frozen, START};
use crate::support::oracle::headers::headers;
use crate::support::oracle::{Call, Oracle, Question, Reply, Shape};
use crate::support::random::{MOST, Numbers, Tiers, assert_telling, seeds};
use crate::support::{add_tiers, all_replies, headers_of, run};

const ROUNDS: u64 = 60;
const KEYS: u64 = 4;
const CALLS: u64 = 8;
const HISTORIES: u64 = 12;

/// What the server answers: whether any key was over, of each key the five integers, and the headers
/// if they were asked for.
type Answer = (i64, Vec<Reply>, Option<Vec<(String, String)>>);

struct History {
    clock: NextTime,
    numbers: Numbers,
    scale: u64,
    keys: Vec<Key>,
    now: i64,
    enforced: bool,
}

/// What a call asks of one key.
struct Clause {
    /// The key's place among all.
    place: usize,
    tiers: Tiers,
    cost: u64,
    shape: Shape,
}

impl Clause {
    /// Whether it is recorded is decided for all keys together.
    fn question(&self) -> Question<'_> {
        let call = Call {
            tiers: &self.tiers,
            cost: self.cost,
            force: true,
        };
        Question::Limit(call, self.shape)
    }
}

/// How many calls were answered with 1, and how many were over a limit and recorded all the same.
#[derive(Default)]
struct Tally {
    limited: u64,
    recorded_over: u64,
}

impl History {
    fn new(clock: NextTime, seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let scale = numbers.scale();
        let keys = (0..KEYS)
            .map(|key| {
                let mut tiers = numbers.tiers(scale);
                // With several keys to pass, limits must be wider for enough calls to pass.
                for tier in &mut tiers {
                    tier.0 = (tier.0 * 2).min(MOST);
                }
                let buckets = vec![numbers.buckets()];
                let name = format!("{seed}:{key}");
                let empty = match numbers.below(2) {
                    0 => Oracle::log(),
                    _ => Oracle::counter(name.as_bytes()),
                };
                Key::new(name, tiers, buckets, empty)
            })
            .collect();
        History {
            clock,
            numbers,
            scale,
            keys,
            now: START,
            enforced: true,
        }
    }

    fn run(mut self, frozen: &mut Frozen) -> Tally {
        let mut tally = Tally::default();
        for _ in 0..ROUNDS {
            let next = (self.clock)(&mut self.numbers, self.now, self.scale);
            move_clock(frozen, &mut self.keys, self.now, next);
            self.now = next;
            self.enforced = !self.numbers.one_in(4);
            let setting = if self.enforced { "yes" } else { "no" };
            run::<()>(
                &mut frozen.con,
                "CONFIG",
                &["SET", "slide.enforce", setting],
            );
            self.run_calls(frozen, &mut tally);
            for key in &self.keys {
                key.check_expiry(frozen);
            }
        }
        tally
    }

    fn run_calls(&mut self, frozen: &mut Frozen, tally: &mut Tally) {
        let mut pipeline = pipe();
        let mut expected = Vec::new();
        for _ in 0..CALLS {
            for key in &mut self.keys {
                if key.forgets(self.now) {
                    pipeline.cmd("UNLINK").arg(&key.name).ignore();
                }
            }
            let (command, answer) = self.step(tally);
            pipeline.add_command(command);
            expected.push((self.lengths(), answer));
        }
        let replies: Vec<Value> = pipeline.query(&mut frozen.con).unwrap();
        for ((lengths, answer), reply) in expected.into_iter().zip(replies) {
            let (limited, replies, headers) = answer_of(&reply);
            let trace = || {
                let traces = self.keys.iter().zip(&lengths);
                let traces = traces.map(|(key, &length)| key.trace[..length].join("\n"));
                traces.collect::<Vec<_>>().join("\n\n")
            };
            assert_eq!((limited, replies, headers), answer, "after\n{}", trace());
            tally.limited += u64::from(limited == 1);
        }
    }

    fn lengths(&self) -> Vec<usize> {
        self.keys.iter().map(|key| key.trace.len()).collect()
    }

    /// Two to four of the keys, in some order.
    fn clauses(&mut self) -> Vec<Clause> {
        let mut places: Vec<usize> = (0..self.keys.len()).collect();
        let mut clauses = Vec::new();
        for _ in 0..2 + self.numbers.below(3) {
            let place = places.swap_remove(self.numbers.place(places.len()));
            let key = &self.keys[place];
            let (tiers, cost) = self.numbers.vary(&key.tiers);
            clauses.push(Clause {
                place,
                tiers,
                cost,
                shape: key.shape(&mut self.numbers),
            });
        }
        clauses
    }

    /// A command, and what the oracles say to it: recorded in all keys or in none.
    fn step(&mut self, tally: &mut Tally) -> (Cmd, Answer) {
        let clauses = self.clauses();
        let (force, with_headers) = (self.numbers.one_in(8), self.numbers.one_in(3));
        let now = self.now;
        let over = clauses.iter().any(|clause| {
            let mut oracle = self.keys[clause.place].oracle.clone();
            oracle.refuse(now, clause.question()).limited == 1
        });
        let record = !over || force;
        tally.recorded_over += u64::from(over && record);
        let (mut replies, mut standings) = (Vec::new(), Vec::new());
        for clause in &clauses {
            let key = &mut self.keys[clause.place];
            let mut reply = if record {
                key.oracle.ask(now, clause.question())
            } else {
                key.oracle.refuse(now, clause.question())
            };
            standings.push(key.oracle.standing(now, clause.question(), reply));
            reply.limited &= i64::from(self.enforced);
            key.trace.push(format!(
                "{} at {now}: {:?}, over {over}, recorded {record}: {reply:?}",
                key.name,
                clause.question()
            ));
            replies.push(reply);
        }
        let command = self.command(&clauses, force, with_headers);
        let limited = over && self.enforced;
        let headers = with_headers.then(|| headers(now, limited, &standings));
        (command, (i64::from(limited), replies, headers))
    }

    fn command(&self, clauses: &[Clause], force: bool, headers: bool) -> Cmd {
        let mut command = redis::cmd("SLIDE.ALL");
        command.arg(clauses.len());
        for clause in clauses {
            command.arg(&self.keys[clause.place].name);
        }
        for clause in clauses {
            let counter = self.keys[clause.place].is_counter();
            command.arg(if counter { "COUNTER" } else { "LOG" });
            add_tiers(&mut command, &clause.tiers);
            if counter {
                add_shape(&mut command, clause.shape);
            }
            let (tiers, cost, force) = (&[], clause.cost, false);
            add_options(&mut command, Call { tiers, cost, force });
        }
        if headers {
            command.arg("HEADERS");
        }
        if force {
            command.arg("FORCE");
        }
        command
    }
}

fn answer_of(value: &Value) -> Answer {
    let Value::Array(parts) = value else {
        panic!("no array but {value:?}");
    };
    let last = parts.last().expect("an integer at least");
    let has_five = matches!(last, Value::Array(integers) if matches!(integers[0], Value::Int(_)));
    let headers = (!has_five).then(|| headers_of(last));
    let parts = &parts[..parts.len() - usize::from(!has_five)];
    let (limited, replies) = all_replies(&Value::Array(parts.to_vec()));
    (limited, replies, headers)
}

/// Compares so many histories, and says how many clock faults the server saw in them.
pub fn compare(clock: NextTime, histories: u64) -> i64 {
    let mut frozen = Frozen::start();
    let seeds = seeds(histories);
    let calls = seeds.len() as u64 * ROUNDS * CALLS;
    let mut tally = Tally::default();
    for seed in seeds {
        println!("SLIDE.ALL, SLIDE_SEED={seed}");
        let Tally {
            limited,
            recorded_over,
        } = History::new(clock, seed).run(&mut frozen);
        tally.limited += limited;
        tally.recorded_over += recorded_over;
    }
    let Tally {
        limited,
        recorded_over,
    } = tally;
    assert_telling(
        limited > calls / 10 && limited < calls * 9 / 10,
        format!("{limited} of {calls} limited"),
    );
    assert_telling(
        recorded_over > calls / 40,
        format!("{recorded_over} of {calls} recorded over a limit"),
    );
    frozen.clock_faults()
}

#[test]
fn all_keys_reply_as_their_oracles_do() {
    compare(Numbers::next_time, HISTORIES);
}

/// The longest of the waits is when the call passes all keys, and not one ms earlier.
#[test]
fn after_the_longest_wait_all_keys_pass() {
    let mut frozen = Frozen::start();
    let call = |cost: &str| {
        let mut command = redis::cmd("SLIDE.ALL");
        command.arg(&["3", "log", "strict", "counter"]);
        command.arg(&["LOG", "10", "7s", "20", "60s", "COST", cost]);
        command.arg(&[
            "COUNTER", "12", "9s", "BUCKETS", "7", "STRICT", "COST", cost,
        ]);
        command.arg(&["COUNTER", "15", "11s", "COST", cost]);
        command
    };
    let mut numbers = Numbers::new(1);
    let (mut now, mut waits) = (START, 0);
    for _ in 0..100 {
        let cost = numbers.one_to(10).to_string();
        frozen.set(now);
        let (limited, replies) = all_replies(&call(&cost).query(&mut frozen.con).unwrap());
        let wait = replies.iter().map(|reply| reply.retry_after).max().unwrap();
        assert_eq!(limited == 1, wait > 0);
        assert_eq!(limited == 1, replies.iter().any(|reply| reply.limited == 1));
        if wait > 0 {
            waits += limited;
            frozen.set(now + wait - 1);
            let early = all_replies(&call(&cost).query(&mut frozen.con).unwrap());
            assert_eq!(early.0, 1, "{early:?}, {wait} ms after {now}");
            frozen.set(now + wait);
            let fits = all_replies(&call(&cost).query(&mut frozen.con).unwrap());
            assert_eq!(fits.0, 0, "{fits:?}, {wait} ms after {now}");
            now += wait;
        }
        now += i64::try_from(numbers.below(3000)).unwrap();
    }
    assert!(waits > 10, "hardly anything was limited");
}
