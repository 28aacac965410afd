//! Memory is full, or kept from filling by eviction, while clients go on calling.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use redis::{Cmd, Connection, ToRedisArgs, Value, cmd, from_redis_value_ref};

use crate::support::random::{Numbers, effort, seeds};
use crate::support::{
    DECADE, Server, at_least, error_text, eventually, info_number, line, reply, run, slide_log,
    slide_peek, state,
};
use crate::units::{FOUR_BUCKETS, units_of_counter, units_of_log};
use crate::wire::{Stop, assert_agree, exec, five, receive, send, start_pair};

/// Calls that are over their limit, on keys that are full.
const LIMITED: [&str; 2] = [
    "SLIDE.LOG full:log 9 1d",
    "SLIDE.COUNTER full:counter 9 315576000000ms BUCKETS 4",
];

/// Calls that record, and how they are counted. The last goes to two keys.
const RECORDING: [&str; 3] = [
    "SLIDE.LOG log 1000000000 1d",
    "SLIDE.COUNTER counter 1000000000 315576000000ms BUCKETS 4",
    "SLIDE.ALL 2 pair:log pair:counter LOG 1000000000 1d COUNTER 1000000000 315576000000ms BUCKETS 4",
];

fn set(con: &mut Connection, name: &str, value: impl ToRedisArgs) {
    let mut set = cmd("CONFIG");
    set.arg("SET").arg(name).arg(value);
    set.query::<()>(con).expect(name);
}

fn fill_up_limits(con: &mut Connection) {
    for call in LIMITED {
        assert_eq!(reply(con, &line(&format!("{call} COST 9"))).limited, 0);
    }
}

/// What became of the calls of each kind.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    recorded: [u64; 3],
    out_of_memory: [u64; 3],
    refunded: u64,
}

impl Counts {
    /// A call that records, if there is memory.
    fn record(&mut self, con: &mut Connection, kind: usize) {
        match line(RECORDING[kind]).query::<Value>(con) {
            Ok(_) => self.recorded[kind] += 1,
            Err(error) => {
                let error = error_text(&error);
                assert!(error.starts_with("OOM "), "{error}");
                self.out_of_memory[kind] += 1;
            }
        }
    }

    /// A call that is answered whatever the memory.
    fn ask(&mut self, con: &mut Connection, kind: usize) {
        match kind {
            0 | 1 => assert_eq!(reply(con, &line(LIMITED[kind])).limited, 1),
            2 => assert_eq!(slide_peek(con, "full:log", &[(9, "1d")], &[]).remaining, 0),
            _ if self.recorded[0] > self.refunded => {
                assert_eq!(run::<u64>(con, "SLIDE.REFUND", &["log", "1"]), 1);
                self.refunded += 1;
            }
            _ => {}
        }
    }

    fn add(&mut self, other: &Counts) {
        for kind in 0..3 {
            self.recorded[kind] += other.recorded[kind];
            self.out_of_memory[kind] += other.out_of_memory[kind];
        }
        self.refunded += other.refunded;
    }
}

/// Calls of all kinds, whose counts are added to the shared ones as they go.
fn call_until(stop: &AtomicBool, server: &Server, seed: u64, shared: &Mutex<Counts>) {
    let (mut con, mut numbers) = (server.connect(), Numbers::new(seed));
    let mut counts = Counts::default();
    while !stop.load(Ordering::Relaxed) {
        let mut latest = Counts::default();
        for _ in 0..20 {
            latest.record(&mut con, numbers.place(3));
            counts.ask(&mut con, numbers.place(4));
        }
        counts.add(&latest);
        shared.lock().expect("no client panicked").add(&latest);
    }
    let refunds = Counts {
        refunded: counts.refunded,
        ..Counts::default()
    };
    shared.lock().expect("no client panicked").add(&refunds);
}

/// Other data: values until memory is full, and then whenever there is room.
fn fill_until(stop: &AtomicBool, server: &Server) {
    let mut con = server.connect();
    let value = "x".repeat(2000);
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let set = cmd("SET")
            .arg(format!("other:{number}"))
            .arg(&value)
            .to_owned();
        if let Err(error) = set.query::<()>(&mut con) {
            assert!(error_text(&error).starts_with("OOM "), "{error}");
            sleep(Duration::from_millis(1));
        }
    }
}

