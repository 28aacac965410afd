//! `SLIDE.LOG`: verdicts, waits, what is stored and for how long.

use redis::{Connection, cmd};

use crate::support::oracle::Reply;
use crate::support::{
    DECADE, DECADE_MS, Server, Timed, entries, now, run, slide, slide_log, state, timed_replies,
    timed_reply, wait_until,
};

/// Stores a log as calls at these times would have left it.
fn store(con: &mut Connection, key: &str, stored: &[(i64, &str)]) {
    for (time, member) in stored {
        run::<i64>(con, "ZADD", &[key, &time.to_string(), member]);
    }
}

fn wait_for_next_ms(con: &mut Connection) {
    let next = now(con) + 1;
    wait_until(con, next);
}

#[test]
fn the_reply_describes_the_state_after_the_call() {
    let server = Server::start();
    let mut con = server.connect();
    let call = slide("SLIDE.LOG", "k", &[(3, "60s")], &["COST", "2"]);
    let first = timed_reply(&mut con, call.clone());
    assert_eq!(
        first.value,
        Reply {
            limited: 0,
            limit: 3,
            remaining: 1,
            retry_after: 0,
            reset_after: 60_000
        }
    );
    let time = entries(&mut con, "k")[0].1;
    timed_reply(&mut con, call).matches(|now| Reply {
        limited: 1,
        limit: 3,
        remaining: 1,
        retry_after: time + 60_000 - now,
        reset_after: time + 60_000 - now,
    });
}

#[test]
fn two_calls_in_one_ms_are_two() {
    let server = Server::start();
    let mut con = server.connect();
    let call = slide("SLIDE.LOG", "k", &[(1, "60s")], &[]);
    let both = timed_replies(&mut con, &[call.clone(), call]);
    assert_eq!(both.value[0].limited, 0);
    assert_eq!(both.value[1].limited, 1);
}

#[test]
fn calls_of_one_ms_share_an_entry() {
    let server = Server::start();
    let mut con = server.connect();
    for attempt in 0.. {
        let key = format!("k{attempt}");
        let call = |cost| slide("SLIDE.LOG", &key, &[(100, "60s")], &["COST", cost]);
        let Timed { before, after, .. } =
            timed_replies(&mut con, &[call("1"), call("2"), call("3")]);
        if before == after {
            assert_eq!(entries(&mut con, &key), [("6:6".to_owned(), before)]);
            return;
        }
        assert!(attempt < 1000, "three calls never fit one ms");
    }
}

#[test]
fn an_entry_is_the_running_total_and_its_own_cost() {
    let server = Server::start();
    let mut con = server.connect();
    let mut last = 0;
    for (cost, member) in [
        ("1", "1:1"),
        ("5", "6:5"),
        ("9007199254740000", "9007199254740006:9007199254740000"),
    ] {
        wait_for_next_ms(&mut con);
        let limit = (9_007_199_254_740_991, "60s");
        let call = timed_reply(&mut con, slide("SLIDE.LOG", "k", &[limit], &["COST", cost]));
        let (stored, time) = entries(&mut con, "k").pop().unwrap();
        assert_eq!(stored, member);
        assert!(time > last && (call.before..=call.after).contains(&time));
        last = time;
    }
    assert_eq!(entries(&mut con, "k").len(), 3);
    assert_eq!(run::<String>(&mut con, "TYPE", &["k"]), "zset");
}

#[test]
fn totals_wrap_at_2_to_the_64() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    // 2^64 - 1 after a cost of 5, then 4 more.
    store(
        &mut con,
        "k",
        &[
            (time - 2000, "18446744073709551615:5"),
            (time - 1000, "3:4"),
        ],
    );
    let reply = slide_log(&mut con, "k", &[(20, "60s")], &["COST", "3"]);
    assert_eq!((reply.limited, reply.remaining), (0, 8));
    assert_eq!(entries(&mut con, "k").pop().unwrap().0, "6:3");
    let newest = entries(&mut con, "k").pop().unwrap().1;
    timed_reply(
        &mut con,
        slide("SLIDE.LOG", "k", &[(12, "60s")], &["COST", "2"]),
    )
    .matches(|now| Reply {
        limited: 1,
        limit: 12,
        remaining: 0,
        retry_after: time - 2000 + 60_000 - now,
        reset_after: newest + 60_000 - now,
    });
}

