//! What keys that do not grow take of the server's memory, with a TTL: bytes a key, of many.

use crate::host::{Host, Module};
use crate::results::Results;
use crate::row::{Row, Words};
use crate::rows::{COUNTER, FIXED_WINDOW, INCREX, LUA_COUNTER, THROTTLE};

const KEYS: usize = 1_000_000;

pub static ROWS: [&Row; 5] = [&COUNTER, &FIXED_WINDOW, &INCREX, &THROTTLE, &LUA_COUNTER];

/// The name of a row's figure.
pub fn of(row: &Row) -> String {
    format!("bytes a key of {}", row.name)
}

pub fn measure(results: &mut Results) {
    for row in ROWS.iter().filter(|row| row.module().is_there()) {
        let mut host = Host::start(Module::setup(row.module()));
        if row.is_known(&mut host) {
            let words = Words::of(&mut host);
            let batch = row.batch_on("ip", &words, KEYS, KEYS);
            let empty = host.memory();
            host.run_expecting(&batch, row.expected());
            results.set(of(row), (host.memory() - empty) / KEYS as f64);
        }
    }
}
