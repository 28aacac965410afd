//! Time inside the server of single calls on long logs, from its slow log, which here logs all calls.

use std::thread::sleep;
use std::time::Duration;

use redis::{Value, from_redis_value_ref};

use crate::host::{ENDLESS, Host, fill_log};
use crate::results::Results;
use crate::support::{command, now, run};

pub const SIZES: [u64; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// ms between a log's entries: those of the longest fill a good part of the day that is its window.
const STEP: u64 = 50;
const DAY: u64 = 86_400_000;

/// How many sweeps one reading of the slow log covers.
const SWEEPS: u64 = 50;

/// Calls of the same kind before those that are measured, on other logs of these sizes: code that was
/// not in use for a ms is slow at first. (The server stores logs below 128 entries in another way.)
const WARMING: usize = 40;
const WARM: [u64; 2] = [10, 1_000];

/// The share of the calls, the slowest ones, that say more about the machine than about the call.
const DISTURBED: f64 = 0.05;

/// Calls that are admitted, limited until one entry expires, and limited until half of them do: as
/// words after the key of a log that holds `used` units.
fn kinds(used: u64) -> [String; 3] {
    let half = used / 2;
    [
        format!("{ENDLESS} 1d"),
        format!("{used} 1d"),
        format!("{used} 1d COST {half}"),
    ]
}

/// Calls on logs of all sizes, side by side.
pub fn sizes(host: &mut Host, sweeps: u64, results: &mut Results) {
    let newest = now(&mut host.con).unsigned_abs();
    let measured = SIZES.map(|size| (format!("large:{size}"), size));
    let warming = WARM.map(|size| (format!("warm:{size}"), size));
    for (key, size) in measured.iter().chain(&warming) {
        fill_log(host, key, *size, newest, STEP);
    }
    let mut times: Vec<(String, Vec<f64>)> = Vec::new();
    let mut done = 0;
    while done < sweeps {
        watch(host);
        for _ in 0..SWEEPS {
            // No size is always the first.
            let in_turn = measured.iter().cycle().skip(done as usize);
            let calls = warming.iter().cycle().take(WARMING);
            let calls = calls.chain(in_turn.take(SIZES.len()));
            for kind in 0..3 {
                let line =
                    |(key, size): &(String, u64)| format!("SLIDE.LOG {key} {}", kinds(*size)[kind]);
                host.run(&calls.clone().map(line).collect());
                if kind == 0 {
                    // The oldest entry goes, as in a steady state, and the sizes stay what they are.
                    let line = |(key, _): &(String, u64)| format!("ZREMRANGEBYRANK {key} 0 0");
                    host.run(&measured.iter().chain(&warming).map(line).collect());
                }
                sleep(Duration::from_millis(1));
            }
            done += 1;
        }
        for (words, time) in watched(host) {
            let Some(size) = words[1].strip_prefix("large:") else {
                continue;
            };
            let kind = match words.len() {
                6.. => "limited, deep",
                _ if words[2] == ENDLESS.to_string() => "admitted",
                _ => "limited",
            };
            let name = format!("µs {kind} {size}");
            match times.iter_mut().find(|(known, _)| *known == name) {
                Some((_, times)) => times.push(time),
                None => times.push((name, vec![time])),
            }
        }
    }
    for (name, mut times) in times {
        times.sort_by(f64::total_cmp);
        let kept = (times.len() as f64 * (1.0 - DISTURBED)).ceil() as usize;
        let sum: f64 = times[..kept].iter().sum();
        results.set(name, sum / kept as f64);
    }
}

/// The slowest call of each of the kinds that do the most, on the longest log: the least over the
/// rounds, since in any one of them the machine may have done something else meanwhile.
pub fn slowest(host: &mut Host, rounds: usize, results: &mut Results) {
    let used: u64 = run(&mut host.con, "ZCARD", &["large:1000000"]);
    let tiers: Vec<String> = (1..=16)
        .map(|tier| format!("{used} {}", DAY - tier))
        .collect();
    let tiers = tiers.join(" ");
    let windows: Vec<String> = (1..=16).map(|tier| format!("9 {}", DAY - tier)).collect();
    let windows = windows.join(" ");
    let newest = now(&mut host.con).unsigned_abs() - 2 * DAY;
    fill_log(host, "expired", 1_000_000, newest, STEP);
    let half = used / 2;
    let kinds = [
        ("INCR", "INCR number".to_owned(), 100),
        (
            "limited",
            format!("SLIDE.LOG large:1000000 {used} 1d COST {half}"),
            100,
        ),
        (
            "16 tiers",
            format!("SLIDE.LOG large:1000000 {tiers} COST {half}"),
            100,
        ),
        ("trimming", format!("SLIDE.LOG expired {ENDLESS} 1d"), 100),
        (
            "buckets",
            format!("SLIDE.COUNTER buckets {windows} BUCKETS 64"),
            100,
        ),
        // Last, because it shortens the log.
        ("refund", "SLIDE.REFUND large:1000000 1000".to_owned(), 20),
    ];
    for (name, line, calls) in kinds {
        let mut least = f64::INFINITY;
        for _ in 0..rounds {
            watch(host);
            for _ in 0..calls {
                host.run(&[&line].into_iter().collect());
            }
            let slowest = watched(host).into_iter().map(|(_, time)| time);
            least = least.min(slowest.fold(0.0, f64::max));
        }
        results.set(format!("slowest {name}"), least);
    }
}

/// What it takes the server to free a log that has expired as a whole, the default way and in the
/// background.
pub fn expiry(host: &mut Host, results: &mut Results) {
    run::<()>(&mut host.con, "DEBUG", &["SET-ACTIVE-EXPIRE", "0"]);
    for lazy in ["no", "yes"] {
        run::<()>(
            &mut host.con,
            "CONFIG",
            &["SET", "lazyfree-lazy-expire", lazy],
        );
        let newest = now(&mut host.con).unsigned_abs();
        fill_log(host, "ended", 1_000_000, newest, STEP);
        run::<()>(&mut host.con, "PEXPIRE", &["ended", "1"]);
        sleep(Duration::from_millis(20));
        watch(host);
        host.run(&["SLIDE.LOG ended 10 1d"].into_iter().collect());
        let slowest = watched(host).into_iter().map(|(_, time)| time);
        results.set(
            format!("freeing 1,000,000 entries, lazyfree-lazy-expire {lazy}"),
            slowest.fold(0.0, f64::max),
        );
    }
    host.flush();
}

/// Starts to log all calls.
fn watch(host: &mut Host) {
    for (name, value) in [
        ("slowlog-max-len", "100000"),
        ("slowlog-log-slower-than", "0"),
    ] {
        run::<()>(&mut host.con, "CONFIG", &["SET", name, value]);
    }
    run::<()>(&mut host.con, "SLOWLOG", &["RESET"]);
}

/// The calls since, with the µs that each took.
fn watched(host: &mut Host) -> Vec<(Vec<String>, f64)> {
    run::<()>(
        &mut host.con,
        "CONFIG",
        &["SET", "slowlog-log-slower-than", "-1"],
    );
    let logged: Vec<Vec<Value>> = command("SLOWLOG", &["GET", "-1"])
        .query(&mut host.con)
        .expect("the slow log");
    let calls = logged.iter().map(|entry| {
        let time: f64 = from_redis_value_ref(&entry[2]).expect("a time");
        let words: Vec<String> = from_redis_value_ref(&entry[3]).expect("a command");
        (words, time)
    });
    let measured = |words: &[String]| words[0].starts_with("SLIDE.") || words[0] == "INCR";
    calls.filter(|(words, _)| measured(words)).collect()
}