#[test]
fn the_wait_is_for_the_oldest_entries_that_free_enough() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    store(
        &mut con,
        "k",
        &[(time - 20_000, "1:1"), (time - 10_000, "2:1")],
    );
    timed_reply(&mut con, slide("SLIDE.LOG", "k", &[(2, "60s")], &[])).matches(|now| Reply {
        limited: 1,
        limit: 2,
        remaining: 0,
        retry_after: time - 20_000 + 60_000 - now,
        reset_after: time - 10_000 + 60_000 - now,
    });
    timed_reply(
        &mut con,
        slide("SLIDE.LOG", "k", &[(2, "60s")], &["COST", "2"]),
    )
    .matches(|now| Reply {
        limited: 1,
        limit: 2,
        remaining: 0,
        retry_after: time - 10_000 + 60_000 - now,
        reset_after: time - 10_000 + 60_000 - now,
    });
}

/// In real time: calls go on all the while, are refused until the ms at which the oldest entry is
/// a window old, and admitted from then on.
#[test]
fn a_window_is_half_open() {
    let server = Server::start();
    let mut con = server.connect();
    let tiers = [(2, "500ms")];
    slide_log(&mut con, "k", &tiers, &[]);
    let first = entries(&mut con, "k")[0].1;
    wait_until(&mut con, first + 100);
    assert_eq!(slide_log(&mut con, "k", &tiers, &[]).limited, 0);
    let lives_until: i64 = run(&mut con, "PEXPIRETIME", &["k"]);
    assert!(
        lives_until >= first + 500 + 100,
        "the key goes before its entries"
    );

    let mut refused = 0;
    loop {
        let call = timed_reply(&mut con, slide("SLIDE.LOG", "k", &tiers, &[]));
        if call.value.limited == 0 {
            assert!(
                call.after >= first + 500,
                "{call:?} came early, after {first}"
            );
            break;
        }
        assert!(
            call.before < first + 500,
            "{call:?} came after {first} + 500"
        );
        assert!(call.value.retry_after > 0);
        refused += 1;
    }
    assert!(
        refused > 0,
        "nothing was tried before the window had passed"
    );
    let admitted = entries(&mut con, "k").pop().unwrap().1;
    assert!(
        admitted >= first + 500,
        "{admitted} is inside the window of {first}"
    );
}

#[test]
fn the_key_lives_a_window_and_at_most_a_quarter_more() {
    let server = Server::start();
    let mut con = server.connect();
    for (window, ms) in [
        ("500ms", 500),
        ("60s", 60_000),
        ("30d", 2_592_000_000),
        (DECADE, DECADE_MS),
    ] {
        for tiers in [
            vec![(1000, window)],
            vec![(1000, "7ms"), (1000, window), (1000, "400ms")],
        ] {
            let key = format!("{window}:{}", tiers.len());
            for _ in 0..20 {
                let call = slide("SLIDE.LOG", &key, &tiers, &[]);
                let (reply, newest, expiry): (Vec<i64>, Vec<(String, f64)>, i64) = redis::pipe()
                    .atomic()
                    .add_command(call)
                    .cmd("ZRANGE")
                    .arg(&[&key, "-1", "-1", "WITHSCORES"])
                    .cmd("PEXPIRETIME")
                    .arg(&key)
                    .query(&mut con)
                    .unwrap();
                assert_eq!(reply[0], 0);
                #[allow(clippy::cast_possible_truncation)]
                let lives = expiry - newest[0].1 as i64;
                assert!(
                    (ms..=ms + ms / 4).contains(&lives),
                    "{window}: the key lives {lives} ms"
                );
            }
        }
    }
}

#[test]
fn a_key_without_expiry_gets_one() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "k", &[(5, "60s")], &[]);
    run::<i64>(&mut con, "PERSIST", &["k"]);
    slide_log(&mut con, "k", &[(5, "60s")], &[]);
    let newest = entries(&mut con, "k").pop().unwrap().1;
    let lives = run::<i64>(&mut con, "PEXPIRETIME", &["k"]) - newest;
    assert!(
        (60_000..=75_000).contains(&lives),
        "the key lives {lives} ms"
    );
}

#[test]
fn one_of_the_tiers_is_reported() {
    let server = Server::start();
    let mut con = server.connect();
    let tiers = [(10, "1h"), (3, "60s"), (3, "1d")];
    let fewest = slide_log(&mut con, "k", &tiers, &[]);
    // Of two tiers with as few units left, the first given is reported.
    assert_eq!(
        (fewest.limit, fewest.remaining, fewest.reset_after),
        (3, 2, 60_000)
    );
    slide_log(&mut con, "k", &tiers, &["COST", "2"]);
    let limited = slide_log(&mut con, "k", &tiers, &[]);
    // Of two tiers that are over, the one with the longer wait is.
    assert_eq!(
        (limited.limited, limited.limit, limited.remaining),
        (1, 3, 0)
    );
    assert!(limited.retry_after > 86_000_000, "{limited:?}");
}

