//! A guard that does not depend on the machine's speed: how many instructions the server takes for a
//! call, as a multiple of what a plain command takes in the same run.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host::{ENDLESS, Expected, Host, fill_log, keys};
use crate::results::Results;
use crate::support::{Setup, info_number, now};
use crate::wire::Batch;

const KEYS: usize = 100;

/// Calls on each key: as many as take part in one trim of a log.
const SWEEPS: u64 = 32;

/// Live entries of each log and set.
const LIVE: u64 = 150;

/// How much more than the baseline is too much.
const TOLERANCE: f64 = 0.15;

const DAY: u64 = 86_400_000;

/// What is guarded, and the plain command that it is measured by.
pub const GUARDED: [(&str, &str); 6] = [
    ("COUNTER admitted", "HINCRBY"),
    ("COUNTER limited", "INCR"),
    ("LOG admitted", "ZADD"),
    ("LOG limited", "INCR"),
    ("PEEK", "INCR"),
    ("ALL", "ZADD"),
];

/// What the whole server takes, and of that the module's own code.
#[derive(Debug, Clone, Copy)]
struct Instructions {
    all: f64,
    own: f64,
}

impl Instructions {
    /// From a file in callgrind's format: costs stand in lines that begin with a position, below the
    /// object that they belong to. The line after `calls=` is what a callee takes, and counted there.
    fn read(text: &str) -> Result<Self, Box<dyn Error>> {
        let module = Setup::module_file();
        let module = module.file_name().and_then(|name| name.to_str());
        let module = module.ok_or("the module's file has no name")?;
        let mut module_id = None;
        let (mut all, mut own) = (0.0, 0.0);
        let (mut in_module, mut of_callee) = (false, false);
        for line in text.lines() {
            // `ob=(3) /path` the first time, then `ob=(3)`; `cob=` names a callee's.
            if let Some((kind @ ("ob" | "cob"), object)) = line.split_once('=') {
                let (id, path) = object.split_once(' ').unwrap_or((object, ""));
                if path.ends_with(module) {
                    module_id = Some(id.to_owned());
                }
                if kind == "ob" {
                    in_module = module_id.as_deref() == Some(id);
                }
            } else if line.starts_with("calls=") {
                of_callee = true;
            } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c))
                && !mem::take(&mut of_callee)
            {
                let cost = line.split(' ').nth(1).ok_or("a line without a cost")?;
                let cost: f64 = cost.parse()?;
                all += cost;
                own += if in_module { cost } else { 0.0 };
            }
        }
        Ok(Self { all, own })
    }
}

/// A server under valgrind.
struct Counted {
    host: Host,
    vgdb: Command,
}

impl Counted {
    fn start() -> Self {
        // The server's own chores are not counted more often than need be.
        let mut host = Host::with(Setup::new().line("hz 1"));
        let pid = info_number(&mut host.con, "server", "process_id");
        let pipes = host.server.dir().join("vgdb");
        let mut vgdb = Command::new("vgdb");
        vgdb.arg(format!("--vgdb-prefix={}", pipes.display()))
            .args([format!("--pid={pid}").as_str(), "dump"]);
        Self { host, vgdb }
    }

    /// Instructions since this was asked last.
    fn instructions(&mut self) -> Result<Instructions, Box<dyn Error>> {
        let before = self.dumps()?.len();
        let output = self.vgdb.output()?;
        let dumps = self.dumps()?;
        let latest = dumps.last().filter(|_| dumps.len() > before);
        let Some((_, file)) = latest else {
            return Err(format!("valgrind did not write its counters: {output:?}").into());
        };
        Instructions::read(&fs::read_to_string(file)?)
    }

    /// The files that callgrind has written, by number.
    fn dumps(&self) -> Result<Vec<(u32, PathBuf)>, Box<dyn Error>> {
        let mut dumps = Vec::new();
        for entry in fs::read_dir(self.host.server.dir())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let number = name.and_then(|name| name.strip_prefix("callgrind.out.")?.parse().ok());
            dumps.extend(number.map(|number| (number, path)));
        }
        dumps.sort_unstable();
        Ok(dumps)
    }

    /// Instructions a command.
    fn cost(
        &mut self,
        batches: &[Batch],
        expected: Expected,
    ) -> Result<Instructions, Box<dyn Error>> {
        self.instructions()?;
        self.host.cost(batches, expected);
        let commands: usize = batches.iter().map(Batch::len).sum();
        let Instructions { all, own } = self.instructions()?;
        let commands = commands as f64;
        Ok(Instructions {
            all: all / commands,
            own: own / commands,
        })
    }
}

/// Counts, for docs/BENCHMARKS.md.
///
/// # Errors
/// When something cannot be measured.
pub fn count(results: &mut Results) -> Result<(), Box<dyn Error>> {
    let (version, costs) = measure()?;
    results.set("server", version);
    for (name, Instructions { all, own }) in costs {
        results.set(format!("instructions {name}"), all);
        results.set(format!("own instructions {name}"), own);
    }
    Ok(())
}

