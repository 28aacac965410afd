//! A clock that moves while calls are under way: on its own, at a wrong speed, backwards, twice
//! through the same second, or in the middle of a transaction or a script.

use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use redis::{Connection, Value, pipe};

use crate::support::clock::{Frozen, START};
use crate::support::oracle::{CLASSIC, Call, Oracle, Shape};
use crate::support::random::{Numbers, assert_telling, effort, seeds};
use crate::support::{
    Reply, add_tiers, at_least, bucket, entries, eventually, now, repeated, reply_of, run, skip,
    slide, slide_counter, slide_log,
};

const STRICT: Shape = Shape {
    buckets: 7,
    strict: true,
};

/// The key, its command, and the words of its shape.
const KEYS: [(&str, &str, Shape, &[&str]); 3] = [
    ("log", "SLIDE.LOG", CLASSIC, &[]),
    ("classic", "SLIDE.COUNTER", CLASSIC, &[]),
    (
        "strict",
        "SLIDE.COUNTER",
        STRICT,
        &["BUCKETS", "7", "STRICT"],
    ),
];

/// What the oracle of each knows at first.
fn empty() -> Vec<Oracle> {
    let oracle = |(key, name, _, _): &(&str, &str, _, _)| match *name {
        "SLIDE.LOG" => Oracle::log(),
        _ => Oracle::counter(key.as_bytes()),
    };
    KEYS.iter().map(oracle).collect()
}

/// Whether all commands of a transaction are at one instant, which its `TIME` says. Before Redis 7.2
/// each asks the clock itself.
fn transactions_have_one_instant(frozen: &mut Frozen) -> bool {
    let have = at_least(&mut frozen.con, 7, 2);
    if !have {
        skip("on this server the clock moves within a transaction, and no reply says where it was");
    }
    have
}

/// Calls on each key, with the instant of each as the server itself saw it.
struct Watch {
    tiers: Vec<(u64, u64)>,
    oracles: Vec<Oracle>,
    /// The latest time of a call since the key was new.
    latest: Vec<Option<i64>>,
    compared: u64,
    limited: u64,
}

impl Watch {
    /// Of keys that are new. They end only when they are called: the server would also end them at
    /// instants that its clock has between the calls and nobody hears of.
    fn new(frozen: &mut Frozen, tiers: &[(u64, u64)]) -> Self {
        run::<()>(&mut frozen.con, "DEBUG", &["SET-ACTIVE-EXPIRE", "0"]);
        run::<()>(&mut frozen.con, "FLUSHALL", &[]);
        Watch {
            tiers: tiers.to_vec(),
            oracles: empty(),
            latest: vec![None; KEYS.len()],
            compared: 0,
            limited: 0,
        }
    }

    /// Calls so often that it says something, and until the clock has gone far enough.
    fn call_often(&mut self, frozen: &mut Frozen, seed: u64, is_enough: impl Fn(i64) -> bool) {
        let mut numbers = Numbers::new(seed);
        let first = self.call(&mut frozen.con, 1);
        let mut passed = || self.call(&mut frozen.con, numbers.below(4)) - first;
        for _ in 0..1000 {
            passed();
        }
        eventually("the clock has gone far enough", || {
            is_enough(passed()).then_some(())
        });
    }

    /// Calls all keys in one transaction, in which the clock stands still, and compares. Says what
    /// the clock was.
    fn call(&mut self, con: &mut Connection, cost: u64) -> i64 {
        let mut transaction = pipe();
        transaction.atomic().cmd("TIME");
        for (key, name, _, words) in KEYS {
            let mut command = redis::cmd(name);
            command.arg(key);
            add_tiers(&mut command, &self.tiers);
            command.arg("COST").arg(cost).arg(words);
            transaction.add_command(command);
        }
        let replies: Vec<Vec<i64>> = transaction.query(con).unwrap();
        let instant = replies[0][0] * 1000 + replies[0][1] / 1000;
        for (place, five) in replies[1..].iter().enumerate() {
            self.compare(con, place, instant, cost, reply_of(five));
        }
        instant
    }

    fn compare(&mut self, con: &mut Connection, place: usize, now: i64, cost: u64, got: Reply) {
        let (key, _, shape, _) = KEYS[place];
        let call = Call {
            tiers: &self.tiers,
            cost,
            force: false,
        };
        let expired = self.latest[place].is_some() && self.oracles[place].may_forget(now, call);
        // What has expired may be forgotten before a step back, or not.
        if !expired || self.latest[place] <= Some(now) {
            let expected = self.oracles[place].call(now, call, shape);
            assert_eq!(got, expected, "{key} at {now}, COST {cost}");
            self.compared += 1;
            self.limited += u64::try_from(got.limited).unwrap();
            self.latest[place] = self.latest[place].max(Some(now));
        }
        if expired {
            run::<()>(con, "DEL", &[key]);
            self.oracles[place] = empty().remove(place);
            self.latest[place] = None;
        }
    }

