//! A guard that does not depend on the machine's speed: how many instructions a call takes. The module's own
//! are the same in every run, so that little more than the baseline is too much. Of the whole server the
//! bound is wider, and on a multiple of what a plain command takes in the same run.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::callgrind::Instructions;
use crate::counted::{Counting, measure};

/// How much more than the baseline is too much, of the module's own instructions and of the server's.
const OWN_TOLERANCE: f64 = 0.03;
const TOLERANCE: f64 = 0.15;

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
