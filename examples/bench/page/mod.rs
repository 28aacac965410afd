//! docs/BENCHMARKS.md: first what a user asks, then what the module is held to, then everything.

mod details;
mod front;
mod method;
mod targets;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use crate::results::Results;

/// The page, from the figures of all servers, those of the one that also has the curves, and counts
/// of instructions.
///
/// # Errors
/// When the machine does not say what it is.
pub fn write(all: &[Results], shown: &Results, counts: &Results) -> Result<String, Box<dyn Error>> {
    let mut parts = vec![front::write(all), machine(all)?];
    parts.extend(targets::write(all, counts));
    parts.extend(details::write(all, shown));
    parts.push(method::write(all, shown));
    Ok(parts.join("\n"))
}

fn machine(all: &[Results]) -> Result<String, Box<dyn Error>> {
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("an unknown processor", |(_, model)| model);
    let date = Command::new("date").arg("+%F").output()?;
    let mut text = format!(
        "## The machine

Times are worth little on another machine; ratios that were measured in the same run are worth more.

- {model}, {} cores; client and server share it.\n- {}. slide {}.\n",
        available_parallelism()?,
        String::from_utf8(date.stdout)?.trim(),
        env!("CARGO_PKG_VERSION"),
    );
    for results in all {
        let (name, server) = (results.text("name"), results.text("server"));
        let _ = writeln!(text, "- {name}: {server}");
    }
    Ok(text)
}

/// A row of a table: its head, and its cells.
type Cells = (Vec<String>, Vec<String>);

/// A table with a column for each server; rows without a figure are left out.
fn table(all: &[Results], first: &[&str], rows: &[Cells]) -> String {
    let names = all.iter().map(|results| results.text("name"));
    plain_table(first, &names.collect::<Vec<_>>(), rows)
}

fn plain_table(first: &[&str], columns: &[&str], rows: &[Cells]) -> String {
    let mut text = format!("| {} | {} |", first.join(" | "), columns.join(" | "));
    let _ = write!(
        text,
        "\n|---|{}",
        "--:|".repeat(first.len() - 1 + columns.len())
    );
    let any = |cells: &[String]| cells.iter().any(|cell| cell != NOTHING);
    for (head, cells) in rows.iter().filter(|(_, cells)| any(cells)) {
        let _ = write!(text, "\n| {} | {} |", head.join(" | "), cells.join(" | "));
    }
    text.push('\n');
    text
}

/// Figures of all servers: what each row says, and the figure's name.
fn figures(all: &[Results], rows: &[(String, String)], digits: usize) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|(title, name)| {
            let cells = all
                .iter()
                .map(|results| figure(results.number(name), digits));
            (vec![title.clone()], cells.collect())
        })
        .collect();
    table(all, &[""], &rows)
}

/// What stands for a figure that there is not.
const NOTHING: &str = "–";

fn figure(value: Option<f64>, digits: usize) -> String {
    match value {
        None => NOTHING.to_owned(),
        Some(value) if digits == 0 => grouped(value.round() as u64),
        Some(value) => format!("{value:.digits$}"),
    }
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