    /// How many depends on the machine's speed.
    fn assert_telling(&self) {
        let Watch {
            compared, limited, ..
        } = self;
        assert!(
            *limited > 20 && compared - limited > 20,
            "{limited} of {compared} limited"
        );
    }
}

/// One second of its time is one ms of ours, and a window of ten minutes is over in 600 ms.
#[test]
fn a_clock_a_thousand_times_too_fast_is_followed() {
    let mut frozen = Frozen::start();
    if !transactions_have_one_instant(&mut frozen) {
        return;
    }
    for seed in seeds(effort(1, 5)) {
        println!("too fast, SLIDE_SEED={seed}");
        let mut watch = Watch::new(&mut frozen, &[(3, 700), (40, 600_000)]);
        frozen.clock.run(START, 1000.0);
        watch.call_often(&mut frozen, seed, |passed| passed > 1_000_000);
        watch.assert_telling();
    }
}

/// No step at all, and yet each call finds the clock behind the newest entry, in the end by more
/// than a window.
#[test]
fn a_clock_that_runs_backwards_is_followed() {
    let mut frozen = Frozen::start();
    if !transactions_have_one_instant(&mut frozen) {
        return;
    }
    for seed in seeds(effort(1, 5)) {
        for rate in [-0.5, -20.0] {
            println!("backwards at {rate}, SLIDE_SEED={seed}");
            let mut watch = Watch::new(&mut frozen, &[(5, 70), (40, 1000)]);
            frozen.clock.run(START, rate);
            watch.call_often(&mut frozen, seed, |passed| passed < -100);
            watch.assert_telling();
        }
    }
    assert_telling(frozen.clock_faults() > 0, "no clock fault");
}

/// Time that runs backwards is no time: all of it together admits no more than the limit.
#[test]
fn a_clock_that_goes_back_one_ms_a_call_admits_the_limit_once() {
    let mut frozen = Frozen::start();
    let mut admitted = (0, 0);
    for ms in 0..3000 {
        frozen.set(START - ms);
        let tiers = [(10, "1s")];
        admitted.0 += 1 - slide_log(&mut frozen.con, "l", &tiers, &[]).limited;
        let strict = ["BUCKETS", "4", "STRICT"];
        admitted.1 += 1 - slide_counter(&mut frozen.con, "c", &tiers, &strict).limited;
    }
    assert_eq!(admitted, (10, 10));
    // Each more than a window ahead of the clock, at least twice.
    assert!(frozen.clock_faults() >= 4);
}

/// Another thread moves the clock at moments of its own.
#[test]
fn a_clock_that_another_thread_moves_is_followed() {
    let mut frozen = Frozen::start();
    if !transactions_have_one_instant(&mut frozen) {
        return;
    }
    for seed in seeds(effort(2, 20)) {
        println!("moved by a thread, SLIDE_SEED={seed}");
        let mut watch = Watch::new(&mut frozen, &[(5, 300), (40, 5000)]);
        let clock = frozen.clock.clone();
        let (calling, called) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut at, mut numbers) = (START, Numbers::new(seed + 1));
                while called.try_recv() != Err(TryRecvError::Disconnected) {
                    at = numbers.next_time(at, 5000);
                    clock.stop(at);
                    thread::yield_now();
                }
            });
            // Ends the thread also when a comparison fails.
            let _calling = calling;
            watch.call_often(&mut frozen, seed, |_| true);
        });
        watch.assert_telling();
    }
    assert_telling(frozen.clock_faults() > 0, "no clock fault");
}

/// 23:59:59 comes twice, as some clocks show a leap second.
#[test]
fn a_second_that_comes_twice_admits_its_limit_once() {
    let mut frozen = Frozen::start();
    let last_second = (START / 86_400_000 + 1) * 86_400_000 - 1000;
    for (key, window) in [("half", "500ms"), ("one", "1s"), ("two", "2s")] {
        let mut watch = Watch::new(&mut frozen, &[(4, 500), (30, 1000)]);
        let mut admitted = Vec::new();
        // What really passes is the ms of both.
        for (ms, passed) in (0..1000).chain(0..1000).zip(0..).step_by(10) {
            frozen.set(last_second + ms);
            watch.call(&mut frozen.con, 1);
            if slide_log(&mut frozen.con, key, &[(10, window)], &[]).limited == 0 {
                admitted.push(passed);
            }
        }
        let window = match key {
            "half" => 500,
            "one" => 1000,
            _ => 2000,
        };
        for end in &admitted {
            let inside = admitted
                .iter()
                .filter(|&at| (end - window + 1..=*end).contains(at));
            assert!(inside.count() <= 10, "{key}: {admitted:?}");
        }
        assert!(admitted.len() >= 10, "{key}: {admitted:?}");
        assert!(watch.limited > 0, "nothing was limited");
    }
}

