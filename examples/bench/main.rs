//! How fast the module is: as multiples of what plain commands and Lua scripts take of the same
//! server in the same run. `make bench` and `make bench-guard` run it, by way of scripts/.
//!
//!     bench measure FOLDER NAME [growth]   measures $SLIDE_SERVER, and keeps the figures in FOLDER
//!     bench page FOLDER NAME...            one table of these servers, and docs/BENCHMARKS.md
//!     bench table FOLDER NAME...           the table alone
//!     bench count FOLDER                   counts $SLIDE_SERVER's instructions, for the page
//!     bench guard BASELINE [renew]         compares counts of instructions with a file

// Of the tests' modules, which may panic, as may a measurement that goes wrong.
#![allow(clippy::expect_used, clippy::indexing_slicing)]
// Counts and times, all far below 2^52.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

#[path = "../shared/drawing.rs"]
mod drawing;
mod growth;
mod guard;
mod host;
mod large;
mod memory;
mod page;
mod plot;
mod propagation;
mod results;
mod rows;
mod scripts;
mod service;
#[path = "../../tests/support/mod.rs"]
mod support;
mod table;
mod wire;

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::Host;
use results::Results;

/// How thorough to be.
struct Effort {
    /// Rounds of which the least counts.
    rounds: usize,
    /// Rounds of the curves, which are many.
    growth_rounds: usize,
    /// Calls on each of the long logs.
    sweeps: u64,
    /// For each command, when latency and throughput are measured.
    service: Duration,
}

impl Effort {
    fn chosen() -> Result<Self, Box<dyn Error>> {
        let quick = env::var("QUICK").is_ok_and(|value| !value.is_empty() && value != "0");
        let rounds = match env::var("ROUNDS") {
            Ok(rounds) if !rounds.is_empty() => Some(
                rounds
                    .parse()
                    .map_err(|_| format!("ROUNDS must be a number of rounds, got '{rounds}'"))?,
            ),
            _ => None,
        };
        Ok(Self {
            rounds: rounds.unwrap_or(if quick { 3 } else { 10 }).max(1),
            growth_rounds: if quick { 1 } else { 4 },
            sweeps: if quick { 100 } else { 500 },
            service: Duration::from_millis(if quick { 200 } else { 1000 }),
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["measure", folder, name] => measure(Path::new(folder), name, false),
        ["measure", folder, name, "growth"] => measure(Path::new(folder), name, true),
        ["table", folder, ref names @ ..] => {
            println!("{}", table::text(&load(folder, names)?));
            Ok(())
        }
        ["page", folder, ref names @ ..] => {
            let counts = Results::load(&file(Path::new(folder), COUNTS))?;
            publish(&load(folder, names)?, &counts)
        }
        ["count", folder] => {
            let mut results = Results::default();
            guard::count(&mut results)?;
            Ok(results.save(&file(Path::new(folder), COUNTS))?)
        }
        ["guard", baseline] => guard::run(Path::new(baseline), false),
        ["guard", baseline, "renew"] => guard::run(Path::new(baseline), true),
        _ => Err("run `make bench` or `make bench-guard`".into()),
    }
}

/// The name of the file with counts of instructions.
const COUNTS: &str = "instructions";

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.txt"))
}

fn load(folder: &str, names: &[&str]) -> Result<Vec<Results>, Box<dyn Error>> {
    let load = |name: &&str| Results::load(&file(Path::new(folder), name));
    Ok(names.iter().map(load).collect::<Result<_, _>>()?)
}

fn measure(folder: &Path, name: &str, growth: bool) -> Result<(), Box<dyn Error>> {
    let effort = Effort::chosen()?;
    let mut results = Results::default();
    let begin = Instant::now();
    let tell = |what: &str| eprintln!("{name}, {:3} s: {what}", begin.elapsed().as_secs());

    let mut host = Host::start();
    results.set("name", name);
    results.set("server", host.version());
    tell("CPU time a call");
    rows::measure(&mut host, effort.rounds, &mut results);
    // What follows is not to depend on what the server did before.
    let mut host = Host::start();
    tell("long logs");
    large::sizes(&mut host, effort.sweeps, &mut results);
    large::slowest(&mut host, effort.rounds.min(5), &mut results);
    large::expiry(&mut host, &mut results);
    let mut host = Host::start();
    tell("memory");
    memory::measure(&mut host, &mut results);
    tell("bytes sent");
    propagation::measure(&mut results);
    tell("latency and throughput");
    service::measure(&mut host, effort.service, &mut results);
    if growth {
        tell("growth");
        growth::measure(&mut host, effort.growth_rounds, &mut results);
    }
    tell("done");
    results.set("seconds", begin.elapsed().as_secs());
    fs::create_dir_all(folder)?;
    results.save(&file(folder, name))?;
    Ok(())
}

fn publish(all: &[Results], counts: &Results) -> Result<(), Box<dyn Error>> {
    println!("{}", table::text(all));
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let grown = all
        .iter()
        .find(|results| !results.series("cost LOG").is_empty())
        .ok_or("no server was measured with its growth")?;
    plot::commands(&docs.join("bench-commands.svg"), all)?;
    plot::costs(&docs.join("bench-cost.svg"), grown)?;
    plot::entries(&docs.join("bench-entries.svg"), grown)?;
    fs::write(docs.join("BENCHMARKS.md"), page::write(all, grown, counts)?)?;
    println!("Written: docs/BENCHMARKS.md and its pictures, docs/bench-*.svg");
    Ok(())
}
