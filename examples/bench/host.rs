//! A server that is measured.

use std::env;
use std::fmt::Write as _;
use std::path::PathBuf;

use redis::Connection;

use crate::support::clock::{Clock, Frozen};
use crate::support::{Server, Setup, info, info_number, run};
use crate::wire::{Batch, Wire};

/// A limit that nothing here reaches.
pub const ENDLESS: u64 = 1_000_000_000;

/// What a server has loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Module {
    Slide,
    /// slide 0.1.0.
    Released,
    /// examples/bench/peers/floor.c.
    Floor,
    /// redis-cell.
    Cell,
}

impl Module {
    pub const ALL: [Module; 4] = [Module::Slide, Module::Released, Module::Floor, Module::Cell];

    /// Its file; `None` where scripts/bench-peers could not build it.
    fn file(self) -> Option<PathBuf> {
        let name = match self {
            Module::Slide => return Some(Setup::module_file()),
            Module::Released => "slide-0.1.0.so",
            Module::Floor => "floor.so",
            Module::Cell => "redis-cell.so",
        };
        let file = PathBuf::from(env::var_os("SLIDE_PEERS")?).join(name);
        file.exists().then_some(file)
    }

    pub fn is_there(self) -> bool {
        self.file().is_some()
    }

    /// A server with it, that is to be started.
    pub fn setup(self) -> Setup {
        let file = self.file().expect("a module that is there");
        let load = format!("loadmodule {}", file.display());
        Setup::new().without_module().line(&load)
    }
}

/// What all calls of a row are expected to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Admitted,
    Limited,
    /// The reply begins with something else.
    NoVerdict,
}

pub struct Host {
    pub server: Server,
    pub con: Connection,
    wire: Wire,
    clock: Option<Clock>,
}

/// As many different keys, the same in every run.
pub fn keys(prefix: &str, count: usize) -> Vec<String> {
    (0..count as u64)
        .map(|index| format!("{prefix}:{:016x}", scrambled(index)))
        .collect()
}

/// A number that looks like chance (the finalizer of `SplitMix64`).
pub fn scrambled(index: u64) -> u64 {
    let mut bits = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Host {
    /// With the machine's clock.
    pub fn start(setup: Setup) -> Self {
        let server = setup.start();
        Self {
            con: server.connect(),
            wire: Wire::connect(server.port()),
            server,
            clock: None,
        }
    }

    /// With a clock that is set, and stands still in between.
    pub fn with_clock(setup: Setup) -> Self {
        let Frozen {
            con, clock, server, ..
        } = Frozen::start_with(setup);
        Self {
            con,
            wire: Wire::connect(server.port()),
            server,
            clock: Some(clock),
        }
    }

    /// The clock of a server that was started with one.
    pub fn clock(&self) -> &Clock {
        self.clock.as_ref().expect("a server with a clock to set")
    }

    /// Runs commands whose verdicts do not matter.
    pub fn run(&mut self, batch: &Batch) {
        self.wire.run(batch);
    }

    /// Runs one command whose verdict does not matter.
    pub fn run_line(&mut self, line: &str) {
        self.run(&[line].into_iter().collect());
    }

    /// Runs commands that must all be answered alike.
    pub fn run_expecting(&mut self, batch: &Batch, expected: Expected) {
        let limited = self.wire.run(batch);
        let wanted = match expected {
            Expected::Admitted => 0,
            Expected::Limited => batch.len(),
            Expected::NoVerdict => return,
        };
        assert_eq!(limited, wanted, "limited calls of {}", batch.len());
    }

    /// CPU time that the server's main thread has used, in µs.
    pub fn cpu(&mut self) -> f64 {
        let text: String = run(&mut self.con, "INFO", &["cpu"]);
        let seconds = |field: &str| -> f64 {
            let value = text.lines().find_map(|line| line.strip_prefix(field));
            value
                .and_then(|value| value.parse().ok())
                .unwrap_or_else(|| panic!("INFO has no {field}"))
        };
        let user = seconds("used_cpu_user_main_thread:");
        (user + seconds("used_cpu_sys_main_thread:")) * 1e6
    }

    pub fn memory(&mut self) -> f64 {
        info_number(&mut self.con, "memory", "used_memory") as f64
    }

    /// Whether the server knows a command.
    pub fn knows(&mut self, command: &str) -> bool {
        let known: Vec<Option<Vec<redis::Value>>> =
            run(&mut self.con, "COMMAND", &["INFO", command]);
        known.iter().any(Option::is_some)
    }

    /// The server and its allocator, with their versions.
    pub fn version(&mut self) -> String {
        let mut field = |name: &str| info(&mut self.con, "server", name);
        let name = match field("valkey_version") {
            Some(version) => format!("Valkey {version}"),
            None => format!("Redis {}", field("redis_version").expect("a version")),
        };
        let allocator = info(&mut self.con, "memory", "mem_allocator").expect("an allocator");
        format!("{name} ({allocator})")
    }
}

/// Commands that put entries into a log as version 0.1 wrote them, one each `step` ms up to `newest`.
pub fn log_lines(key: &str, entries: u64, newest: u64, step: u64) -> Vec<String> {
    const AT_ONCE: u64 = 100;
    let mut lines = Vec::new();
    let mut total = 0;
    while total < entries {
        let mut line = format!("ZADD {key}");
        for _ in 0..AT_ONCE.min(entries - total) {
            total += 1;
            let time = newest - (entries - total) * step;
            let _ = write!(line, " {time} {total}:1");
        }
        lines.push(line);
    }
    lines
}
