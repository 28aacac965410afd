//! What is measured in rounds in which every command has its turn: CPU time a call, pipelined.

use std::collections::BTreeSet;

use crate::host::{Expected, Host, Module, keys};
use crate::results::Results;
use crate::scripts::Scripts;
use crate::support::now;
use crate::wire::Batch;

pub const KEYS: usize = 500;

/// Calls in a turn, where nothing else is said.
pub const CALLS: usize = 20_000;

/// Fewer for calls that take longer, to keep a round short.
pub const LONG_CALLS: usize = 5_000;

/// What the commands of rows are made of, besides their keys.
pub struct Words {
    pub scripts: Scripts,
    /// The server's clock when its keys were filled, in ms.
    pub now: u64,
}

impl Words {
    pub fn of(host: &mut Host) -> Self {
        Self {
            scripts: Scripts::load(&mut host.con),
            now: now(&mut host.con).unsigned_abs(),
        }
    }
}

/// A call, all of it: its figures are kept, shown and compared by this.
pub struct Row {
    /// What results and tables call it.
    pub name: &'static str,
    module: Module,
    /// A command that not all servers have.
    needs: Option<&'static str>,
    expected: Expected,
    /// Whether it is measured pipelined too, and not only one call at a time.
    pipelined: bool,
    /// What its keys begin with.
    prefix: &'static str,
    calls: usize,
    /// The commands that fill a key.
    fill: fn(&Words, &str) -> Vec<String>,
    /// The command of a call on a key, or several, one a line.
    call: fn(&Words, &str) -> String,
}

impl Row {
    pub const fn new(
        name: &'static str,
        prefix: &'static str,
        call: fn(&Words, &str) -> String,
    ) -> Self {
        Self {
            name,
            module: Module::Slide,
            needs: None,
            expected: Expected::Admitted,
            pipelined: true,
            prefix,
            calls: CALLS,
            fill: |_, _| Vec::new(),
            call,
        }
    }

    pub const fn of(mut self, module: Module) -> Self {
        self.module = module;
        self
    }

    pub const fn needing(mut self, command: &'static str) -> Self {
        self.needs = Some(command);
        self
    }

    pub const fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    pub const fn limited(self) -> Self {
        self.expecting(Expected::Limited)
    }

    /// Of calls that take longer.
    pub const fn long(mut self) -> Self {
        self.calls = LONG_CALLS;
        self
    }

    /// Only one call at a time.
    pub const fn singly(mut self) -> Self {
        self.pipelined = false;
        self
    }

    pub const fn filled(mut self, fill: fn(&Words, &str) -> Vec<String>) -> Self {
        self.fill = fill;
        self
    }

    /// Calls on `count` keys.
    pub fn batch(&self, words: &Words, count: usize, calls: usize) -> Batch {
        self.batch_on(self.prefix, words, count, calls)
    }

    /// The same on keys that begin otherwise.
    pub fn batch_on(&self, prefix: &str, words: &Words, count: usize, calls: usize) -> Batch {
        let keys = keys(prefix, count);
        let calls = keys.iter().cycle().take(calls);
        calls.flat_map(|key| self.lines(words, key)).collect()
    }

    /// The commands of a call on a key.
    pub fn lines(&self, words: &Words, key: &str) -> impl Iterator<Item = String> + use<> {
        let lines: Vec<String> = (self.call)(words, key).lines().map(str::to_owned).collect();
        lines.into_iter()
    }

    /// Fills `count` keys.
    pub fn prepare(&self, host: &mut Host, words: &Words, count: usize) {
        let keys = keys(self.prefix, count);
        let lines = keys.iter().flat_map(|key| (self.fill)(words, key));
        host.run(&lines.collect());
    }

    /// Whether this server can run it.
    pub fn is_known(&self, host: &mut Host) -> bool {
        self.needs.is_none_or(|command| host.knows(command))
    }

    pub fn prefix(&self) -> &'static str {
        self.prefix
    }

    pub fn expected(&self) -> Expected {
        self.expected
    }

    pub fn module(&self) -> Module {
        self.module
    }
}

/// A row on a running server.
struct Turn<'a> {
    row: &'a Row,
    host: usize,
    batch: Batch,
    least: f64,
}

/// Measures rows, in so many rounds after a first one that warms up; keeps the least of each.
pub fn measure(rows: &[&Row], rounds: usize, results: &mut Results) {
    let names: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), rows.len(), "two rows with one name");
    let mut hosts = Vec::new();
    let mut turns = Vec::new();
    for module in Module::ALL.into_iter().filter(|module| module.is_there()) {
        let mut host = Host::start(module.setup());
        let words = Words::of(&mut host);
        for row in rows
            .iter()
            .filter(|row| row.module == module && row.pipelined)
        {
            if row.is_known(&mut host) {
                row.prepare(&mut host, &words, KEYS);
                turns.push(Turn {
                    row,
                    host: hosts.len(),
                    batch: row.batch(&words, KEYS, row.calls),
                    least: f64::INFINITY,
                });
            }
        }
        hosts.push(host);
    }
    // Those that are compared with each other follow each other.
    let place = |row: &Row| rows.iter().position(|other| other.name == row.name);
    turns.sort_by_key(|turn| place(turn.row));
    for round in 0..=rounds {
        for turn in &mut turns {
            let host = &mut hosts[turn.host];
            let before = host.cpu();
            host.run_expecting(&turn.batch, turn.row.expected);
            let cost = (host.cpu() - before) / turn.row.calls as f64;
            if round > 0 {
                turn.least = turn.least.min(cost);
            }
        }
    }
    for turn in turns {
        results.set(turn.row.name, turn.least);
    }
}
