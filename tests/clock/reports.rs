//! What users would meet, as they would type it, each at the moment it happens.

use std::collections::BTreeSet;

use redis::Value;

use crate::support::clock::{Frozen, START};
use crate::support::random::Numbers;
use crate::support::{headers_of, line, reply, run, slide_counter};

/// Sets the clock so many ms after its start.
fn at(frozen: &mut Frozen, ms: i64) {
    frozen.set(START + ms);
}

fn admits(frozen: &mut Frozen, words: &str) -> bool {
    reply(&mut frozen.con, &line(words)).limited == 0
}

fn refund(frozen: &mut Frozen, words: &str) -> i64 {
    line(words).query(&mut frozen.con).unwrap()
}

fn headers(frozen: &mut Frozen, words: &str) -> Vec<(String, String)> {
    let reply: Vec<Value> = line(words).query(&mut frozen.con).unwrap();
    headers_of(&reply[5])
}

#[track_caller]
fn assert_header(headers: &[(String, String)], name: &str, value: &str) {
    let found = headers.iter().find(|header| header.0 == name);
    assert_eq!(found.map(|header| header.1.as_str()), Some(value), "{name}");
}

#[test]
fn an_admitted_call_is_not_told_to_wait() {
    let mut frozen = Frozen::start();
    let admitted = reply(&mut frozen.con, &line("SLIDE.LOG mx 3 60s COST 2"));
    assert_eq!((admitted.limited, admitted.retry_after), (0, 0));
}

/// The first caller's upstream fails after its window has passed.
#[test]
fn a_late_refund_frees_no_one_elses_units() {
    let mut frozen = Frozen::start();
    for ms in [0, 121_000] {
        at(&mut frozen, ms);
        for _ in 0..10 {
            assert!(admits(&mut frozen, "SLIDE.LOG k 10 60s"));
        }
    }
    at(&mut frozen, 122_000);
    refund(&mut frozen, "SLIDE.REFUND k 10 AGE 122s");
    assert!(!admits(&mut frozen, "SLIDE.LOG k 10 60s"));
    // The second caller's units are still its own to give back.
    assert_eq!(refund(&mut frozen, "SLIDE.REFUND k 10 AGE 1s"), 10);
}

/// The units of a cancelled call come back when they would have expired, not when another's do.
#[test]
fn a_refund_of_the_older_call_leaves_the_newer_one_where_it_is() {
    let mut frozen = Frozen::start();
    at(&mut frozen, 0);
    assert!(admits(&mut frozen, "SLIDE.LOG k 2 10s"));
    at(&mut frozen, 9_000);
    assert!(admits(&mut frozen, "SLIDE.LOG k 2 10s"));
    at(&mut frozen, 9_500);
    assert_eq!(refund(&mut frozen, "SLIDE.REFUND k 1 AGE 9500ms"), 1);
    at(&mut frozen, 10_000);
    assert!(admits(&mut frozen, "SLIDE.LOG k 2 10s"));
    assert!(!admits(&mut frozen, "SLIDE.LOG k 2 10s"));
    at(&mut frozen, 19_000);
    assert!(admits(&mut frozen, "SLIDE.LOG k 2 10s"));
}

#[test]
fn a_client_that_waits_for_the_reset_gets_in() {
    for command in ["SLIDE.LOG", "SLIDE.COUNTER"] {
        let mut frozen = Frozen::start();
        let call = format!("{command} k 2 1m HEADERS");
        for ms in [0, 10_000] {
            at(&mut frozen, ms);
            headers(&mut frozen, &call);
        }
        at(&mut frozen, 20_000);
        let told = headers(&mut frozen, &call);
        if command == "SLIDE.LOG" {
            assert_header(&told, "Retry-After", "40");
            assert_header(&told, "X-RateLimit-Reset", &(START / 1000 + 60).to_string());
        }
        let reset = told.iter().find(|header| header.0 == "X-RateLimit-Reset");
        let reset: i64 = reset.unwrap().1.parse().unwrap();
        frozen.set(reset * 1000 - 1000);
        assert!(!admits(&mut frozen, &format!("{command} k 2 1m COST 1")));
        frozen.set(reset * 1000);
        assert!(admits(&mut frozen, &format!("{command} k 2 1m COST 1")));
    }
}

#[test]
fn every_tier_is_listed() {
    let mut frozen = Frozen::start();
    let told = headers(&mut frozen, "SLIDE.LOG k 3600 1h 1 1s HEADERS");
    assert_header(
        &told,
        "RateLimit",
        r#""3600-per-3600s";r=3599;t=3600, "1-per-1s";r=0;t=1"#,
    );
}

/// Clients that are full at random moments of an hour are not all let in again in the same second.
#[test]
fn counters_let_full_clients_in_at_different_moments() {
    let mut frozen = Frozen::start();
    let mut numbers = Numbers::new(7);
    let mut begins: Vec<i64> = (0..200)
        .map(|_| i64::try_from(numbers.below(3_600_000)).unwrap())
        .collect();
    begins.sort_unstable();
    let mut seconds = BTreeSet::new();
    for (client, &ms) in begins.iter().enumerate() {
        at(&mut frozen, ms);
        let key = format!("ip:{client}");
        let full = slide_counter(&mut frozen.con, &key, &[(5, "1h")], &["COST", "5"]);
        assert_eq!(full.limited, 0);
        let refused = slide_counter(&mut frozen.con, &key, &[(5, "1h")], &["COST", "5"]);
        seconds.insert((ms + refused.retry_after) / 1000);
    }
    // So many fall together by chance.
    assert!(seconds.len() > 180, "in {} seconds only", seconds.len());
}

#[test]
fn a_window_that_is_over_is_not_refunded() {
    let mut frozen = Frozen::start();
    assert!(admits(&mut frozen, "SLIDE.COUNTER st 100 50ms COST 50"));
    assert!(admits(&mut frozen, "SLIDE.COUNTER st 100 60s"));
    at(&mut frozen, 200);
    assert_eq!(refund(&mut frozen, "SLIDE.REFUND st 100"), 1);
}

/// A caller whose window is "until midnight" passes another one each time.
#[test]
fn windows_until_midnight_do_not_pile_up() {
    let mut frozen = Frozen::start();
    let day = 86_400_000;
    let mut most = 0;
    for call in 0..3_000_i64 {
        let ms = call * 100_003;
        at(&mut frozen, ms);
        let window = format!("{}ms", day - ms % day);
        slide_counter(&mut frozen.con, "k", &[(1_000_000, &window)], &[]);
        most = most.max(run::<usize>(&mut frozen.con, "HLEN", &["k"]));
    }
    // A field counts for up to two of its windows: those of the last two days are live.
    let two_days = usize::try_from(2 * day / 100_003).unwrap();
    assert!(most < two_days * 5 / 4, "{most} fields");
}
