//! `slide.enforce no`: random traffic on an enforcing and on a dry server leaves the same behind.

use redis::{Cmd, Value, from_redis_value_ref};

use crate::support::clock::{Frozen, START};
use crate::support::random::{Numbers, assert_telling, effort, seeds};
use crate::support::{info, line, run, state};

/// All that INFO counts.
fn counts(frozen: &mut Frozen) -> String {
    run(&mut frozen.con, "INFO", &["slide"])
}

fn call(numbers: &mut Numbers) -> Cmd {
    let (log, counter) = (numbers.below(3), numbers.below(3));
    let cost = numbers.below(5);
    let options = match numbers.below(10) {
        0 => " FORCE",
        1 => " HEADERS",
        _ => "",
    };
    line(&match numbers.below(8) {
        0..3 => format!("SLIDE.LOG log:{log} 5 20s 9 60s COST {cost}{options}"),
        3..6 => format!("SLIDE.COUNTER counter:{counter} 7 20s COST {cost}{options}"),
        6 => format!("SLIDE.REFUND log:{log} 2"),
        _ => format!(
            "SLIDE.ALL 2 log:{log} counter:{counter} LOG 5 20s 9 60s COST {cost} \
             COUNTER 7 20s{options}"
        ),
    })
}

/// A reply without its first integer, and without Retry-After, which nobody is sent in a dry run.
fn rest(reply: Value) -> (Option<Value>, Vec<Value>) {
    let Value::Array(mut parts) = reply else {
        return (None, vec![reply]);
    };
    let limited = parts.remove(0);
    for part in &mut parts {
        if let Value::Array(inner) = part {
            if matches!(inner[0], Value::Int(_)) {
                // The five integers of one key.
                inner.remove(0);
            } else if let Some(place) = inner
                .iter()
                .position(|name| *name == Value::BulkString(b"Retry-After".to_vec()))
            {
                inner.drain(place..place + 2);
            }
        }
    }
    (Some(limited), parts)
}

#[test]
fn only_the_first_integer_differs() {
    let (mut enforcing, mut dry) = (Frozen::start(), Frozen::start());
    run::<()>(&mut dry.con, "CONFIG", &["SET", "slide.enforce", "no"]);
    for frozen in [&mut enforcing, &mut dry] {
        // A digest has what has expired until the server comes across it.
        run::<()>(&mut frozen.con, "DEBUG", &["SET-ACTIVE-EXPIRE", "0"]);
    }
    let (mut limited, mut compared) = (0, 0);
    for seed in seeds(effort(4, 40)) {
        println!("dry run, SLIDE_SEED={seed}");
        let mut numbers = Numbers::new(seed);
        let mut now = START;
        for _ in 0..300 {
            now = numbers.later(now, 20_000);
            enforcing.set(now);
            dry.set(now);
            let call = call(&mut numbers);
            let expected: Value = call.query(&mut enforcing.con).unwrap();
            let got: Value = call.query(&mut dry.con).unwrap();
            let ((verdict, expected), (pretended, got)) = (rest(expected), rest(got));
            assert_eq!(got, expected, "{call:?} at {now}");
            assert!(pretended.is_none_or(|limited| limited == Value::Int(0)));
            let verdict = verdict.map_or(0, |limited| from_redis_value_ref(&limited).unwrap());
            limited += verdict;
            compared += 1;
        }
        assert_eq!(state(&mut dry.con), state(&mut enforcing.con));
        assert_eq!(counts(&mut dry), counts(&mut enforcing));
    }
    assert_telling(
        limited > compared / 10 && limited < compared * 9 / 10,
        format!("{limited} of {compared} limited"),
    );
    let forced = info(&mut dry.con, "slide", "slide_forced");
    assert_telling(forced != Some("0".to_owned()), "nothing was forced");
}
