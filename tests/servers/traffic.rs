//! Mixed calls as a busy server sees them, for the tests of what is left of them elsewhere.

use redis::{Cmd, Connection, pipe};

use crate::support::random::Numbers;
use crate::support::{admitted, now, slide, wait_until};

/// Calls in one round: half of them to logs, half to counters.
const ROUND: usize = 100;

fn call(numbers: &mut Numbers) -> Cmd {
    let key = numbers.below(10);
    let (name, kind) = if numbers.below(2) == 0 {
        ("SLIDE.LOG", "log")
    } else {
        ("SLIDE.COUNTER", "counter")
    };
    let cost = numbers.below(8).to_string();
    // Most keys have windows that pass while the calls run, so that entries expire and are trimmed.
    let tiers: &[(u64, &str)] = match key {
        0..5 => &[(40, "40ms"), (200, "200ms")],
        5..8 => &[(200, "300ms")],
        _ => &[(500, "60s"), (900, "1h")],
    };
    slide(name, format!("{kind}:{key}"), tiers, &["COST", &cost])
}

/// Runs mixed calls in pipelines, with waits between, and says how many were admitted.
pub fn run_mixed_calls(con: &mut Connection, calls: usize) -> usize {
    let mut numbers = Numbers::new(0x5eed);
    let mut total = 0;
    for _ in 0..calls / ROUND {
        let mut pipeline = pipe();
        for _ in 0..ROUND {
            pipeline.add_command(call(&mut numbers));
        }
        let replies: Vec<Vec<i64>> = pipeline.query(con).expect("every call is a good one");
        total += admitted(&replies);
        let pause = i64::try_from(numbers.below(40)).expect("a few ms");
        let until = now(con) + pause;
        wait_until(con, until);
    }
    total
}