/// However many calls: one ms is one entry of a log, and one bucket of a counter.
#[test]
fn a_clock_that_stands_still_counts_all_the_same() {
    let mut frozen = Frozen::start();
    let calls = 10_000;
    let names = ["SLIDE.LOG", "SLIDE.COUNTER"];
    for name in names {
        let call = slide(name, name, &[(9_000, "60s")], &[]);
        let replies: Vec<Vec<i64>> = repeated(&call, calls).query(&mut frozen.con).unwrap();
        for (count, five) in (1_i64..).zip(&replies) {
            let reply = reply_of(five);
            assert_eq!(
                (reply.limited, reply.remaining),
                (i64::from(count > 9000), (9000 - count).max(0))
            );
        }
    }
    let stored = entries(&mut frozen.con, "SLIDE.LOG");
    assert_eq!(stored, [("9000:9000".to_owned(), START)]);
    let field: String = run(&mut frozen.con, "HGET", &["SLIDE.COUNTER", "60000"]);
    let index = bucket("SLIDE.COUNTER", 60_000, 1, START);
    assert_eq!(field, format!("{index}:9000:0"));
}

/// Runs something long on the server, puts the clock elsewhere once the server's log says that it
/// has begun, and again until the log shows that it ended under that clock.
fn moved_while(
    frozen: &mut Frozen,
    to: i64,
    date: &str,
    work: impl Fn(&mut Connection) -> Vec<Value> + Sync,
) -> Vec<Value> {
    for _ in 0..20 {
        frozen.set(START);
        run::<()>(&mut frozen.con, "FLUSHALL", &[]);
        let begun = frozen.server.log().matches("has begun").count();
        let mut con = frozen.server.connect();
        let values = thread::scope(|scope| {
            let running = scope.spawn(|| work(&mut con));
            eventually("the server has begun", || {
                (frozen.server.log().matches("has begun").count() > begun).then_some(())
            });
            frozen.clock.stop(to);
            running.join().unwrap()
        });
        let log = frozen.server.log();
        let ended = log.lines().rfind(|line| line.contains("has ended"));
        if ended.unwrap().contains(date) {
            assert_eq!(now(&mut frozen.con), to);
            return values;
        }
    }
    panic!("the clock never moved in time");
}

/// All commands of a transaction, and all of a script, are at the instant at which it began,
/// wherever the clock steps meanwhile: TIME says so too.
#[test]
fn inside_a_transaction_or_a_script_the_clock_stands_still() {
    if !transactions_have_one_instant(&mut Frozen::start()) {
        return;
    }
    let transaction = |con: &mut Connection| -> Vec<Value> {
        let log = || slide("SLIDE.LOG", "k", &[(2, "60s")], &[]);
        let mut pipeline = pipe();
        pipeline.atomic().add_command(log()).ignore();
        pipeline.cmd("DEBUG").arg(&["LOG", "has begun"]).ignore();
        pipeline.cmd("DEBUG").arg(&["SLEEP", "0.3"]).ignore();
        pipeline.cmd("DEBUG").arg(&["LOG", "has ended"]).ignore();
        pipeline.cmd("TIME");
        for _ in 0..2 {
            pipeline.add_command(log());
        }
        pipeline.query(con).unwrap()
    };
    let script = |con: &mut Connection| -> Vec<Value> {
        let script = "local function log() \
                return redis.call('SLIDE.LOG', 'k', '2', '60s') \
            end \
            log() \
            redis.log(redis.LOG_WARNING, 'has begun') \
            local begun = os.clock() \
            while os.clock() < begun + 0.3 do end \
            redis.log(redis.LOG_WARNING, 'has ended') \
            return {redis.call('TIME'), log(), log()}";
        run(con, "EVAL", &[script, "1", "k"])
    };
    // An hour on, and a day back.
    for (to, date) in [
        (START + 3_600_000, "02 Jan 2026 04:04:05"),
        (START - 86_400_000, "01 Jan 2026 03:04:05"),
    ] {
        let replies = [
            moved_while(&mut Frozen::start(), to, date, transaction),
            moved_while(&mut Frozen::start(), to, date, script),
        ];
        for values in replies {
            let integers = |place: usize| -> Vec<i64> {
                let texts: Vec<String> = redis::from_redis_value_ref(&values[place]).unwrap();
                texts.iter().map(|text| text.parse().unwrap()).collect()
            };
            assert_eq!(integers(0)[0], START / 1000);
            assert_eq!(reply_of(&integers(1)).limited, 0);
            let limited = reply_of(&integers(2));
            assert_eq!((limited.limited, limited.retry_after), (1, 60_000));
        }
    }
}
