//! Bytes that a call sends to replicas and the append-only file, measured by that file.

use crate::host::{Host, Module};
use crate::results::Results;
use crate::row::{Row, Words};
use crate::rows;
use crate::support::info_number;

const KEYS: usize = 100;
const CALLS: usize = 3_200;

/// The name of a row's figure.
pub fn of(row: &Row) -> String {
    format!("bytes sent by {}", row.name)
}

pub fn measure(results: &mut Results) {
    for module in [Module::Slide, Module::Cell] {
        if !module.is_there() {
            continue;
        }
        let setup = module.setup().line("appendonly yes");
        let mut host = Host::start(setup.line("appendfsync no"));
        let words = Words::of(&mut host);
        for row in rows::ALL.iter().filter(|row| row.module() == module) {
            if row.is_known(&mut host) {
                row.prepare(&mut host, &words, KEYS);
                // The first call on a key also sets its expiry.
                host.run(&row.batch(&words, KEYS, KEYS));
                let before = written(&mut host);
                host.run(&row.batch(&words, KEYS, CALLS));
                let sent = written(&mut host) - before;
                results.set(of(row), sent as f64 / CALLS as f64);
            }
        }
    }
}

/// The length of the append-only file.
pub fn written(host: &mut Host) -> i64 {
    info_number(&mut host.con, "persistence", "aof_current_size")
}
