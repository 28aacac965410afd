//! What keys take of the server's memory.

use std::thread::sleep;
use std::time::Duration;

use crate::host::{ENDLESS, Expected, Host, fill_log, keys};
use crate::results::Results;
use crate::support::{now, run};
use crate::wire::Batch;

pub const COUNTERS: usize = 1_000_000;

/// Entries of a log, and how many such logs.
pub const LOGS: [(u64, usize); 4] = [(10, 10_000), (100, 1_000), (1_000, 100), (100_000, 1)];

pub fn measure(host: &mut Host, results: &mut Results) {
    host.flush();
    let empty = host.memory();
    let counters: Batch = keys("ip", COUNTERS)
        .iter()
        .map(|key| format!("SLIDE.COUNTER {key} 100 60s"))
        .collect();
    host.run_expecting(&counters, Expected::Admitted);
    let taken = host.memory() - empty;
    results.set("bytes a counter", taken / COUNTERS as f64);

    for (entries, logs) in LOGS {
        host.flush();
        let empty = host.memory();
        let newest = now(&mut host.con).unsigned_abs();
        for key in keys("log", logs) {
            fill_log(host, &key, entries - 1, newest, 1);
            let call = format!("SLIDE.LOG {key} {ENDLESS} 1d");
            host.run_expecting(&[call].iter().collect(), Expected::Admitted);
        }
        let taken = host.memory() - empty;
        results.set(
            format!("bytes an entry {entries}"),
            taken / (entries as f64 * logs as f64),
        );
    }
    host.flush();
    results.set("entries a call", entries_a_call(host));
    host.flush();
}

/// Entries that a call of cost 100 adds.
fn entries_a_call(host: &mut Host) -> f64 {
    const CALLS: usize = 20;
    let call = [format!("SLIDE.LOG log {ENDLESS} 1d COST 100")]
        .iter()
        .collect();
    for _ in 0..CALLS {
        host.run_expecting(&call, Expected::Admitted);
        // Calls in the same ms would share an entry.
        sleep(Duration::from_millis(3));
    }
    let entries: f64 = run(&mut host.con, "ZCARD", &["log"]);
    entries / CALLS as f64
}
