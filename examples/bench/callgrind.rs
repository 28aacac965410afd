//! Instructions that a server under valgrind takes, and of these the module's own.

use std::error::Error;
use std::fs;
use std::mem;
use std::path::PathBuf;
use std::process::Command;

use crate::host::{Expected, Host, Module};
use crate::support::clock::START;
use crate::support::{Setup, info_number};
use crate::wire::Batch;

/// What the whole server takes, and of that the module's own code.
#[derive(Debug, Clone, Copy)]
pub struct Instructions {
    pub all: f64,
    pub own: f64,
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

/// A server under valgrind, with a clock that is set: it does the same in every run.
pub struct Counted {
    pub host: Host,
    vgdb: Command,
    now: i64,
}

impl Counted {
    pub fn start() -> Self {
        // The server's own chores are not counted more often than need be.
        let mut host = Host::with_clock(Module::Slide.setup().line("hz 1"));
        let pid = info_number(&mut host.con, "server", "process_id");
        let pipes = host.server.dir().join("vgdb");
        let mut vgdb = Command::new("vgdb");
        vgdb.arg(format!("--vgdb-prefix={}", pipes.display()))
            .args([format!("--pid={pid}").as_str(), "dump"]);
        Self {
            host,
            vgdb,
            now: START,
        }
    }

    /// Runs a batch so many times, each time a tick of the clock later.
    pub fn sweep(&mut self, batch: &Batch, times: u64, tick_ms: i64, expected: Expected) {
        for _ in 0..times {
            self.now += tick_ms;
            self.host.clock().stop(self.now);
            self.host.run_expecting(batch, expected);
        }
    }

    /// Instructions since this was asked last.
    ///
    /// # Errors
    /// When valgrind did not count them.
    pub fn instructions(&mut self) -> Result<Instructions, Box<dyn Error>> {
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
}
