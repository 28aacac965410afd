//! The commands whose instructions are counted.

use std::error::Error;

use crate::callgrind::{Counted, Instructions};
use crate::host::{ENDLESS, Expected, keys, log_lines};
use crate::results::Results;
use crate::support::now;
use crate::wire::Batch;

const KEYS: usize = 100;

/// Calls on each key that are counted.
const SWEEPS: u64 = 128;

/// Calls on each key before them, and those of a log, which then is in its steady state.
const WARMING: u64 = 2;
const WARMING_OF_LOG: u64 = 320;

const TICK_MS: i64 = 50;

/// Live entries of each log and set, and the window that holds so many.
const LIVE: u64 = 150;
const WINDOW_MS: u64 = LIVE * TICK_MS.unsigned_abs();

/// Commands, and how they are counted.
pub struct Counting {
    pub name: &'static str,
    /// The plain command that it is compared with, if it is guarded.
    pub peer: Option<&'static str>,
    /// What its keys begin with.
    prefix: &'static str,
    expected: Expected,
    /// Entries of the log that a key is from the start.
    entries: u64,
    /// Calls on each key that are not counted.
    warming: u64,
    /// The commands of a call.
    lines: fn(&str) -> Vec<String>,
}

const PLAIN: Counting = Counting {
    name: "INCR",
    peer: None,
    prefix: "int",
    expected: Expected::Admitted,
    entries: 0,
    warming: WARMING,
    lines: |key| vec![format!("INCR {key}")],
};

/// In this order: a counter is full before a call on it is limited.
pub static COUNTED: [Counting; 12] = [
    PLAIN,
    Counting {
        name: "HINCRBY",
        prefix: "map",
        lines: |key| vec![format!("HINCRBY {key} 60000 1")],
        ..PLAIN
    },
    Counting {
        name: "ZADD and ZREM",
        prefix: "set",
        entries: LIVE,
        lines: |key| {
            let time = 1_900_000_000_000_u64;
            vec![
                format!("ZADD {key} {time} @lease"),
                format!("ZREM {key} @lease"),
            ]
        },
        ..PLAIN
    },
    Counting {
        name: "COUNTER admitted",
        peer: Some("HINCRBY"),
        prefix: "cnt",
        lines: |key| vec![format!("SLIDE.COUNTER {key} {ENDLESS} 3650d")],
        ..PLAIN
    },
    Counting {
        name: "COUNTER filled",
        prefix: "ctl",
        lines: |key| vec![format!("SLIDE.COUNTER {key} {} 3650d", WARMING + SWEEPS)],
        ..PLAIN
    },
    Counting {
        name: "COUNTER limited",
        peer: Some("INCR"),
        prefix: "ctl",
        expected: Expected::Limited,
        lines: |key| vec![format!("SLIDE.COUNTER {key} {} 3650d", WARMING + SWEEPS)],
        ..PLAIN
    },
    Counting {
        name: "LOG admitted",
        peer: Some("ZADD and ZREM"),
        prefix: "log",
        warming: WARMING_OF_LOG,
        lines: |key| vec![format!("SLIDE.LOG {key} {ENDLESS} {WINDOW_MS}ms")],
        ..PLAIN
    },
    Counting {
        name: "LOG limited",
        peer: Some("INCR"),
        prefix: "lim",
        expected: Expected::Limited,
        entries: LIVE,
        lines: |key| vec![format!("SLIDE.LOG {key} {LIVE} 1d")],
        ..PLAIN
    },
    Counting {
        name: "PEEK",
        peer: Some("INCR"),
        prefix: "lim",
        expected: Expected::Limited,
        entries: LIVE,
        lines: |key| vec![format!("SLIDE.PEEK {key} {LIVE} 1d")],
        ..PLAIN
    },
    Counting {
        name: "ALL",
        peer: Some("ZADD and ZREM"),
        prefix: "all",
        warming: WARMING_OF_LOG,
        lines: |key| {
            let window = WINDOW_MS;
            vec![format!(
                "SLIDE.ALL 2 {key} c{key} LOG {ENDLESS} {window}ms COUNTER {ENDLESS} 3650d"
            )]
        },
        ..PLAIN
    },
    Counting {
        name: "LEASE and RELEASE",
        peer: Some("ZADD and ZREM"),
        prefix: "lea",
        expected: Expected::NoVerdict,
        lines: |key| {
            vec![
                format!("SLIDE.LEASE {key} 100 1h a-lease"),
                format!("SLIDE.RELEASE {key} a-lease"),
            ]
        },
        ..PLAIN
    },
    Counting {
        name: "REFUND",
        peer: Some("HINCRBY"),
        prefix: "cnt",
        expected: Expected::NoVerdict,
        lines: |key| vec![format!("SLIDE.REFUND {key} 1")],
        ..PLAIN
    },
];

impl Counting {
    /// Instructions a call.
    fn measure(&self, counted: &mut Counted) -> Result<Instructions, Box<dyn Error>> {
        let keys = keys(self.prefix, KEYS);
        let start = now(&mut counted.host.con).unsigned_abs();
        let filled = keys
            .iter()
            .flat_map(|key| log_lines(key, self.entries, start, 1));
        counted.host.run(&filled.collect());
        let batch: Batch = keys.iter().flat_map(|key| (self.lines)(key)).collect();
        counted.sweep(&batch, self.warming, TICK_MS, self.expected);
        counted.instructions()?;
        counted.sweep(&batch, SWEEPS, TICK_MS, self.expected);
        let Instructions { all, own } = counted.instructions()?;
        let calls = (KEYS as u64 * SWEEPS) as f64;
        Ok(Instructions {
            all: all / calls,
            own: own / calls,
        })
    }
}

/// What each command costs.
pub type Costs = Vec<(&'static Counting, Instructions)>;

/// The server, and what each command costs.
///
/// # Errors
/// When something cannot be measured.
pub fn measure() -> Result<(String, Costs), Box<dyn Error>> {
    let mut counted = Counted::start();
    let mut costs = Vec::new();
    for counting in &COUNTED {
        costs.push((counting, counting.measure(&mut counted)?));
    }
    Ok((counted.host.version(), costs))
}

/// The names of the figures of a command.
pub fn in_all(name: &str) -> String {
    format!("instructions of {name}")
}

pub fn own(name: &str) -> String {
    format!("own instructions of {name}")
}

/// Counts, for docs/BENCHMARKS.md.
///
/// # Errors
/// When something cannot be measured.
pub fn count(results: &mut Results) -> Result<(), Box<dyn Error>> {
    let (version, costs) = measure()?;
    results.set("server", version);
    for (counting, cost) in costs {
        results.set(in_all(counting.name), cost.all);
        results.set(own(counting.name), cost.own);
    }
    Ok(())
}