/// The future can only come from a wrong date. Within a window it is waited for.
#[test]
fn time_stands_still_at_an_entry_of_the_near_future() {
    let server = Server::start();
    let mut con = server.connect();
    let future = now(&mut con) + 50_000;
    store(
        &mut con,
        "k",
        &[
            (future - 60_000, "1:1"),
            (future - 1, "4:3"),
            (future, "6:2"),
        ],
    );
    let before = state(&mut con);
    timed_reply(
        &mut con,
        slide("SLIDE.LOG", "k", &[(6, "60s")], &["COST", "2"]),
    )
    .matches(|now| Reply {
        limited: 1,
        limit: 6,
        remaining: 1,
        retry_after: future - 1 + 60_000 - now,
        reset_after: future + 60_000 - now,
    });
    assert_eq!(state(&mut con), before);
    assert_eq!(slide_log(&mut con, "k", &[(6, "60s")], &[]).limited, 0);
    assert_eq!(
        entries(&mut con, "k").pop().unwrap(),
        ("7:3".to_owned(), future)
    );
}

/// Beyond a window, all that still counts moves to now, whatever the call's verdict.
#[test]
fn an_entry_of_the_far_future_is_moved_to_now() {
    let server = Server::start();
    let mut con = server.connect();
    let future = now(&mut con) + 3_600_000;
    for (cost, limit, limited, healed) in [
        ("1", 5, 1, "9:5"),
        ("0", 5, 0, "9:5"),
        ("9", 5, 1, "9:5"),
        ("2", 10, 0, "11:7"),
    ] {
        store(
            &mut con,
            "k",
            &[
                (future - 60_000, "4:4"),
                (future - 1, "7:3"),
                (future, "9:2"),
            ],
        );
        run::<i64>(
            &mut con,
            "PEXPIREAT",
            &["k", &(future + 60_000).to_string()],
        );
        let call = timed_reply(
            &mut con,
            slide(
                "SLIDE.LOG",
                "k",
                &[(limit, "60s"), (1000, "10s")],
                &["COST", cost],
            ),
        );
        assert_eq!(call.value.limited, limited, "{cost} of {limit}: {call:?}");
        let stored = entries(&mut con, "k");
        assert_eq!(stored.len(), 1, "{stored:?}");
        assert_eq!(stored[0].0, healed);
        assert!(
            (call.before..=call.after).contains(&stored[0].1),
            "{stored:?} at {call:?}"
        );
        let lives = run::<i64>(&mut con, "PEXPIRETIME", &["k"]) - stored[0].1;
        assert!(
            (60_000..=75_000).contains(&lives),
            "the key lives {lives} ms"
        );
        run::<i64>(&mut con, "DEL", &["k"]);
    }
}

#[test]
fn a_call_removes_at_most_64_expired_entries() {
    let server = Server::start();
    let mut con = server.connect();
    let old = now(&mut con) - 10_000_000;
    let mut fill = cmd("ZADD");
    fill.arg("k");
    for entry in 1..=2000 {
        fill.arg(old + entry).arg(format!("{entry}:1"));
    }
    fill.query::<i64>(&mut con).unwrap();
    let mut stored = 2000;
    for call in 0.. {
        let reply = slide_log(&mut con, "k", &[(1_000_000, "60s")], &[]);
        assert_eq!(reply.remaining, 999_999 - call, "expired entries count");
        let last = (old + 2000).to_string();
        let left: i64 = run(&mut con, "ZCOUNT", &["k", "-inf", &last]);
        assert!(stored - left <= 64, "one call removed {}", stored - left);
        stored = left;
        let live: i64 = run(&mut con, "ZCARD", &["k"]);
        let live = live - stored;
        if 4 * (live + stored) <= 5 * live + 4 * 24 {
            break;
        }
        assert!(
            call < 16 * (1 + 2000 / 64),
            "{stored} expired entries are left"
        );
    }
}

#[test]
fn steady_traffic_keeps_a_log_trimmed() {
    let server = Server::start();
    let mut con = server.connect();
    let end = now(&mut con) + 1500;
    let mut recorded = 0;
    while now(&mut con) < end {
        let Timed { value, .. } = timed_reply(
            &mut con,
            slide("SLIDE.LOG", "k", &[(1_000_000, "100ms")], &[]),
        );
        assert_eq!(value.limited, 0);
        let stored = entries(&mut con, "k");
        let newest = stored.last().unwrap().1;
        let live = stored.iter().filter(|entry| entry.1 > newest - 100).count();
        assert!(
            stored.len() <= live + live / 4 + 64,
            "{} entries, {live} live",
            stored.len()
        );
        recorded += 1;
    }
    assert!(
        recorded > 250,
        "only {recorded} calls: too few to need trimming"
    );
}
