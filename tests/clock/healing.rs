//! Which command heals a key after a clock fault if it is the first one there, what INFO counts,
//! and what becomes of the expiry.

use crate::support::clock::{Frozen, START};
use crate::support::random::{EARLIEST, Numbers, assert_telling, effort, seeds};
use crate::support::{bucket, end_of_bucket, entries, error_of, info_number, line, run};

const MINUTE: i64 = 60_000;

/// So far back that the data lie more than a window ahead.
const BACK: i64 = START - 10 * MINUTE;

/// A log `l` and a counter `c` of five units each, and the clock put back.
fn faulty() -> Frozen {
    let mut frozen = Frozen::start();
    for command in ["SLIDE.LOG l 10 60s COST 5", "SLIDE.COUNTER c 10 60s COST 5"] {
        line(command).query::<()>(&mut frozen.con).unwrap();
    }
    frozen.set(BACK);
    frozen
}

fn log(frozen: &mut Frozen) -> Vec<(String, i64)> {
    entries(&mut frozen.con, "l")
}

fn counter(frozen: &mut Frozen) -> String {
    run(&mut frozen.con, "HGET", &["c", "60000"])
}

/// What the two hold when healed, with so many units.
fn healed(units: i64) -> (Vec<(String, i64)>, String) {
    let index = bucket("c", MINUTE, 1, BACK);
    (
        vec![(format!("{units}:{units}"), BACK)],
        format!("{index}:{units}:0"),
    )
}

#[test]
fn a_limited_a_free_a_forced_and_an_admitted_call_heal() {
    for (options, units) in [
        ("COST 6", 5),
        ("COST 11", 5),
        ("COST 0", 5),
        ("COST 6 FORCE", 11),
        ("COST 5", 10),
    ] {
        let mut frozen = faulty();
        for name in ["LOG l", "COUNTER c"] {
            let call = line(&format!("SLIDE.{name} 10 60s {options}"));
            for _ in 0..3 {
                call.query::<Vec<i64>>(&mut frozen.con).unwrap();
                if options.contains("FORCE") || units == 10 {
                    break;
                }
            }
        }
        let stored = (log(&mut frozen), counter(&mut frozen));
        assert_eq!(stored, healed(units), "{options}");
        // Once a key, however often it is called.
        assert_eq!(frozen.clock_faults(), 2, "{options}");
        for (key, end) in [
            ("l", BACK + MINUTE + MINUTE / 4),
            (
                "c",
                end_of_bucket("c", MINUTE, 1, bucket("c", MINUTE, 1, BACK)),
            ),
        ] {
            let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &[key]);
            assert_eq!(expiry, end, "{key} after {options}");
        }
    }
}

#[test]
fn in_all_each_key_heals_whether_the_call_is_recorded_or_not() {
    for (options, units) in [("COST 6", 5), ("COST 0", 5), ("COST 5", 10)] {
        let mut frozen = faulty();
        let all = line(&format!(
            "SLIDE.ALL 3 l c new LOG 10 60s {options} COUNTER 10 60s {options} LOG 9 60s {options}"
        ));
        all.query::<redis::Value>(&mut frozen.con).unwrap();
        let stored = (log(&mut frozen), counter(&mut frozen));
        assert_eq!(stored, healed(units), "{options}");
        assert_eq!(frozen.clock_faults(), 2, "{options}");
    }
}

#[test]
fn a_counter_of_many_tiers_has_one_fault_a_call() {
    let mut frozen = Frozen::start();
    let call = line("SLIDE.COUNTER c 10 60s 20 90s 30 2m COST 5");
    call.query::<()>(&mut frozen.con).unwrap();
    frozen.set(BACK);
    call.query::<()>(&mut frozen.con).unwrap();
    assert_eq!(frozen.clock_faults(), 1);
}

#[test]
fn peek_refund_and_errors_do_not_heal() {
    for command in [
        "SLIDE.PEEK l 10 60s COST 6",
        "SLIDE.PEEK c 10 60s COST 6",
        "SLIDE.REFUND new 1",
        "SLIDE.REFUND l 1 AGE 5m",
        "SLIDE.REFUND c 1 AGE 5m",
    ] {
        let mut frozen = faulty();
        let before = (log(&mut frozen), counter(&mut frozen));
        line(command)
            .query::<redis::Value>(&mut frozen.con)
            .unwrap();
        assert_eq!((log(&mut frozen), counter(&mut frozen)), before);
        assert_eq!(frozen.clock_faults(), 0, "{command}");
    }
    let mut frozen = faulty();
    let before = (log(&mut frozen), counter(&mut frozen));
    for command in [
        "SLIDE.LOG l 10 60s COST -1",
        "SLIDE.COUNTER l 10 60s",
        "SLIDE.ALL 2 l c LOG 10 60s LOG 10 60s",
    ] {
        error_of(&mut frozen.con, &line(command));
    }
    assert_eq!((log(&mut frozen), counter(&mut frozen)), before);
    assert_eq!(frozen.clock_faults(), 0);
}

