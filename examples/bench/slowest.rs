//! The slowest single calls, from the server's slow log, which here logs all calls.

use std::thread::sleep;
use std::time::Duration;

use redis::{Value, from_redis_value_ref};

use crate::host::{ENDLESS, Host, Module};
use crate::hot::Log;
use crate::results::Results;
use crate::support::{command, now, run};

/// Entries of the log.
const ENTRIES: u64 = 1_000_000;

const DAY: i64 = 86_400_000;

/// Calls that do the most, on a log of many entries or beside it.
pub struct Slow {
    /// What tables say of it.
    pub what: &'static str,
    /// The most that it may take, in ms.
    pub bound: f64,
    calls: usize,
    /// How far the clock goes on before the first of them, in ms.
    later: i64,
    /// The call, by the log and the units that it holds.
    line: fn(&Log, u64) -> String,
}

/// One window less by a ms for each tier.
fn tiers(limit: u64, window: u64) -> String {
    let tier = |less| format!("{limit} {}ms", window - less);
    (0..16).map(tier).collect::<Vec<_>>().join(" ")
}

/// The machine's part: this takes next to nothing.
pub static INCR: Slow = Slow {
    what: "`INCR`, to know the machine's part",
    bound: f64::INFINITY,
    calls: 100,
    later: 0,
    line: |_, _| "INCR number".to_owned(),
};

/// In this order: a refund shortens the log, and nothing is left of it after a day.
pub static SLOW: [Slow; 7] = [
    Slow {
        what: "recording in a log of 1,000,000 entries",
        bound: 0.5,
        calls: 500,
        later: 0,
        line: |log, _| format!("SLIDE.LOG {} {ENDLESS} {}ms", log.key, log.window),
    },
    Slow {
        what: "limited until half of 1,000,000 entries expire",
        bound: 0.5,
        calls: 100,
        later: 0,
        line: |log, used| {
            let (limit, cost) = (used, used / 2);
            format!("SLIDE.LOG {} {limit} {}ms COST {cost}", log.key, log.window)
        },
    },
    Slow {
        what: "the same with 16 tiers",
        bound: 0.5,
        calls: 100,
        later: 0,
        line: |log, used| {
            let cost = used / 2;
            format!(
                "SLIDE.LOG {} {} COST {cost}",
                log.key,
                tiers(used, log.window)
            )
        },
    },
    Slow {
        what: "a counter of 16 windows with 64 buckets each",
        bound: 0.5,
        calls: 100,
        later: 0,
        line: |_, _| {
            format!(
                "SLIDE.COUNTER buckets {} BUCKETS 64",
                tiers(ENDLESS, 86_400_000)
            )
        },
    },
    Slow {
        what: "`SLIDE.REFUND` of 1,000 entries",
        bound: 1.0,
        calls: 20,
        later: 0,
        line: |log, _| format!("SLIDE.REFUND {} 1000", log.key),
    },
    Slow {
        what: "`SLIDE.REFUND` with an AGE, of an entry before 900 others",
        bound: 1.0,
        calls: 20,
        later: 0,
        line: |log, _| {
            let age = log.window / ENTRIES * 900;
            format!("SLIDE.REFUND {} 1 AGE {age}ms", log.key)
        },
    },
    Slow {
        what: "trimming a log of 1,000,000 expired entries",
        bound: 0.5,
        calls: 500,
        later: 2 * DAY,
        line: |log, _| format!("SLIDE.LOG {} {ENDLESS} 1h", log.key),
    },
];

impl Slow {
    /// The name of its figure, in µs.
    pub fn name(&self) -> String {
        format!("slowest: {}", self.what)
    }

    fn measure(&self, log: &mut Log, rounds: usize, results: &mut Results) {
        let used = log.used();
        let line = (self.line)(log, used);
        log.go_on(self.later);
        let mut least = f64::INFINITY;
        // The first round only warms up.
        for round in 0..=rounds {
            watch(&mut log.host);
            for _ in 0..self.calls {
                log.go_on(1);
                log.host.run_line(&line);
            }
            let slowest = watched(&mut log.host).fold(0.0, f64::max);
            if round > 0 {
                least = least.min(slowest);
            }
        }
        results.set(self.name(), least);
    }
}

/// The slowest call of each kind: the least over the rounds, since in any one of them the machine may have
/// done something else meanwhile.
pub fn measure(rounds: usize, results: &mut Results) {
    let host = Host::with_clock(Module::Slide.setup());
    let mut log = Log::filled(host, "log", ENTRIES);
    for slow in [&INCR].into_iter().chain(&SLOW) {
        slow.measure(&mut log, rounds, results);
    }
}

/// How a server frees a log that has expired as a whole.
pub static LAZY: [&str; 2] = ["no", "yes"];

/// The name of the figure, in µs.
pub fn freeing(lazy: &str) -> String {
    format!("freeing a log, lazyfree-lazy-expire {lazy}")
}

/// What it takes the server to free a log that has expired as a whole, the default way and in the
/// background.
pub fn expiry(results: &mut Results) {
    for lazy in LAZY {
        let host = Host::with_clock(Module::Slide.setup());
        let mut log = Log::filled(host, "log", ENTRIES);
        let con = &mut log.host.con;
        run::<()>(con, "DEBUG", &["SET-ACTIVE-EXPIRE", "0"]);
        run::<()>(con, "CONFIG", &["SET", "lazyfree-lazy-expire", lazy]);
        let soon = now(con) + 1;
        run::<()>(con, "PEXPIREAT", &["log", &soon.to_string()]);
        log.go_on(20);
        sleep(Duration::from_millis(20));
        watch(&mut log.host);
        log.host.run_line("SLIDE.LOG log 10 1d");
        let slowest = watched(&mut log.host).fold(0.0, f64::max);
        results.set(freeing(lazy), slowest);
    }
}

/// Starts to log all calls.
fn watch(host: &mut Host) {
    for (name, value) in [
        ("slowlog-max-len", "100000"),
        ("slowlog-log-slower-than", "0"),
    ] {
        run::<()>(&mut host.con, "CONFIG", &["SET", name, value]);
    }
    run::<()>(&mut host.con, "SLOWLOG", &["RESET"]);
}

/// The µs that each call since took.
fn watched(host: &mut Host) -> impl Iterator<Item = f64> + use<> {
    let off = ["SET", "slowlog-log-slower-than", "-1"];
    run::<()>(&mut host.con, "CONFIG", &off);
    let logged: Vec<Vec<Value>> = command("SLOWLOG", &["GET", "-1"])
        .query(&mut host.con)
        .expect("the slow log");
    logged.into_iter().filter_map(|entry| {
        let time: f64 = from_redis_value_ref(&entry[2]).expect("a time");
        let words: Vec<String> = from_redis_value_ref(&entry[3]).expect("a command");
        (words[0].starts_with("SLIDE.") || words[0] == "INCR").then_some(time)
    })
}
