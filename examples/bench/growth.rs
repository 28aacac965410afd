//! CPU time a call against the number of tiers, buckets and keys, and against the cost.

use crate::host::{ENDLESS, Expected, Host, fill_log, keys, scrambled};
use crate::results::Results;
use crate::scripts::Scripts;
use crate::support::now;
use crate::wire::Batch;

pub const TIERS: [u64; 5] = [1, 2, 4, 8, 16];
pub const BUCKETS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
pub const NUMBERS_OF_KEYS: [usize; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
pub const COSTS: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

const KEYS: usize = 250;
const CALLS: usize = 10_000;

/// More where caches are to be missed: each on a key chosen anew.
const SCATTERED_CALLS: u64 = 50_000;
const DAY: u64 = 86_400_000;

/// Units that the Lua script records at each cost: it adds a member for each.
const LUA_UNITS: u64 = 20_000;

pub fn measure(host: &mut Host, rounds: usize, results: &mut Results) {
    tiers(host, rounds, results);
    buckets(host, rounds, results);
    costs(host, rounds, results);
    number_of_keys(host, rounds, results);
}

/// Measures series of calls side by side, round by round, and keeps the least of each.
fn series(
    host: &mut Host,
    rounds: usize,
    results: &mut Results,
    points: Vec<(String, Vec<Batch>)>,
) {
    let mut least = vec![f64::INFINITY; points.len()];
    // The first round only warms up.
    for round in 0..=rounds {
        for ((_, batches), least) in points.iter().zip(&mut least) {
            let cost = host.cost(batches, Expected::Admitted);
            if round > 0 {
                *least = least.min(cost);
            }
        }
    }
    for ((name, _), least) in points.into_iter().zip(least) {
        results.set(name, least);
    }
    host.flush();
}

/// Calls on all keys in turn, at full speed.
fn flat(keys: &[String], line: impl Fn(&str) -> String) -> Vec<Batch> {
    let count = keys.len().max(CALLS);
    let lines = keys.iter().cycle().take(count).map(|key| line(key));
    vec![lines.collect()]
}

/// Calls on all keys in turn, those on a key each in a ms of its own.
fn swept(keys: &[String], line: impl Fn(&str) -> String) -> Vec<Batch> {
    let sweep = |_| keys.iter().map(|key| line(key)).collect();
    (0..CALLS / KEYS).map(sweep).collect()
}

fn fill_logs(host: &mut Host, keys: &[String]) {
    let newest = now(&mut host.con).unsigned_abs();
    for key in keys {
        fill_log(host, key, 400, newest, 1);
    }
}

fn tiers(host: &mut Host, rounds: usize, results: &mut Results) {
    let (logs, counters) = (keys("log", KEYS), keys("cnt", KEYS));
    fill_logs(host, &logs);
    let points = TIERS.iter().flat_map(|&count| {
        let tiers: Vec<String> = (0..count)
            .map(|tier| format!("{ENDLESS} {}", DAY - tier))
            .collect();
        let tiers = tiers.join(" ");
        [
            (
                format!("tiers LOG {count}"),
                swept(&logs, |key| format!("SLIDE.LOG {key} {tiers}")),
            ),
            (
                format!("tiers COUNTER {count}"),
                flat(&counters, |key| {
                    format!("SLIDE.COUNTER {key}:{count} {tiers}")
                }),
            ),
        ]
    });
    let points = points.collect();
    series(host, rounds, results, points);
}

fn buckets(host: &mut Host, rounds: usize, results: &mut Results) {
    let counters = keys("cnt", KEYS);
    let points = BUCKETS.iter().map(|&count| {
        let line = |key: &str| format!("SLIDE.COUNTER {key}:{count} {ENDLESS} 10m BUCKETS {count}");
        (format!("buckets COUNTER {count}"), flat(&counters, line))
    });
    let points = points.collect();
    series(host, rounds, results, points);
}

fn costs(host: &mut Host, rounds: usize, results: &mut Results) {
    let (logs, counters) = (keys("log", KEYS), keys("cnt", KEYS));
    fill_logs(host, &logs);
    let points = COSTS.iter().flat_map(|&cost| {
        [
            (
                format!("cost LOG {cost}"),
                swept(&logs, |key| {
                    format!("SLIDE.LOG {key} {ENDLESS} 1d COST {cost}")
                }),
            ),
            (
                format!("cost COUNTER {cost}"),
                flat(&counters, |key| {
                    format!("SLIDE.COUNTER {key} {ENDLESS} 1d COST {cost}")
                }),
            ),
        ]
    });
    let points = points.collect();
    series(host, rounds, results, points);

    let Scripts { log, .. } = Scripts::load(&mut host.con);
    for cost in COSTS {
        let calls = (LUA_UNITS / cost).max(1);
        let keys = keys("lua", 50);
        let lines = keys.iter().cycle().take(calls as usize);
        let batch: Batch = lines
            .map(|key| format!("{log} {key} {ENDLESS} 86400000 {cost}"))
            .collect();
        // One round: a call that adds a million members is not in need of more.
        let time = host.cost(&[batch], Expected::Admitted);
        results.set(format!("cost Lua log {cost}"), time);
        host.flush();
    }
}

fn number_of_keys(host: &mut Host, rounds: usize, results: &mut Results) {
    let all = keys("ip", NUMBERS_OF_KEYS[NUMBERS_OF_KEYS.len() - 1]);
    // All exist from the start.
    for command in ["SLIDE.COUNTER {} 1000000000 60s", "HINCRBY {}h 60000 1"] {
        let batch: Batch = all.iter().map(|key| command.replace("{}", key)).collect();
        host.run(&batch);
    }
    let points = NUMBERS_OF_KEYS.iter().flat_map(|&count| {
        let order = (0..SCATTERED_CALLS).map(|call| scrambled(call) as usize % count);
        let chosen: Vec<String> = order.map(|index| all[index].clone()).collect();
        [
            (
                format!("keys COUNTER {count}"),
                flat(&chosen, |key| format!("SLIDE.COUNTER {key} {ENDLESS} 60s")),
            ),
            (
                format!("keys HINCRBY {count}"),
                flat(&chosen, |key| format!("HINCRBY {key}h 60000 1")),
            ),
        ]
    });
    let points = points.collect();
    series(host, rounds, results, points);
}