/// Compares with the baseline, or writes it.
///
/// # Errors
/// When something takes too many instructions, or cannot be measured.
pub fn run(baseline: &Path, renew: bool) -> Result<(), Box<dyn Error>> {
    let (_, costs) = measure()?;
    let cost = |wanted: &str| {
        let found = costs.iter().find(|(name, _)| *name == wanted);
        found.map_or(f64::NAN, |(_, cost)| cost.all)
    };
    let measured =
        GUARDED.map(|(name, peer)| (format!("{name} / {peer}"), cost(name) / cost(peer)));
    if renew {
        let mut text =
            "# Instructions a call, as a multiple of another command's in the same run.\n\
            # Written by `make bench-guard RENEW=1`.\n"
                .to_owned();
        for (name, ratio) in &measured {
            let _ = writeln!(text, "{name}: {ratio:.3}");
        }
        fs::write(baseline, text)?;
    }
    let text = fs::read_to_string(baseline)?;
    let mut failures = Vec::new();
    println!("{:28} {:>9} {:>9}", "instructions", "baseline", "now");
    for (name, now) in measured {
        let known = text.lines().find_map(|line| {
            line.strip_prefix(&name)?
                .strip_prefix(": ")?
                .parse::<f64>()
                .ok()
        });
        let Some(before) = known else {
            return Err(format!(
                "{} has no line for {name}: write it with 'make bench-guard RENEW=1'",
                baseline.display()
            )
            .into());
        };
        println!("{name:28} {before:9.2} {now:9.2}");
        if now > before * (1.0 + TOLERANCE) {
            let more = (now / before - 1.0) * 100.0;
            failures.push(format!(
                "{name} is {now:.2}, {more:.0} % more than {before:.2}"
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

/// The server, and what each command costs.
type Costs = Vec<(&'static str, Instructions)>;

fn measure() -> Result<(String, Costs), Box<dyn Error>> {
    let mut counted = Counted::start();
    fill(&mut counted.host);
    let mut costs = Vec::new();
    for (name, expected, prefix, line) in rows() {
        let keys = keys(prefix, KEYS);
        let sweep = |number| keys.iter().map(|key| line(key, number)).collect();
        // The first call on a key also creates it or sets its expiry.
        counted.host.run_expecting(&sweep(0), expected);
        if prefix == "log" {
            expire(&mut counted.host, &keys);
        }
        let sweeps: Vec<Batch> = (1..=SWEEPS).map(sweep).collect();
        costs.push((name, counted.cost(&sweeps, expected)?));
    }
    Ok((counted.host.version(), costs))
}

type Line = fn(&str, u64) -> String;

/// All commands, with what is before the colon in their keys. Windows are so long that none ends.
fn rows() -> [(&'static str, Expected, &'static str, Line); 9] {
    use Expected::{Admitted, Limited};
    [
        ("INCR", Admitted, "int", |key, _| format!("INCR {key}")),
        ("HINCRBY", Admitted, "map", |key, _| {
            format!("HINCRBY {key} 60000 1")
        }),
        ("ZADD", Admitted, "set", |key, number| {
            format!(
                "ZADD {key} {} {}:1",
                1_900_000_000_000 + number,
                LIVE + 1 + number
            )
        }),
        ("COUNTER admitted", Admitted, "cnt", |key, _| {
            format!("SLIDE.COUNTER {key} {ENDLESS} 3650d")
        }),
        ("COUNTER limited", Limited, "ctl", |key, _| {
            format!("SLIDE.COUNTER {key} 5 3650d")
        }),
        ("LOG admitted", Admitted, "log", |key, _| {
            format!("SLIDE.LOG {key} {ENDLESS} 1d")
        }),
        ("LOG limited", Limited, "lim", |key, _| {
            format!("SLIDE.LOG {key} {LIVE} 1d")
        }),
        ("PEEK", Limited, "lim", |key, _| {
            format!("SLIDE.PEEK {key} {LIVE} 1d")
        }),
        ("ALL", Admitted, "all", |key, _| {
            format!("SLIDE.ALL 2 {key} c{key} LOG {ENDLESS} 1d COUNTER {ENDLESS} 3650d")
        }),
    ]
}

fn fill(host: &mut Host) {
    let now = now(&mut host.con).unsigned_abs();
    for prefix in ["set", "log", "lim", "all"] {
        for key in keys(prefix, KEYS) {
            fill_log(host, &key, LIVE, now, 1);
        }
    }
    let full = |key| format!("SLIDE.COUNTER {key} 5 3650d COST 5");
    host.run(&keys("ctl", KEYS).into_iter().map(full).collect());
}

/// Gives each log as many expired entries as calls come: what a steady state has. (An entry expires
/// with each call, and a trim takes them away when they are so many.)
fn expire(host: &mut Host, keys: &[String]) {
    let time = now(&mut host.con).unsigned_abs() - 2 * DAY;
    let mut batch = Batch::default();
    for key in keys {
        for number in 1..=SWEEPS {
            batch.push(&format!(
                "ZADD {key} {} {}:1",
                time + number,
                9_000_000 + number
            ));
        }
    }
    host.run(&batch);
}
