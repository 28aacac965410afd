//! `SLIDE.COUNTER` with BUCKETS and STRICT, to the ms.

use crate::support::clock::{Frozen, START};
use crate::support::{
    DECADE, DECADE_MS, Reply, bucket, end_of_bucket, run, slide_counter, start_of_bucket,
};

const MINUTE: i64 = 60_000;

/// The start of one of the minutes of the key `k`, and so of its shorter windows that divide it.
fn full() -> i64 {
    start_of_bucket("k", MINUTE, 1, bucket("k", MINUTE, 1, START))
}

#[track_caller]
fn call(frozen: &mut Frozen, ms: i64, tier: (u64, &str), options: &[&str]) -> Reply {
    frozen.set(ms);
    slide_counter(&mut frozen.con, "k", &[tier], options)
}

fn stored(frozen: &mut Frozen, field: &str) -> String {
    run(&mut frozen.con, "HGET", &["k", field])
}

#[test]
fn a_bucket_matters_for_one_window_and_one_bucket() {
    let mut frozen = Frozen::start();
    for (window, ms, buckets) in [
        ("1s", 1000, 4),
        ("100ms", 100, 3),
        ("7ms", 7, 64),
        ("1ms", 1, 2),
        ("60s", MINUTE, 7),
        ("1d", 86_400_000, 64),
        (DECADE, DECADE_MS, 10),
    ] {
        let what = format!("{window}/{buckets}");
        let count = buckets.to_string();
        let index = bucket("k", ms, buckets, START);
        let end = end_of_bucket("k", ms, buckets, index);
        let options = ["BUCKETS", count.as_str(), "STRICT"];
        let first = call(&mut frozen, START, (5, window), &options);
        assert_eq!((first.limited, first.remaining), (0, 4), "{what}");
        assert_eq!(first.reset_after, end - START, "{what}");
        let zeros = ":0".repeat(usize::try_from(buckets).unwrap());
        let value = stored(&mut frozen, &format!("{ms}/{buckets}"));
        assert_eq!(value, format!("{index}:1{zeros}"), "{what}");
        let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &["k"]);
        assert_eq!(expiry, end, "{what}");

        let free = ["COST", "0", "BUCKETS", count.as_str(), "STRICT"];
        let last = call(&mut frozen, end - 1, (5, window), &free);
        assert_eq!((last.remaining, last.reset_after), (4, 1), "{what}");
        frozen.set(end + 1);
        assert_eq!(run::<i64>(&mut frozen.con, "EXISTS", &["k"]), 0, "{what}");
    }
}

#[test]
fn only_the_oldest_bucket_fades() {
    let mut frozen = Frozen::start();
    let tier = (10, "1s");
    let plain = ["BUCKETS", "4"];
    assert_eq!(
        call(&mut frozen, full(), tier, &["BUCKETS", "4", "COST", "10"]).limited,
        0
    );
    // Whole for a second; a tenth of it has faded a tenth of 250 ms later.
    let limited = call(&mut frozen, full() + 500, tier, &plain);
    assert_eq!((limited.limited, limited.remaining), (1, 0));
    assert_eq!((limited.retry_after, limited.reset_after), (525, 750));
    assert_eq!(call(&mut frozen, full() + 1024, tier, &plain).limited, 1);
    assert_eq!(call(&mut frozen, full() + 1025, tier, &plain).limited, 0);
    assert_eq!(
        stored(&mut frozen, "1000/4"),
        format!("{}:1:0:0:0:10", bucket("k", 1000, 4, full() + 1000))
    );
}

#[test]
fn strict_counts_the_oldest_bucket_whole() {
    let mut frozen = Frozen::start();
    let tier = (10, "1s");
    let strict = ["STRICT", "BUCKETS", "4"];
    assert_eq!(
        call(&mut frozen, full(), tier, &["BUCKETS", "4", "COST", "9"]).limited,
        0
    );
    assert_eq!(call(&mut frozen, full() + 300, tier, &strict).remaining, 0);
    let limited = call(&mut frozen, full() + 500, tier, &strict);
    assert_eq!((limited.limited, limited.remaining), (1, 0));
    // The nine leave at 1,250; the one of the next bucket at 1,500.
    assert_eq!((limited.retry_after, limited.reset_after), (750, 1000));
    assert_eq!(call(&mut frozen, full() + 1249, tier, &strict).limited, 1);
    let free = call(&mut frozen, full() + 1250, tier, &strict);
    assert_eq!((free.limited, free.remaining), (0, 8));
}

