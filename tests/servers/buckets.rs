//! `SLIDE.COUNTER` and `SLIDE.PEEK` with BUCKETS and STRICT: what is stored, and what is promised.

use std::collections::{BTreeMap, VecDeque};

use redis::{Connection, Value};

use crate::support::random::Numbers;
use crate::support::{
    ALMOST_A_DECADE, DECADE, DECADE_FIELD, DECADE_MS, Server, bucket, command, error_of,
    key_with_passed, now, run, slide, slide_counter, slide_log, slide_peek, state, timed_replies,
    wait_until,
};

fn fields(con: &mut Connection, key: &str) -> BTreeMap<String, String> {
    run(con, "HGETALL", &[key])
}

/// The stored value of a key's field for a decade: the index of the current bucket, and its count
/// before others that are empty.
fn value(con: &mut Connection, key: &str, buckets: i64, count: u64) -> String {
    let zeros = ":0".repeat(usize::try_from(buckets).unwrap());
    let index = bucket(key, DECADE_MS, buckets, now(con));
    format!("{index}:{count}{zeros}")
}

#[test]
fn a_field_holds_the_index_and_one_count_more_than_buckets() {
    let server = Server::start();
    let mut con = server.connect();
    for buckets in [2, 3, 10, 63, 64] {
        let key = format!("k{buckets}");
        for cost in ["4", "3"] {
            let options = ["COST", cost, "BUCKETS", &buckets.to_string()];
            slide_counter(&mut con, &key, &[(100, DECADE)], &options);
        }
        let expected = BTreeMap::from([(
            format!("{DECADE_FIELD}/{buckets}"),
            value(&mut con, &key, buckets, 7),
        )]);
        assert_eq!(fields(&mut con, &key), expected);
    }
    // One bucket is the classic counter, whose field is the window alone.
    slide_counter(&mut con, "one", &[(100, DECADE)], &["BUCKETS", "1"]);
    slide_counter(&mut con, "one", &[(100, DECADE)], &["COST", "2"]);
    let expected = BTreeMap::from([(DECADE_FIELD.to_owned(), value(&mut con, "one", 1, 3))]);
    assert_eq!(fields(&mut con, "one"), expected);
}

#[test]
fn every_tier_is_divided_alike() {
    let server = Server::start();
    let mut con = server.connect();
    let tiers = [(9, ALMOST_A_DECADE), (5, DECADE)];
    let reply = slide_counter(&mut con, "k", &tiers, &["BUCKETS", "12", "COST", "2"]);
    assert_eq!((reply.limited, reply.limit, reply.remaining), (0, 5, 3));
    let names: Vec<String> = fields(&mut con, "k").into_keys().collect();
    assert_eq!(names, ["315575999999/12", "315576000000/12"]);
}

#[test]
fn strict_is_the_same_field_seen_otherwise() {
    let server = Server::start();
    let mut con = server.connect();
    for (options, left) in [
        (&["BUCKETS", "4"][..], 4),
        (&["BUCKETS", "4", "STRICT"], 3),
        (&["STRICT", "BUCKETS", "4"], 2),
        (&["strict", "COST", "1", "buckets", "4"], 1),
    ] {
        let reply = slide_counter(&mut con, "k", &[(5, DECADE)], options);
        assert_eq!((reply.limited, reply.remaining), (0, left), "{options:?}");
    }
    let expected = BTreeMap::from([(format!("{DECADE_FIELD}/4"), value(&mut con, "k", 4, 4))]);
    assert_eq!(fields(&mut con, "k"), expected);
    // Without BUCKETS it is the classic field.
    slide_counter(&mut con, "k", &[(5, DECADE)], &["STRICT"]);
    assert_eq!(
        fields(&mut con, "k").get(DECADE_FIELD),
        Some(&value(&mut con, "k", 1, 1))
    );
}