/// A refund takes the newest units where they lie; index and expiry stay. Then the rest heals.
#[test]
fn a_refund_before_the_healing_takes_from_what_lies_in_the_future() {
    for (key, name) in [("l", "LOG l"), ("c", "COUNTER c")] {
        let mut frozen = faulty();
        let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &[key]);
        assert_eq!(run::<i64>(&mut frozen.con, "SLIDE.REFUND", &[key, "2"]), 2);
        let kept: i64 = run(&mut frozen.con, "PEXPIRETIME", &[key]);
        assert_eq!(kept, expiry, "{key}");
        assert_eq!(frozen.clock_faults(), 0);
        line(&format!("SLIDE.{name} 10 60s COST 8"))
            .query::<()>(&mut frozen.con)
            .unwrap();
        assert_eq!(frozen.clock_faults(), 1);
        assert_eq!(run::<i64>(&mut frozen.con, "SLIDE.REFUND", &[key, "9"]), 3);
        let left = line(&format!("SLIDE.{name} 10 60s COST 0"));
        let reply: Vec<i64> = left.query(&mut frozen.con).unwrap();
        assert_eq!(reply[2], 10, "{key} is not empty");
    }
}

/// Healing frees memory rather than taking it, so a limited call does it on a full server too.
#[test]
fn a_limited_call_heals_when_memory_is_full() {
    let mut frozen = faulty();
    run::<()>(&mut frozen.con, "CONFIG", &["SET", "maxmemory", "1"]);
    for name in ["LOG l", "COUNTER c"] {
        let refused = line(&format!("SLIDE.{name} 10 60s COST 5"));
        let error = error_of(&mut frozen.con, &refused);
        assert!(error.starts_with("OOM"), "{error}");
    }
    assert_eq!(frozen.clock_faults(), 0);
    for name in ["LOG l", "COUNTER c"] {
        let limited = line(&format!("SLIDE.{name} 10 60s COST 6"));
        let reply: Vec<i64> = limited.query(&mut frozen.con).unwrap();
        assert_eq!(reply[0], 1);
    }
    assert_eq!((log(&mut frozen), counter(&mut frozen)), healed(5));
    assert_eq!(frozen.clock_faults(), 2);
}

/// A recorded unit lives as long as it counts, and no call but one that heals makes a key's life
/// shorter.
#[test]
fn only_healing_shortens_a_life() {
    let mut frozen = Frozen::start();
    let (mut shortened, mut recorded) = (0, 0);
    let seeds = seeds(effort(10, 200));
    for &seed in &seeds {
        println!("expiry, SLIDE_SEED={seed}");
        let mut numbers = Numbers::new(seed);
        let name = ["LOG", "COUNTER"][numbers.place(2)];
        let key = format!("{name}:{seed}");
        let buckets = numbers.buckets();
        let shape = if name == "LOG" {
            String::new()
        } else {
            format!("BUCKETS {buckets}")
        };
        let mut now = START;
        for _ in 0..100 {
            let window = u64::try_from(MINUTE).unwrap();
            now = match numbers.below(4) {
                0 => {
                    let back = [1, MINUTE / 2, MINUTE, MINUTE + 1, 2 * MINUTE, 500 * MINUTE];
                    (now - back[numbers.place(back.len())]).max(EARLIEST)
                }
                _ => numbers.later(now, window),
            };
            frozen.set(now);
            let before: i64 = run(&mut frozen.con, "PEXPIRETIME", &[&key]);
            let faults = frozen.clock_faults();
            let cost = numbers.below(4);
            let words = format!("SLIDE.{name} {key} 5 20s 9 60s COST {cost} {shape}");
            let reply: Vec<i64> = line(words.trim_end()).query(&mut frozen.con).unwrap();
            let after: i64 = run(&mut frozen.con, "PEXPIRETIME", &[&key]);
            if after < before {
                assert_eq!(
                    frozen.clock_faults(),
                    faults + 1,
                    "{key} at {now}: {before} became {after}"
                );
                shortened += 1;
            }
            if reply[0] == 0 && cost > 0 {
                assert!(after >= now + MINUTE, "{key} at {now} ends at {after}");
                recorded += 1;
            }
        }
    }
    let rounds = i64::try_from(seeds.len()).unwrap();
    assert_telling(
        shortened > rounds,
        format!("{shortened} lives were shortened"),
    );
    assert_telling(
        recorded > 10 * rounds,
        format!("{recorded} calls were recorded"),
    );
    let limited = ["slide_log_limited", "slide_counter_limited"]
        .map(|field| info_number(&mut frozen.con, "slide", field));
    let limited = limited.iter().sum::<i64>();
    assert_telling(limited > rounds, format!("{limited} calls were limited"));
}
