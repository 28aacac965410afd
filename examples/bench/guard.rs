//! A guard that does not depend on the machine's speed: how many instructions a call takes. The module's own
//! are the same in every run, so that little more than the baseline is too much. Of the whole server the
//! bound is wider, and on a multiple of what a plain command takes in the same run.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::callgrind::{Counted, Instructions};
use crate::host::{ENDLESS, Expected, keys, log_lines};
use crate::results::Results;
use crate::support::now;
use crate::wire::Batch;

const KEYS: usize = 100;

/// Calls on each key that are counted.
const SWEEPS: u64 = 128;

/// Calls on each key before them: a log is then in its steady state.
const WARMING: u64 = 320;

const TICK_MS: i64 = 50;

/// Live entries of each log and set, and the window that holds so many.
const LIVE: u64 = 150;
const WINDOW_MS: u64 = LIVE * TICK_MS.unsigned_abs();

/// How much more than the baseline is too much, of the module's own instructions and of the server's.
const OWN_TOLERANCE: f64 = 0.03;
const TOLERANCE: f64 = 0.15;

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
    /// The commands of a call.
    lines: fn(&str) -> Vec<String>,
}

const PLAIN: Counting = Counting {
    name: "INCR",
    peer: None,
    prefix: "int",
    expected: Expected::Admitted,
    entries: 0,
    lines: |key| vec![format!("INCR {key}")],
};

/// In this order: a counter is full before a call on it is limited.
pub static COUNTED: [Counting; 11] = [
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
    },
    Counting {
        name: "PEEK",
        peer: Some("INCR"),
        prefix: "lim",
        expected: Expected::Limited,
        entries: LIVE,
        lines: |key| vec![format!("SLIDE.PEEK {key} {LIVE} 1d")],
    },
    Counting {
        name: "ALL",
        peer: Some("ZADD and ZREM"),
        prefix: "all",
        lines: |key| {
            let window = WINDOW_MS;
            vec![format!(
                "SLIDE.ALL 2 {key} c{key} LOG {ENDLESS} {window}ms COUNTER {ENDLESS} 3650d"
            )]
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
        counted.sweep(&batch, WARMING, TICK_MS, self.expected);
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

/// A command and what it costs.
type Cost = (&'static Counting, Instructions);

/// The server, and what each command costs.
fn measure() -> Result<(String, Vec<Cost>), Box<dyn Error>> {
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

/// A guarded figure: what it is, what was measured, how much more than the baseline is too much.
struct Guarded {
    name: String,
    now: f64,
    tolerance: f64,
}

/// Compares with the baseline, or writes it.
///
/// # Errors
/// When something takes too many instructions, or cannot be measured.
pub fn run(baseline: &Path, renew: bool) -> Result<(), Box<dyn Error>> {
    let compiler = compiler()?;
    let (_, costs) = measure()?;
    if renew {
        fs::write(
            baseline,
            written(&guarded(&costs, OWN_TOLERANCE), &compiler),
        )?;
    }
    let text = fs::read_to_string(baseline)?;
    let known = |name: &str| {
        let line = |line: &str| {
            line.strip_prefix(name)?
                .strip_prefix(": ")
                .map(str::to_owned)
        };
        text.lines().find_map(line).ok_or_else(|| {
            format!(
                "{} has no line for {name}: write it with 'make bench-guard RENEW=1'",
                baseline.display()
            )
        })
    };
    let by = known("compiler")?;
    // Another compiler makes other instructions of the same code.
    let tolerance = if by == compiler {
        OWN_TOLERANCE
    } else {
        TOLERANCE
    };
    if by != compiler {
        println!("The baseline was made by {by}, this module by {compiler}: 15 % instead of 3 %.");
    }
    println!("{:34} {:>9} {:>9}", "instructions", "baseline", "now");
    let mut failures = Vec::new();
    for Guarded {
        name,
        now,
        tolerance,
    } in guarded(&costs, tolerance)
    {
        let before: f64 = known(&name)?.parse()?;
        println!("{name:34} {before:9.2} {now:9.2}");
        if now > before * (1.0 + tolerance) {
            let more = (now / before - 1.0) * 100.0;
            failures.push(format!(
                "{name} is {now:.2}, {more:.1} % more than {before:.2}"
            ));
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!(
        "slide has become slower: {}. Find out why; if it is worth it, renew the baseline with \
         'make bench-guard RENEW=1' and say so in the change.",
        failures.join("; ")
    )
    .into())
}

/// The figures that have a place in the baseline.
fn guarded(costs: &[(&Counting, Instructions)], own_tolerance: f64) -> Vec<Guarded> {
    let all_of = |wanted: &str| {
        let found = costs.iter().find(|(counting, _)| counting.name == wanted);
        found.map_or(f64::NAN, |(_, cost)| cost.all)
    };
    let mut guarded = Vec::new();
    for (counting, cost) in costs {
        let Some(peer) = counting.peer else { continue };
        guarded.push(Guarded {
            name: format!("{}, own", counting.name),
            now: cost.own,
            tolerance: own_tolerance,
        });
        guarded.push(Guarded {
            name: format!("{} / {peer}", counting.name),
            now: cost.all / all_of(peer),
            tolerance: TOLERANCE,
        });
    }
    guarded
}

fn written(guarded: &[Guarded], compiler: &str) -> String {
    let mut text =
        "# Instructions a call: the module's own, and those of the whole server as a multiple of\n\
                    # another command's in the same run. Written by `make bench-guard RENEW=1`.\n"
            .to_owned();
    let _ = writeln!(text, "compiler: {compiler}");
    for Guarded { name, now, .. } in guarded {
        let _ = writeln!(text, "{name}: {now:.3}");
    }
    text
}

/// The compiler, and what it compiles for.
fn compiler() -> Result<String, Box<dyn Error>> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(format!(
        "{} {}",
        text.lines().next().unwrap_or(""),
        host.unwrap_or("")
    ))
}
