//! What a client sees that sends one call and waits for the reply.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::host::{Expected, Host, Module, keys};
use crate::results::Results;
use crate::row::{Row, Words};
use crate::rows::{
    COUNTER, COUNTER_LIMITED, FIXED_WINDOW, INCR, INCREX, LEASE, LOG, LOG_LIMITED, LUA_COUNTER,
    LUA_LOG, PING, THROTTLE,
};
use crate::wire::{Batch, Wire};

/// Calls a second when latency is measured.
pub const RATE: u32 = 5_000;

/// Connections of redis-benchmark: its default.
pub const CLIENTS: usize = 50;

const KEYS: usize = 1_000;

/// Gives the server the processor for what it puts off.
const PAUSE: Duration = Duration::from_millis(50);

pub static ROWS: [&Row; 12] = [
    &PING,
    &INCR,
    &FIXED_WINDOW,
    &INCREX,
    &THROTTLE,
    &COUNTER,
    &COUNTER_LIMITED,
    &LOG,
    &LOG_LIMITED,
    &LEASE,
    &LUA_COUNTER,
    &LUA_LOG,
];

/// The name of a row's latency in µs, at a number of thousandths.
pub fn latency_of(row: &Row, thousandth: usize) -> String {
    format!("latency {thousandth} of {}", row.name)
}

/// The name of a row's calls a second by redis-benchmark.
pub fn rate_of(row: &Row) -> String {
    format!("calls a second of {}", row.name)
}

pub const MEDIAN: usize = 500;
pub const P99: usize = 990;

/// Measures each row for this long, latency and then throughput.
pub fn measure(time: Duration, calls: usize, rounds: usize, results: &mut Results) {
    for module in [Module::Slide, Module::Cell] {
        if !module.is_there() {
            continue;
        }
        let mut host = Host::start(module.setup());
        let words = Words::of(&mut host);
        let mut known = ROWS.to_vec();
        known.retain(|row| row.module() == module && row.is_known(&mut host));
        for row in &known {
            row.prepare(&mut host, &words, KEYS);
            latency(&mut host, row, &words, time, results);
        }
        let mut best = vec![0.0_f64; known.len()];
        for _ in 0..rounds {
            for (row, best) in known.iter().zip(&mut best) {
                if let Some(rate) = rate(&host, row, &words, calls) {
                    *best = best.max(rate);
                }
            }
        }
        for (row, best) in known.iter().zip(best) {
            if best > 0.0 {
                results.set(rate_of(row), best);
            }
        }
    }
}

/// Calls begin at fixed instants. Where one is late because the one before it was slow, that counts
/// as its own delay.
fn latency(host: &mut Host, row: &Row, words: &Words, time: Duration, results: &mut Results) {
    let calls: Vec<Batch> = keys(row.prefix(), KEYS)
        .iter()
        .map(|key| row.lines(words, key).collect())
        .collect();
    for call in &calls {
        host.run_expecting(call, row.expected());
    }
    sleep(PAUSE);
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
    for thousandth in [MEDIAN, P99] {
        let delay = delays[(delays.len() - 1) * thousandth / 1000];
        results.set(latency_of(row, thousandth), delay.as_secs_f64() * 1e6);
    }
}

/// Calls a second by redis-benchmark, each on one of many keys that it draws. It sends one command at a
/// time; `None` for calls of several.
fn rate(host: &Host, row: &Row, words: &Words, calls: usize) -> Option<f64> {
    let mut lines = row.lines(words, &format!("{}:__rand_int__", row.prefix()));
    let (line, None) = (lines.next()?, lines.next()) else {
        return None;
    };
    // Where a call is limited, the keys have to be those that were filled.
    if row.expected() == Expected::Limited {
        return None;
    }
    let output = Command::new("redis-benchmark")
        .args(["--csv", "-p", &host.server.port().to_string()])
        .args(["-c", &CLIENTS.to_string(), "-n", &calls.to_string()])
        .args(["-r", &KEYS.to_string()])
        .args(line.split(' '))
        .output()
        .expect("redis-benchmark is missing: `make setup` installs it");
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().last()?.rsplit("\",\"").nth(6)?.parse();
    Some(rate.unwrap_or_else(|_| panic!("redis-benchmark said: {text}")))
}
