//! How fast the module is: in calls a second, bytes and latency, and as multiples of what the server takes
//! for its own commands, for the least that a module can ask of it, for version 0.1.0 and for Lua scripts
//! in the same run. `make bench` and `make bench-guard` run it, by way of scripts/.
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

mod bounds;
mod callgrind;
mod counted;
#[path = "../shared/drawing.rs"]
mod drawing;
mod growth;
mod guard;
mod host;
mod hot;
mod memory;
mod others;
mod page;
mod plot;
mod propagation;
mod results;
mod row;
mod rows;
mod scripts;
mod service;
mod slowest;
mod steady;
#[path = "../../tests/support/mod.rs"]
mod support;
mod table;
mod traffic;
mod wire;

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::{Host, Module};
use results::Results;

/// How thorough to be.
struct Effort {
    /// Rounds of which the least counts.
    rounds: usize,
    /// Rounds of the curves, which are many.
    growth_rounds: usize,
    /// Whether the logs that take long to fill are left out.
    quick: bool,
    /// For each command, when latency is measured, and calls of redis-benchmark.
    service: (Duration, usize),
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
            rounds: rounds.unwrap_or(if quick { 3 } else { 12 }).max(1),
            growth_rounds: if quick { 1 } else { 4 },
            quick,
            service: if quick {
                (Duration::from_millis(200), 20_000)
            } else {
                (Duration::from_secs(2), 200_000)
            },
        })
    }

    /// Of these sizes the ones that are measured.
    fn sizes<T: Copy>(&self, all: &[T], size: fn(&T) -> u64) -> Vec<T> {
        let mut sizes = all.to_vec();
        sizes.retain(|one| !self.quick || size(one) <= 1_000);
        sizes
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
            counted::count(&mut results)?;
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

    results.set("name", name);
    results.set("server", Host::start(Module::Slide.setup()).version());
    results.set("rounds", effort.rounds);
    tell("CPU time a call");
    row::measure(rows::ALL, effort.rounds, &mut results);
    for size in effort.sizes(&steady::SIZES, |size| *size) {
        tell(&format!("logs of {size} entries in their steady state"));
        steady::measure(size, effort.rounds, &mut results);
    }
    tell("single logs");
    let sizes = effort.sizes(&hot::SIZES, |size| *size);
    hot::measure(&sizes, effort.rounds, &mut results);
    if !effort.quick {
        tell("slowest calls");
        slowest::measure(effort.rounds.min(5), &mut results);
        slowest::expiry(&mut results);
    }
    tell("memory of logs, bytes sent");
    let sizes = effort.sizes(&traffic::SIZES, |(size, _)| *size);
    traffic::measure(&sizes, &mut results);
    propagation::measure(&mut results);
    tell("memory of counters");
    memory::measure(&mut results);
    tell("latency and throughput");
    let (time, calls) = effort.service;
    service::measure(time, calls, effort.rounds.min(3), &mut results);
    if growth {
        tell("growth");
        growth::measure(effort.growth_rounds, &mut results);
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
    let shown = all
        .iter()
        .find(|results| !results.series(&growth::COST_LOG.name()).is_empty())
        .ok_or("no server was measured with its growth")?;
    plot::draw(&docs, all, shown)?;
    fs::write(docs.join("BENCHMARKS.md"), page::write(all, shown, counts)?)?;
    println!("Written: docs/BENCHMARKS.md and its pictures, docs/bench-*.svg");
    Ok(())
}
