//! Figures as they are shown: what they are, and the bounds that the module is held to.

use std::fmt::Write as _;

use crate::bounds::BOUNDS;
use crate::others::OTHERS;
use crate::results::Results;

/// A figure, and what it may be at most.
pub struct Line {
    pub what: &'static str,
    pub value: fn(&Results) -> Option<f64>,
    pub bound: fn(&Results) -> Option<f64>,
    /// Whether it is a ratio to a peer; else a plain figure.
    pub ratio: bool,
    /// Why it is more than the bound where it is.
    pub why: &'static str,
}

/// A ratio of two figures, by their names; with a bound and the reason why it may not be met, or without.
macro_rules! ratio {
    ($what:expr, $of:expr, $to:expr) => {
        Line {
            what: $what,
            value: |results| results.ratio($of.as_ref(), $to.as_ref()),
            bound: |_| None,
            ratio: true,
            why: "",
        }
    };
    ($what:expr, $of:expr, $to:expr, $bound:expr, $why:expr) => {
        Line {
            bound: |_| Some($bound),
            why: $why,
            ..ratio!($what, $of, $to)
        }
    };
}
pub(crate) use ratio;

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
    let mut text = format!("{:58} {:>9}", "", "at most");
    for results in all {
        let _ = write!(text, " {:>14}", results.text("name"));
    }
    text.push('\n');
    for line in BOUNDS.iter().chain(OTHERS) {
        let _ = write!(text, "{:58} {:>9}", line.what, line.bound(all));
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