/// A bucket that a window has left in part counts by the part still covered, or whole.
#[test]
fn the_oldest_bucket_counts_in_part_or_whole() {
    let server = Server::start();
    let mut con = server.connect();
    // A key whose current one of four buckets has half passed.
    let (key, index) = key_with_passed(&mut con, DECADE_MS, 4, 0.5);
    let field = format!("{DECADE_FIELD}/4");
    run::<i64>(
        &mut con,
        "HSET",
        &[&key, &field, &format!("{index}:1:2:3:4:50")],
    );
    let left = |con: &mut Connection, options: &[&str]| {
        slide_peek(con, &key, &[(100, DECADE)], options).remaining
    };
    let free = ["COST", "0", "BUCKETS", "4"];
    // 10 units are in the window, and of the 50 just half or a hair less.
    assert!((64..=65).contains(&left(&mut con, &free)));
    assert_eq!(left(&mut con, &[&free[..], &["STRICT"]].concat()), 40);
}

#[test]
fn another_number_of_buckets_starts_empty_and_leaves_the_first_alone() {
    let server = Server::start();
    let mut con = server.connect();
    let numbers = ["2", "3", "64"];
    for buckets in numbers {
        let full = ["COST", "5", "BUCKETS", buckets];
        let first = slide_counter(&mut con, "k", &[(5, DECADE)], &full);
        assert_eq!((first.limited, first.remaining), (0, 0), "{buckets}");
    }
    for buckets in numbers {
        let again = slide_counter(&mut con, "k", &[(5, DECADE)], &["BUCKETS", buckets]);
        assert_eq!(again.limited, 1, "{buckets}");
    }
    assert_eq!(
        slide_counter(&mut con, "k", &[(5, DECADE)], &[]).remaining,
        4
    );
    assert_eq!(run::<i64>(&mut con, "HLEN", &["k"]), 4);
    assert_eq!(run::<i64>(&mut con, "SLIDE.REFUND", &["k", "3"]), 3);
    for buckets in numbers {
        let left = slide_peek(&mut con, "k", &[(5, DECADE)], &["BUCKETS", buckets]);
        assert_eq!(left.remaining, 3, "{buckets}");
    }
    assert_eq!(slide_peek(&mut con, "k", &[(5, DECADE)], &[]).remaining, 5);
}

/// A caller whose window is what is left of the day passes another one each time.
#[test]
fn windows_that_are_over_leave_no_fields_behind() {
    let server = Server::start();
    let mut con = server.connect();
    for round in 0..3000 {
        let window = format!("{}ms", 1 + round % 30);
        slide_counter(&mut con, "k", &[(1000, &window), (1_000_000, "1d")], &[]);
        let fields: usize = run(&mut con, "HLEN", &["k"]);
        assert!(fields <= 2 + 2 * 30, "{fields} fields after {round} calls");
    }
    for round in 0..3000 {
        // Never one twice. All are over after 140 ms.
        let window = format!("{}ms", 10 + round % 60);
        let buckets = (2 + round / 60).to_string();
        slide_counter(&mut con, "l", &[(1000, &window)], &["BUCKETS", &buckets]);
    }
    let over = now(&mut con) + 150;
    wait_until(&mut con, over);
    for window in 1..200 {
        let window = format!("{window}m");
        let call = slide_counter(&mut con, "l", &[(1000, "1d"), (9, &window)], &[]);
        assert_eq!(call.limited, 0);
    }
    let left: Vec<String> = run(&mut con, "HKEYS", &["l"]);
    let dead = left.iter().filter(|field| field.contains('/'));
    assert!(dead.count() <= 8, "{left:?}");
}

#[test]
fn many_buckets_make_the_hash_a_table_and_go_on_counting() {
    let server = Server::start();
    let mut con = server.connect();
    for (buckets, encoding) in [("10", "listpack"), ("64", "hashtable")] {
        for left in (0..100).rev() {
            let options = ["BUCKETS", buckets, "COST", "9"];
            let reply = slide_counter(&mut con, buckets, &[(900, DECADE)], &options);
            assert_eq!((reply.limited, reply.remaining), (0, left * 9));
        }
        let options = ["BUCKETS", buckets];
        assert_eq!(
            slide_counter(&mut con, buckets, &[(900, DECADE)], &options).limited,
            1
        );
        let stored: String = run(&mut con, "OBJECT", &["ENCODING", buckets]);
        assert_eq!(stored, encoding);
    }
    // The longest value there is.
    let largest = ["BUCKETS", "64", "COST", "9007199254740991", "FORCE"];
    for _ in 0..20 {
        slide_counter(&mut con, "large", &[(5, DECADE)], &largest);
    }
    let most = (1 << 57) - 1;
    assert_eq!(
        fields(&mut con, "large").get("315576000000/64"),
        Some(&value(&mut con, "large", 64, most))
    );
    assert_eq!(
        run::<u64>(&mut con, "SLIDE.REFUND", &["large", "9007199254740991"]),
        (1 << 53) - 1
    );
}

