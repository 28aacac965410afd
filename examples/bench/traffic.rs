//! What logs in steady traffic take of the server's memory, and what their calls send to replicas and the
//! append-only file: calls of cost 1 that come by chance, by how many of them an hour's window holds.

use crate::host::{ENDLESS, Expected, Host, Module, keys, scrambled};
use crate::propagation::written;
use crate::results::Results;
use crate::row::Words;
use crate::support::clock::START;
use crate::wire::Batch;

const WINDOW_MS: u64 = 3_600_000;

/// Calls in the window, and the keys that get them.
pub const SIZES: [(u64, usize); 5] = [
    (10, 2_000),
    (100, 500),
    (1_000, 50),
    (10_000, 16),
    (100_000, 8),
];

/// Calls on each key when all is as it stays, half a window's besides.
const MORE: u64 = 200;

/// Keys join in groups, so that they are not all trimmed and packed by the same calls.
const GROUPS: usize = 64;

/// A log, as one of several ways keeps it.
pub struct Kept {
    /// What results and tables call it.
    pub name: &'static str,
    module: Module,
    call: fn(&Words, &str) -> String,
}

pub static LOG: Kept = Kept {
    name: "SLIDE.LOG",
    module: Module::Slide,
    call: |_, key| format!("SLIDE.LOG {key} {ENDLESS} {WINDOW_MS}ms"),
};
pub static RELEASED: Kept = Kept {
    name: "SLIDE.LOG of 0.1.0",
    module: Module::Released,
    ..LOG
};
pub static LUA: Kept = Kept {
    name: "log in Lua, a member a unit",
    module: Module::Slide,
    call: |words, key| format!("{} {key} {ENDLESS} {WINDOW_MS} 1", words.scripts.log),
};
pub static ALL: [&Kept; 3] = [&LOG, &RELEASED, &LUA];

impl Kept {
    /// The name of its bytes of memory a live call.
    pub fn memory(&self) -> String {
        format!("bytes a live call, {},", self.name)
    }

    /// The name of the bytes that a call sends.
    pub fn sent(&self) -> String {
        format!("bytes sent a call, {},", self.name)
    }

    fn measure(&self, (size, count): (u64, usize), results: &mut Results) {
        let setup = self.module.setup().line("appendonly yes");
        let setup = setup.line("appendfsync no");
        let mut host = Host::with_clock(setup.line("auto-aof-rewrite-percentage 0"));
        let words = Words::of(&mut host);
        let call = |key: &String| (self.call)(&words, key);
        let keys = keys("log", count);
        let everyone: Batch = keys.iter().map(call).collect();
        let group = |first: usize| keys.iter().skip(first).step_by(GROUPS).map(call).collect();
        let groups: Vec<Batch> = (0..GROUPS).map(group).collect();
        let empty = host.memory();
        let settled = size + size / 2 + MORE;
        let arrivals = arrivals(size, settled + size / 2 + MORE);
        let mut before = 0;
        for (&at, number) in arrivals.iter().zip(0_usize..) {
            host.clock().stop(START + at.cast_signed());
            if number as u64 == settled {
                before = written(&mut host);
            }
            if number < GROUPS {
                for group in &groups[..=number] {
                    host.run_expecting(group, Expected::Admitted);
                }
            } else {
                host.run_expecting(&everyone, Expected::Admitted);
            }
        }
        let sent = written(&mut host) - before;
        let in_all = count * (arrivals.len() - settled as usize);
        results.set(
            format!("{} {size}", self.sent()),
            sent as f64 / in_all as f64,
        );
        let last = arrivals.last().copied().unwrap_or(0);
        let live = arrivals.iter().filter(|&&at| at + WINDOW_MS > last).count() * count;
        let taken = host.memory() - empty;
        results.set(format!("{} {size}", self.memory()), taken / live as f64);
    }
}

/// When calls come, in ms: with gaps of the exponential distribution, so that the window holds so many.
fn arrivals(size: u64, count: u64) -> Vec<u64> {
    let mean = WINDOW_MS as f64 / size as f64;
    let gap = |number: u64| {
        let chance = (scrambled(number) >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - chance).ln() * mean).ceil() as u64
    };
    let mut at = 0;
    (0..count)
        .map(|number| {
            at += gap(number).max(1);
            at
        })
        .collect()
}

pub fn measure(sizes: &[(u64, usize)], results: &mut Results) {
    for size in sizes {
        for kept in ALL.iter().filter(|kept| kept.module.is_there()) {
            kept.measure(*size, results);
        }
    }
}