/// Three buckets of 33 1/3 ms: the first stops to matter 133 1/3 ms after it began.
#[test]
fn buckets_need_not_be_whole_milliseconds() {
    let mut frozen = Frozen::start();
    for mode in [&["BUCKETS", "3"][..], &["BUCKETS", "3", "STRICT"]] {
        let first = call(&mut frozen, full(), (1, "100ms"), mode);
        assert_eq!((first.limited, first.reset_after), (0, 134), "{mode:?}");
        let limited = call(&mut frozen, full() + 133, (1, "100ms"), mode);
        assert_eq!((limited.limited, limited.retry_after), (1, 1), "{mode:?}");
        assert_eq!(
            call(&mut frozen, full() + 134, (1, "100ms"), mode).limited,
            0,
            "{mode:?}"
        );
        frozen.delete("k");
    }
}

#[test]
fn another_number_of_buckets_starts_empty() {
    let mut frozen = Frozen::start();
    let numbers: [&[&str]; 4] = [
        &[],
        &["BUCKETS", "4"],
        &["BUCKETS", "5"],
        &["BUCKETS", "64"],
    ];
    for options in numbers {
        let full = [options, &["COST", "3"]].concat();
        let first = call(&mut frozen, START, (3, "60s"), &full);
        assert_eq!((first.limited, first.remaining), (0, 0), "{options:?}");
    }
    for options in numbers {
        assert_eq!(
            call(&mut frozen, START, (3, "60s"), options).limited,
            1,
            "{options:?}"
        );
    }
    // The classic field matters longest, so the key lives for it.
    let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &["k"]);
    assert_eq!(expiry, full() + 2 * MINUTE);
}

#[test]
fn a_step_back_beyond_a_window_moves_all_buckets_to_now() {
    let mut frozen = Frozen::start();
    let (tier, length) = ((10, "60s"), MINUTE / 6);
    for (ms, cost) in [(1, "4"), (length, "3"), (2 * length, "3")] {
        let options = ["BUCKETS", "6", "COST", cost];
        assert_eq!(call(&mut frozen, full() + ms, tier, &options).limited, 0);
    }
    let newest = full() + 2 * length;
    let six = ["BUCKETS", "6"];
    let index = bucket("k", MINUTE, 6, newest);
    let kept = format!("{index}:3:3:4:0:0:0:0");
    // Time stands still at the start of the newest bucket. A quarter of the four has faded, which
    // frees one unit, when it is one window and a quarter of a bucket old.
    let quarter = full() + MINUTE + length / 4;
    let limited = call(&mut frozen, newest - MINUTE, tier, &six);
    let expected = quarter - (newest - MINUTE);
    assert_eq!((limited.limited, limited.retry_after), (1, expected));
    assert_eq!(stored(&mut frozen, "60000/6"), kept);
    // One ms more is a wrong date.
    let limited = call(&mut frozen, newest - MINUTE - 1, tier, &six);
    let index = index - 7;
    assert_eq!(
        stored(&mut frozen, "60000/6"),
        format!("{index}:10:0:0:0:0:0:0")
    );
    // A tenth of a bucket has to fade after the window.
    let frees = start_of_bucket("k", MINUTE, 6, index) + MINUTE + length / 10;
    let expected = frees - (newest - MINUTE - 1);
    assert_eq!((limited.limited, limited.retry_after), (1, expected));
    let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &["k"]);
    assert_eq!(expiry, end_of_bucket("k", MINUTE, 6, index));
    assert_eq!(call(&mut frozen, frees - 1, tier, &six).limited, 1);
    assert_eq!(call(&mut frozen, frees, tier, &six).limited, 0);
}