#[test]
fn buckets_are_a_number_from_1_to_64() {
    let server = Server::start();
    let mut con = server.connect();
    for name in ["SLIDE.COUNTER", "SLIDE.PEEK"] {
        for wrong in [
            "0",
            "65",
            "-1",
            "+4",
            "04",
            "4.0",
            "x",
            "",
            "99999999999999999999",
        ] {
            let call = slide(name, "k", &[(5, "60s")], &["BUCKETS", wrong]);
            assert_eq!(
                error_of(&mut con, &call),
                format!("ERR buckets must be an integer from 1 to 64, got '{wrong}'"),
                "{name}"
            );
        }
        let call = slide(name, "k", &[(5, "60s")], &["BUCKETS"]);
        let error = error_of(&mut con, &call);
        assert!(error.starts_with("ERR buckets must be "), "{error}");
        for (twice, named) in [
            (&["BUCKETS", "4", "buckets", "4"][..], "'buckets'"),
            (&["STRICT", "BUCKETS", "4", "strict"], "'strict'"),
        ] {
            let error = error_of(&mut con, &slide(name, "k", &[(5, "60s")], twice));
            assert!(
                error.starts_with("ERR syntax error: ") && error.contains(named),
                "{error}"
            );
        }
    }
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0);
}

#[test]
fn a_log_has_no_buckets_to_peek_at() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(5, "1d")], &[]);
    let before = state(&mut con);
    for options in [&["BUCKETS", "4"][..], &["STRICT"], &["BUCKETS", "1"]] {
        let error = error_of(&mut con, &slide("SLIDE.PEEK", "log", &[(5, "1d")], options));
        assert!(
            error.starts_with("ERR ") && error.contains("BUCKETS"),
            "{error}"
        );
        // A missing key is an empty one, of whichever kind.
        let missing = slide_peek(&mut con, "missing", &[(5, "1d")], options);
        assert_eq!((missing.limited, missing.remaining), (0, 5), "{options:?}");
    }
    assert_eq!(state(&mut con), before);
}

#[test]
fn a_peek_is_told_the_buckets() {
    let server = Server::start();
    let mut con = server.connect();
    let four = ["BUCKETS", "4", "COST", "3"];
    slide_counter(&mut con, "k", &[(5, DECADE)], &four);
    let before = state(&mut con);
    for (options, limited, remaining) in [
        (&four[..], 1, 2),
        (&["STRICT", "BUCKETS", "4", "COST", "2"], 0, 2),
        (&["BUCKETS", "5", "COST", "3"], 0, 5),
        (&["COST", "3"], 0, 5),
    ] {
        let peek = slide_peek(&mut con, "k", &[(5, DECADE)], options);
        assert_eq!(
            (peek.limited, peek.remaining),
            (limited, remaining),
            "{options:?}"
        );
    }
    assert_eq!(state(&mut con), before);
}

#[test]
fn headers_come_with_buckets_too() {
    let server = Server::start();
    let mut con = server.connect();
    let options = ["HEADERS", "BUCKETS", "4", "COST", "3", "STRICT"];
    for (limited, remaining) in [(0, "2"), (1, "2")] {
        let call = slide("SLIDE.COUNTER", "k", &[(5, DECADE)], &options);
        let six: Vec<Value> = call.query(&mut con).unwrap();
        assert_eq!((six.len(), &six[0]), (6, &Value::Int(limited)));
        let headers: BTreeMap<String, String> = redis::from_redis_value_ref(&six[5]).unwrap();
        assert_eq!(headers["X-RateLimit-Remaining"], remaining);
        assert_eq!(headers.contains_key("Retry-After"), limited == 1);
    }
}

