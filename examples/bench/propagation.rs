//! Bytes that a call sends to replicas and the append-only file, measured by that file.

use crate::host::{ENDLESS, Expected, Host, fill_log, keys};
use crate::results::Results;
use crate::scripts::Scripts;
use crate::support::{Setup, info_number, now};
use crate::wire::Batch;

const KEYS: usize = 100;

/// Calls on each key: 32 take part in one trim.
const SWEEPS: usize = 32;

/// A call on a key.
type Line<'a> = &'a dyn Fn(&str) -> String;

pub fn measure(results: &mut Results) {
    let host = &mut Host::with(Setup::new().line("appendonly yes").line("appendfsync no"));
    let Scripts { log, counter, .. } = Scripts::load(&mut host.con);
    let now = now(&mut host.con).unsigned_abs();
    for prefix in ["log", "lim", "lua"] {
        for key in keys(prefix, KEYS) {
            fill_log(host, &key, 150, now, 1);
        }
    }
    let admitted = Expected::Admitted;
    let rows: [(&str, Expected, &str, Line); 10] = [
        ("INCR", admitted, "int", &|key| format!("INCR {key}")),
        ("COUNTER", admitted, "cnt", &|key| {
            format!("SLIDE.COUNTER {key} {ENDLESS} 1d")
        }),
        ("COUNTER BUCKETS 10", admitted, "ctb", &|key| {
            format!("SLIDE.COUNTER {key} {ENDLESS} 1d BUCKETS 10")
        }),
        ("COUNTER limited", Expected::Limited, "ctl", &|key| {
            format!("SLIDE.COUNTER {key} 0 1d")
        }),
        ("LOG", admitted, "log", &|key| {
            format!("SLIDE.LOG {key} {ENDLESS} 1d")
        }),
        ("LOG COST 100", admitted, "log", &|key| {
            format!("SLIDE.LOG {key} {ENDLESS} 1d COST 100")
        }),
        ("LOG limited", Expected::Limited, "lim", &|key| {
            format!("SLIDE.LOG {key} 100 1d")
        }),
        ("Lua counter", admitted, "luc", &|key| {
            format!("{counter} {key} {ENDLESS} 86400000 1")
        }),
        ("Lua log", admitted, "lua", &|key| {
            format!("{log} {key} {ENDLESS} 86400000 1")
        }),
        ("Lua log COST 100", admitted, "lux", &|key| {
            format!("{log} {key} {ENDLESS} 86400000 100")
        }),
    ];
    for (name, expected, prefix, line) in rows {
        let keys = keys(prefix, KEYS);
        let sweep = |_| keys.iter().map(|key| line(key)).collect();
        let sweeps: Vec<Batch> = (0..SWEEPS).map(sweep).collect();
        // The first call on a key also sets its expiry.
        host.run(&sweeps[0]);
        let before = written(host);
        host.cost(&sweeps, expected);
        let bytes = written(host) - before;
        results.set(
            format!("bytes sent by {name}"),
            bytes as f64 / (KEYS * SWEEPS) as f64,
        );
    }
}

fn written(host: &mut Host) -> i64 {
    info_number(&mut host.con, "persistence", "aof_current_size")
}
