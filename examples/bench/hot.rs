//! Calls on a single log, one after the other: the time that the server itself counts for each, by the
//! entries of the log.
//!
//! The servers' clocks are set, so that logs fill with real calls in no time, and each call that is
//! measured has a ms of its own, in which as much expires as is added.

use std::cmp::Reverse;

use crate::host::{ENDLESS, Expected, Host, Module};
use crate::results::Results;
use crate::support::clock::START;
use crate::support::{info, now, run};
use crate::wire::Batch;

pub const SIZES: [u64; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// While a log fills, its clock goes so much faster than it should: a call takes some ms of it, and no
/// two share one.
const FAST: f64 = 2_000.0;

/// Calls that are measured in each round.
const CALLS: u64 = 500;

/// Calls of a kind on a log that is full.
pub struct Kind {
    /// What tables call it.
    pub name: &'static str,
    module: Module,
    expected: Expected,
    /// What the call says after the key and before the window, on a log that holds so many units: its
    /// limit, and its cost.
    words: fn(u64) -> (u64, u64),
}

pub static ADMITTED: Kind = Kind {
    name: "admitted",
    module: Module::Slide,
    expected: Expected::Admitted,
    words: |_| (ENDLESS, 1),
};
pub static RELEASED: Kind = Kind {
    name: "admitted by 0.1.0",
    module: Module::Released,
    ..ADMITTED
};
pub static LIMITED: Kind = Kind {
    name: "limited",
    module: Module::Slide,
    expected: Expected::Limited,
    words: |used| (used, 1),
};
/// Until half of the log has expired.
pub static DEEP: Kind = Kind {
    name: "limited, deep",
    words: |used| (used, used / 2),
    ..LIMITED
};
pub static KINDS: [&Kind; 4] = [&ADMITTED, &RELEASED, &LIMITED, &DEEP];

impl Kind {
    /// The name of its figure at a size.
    pub fn at(&self, size: u64) -> String {
        format!("µs {} {size}", self.name)
    }
}

/// A log that is full, on a server with its clock.
pub struct Log {
    pub host: Host,
    pub key: String,
    /// From the first entry to the last.
    pub window: u64,
    size: u64,
    now: i64,
}

impl Log {
    /// Fills a log by calls of cost 1.
    pub fn filled(mut host: Host, key: &str, size: u64) -> Self {
        const AT_ONCE: u64 = 10_000;
        let begin = now(&mut host.con).max(START) + 1;
        let line = format!("SLIDE.LOG {key} {ENDLESS} 3650d");
        // A few more, so that single entries and packed ones are as in the steady state.
        let mut left = size + size / 2 + 100;
        host.clock().run(begin, FAST);
        while left > 0 {
            let calls = left.min(AT_ONCE);
            let lines = std::iter::repeat_n(&line, calls as usize);
            host.run_expecting(&lines.collect(), Expected::Admitted);
            left -= calls;
        }
        let end = now(&mut host.con);
        host.clock().stop(end);
        let span = (end - begin).unsigned_abs();
        Self {
            host,
            key: key.to_owned(),
            window: (span * size / (size + size / 2 + 100)).max(size),
            size,
            now: end,
        }
    }

    /// The units that its window holds.
    pub fn used(&mut self) -> u64 {
        let window = format!("{}ms", self.window);
        let line = [self.key.as_str(), &ENDLESS.to_string(), &window];
        let five: Vec<u64> = run(&mut self.host.con, "SLIDE.PEEK", &line);
        ENDLESS - five[2]
    }

    /// Lets the clock go on by a call's share of the window.
    fn tick(&mut self) {
        self.go_on((self.window / self.size).max(1).cast_signed());
    }

    /// Lets the clock go on by so many ms.
    pub fn go_on(&mut self, ms: i64) {
        self.now += ms;
        self.host.clock().stop(self.now);
    }

    /// Time a call, in µs, as the server counts it.
    fn time(&mut self, kind: &Kind) -> f64 {
        let (limit, cost) = (kind.words)(self.used());
        let line = format!(
            "SLIDE.LOG {} {limit} {}ms COST {cost}",
            self.key, self.window
        );
        let batch: Batch = [line].iter().collect();
        run::<()>(&mut self.host.con, "CONFIG", &["RESETSTAT"]);
        for _ in 0..CALLS {
            if kind.expected == Expected::Admitted {
                self.tick();
            }
            self.host.run_expecting(&batch, kind.expected);
        }
        usec_per_call(&mut self.host)
    }
}

fn usec_per_call(host: &mut Host) -> f64 {
    let stats = ["cmdstat_slide.log", "cmdstat_SLIDE.LOG"]
        .into_iter()
        .find_map(|name| info(&mut host.con, "commandstats", name))
        .expect("the server counts its commands");
    let field = |name: &str| -> f64 {
        let value = stats.split(',').find_map(|field| field.strip_prefix(name));
        value
            .and_then(|value| value.strip_prefix('=')?.parse().ok())
            .unwrap_or_else(|| panic!("commandstats has no {name}: {stats}"))
    };
    field("usec") / field("calls")
}

/// Measures all kinds at these sizes, in so many rounds; keeps the least of each.
pub fn measure(sizes: &[u64], rounds: usize, results: &mut Results) {
    let mut sizes = sizes.to_vec();
    sizes.sort_by_key(|size| Reverse(*size));
    for size in sizes {
        let mut logs = Vec::new();
        for module in [Module::Slide, Module::Released] {
            if module.is_there() {
                let host = Host::with_clock(module.setup());
                logs.push((module, Log::filled(host, "log", size)));
            }
        }
        let mut least: Vec<f64> = vec![f64::INFINITY; KINDS.len()];
        // The first round only warms up.
        for round in 0..=rounds {
            for (kind, least) in KINDS.iter().zip(&mut least) {
                let log = logs.iter_mut().find(|(module, _)| *module == kind.module);
                if let Some((_, log)) = log {
                    let time = log.time(kind);
                    if round > 0 {
                        *least = least.min(time);
                    }
                }
            }
        }
        for (kind, least) in KINDS.iter().zip(least) {
            if least.is_finite() {
                results.set(kind.at(size), least);
            }
        }
    }
}