fn free_other_data(con: &mut Connection) {
    let keys: Vec<String> = run(con, "KEYS", &["other:*"]);
    for keys in keys.chunks(100) {
        let freed: usize = cmd("UNLINK").arg(keys).query(con).expect("UNLINK");
        assert_eq!(freed, keys.len());
    }
}

fn await_each(what: &str, counts: &Mutex<Counts>, each: impl Fn(Counts) -> [u64; 3]) {
    eventually(what, || {
        let counts = *counts.lock().expect("no client panicked");
        each(counts).iter().all(|&count| count >= 50).then_some(())
    });
}

fn fill_memory_under_load(seed: u64) {
    let (primary, replica) = start_pair();
    let mut con = primary.connect();
    fill_up_limits(&mut con);
    let shared = Mutex::new(Counts::default());
    let (stop, full) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let (stop, full, shared, primary) = (Stop(&stop), Stop(&full), &shared, &primary);
        for client in 0..3 {
            let stop = stop.0;
            scope.spawn(move || call_until(stop, primary, seed * 3 + client, shared));
        }
        await_each("calls record", shared, |counts| counts.recorded);
        let used = info_number(&mut con, "memory", "used_memory");
        set(&mut con, "maxmemory", used + 3_000_000);
        let full_flag = full.0;
        let filling = scope.spawn(move || fill_until(full_flag, primary));
        await_each("memory fills", shared, |counts| counts.out_of_memory);
        // Full on the replica's side too: it goes on applying, and answers.
        let mut there = replica.connect();
        set(&mut there, "maxmemory", 1);
        eventually("the replica knows the full log", || {
            let peek = slide_peek(&mut there, "full:log", &[(9, "1d")], &[]);
            (peek.limited == 1).then_some(())
        });

        drop(full);
        filling.join().expect("the server gave no other error");
        free_other_data(&mut con);
        let before = *shared.lock().expect("no client panicked");
        await_each("calls record again", shared, |counts| {
            std::array::from_fn(|kind| counts.recorded[kind] - before.recorded[kind])
        });
        drop(stop);
    });

    let counts = shared.into_inner().expect("no client panicked");
    println!("  {counts:?}");
    let [log, counter, pair] = counts.recorded;
    assert!(counts.refunded > 0);
    assert_eq!(units_of_log(&mut con, "log"), log - counts.refunded);
    assert_eq!(units_of_counter(&mut con, "counter", FOUR_BUCKETS), counter);
    assert_eq!(units_of_log(&mut con, "pair:log"), pair);
    assert_eq!(
        units_of_counter(&mut con, "pair:counter", FOUR_BUCKETS),
        pair
    );
    assert_agree(&primary, &replica);
}

#[test]
fn memory_fills_under_load() {
    for seed in seeds(effort(1, 10)) {
        println!("memory_fills_under_load, SLIDE_SEED={seed}");
        fill_memory_under_load(seed);
    }
}

#[test]
fn a_transaction_when_memory_is_full() {
    let server = Server::start();
    let (mut con, mut other) = (server.connect(), server.connect());
    fill_up_limits(&mut con);
    slide_log(&mut con, "log", &[(9, "1d")], &["COST", "5"]);
    let queue = [
        RECORDING[0],
        RECORDING[1],
        RECORDING[2],
        LIMITED[0],
        LIMITED[1],
        "SLIDE.PEEK full:log 9 1d",
        "SLIDE.REFUND log 2",
    ];
    let begin = |con: &mut Connection| {
        for command in [&["MULTI"][..], &queue].concat() {
            line(command).query::<String>(con).expect("OK or QUEUED");
        }
    };
    begin(&mut con);
    set(&mut other, "maxmemory", 1);
    let answers = exec(&mut con);
    for refused in &answers[..3] {
        let error = refused.as_ref().expect_err("no memory");
        assert!(error.starts_with("OOM "), "{error}");
    }
    for limited in &answers[3..6] {
        assert_eq!(five(limited.as_ref().expect("an answer")).limited, 1);
    }
    assert_eq!(answers[6], Ok(Value::Int(2)));
    assert_eq!(run::<usize>(&mut con, "DBSIZE", &[]), 3);
    assert_eq!(units_of_log(&mut con, "log"), 3);

    // One that begins now is not queued by Redis 7.0. Later servers queue it, and the calls decide.
    let before = state(&mut con);
    let queues = at_least(&mut con, 7, 2);
    run::<()>(&mut con, "MULTI", &[]);
    for call in [RECORDING[0], LIMITED[0]] {
        send(&mut con, &line(call));
        match receive(&mut con) {
            Ok(_) => assert!(queues, "{call} is queued"),
            Err(error) => assert!(!queues && error.starts_with("OOM "), "{error}"),
        }
    }
    if queues {
        let answers = exec(&mut con);
        let error = answers[0].as_ref().expect_err("no memory");
        assert!(error.starts_with("OOM "), "{error}");
        assert_eq!(five(answers[1].as_ref().expect("an answer")).limited, 1);
    } else {
        send(&mut con, &line("EXEC"));
        let error = receive(&mut con).expect_err("nothing was queued");
        assert!(error.starts_with("EXECABORT "), "{error}");
    }
    assert_eq!(state(&mut con), before);
}