#[test]
fn a_field_with_other_counts_is_foreign() {
    let server = Server::start();
    let mut con = server.connect();
    let message = "ERR key holds a hash that SLIDE.COUNTER did not write";
    for (field, value) in [
        ("315576000000/4", "5:1:1:1:1"),
        ("315576000000/4", "5:1:1:1:1:1:1"),
        ("315576000000/4", "5:1:1:1:1:"),
        ("315576000000/4", "5:1:1:1:1:x"),
        ("315576000000/4", "5:1:1"),
        ("315576000000/1", "5:1:1"),
        ("315576000000/04", "5:1:1:1:1:1"),
        ("315576000000/65", &format!("5{}", ":1".repeat(66))),
        ("/4", "5:1:1:1:1:1"),
    ] {
        run::<i64>(&mut con, "HSET", &["k", field, value]);
        let before = state(&mut con);
        for options in [
            &["BUCKETS", "4"][..],
            &["BUCKETS", "4", "COST", "0"],
            &["BUCKETS", "4", "STRICT"],
        ] {
            for name in ["SLIDE.COUNTER", "SLIDE.PEEK"] {
                let call = slide(name, "k", &[(5, DECADE)], options);
                assert_eq!(error_of(&mut con, &call), message, "{field} {value}");
            }
        }
        assert_eq!(
            error_of(&mut con, &command("SLIDE.REFUND", &["k", "1"])),
            message
        );
        assert_eq!(state(&mut con), before);
        run::<i64>(&mut con, "DEL", &["k"]);
    }
}

/// Admitted calls, as (not before, not after) of the server's clock.
type Admitted = VecDeque<(i64, i64)>;

/// What the README promises, on traffic that leaves no call to be admitted: bursts, pauses, and
/// calls without a pause. A call took place between two readings of the clock, so more than the
/// limit surely lie in one window if even the widest span of them is shorter than it.
#[test]
fn no_window_holds_more_than_is_promised() {
    let server = Server::start();
    let mut con = server.connect();
    let (limit, window) = (20_u64, 200);
    // The length of the windows that the limit holds for.
    let shapes = [
        ("strict", vec!["STRICT"], window),
        ("strict:10", vec!["STRICT", "BUCKETS", "10"], window),
        ("10", vec!["BUCKETS", "10"], window * 9 / 10),
        ("2", vec!["BUCKETS", "2"], window / 2),
    ];
    let calls: Vec<_> = shapes
        .iter()
        .map(|(key, options, _)| slide("SLIDE.COUNTER", key, &[(limit, "200ms")], options))
        .collect();
    let mut admitted: Vec<Admitted> = vec![VecDeque::new(); shapes.len()];
    let mut totals = [[0; 2]; 4];
    let mut numbers = Numbers::new(7);
    let end = now(&mut con) + 3000;
    while now(&mut con) < end {
        for _ in 0..numbers.below(300) {
            let replies = timed_replies(&mut con, &calls);
            for (place, reply) in replies.value.iter().enumerate() {
                totals[place][usize::from(reply.limited == 1)] += 1;
                if reply.limited == 1 {
                    continue;
                }
                let recent = &mut admitted[place];
                recent.push_back((replies.before, replies.after));
                if recent.len() > usize::try_from(limit).unwrap() {
                    let span = replies.after - recent.pop_front().unwrap().0;
                    assert!(
                        span >= shapes[place].2,
                        "{}: {} calls within {span} ms",
                        shapes[place].0,
                        limit + 1
                    );
                }
            }
        }
        let pause = i64::try_from(numbers.below(120)).unwrap();
        let until = now(&mut con) + pause;
        wait_until(&mut con, until);
    }
    for (shape, [passed, limited]) in shapes.iter().zip(totals) {
        assert!(
            passed > 60 && limited > 60,
            "{}: {passed} passed, {limited} limited",
            shape.0
        );
    }
}
