//! A server that is measured.

use std::fmt::Write as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::Connection;

use crate::support::{Server, Setup, info, info_number, run};
use crate::wire::{Batch, Wire};

/// From one call on a key to the next, so that they do not fall into the same ms.
const SPACING: Duration = Duration::from_micros(1500);

/// A limit that nothing here reaches.
pub const ENDLESS: u64 = 1_000_000_000;

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
    pub fn start() -> Self {
        Self::with(Setup::new())
    }

    pub fn with(setup: Setup) -> Self {
        let server = setup.start();
        Self {
            con: server.connect(),
            wire: Wire::connect(server.port()),
            server,
        }
    }

    /// Runs commands whose verdicts do not matter.
    pub fn run(&mut self, batch: &Batch) {
        self.wire.run(batch);
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

    /// CPU time of the server's main thread a command, in µs. Of several batches each begins so much
    /// later than the last that a key that is called once in each is called in another ms each time.
    pub fn cost(&mut self, batches: &[Batch], expected: Expected) -> f64 {
        let before = self.cpu();
        for batch in batches {
            let next = Instant::now() + SPACING;
            self.run_expecting(batch, expected);
            if batches.len() > 1 {
                sleep(next.saturating_duration_since(Instant::now()));
            }
        }
        let commands: usize = batches.iter().map(Batch::len).sum();
        (self.cpu() - before) / commands as f64
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

    pub fn flush(&mut self) {
        run::<()>(&mut self.con, "FLUSHALL", &["SYNC"]);
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

/// Puts entries into a log as calls would have, one each `step` ms up to `newest`.
pub fn fill_log(host: &mut Host, key: &str, entries: u64, newest: u64, step: u64) {
    const AT_ONCE: u64 = 100;
    let mut batch = Batch::default();
    let mut total = 0;
    while total < entries {
        let mut line = format!("ZADD {key}");
        for _ in 0..AT_ONCE.min(entries - total) {
            total += 1;
            let time = newest - (entries - total) * step;
            let _ = write!(line, " {time} {total}:1");
        }
        batch.push(&line);
    }
    host.run(&batch);
}
