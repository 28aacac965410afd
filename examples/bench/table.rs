//! The bounds that the module is held to, and the figures beside them.

use std::fmt::Write as _;

use crate::results::Results;

/// A figure, and what it may be at most.
pub struct Line {
    pub what: &'static str,
    value: fn(&Results) -> Option<f64>,
    bound: fn(&Results) -> Option<f64>,
    /// Whether it is a ratio to a peer; else a plain figure.
    ratio: bool,
}

macro_rules! ratio {
    ($what:literal, $of:literal / $to:literal) => {
        Line {
            what: $what,
            value: |results| results.ratio($of, $to),
            bound: |_| None,
            ratio: true,
        }
    };
    ($what:literal, $of:literal / $to:literal, $bound:expr) => {
        Line {
            bound: |_| Some($bound),
            ..ratio!($what, $of / $to)
        }
    };
}

pub const BOUNDS: [Line; 13] = [
    ratio!("COUNTER admitted / HINCRBY", "COUNTER" / "HINCRBY", 2.1),
    ratio!("LOG admitted, steady state / ZADD", "LOG" / "ZADD", 1.6),
    ratio!("COUNTER limited / INCR", "COUNTER limited" / "INCR", 2.0),
    ratio!("LOG limited / INCR", "LOG limited" / "INCR", 2.2),
    ratio!("LOG / Lua script", "LOG" / "Lua log", 0.4),
    ratio!("COUNTER / Lua script", "COUNTER" / "Lua counter", 0.2),
    ratio!(
        "LOG / Lua script, COST 100",
        "LOG COST 100" / "Lua log COST 100",
        1.0 / 70.0
    ),
    ratio!(
        "LOG admitted, 1,000,000 entries / 1,000",
        "µs admitted 1000000" / "µs admitted 1000",
        2.0
    ),
    ratio!(
        "LOG limited, 1,000,000 entries / 1,000",
        "µs limited 1000000" / "µs limited 1000",
        2.0
    ),
    ratio!(
        "LOG limited, deep, 1,000,000 entries / 1,000",
        "µs limited, deep 1000000" / "µs limited, deep 1000",
        2.0
    ),
    Line {
        what: "slowest single call, ms",
        value: |results| {
            let times = SLOWEST.map(|(name, _)| results.number(name));
            let slowest = times.into_iter().collect::<Option<Vec<f64>>>()?;
            Some(slowest.into_iter().fold(0.0, f64::max) / 1000.0)
        },
        bound: |_| Some(1.0),
        ratio: false,
    },
    Line {
        what: "entries in a log a call, COST 100",
        value: |results| results.number("entries a call"),
        bound: |_| Some(1.0),
        ratio: false,
    },
    Line {
        what: "bytes a counter (bounds: Redis 7.0, 8.2)",
        value: |results| results.number("bytes a counter"),
        bound: |results| match results.text("server") {
            server if server.starts_with("Redis 7.0") => Some(170.0),
            server if server.starts_with("Redis 8.2") => Some(120.0),
            _ => None,
        },
        ratio: false,
    },
];

/// Ratios that have no bound and are good to know.
pub const OTHERS: [Line; 11] = [
    ratio!("COUNTER / INCREX", "COUNTER" / "INCREX"),
    ratio!(
        "LOG limited, 400 entries / INCR",
        "LOG limited, long" / "INCR"
    ),
    ratio!("PEEK of a counter / INCR", "PEEK of a counter" / "INCR"),
    ratio!(
        "PEEK of a log, 400 entries / INCR",
        "PEEK of a log" / "INCR"
    ),
    ratio!("COUNTER HEADERS / COUNTER", "COUNTER HEADERS" / "COUNTER"),
    ratio!(
        "ALL of a log and a counter / LOG",
        "ALL of a log and a counter" / "LOG"
    ),
    ratio!(
        "LOG limited / Lua script",
        "LOG limited" / "Lua log limited"
    ),
    ratio!(
        "COUNTER limited / Lua script",
        "COUNTER limited" / "Lua counter limited"
    ),
    ratio!(
        "LOG / Lua script with one ZADD, COST 100",
        "LOG COST 100" / "Lua log COST 100, one ZADD"
    ),
    ratio!(
        "COUNTER / INCR, CPU time unpipelined",
        "unpipelined COUNTER" / "unpipelined INCR"
    ),
    ratio!(
        "LOG / INCR, CPU time unpipelined",
        "unpipelined LOG" / "unpipelined INCR"
    ),
];

/// The calls of which the slowest is sought, and what they do.
pub const SLOWEST: [(&str, &str); 5] = [
    (
        "slowest limited",
        "limited until half of 1,000,000 entries expire",
    ),
    ("slowest 16 tiers", "the same with 16 tiers"),
    (
        "slowest trimming",
        "trimming 64 of 1,000,000 expired entries",
    ),
    (
        "slowest refund",
        "`SLIDE.REFUND` of 1,000 entries, the most",
    ),
    (
        "slowest buckets",
        "a counter of 16 windows with 64 buckets each",
    ),
];

impl Line {
    /// The figure, and whether it keeps its bound, as text.
    pub fn cell(&self, results: &Results) -> String {
        let Some(value) = (self.value)(results) else {
            return "–".to_owned();
        };
        let text = self.figure(value);
        match (self.bound)(results) {
            Some(bound) if value > bound => format!("{text} not met"),
            _ => text,
        }
    }

    pub fn is_met(&self, results: &Results) -> bool {
        match ((self.value)(results), (self.bound)(results)) {
            (Some(value), Some(bound)) => value <= bound,
            _ => true,
        }
    }

    /// The bound on all these servers; where they differ, each.
    pub fn bound(&self, all: &[Results]) -> String {
        let mut bounds: Vec<String> = Vec::new();
        for bound in all.iter().filter_map(|results| (self.bound)(results)) {
            let text = self.figure(bound);
            if !bounds.contains(&text) {
                bounds.push(text);
            }
        }
        bounds.join(", ")
    }

    fn figure(&self, value: f64) -> String {
        match value {
            _ if self.ratio && value < 0.1 => format!("1/{:.0}", 1.0 / value),
            ..10.0 => format!("{value:.2}"),
            _ => format!("{value:.0}"),
        }
    }
}

/// The table for a terminal.
pub fn text(all: &[Results]) -> String {
    let mut text = format!("{:42} {:>9}", "", "at most");
    for results in all {
        let _ = write!(text, " {:>14}", results.text("name"));
    }
    text.push('\n');
    for line in BOUNDS.iter().chain(&OTHERS) {
        let _ = write!(text, "{:42} {:>9}", line.what, line.bound(all));
        for results in all {
            let _ = write!(text, " {:>14}", line.cell(results));
        }
        text.push('\n');
    }
    let unmet = |results: &&Results| BOUNDS.iter().any(|line| !line.is_met(results));
    let names: Vec<&str> = all
        .iter()
        .filter(unmet)
        .map(|one| one.text("name"))
        .collect();
    if names.is_empty() {
        text.push_str("\nEvery bound is met.\n");
    } else {
        let _ = writeln!(text, "\nNot every bound is met on: {}", names.join(", "));
    }
    text
}
