//! What a client sees that sends one call and waits for the reply.

use std::thread;
use std::time::{Duration, Instant};

use crate::host::{ENDLESS, Host, fill_log, keys, scrambled};
use crate::results::Results;
use crate::scripts::Scripts;
use crate::support::now;
use crate::wire::{Batch, Wire};

/// Calls a second when latency is measured.
pub const RATE: u32 = 5_000;

/// Connections that each wait for a reply before the next call, when throughput is measured.
pub const CLIENTS: usize = 16;

const KEYS: usize = 1_000;

pub const COMMANDS: [&str; 7] = [
    "INCR",
    "COUNTER",
    "COUNTER limited",
    "LOG",
    "LOG limited",
    "Lua counter",
    "Lua log",
];

/// Measures each command for this long, latency and then throughput.
pub fn measure(host: &mut Host, time: Duration, results: &mut Results) {
    let Scripts { log, counter, .. } = Scripts::load(&mut host.con);
    let now = now(&mut host.con).unsigned_abs();
    for key in keys("lim", KEYS) {
        fill_log(host, &key, 5, now, 1);
        let full = format!("SLIDE.COUNTER {key}l 5 1d COST 5");
        host.run(&[full].iter().collect());
    }
    let line = |name: &str, key: &str| match name {
        "INCR" => format!("INCR {key}i"),
        "COUNTER" => format!("SLIDE.COUNTER {key}c {ENDLESS} 60s"),
        "COUNTER limited" => format!("SLIDE.COUNTER {key}l 5 1d"),
        "LOG" => format!("SLIDE.LOG {key}s {ENDLESS} 10s"),
        "LOG limited" => format!("SLIDE.LOG {key} 5 1d"),
        "Lua counter" => format!("{counter} {key}h {ENDLESS} 60000 1"),
        _ => format!("{log} {key}z {ENDLESS} 10000 1"),
    };
    for name in COMMANDS {
        let calls: Vec<Batch> = keys("lim", KEYS)
            .iter()
            .map(|key| [line(name, key)].iter().collect())
            .collect();
        latency(host, name, &calls, time, results);
        throughput(host, name, &calls, time, results);
    }
    host.flush();
}

/// Calls begin at fixed instants. Where one is late because the one before it was slow, that counts
/// as its own delay.
fn latency(host: &Host, name: &str, calls: &[Batch], time: Duration, results: &mut Results) {
    let mut wire = Wire::connect(host.server.port());
    let interval = Duration::from_secs(1) / RATE;
    let begin = Instant::now();
    let mut delays = Vec::new();
    let mut due = begin;
    for call in calls.iter().cycle() {
        // Sleeping would wake up too late by more than what is measured.
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        wire.run(call);
        delays.push(due.elapsed());
        due += interval;
        if due.duration_since(begin) >= time {
            break;
        }
    }
    delays.sort_unstable();
    for (percentile, label) in [(500, "p50"), (990, "p99")] {
        let delay = delays[(delays.len() - 1) * percentile / 1000];
        results.set(format!("{label} {name}"), delay.as_secs_f64() * 1e6);
    }
}

fn throughput(host: &mut Host, name: &str, calls: &[Batch], time: Duration, results: &mut Results) {
    let port = host.server.port();
    let before = host.cpu();
    let begin = Instant::now();
    let client = |number: usize| {
        let mut wire = Wire::connect(port);
        let mut done = 0_u64;
        while begin.elapsed() < time {
            let call = scrambled(done + ((number as u64) << 32)) as usize % calls.len();
            wire.run(&calls[call]);
            done += 1;
        }
        done
    };
    let done: u64 = thread::scope(|scope| {
        let client = &client;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(move || client(number)))
            .collect();
        let counts = clients.into_iter().map(thread::ScopedJoinHandle::join);
        counts.map(|count| count.expect("a client")).sum()
    });
    let seconds = begin.elapsed().as_secs_f64();
    results.set(format!("calls/s {name}"), done as f64 / seconds);
    results.set(
        format!("unpipelined {name}"),
        (host.cpu() - before) / done as f64,
    );
}