/// Memory fills in the middle of a script: what it had recorded stays, what comes later is refused.
#[test]
fn memory_fills_within_a_script() {
    let (primary, replica) = start_pair();
    let mut con = primary.connect();
    fill_up_limits(&mut con);
    let used = info_number(&mut con, "memory", "used_memory");
    set(&mut con, "maxmemory", used + 3_000_000);
    let script = "
        local counts = {recorded = 0, refused = 0, limited = 0}
        for number = 1, 400 do
            local answer = redis.pcall('SLIDE.LOG', KEYS[1], 1000000, '1d')
            if answer.err then
                if string.sub(answer.err, 1, 4) ~= 'OOM ' then return answer end
                counts.refused = counts.refused + 1
            else
                counts.recorded = counts.recorded + 1
            end
            counts.limited = counts.limited + redis.call('SLIDE.LOG', KEYS[2], 9, '1d')[1]
            redis.pcall('SET', KEYS[3] .. number, string.rep('x', 20000))
        end
        return {counts.recorded, counts.refused, counts.limited}";
    let mut call = cmd("EVAL");
    call.arg(script).arg(3).arg(&["log", "full:log", "other"]);
    let counts: Vec<u64> = call.query(&mut con).expect("the script ends");
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    assert_eq!((counts[0] + counts[1], counts[2]), (400, 400));
    assert_eq!(units_of_log(&mut con, "log"), counts[0]);
    assert_agree(&primary, &replica);
}

fn calls_on_many_keys(numbers: &mut Numbers) -> Cmd {
    let key = numbers.below(300);
    line(&match numbers.below(3) {
        0 => format!("SLIDE.LOG log:{key} 1000 1d"),
        1 => format!("SLIDE.COUNTER counter:{key} 1000 {DECADE}"),
        _ => format!("SLIDE.ALL 2 log:{key} counter:{key} LOG 1000 1d COUNTER 1000 {DECADE}"),
    })
}

/// What is evicted is evicted on the replica too, and every call records.
#[test]
fn eviction_under_load() {
    let seed = seeds(1)[0];
    for policy in ["allkeys-lru", "volatile-ttl"] {
        println!("eviction_under_load, {policy}, SLIDE_SEED={seed}");
        let (primary, replica) = start_pair();
        let mut con = primary.connect();
        set(&mut con, "maxmemory-policy", policy);
        // Which would count, and grow beyond all that there is.
        set(&mut con, "repl-backlog-size", "16kb");
        let used = info_number(&mut con, "memory", "used_memory");
        set(&mut con, "maxmemory", used + 2_000_000);
        let mut numbers = Numbers::new(seed);
        let value = "x".repeat(4000);
        for number in 0..effort(3000, 30_000) {
            let answer = calls_on_many_keys(&mut numbers).query::<Value>(&mut con);
            let Ok(Value::Array(parts)) = answer else {
                panic!("{answer:?}");
            };
            assert_eq!(from_redis_value_ref::<i64>(&parts[0]), Ok(0));
            let mut store = cmd("SET");
            store.arg(format!("other:{}", number % 1000)).arg(&value);
            store
                .arg("EX")
                .arg(100_000)
                .query::<()>(&mut con)
                .expect("there is room");
        }
        let evicted = info_number(&mut con, "stats", "evicted_keys");
        assert!(evicted > 100, "only {evicted} keys were evicted");
        // Or a look at the keys would evict some more.
        set(&mut con, "maxmemory", 0);
        assert_agree(&primary, &replica);
    }
}
