//! `SLIDE.COUNTER`: verdicts, waits, what is stored and for how long.

use std::collections::BTreeMap;

use redis::Connection;

use crate::support::oracle::{Call, Counter, Reply, stored};
use crate::support::{
    ALMOST_A_DECADE, ALMOST_A_DECADE_FIELD, DECADE, DECADE_FIELD, DECADE_MS, Server, Timed, bucket,
    end_of_bucket, key_with_passed, now, run, slide, slide_counter, start_of_bucket, state,
    timed_reply, wait_until,
};

fn fields(con: &mut Connection, key: &str) -> BTreeMap<String, String> {
    run(con, "HGETALL", &[key])
}

/// Stores a decade's counts on the server, and gives an oracle that has them too.
fn store(con: &mut Connection, key: &str, index: i64, counts: [u64; 2]) -> Counter {
    let [current, previous] = counts;
    let value = format!("{index}:{current}:{previous}");
    run::<i64>(con, "HSET", &[key, DECADE_FIELD, &value]);
    let field = stored::field(DECADE_FIELD.as_bytes(), value.as_bytes());
    Counter::holding(key.as_bytes(), &[field.unwrap()])
}

/// Runs one call, and checks its reply against the oracle's at some instant of its duration.
#[track_caller]
fn check(
    con: &mut Connection,
    oracle: &Counter,
    key: &str,
    (limit, window): (u64, i64),
    cost: u64,
) -> Timed<Reply> {
    let tier = (limit, &*format!("{window}ms"));
    let command = slide("SLIDE.COUNTER", key, &[tier], &["COST", &cost.to_string()]);
    let tiers = [(limit, window.unsigned_abs())];
    let call = Call {
        tiers: &tiers,
        cost,
        force: false,
    };
    let timed = timed_reply(con, command);
    timed.matches(|now| oracle.clone().call(now, call, 1, false));
    timed
}

#[test]
fn one_field_a_window_holds_index_and_both_counts() {
    let server = Server::start();
    let mut con = server.connect();
    let index = |con: &mut _, window| bucket("k", window, 1, now(con));
    let tiers = [(100, DECADE), (50, ALMOST_A_DECADE)];
    let first = slide_counter(&mut con, "k", &tiers, &["COST", "7"]);
    assert_eq!((first.limited, first.limit, first.remaining), (0, 50, 43));
    slide_counter(&mut con, "k", &tiers, &[]);
    assert_eq!(
        fields(&mut con, "k"),
        BTreeMap::from([
            (
                DECADE_FIELD.to_owned(),
                format!("{}:8:0", index(&mut con, DECADE_MS))
            ),
            (
                ALMOST_A_DECADE_FIELD.to_owned(),
                format!("{}:8:0", index(&mut con, DECADE_MS - 1))
            ),
        ])
    );
    assert_eq!(run::<String>(&mut con, "TYPE", &["k"]), "hash");
}

#[test]
fn windows_begin_at_moments_of_the_keys_own_and_the_key_lives_two_of_them() {
    let server = Server::start();
    let mut con = server.connect();
    for (window, ms) in [
        ("500ms", 500),
        ("7s", 7000),
        ("60s", 60_000),
        ("30d", 2_592_000_000),
        (DECADE, DECADE_MS),
    ] {
        for tiers in [
            vec![(1000, window)],
            vec![(1000, "3ms"), (1000, window), (1000, "200ms")],
        ] {
            let key = format!("{window}:{}", tiers.len());
            for _ in 0..20 {
                let (before, reply, value, expiry, after): (
                    Vec<i64>,
                    Vec<i64>,
                    String,
                    i64,
                    Vec<i64>,
                ) = redis::pipe()
                    .atomic()
                    .cmd("TIME")
                    .add_command(slide("SLIDE.COUNTER", &key, &tiers, &[]))
                    .cmd("HGET")
                    .arg(&key)
                    .arg(ms)
                    .cmd("PEXPIRETIME")
                    .arg(&key)
                    .cmd("TIME")
                    .query(&mut con)
                    .unwrap();
                assert_eq!(reply[0], 0);
                let index: i64 = value.split(':').next().unwrap().parse().unwrap();
                let at = |time: &[i64]| bucket(&key, ms, 1, time[0] * 1000 + time[1] / 1000);
                assert!(
                    (at(&before)..=at(&after)).contains(&index),
                    "{window}: {value}"
                );
                let end = end_of_bucket(&key, ms, 1, index);
                assert_eq!(expiry, end, "{window}: {value}");
            }
        }
    }
}

/// Somebody took the expiry away, or put it too early: the next recorded call of several tiers sets
/// it right, also when no bucket has changed.
#[test]
fn a_missing_or_shortened_expiry_is_set_right() {
    let server = Server::start();
    let mut con = server.connect();
    for (options, buckets) in [(&["COST", "1"][..], 1), (&["BUCKETS", "5"], 5)] {
        let tiers = [(10, DECADE), (10, ALMOST_A_DECADE)];
        slide_counter(&mut con, "k", &tiers, options);
        let expiry: i64 = run(&mut con, "PEXPIRETIME", &["k"]);
        let end = |window| {
            let index = bucket("k", window, buckets, now(&mut server.connect()));
            end_of_bucket("k", window, buckets, index)
        };
        assert_eq!(expiry, end(DECADE_MS).max(end(DECADE_MS - 1)));
        let spoil: [&[&str]; 3] = [
            &["PERSIST", "k"],
            &["PEXPIRE", "k", "1000000"],
            &["PEXPIREAT", "k", &(expiry - 1).to_string()],
        ];
        for spoil in spoil {
            run::<i64>(&mut con, spoil[0], &spoil[1..]);
            let spoiled: i64 = run(&mut con, "PEXPIRETIME", &["k"]);
            assert_ne!(spoiled, expiry);
            // A limited call writes nothing, not even this.
            let limited =
                slide_counter(&mut con, "k", &[(0, DECADE), (0, ALMOST_A_DECADE)], options);
            assert_eq!(limited.limited, 1);
            assert_eq!(run::<i64>(&mut con, "PEXPIRETIME", &["k"]), spoiled);
            assert_eq!(slide_counter(&mut con, "k", &tiers, options).limited, 0);
            assert_eq!(
                run::<i64>(&mut con, "PEXPIRETIME", &["k"]),
                expiry,
                "{spoil:?} {options:?}"
            );
        }
        // A later one is left: others may have their reasons.
        run::<i64>(&mut con, "PEXPIREAT", &["k", &(expiry + 1).to_string()]);
        slide_counter(&mut con, "k", &tiers, options);
        assert_eq!(run::<i64>(&mut con, "PEXPIRETIME", &["k"]), expiry + 1);
        run::<i64>(&mut con, "DEL", &["k"]);
    }
}

#[test]
fn the_previous_window_counts_by_the_part_still_covered() {
    let server = Server::start();
    let mut con = server.connect();
    let (key, index) = key_with_passed(&mut con, DECADE_MS, 1, 0.1001);
    let oracle = store(&mut con, &key, index, [10, 50]);
    let reply = check(&mut con, &oracle, &key, (100, DECADE_MS), 0).value;
    assert_eq!((reply.limited, reply.remaining), (0, 45));
}

#[test]
fn nothing_is_rounded_before_the_comparison() {
    let server = Server::start();
    let mut con = server.connect();
    let (key, index) = key_with_passed(&mut con, DECADE_MS, 1, 0.001);
    // The rest of one unit is still in the window, however little of it has gone.
    let oracle = store(&mut con, &key, index, [0, 1]);
    let reply = check(&mut con, &oracle, &key, (1, DECADE_MS), 1).value;
    assert_eq!((reply.limited, reply.remaining), (1, 0));
}

#[test]
fn waits_know_how_the_weight_falls() {
    let server = Server::start();
    let mut con = server.connect();
    // 60 before and 12 now, a fifth into the window: a sixtieth of the window frees one unit.
    let (key, index) = key_with_passed(&mut con, DECADE_MS, 1, 0.2001);
    let oracle = store(&mut con, &key, index, [12, 60]);
    let reply = check(&mut con, &oracle, &key, (60, DECADE_MS), 1).value;
    assert_eq!((reply.limited, reply.remaining), (1, 0));
    assert!(reply.retry_after <= DECADE_MS / 60, "{reply:?}");
    // 10 now, half into the window: the rest of it, and a tenth of the next.
    let (key, index) = key_with_passed(&mut con, DECADE_MS, 1, 0.5);
    let oracle = store(&mut con, &key, index, [10, 0]);
    let reply = check(&mut con, &oracle, &key, (10, DECADE_MS), 1).value;
    assert_eq!((reply.limited, reply.remaining), (1, 0));
    let expected = DECADE_MS * 6 / 10;
    assert!(
        (expected - DECADE_MS / 1000..=expected).contains(&reply.retry_after),
        "{reply:?}"
    );
}

/// In real time: from the end of a full window on, calls are refused until the weight of that
/// window has fallen enough.
#[test]
fn the_window_that_just_ended_is_still_there() {
    let server = Server::start();
    let mut con = server.connect();
    let (limit, window) = (5, 1000);
    let mut oracle = Counter::new(b"k");
    let index = bucket("k", window, 1, now(&mut con)) + 1;
    // The buckets begin earlier than the epoch's seconds by this key's own part of one.
    let end = start_of_bucket("k", window, 1, index);
    wait_until(&mut con, end); // so that the fill stays inside one window
    let fill = slide_counter(&mut con, "k", &[(limit, "1s")], &["COST", "5"]);
    assert_eq!((fill.limited, fill.remaining), (0, 0));
    let stored = format!("{index}:5:0");
    assert_eq!(
        fields(&mut con, "k")["1000"],
        stored,
        "the fill took longer than a second"
    );
    let tiers = [(limit, window.unsigned_abs())];
    oracle.call(
        end,
        Call {
            tiers: &tiers,
            cost: 5,
            force: false,
        },
        1,
        false,
    );

    wait_until(&mut con, end + window);
    let mut refused = 0;
    loop {
        let call = check(&mut con, &oracle, "k", (limit, window), 1);
        if call.value.limited == 0 {
            assert!(
                call.after >= end + window + window / 5,
                "{call:?} came early"
            );
            break;
        }
        assert!(
            call.before < end + window + window / 5,
            "{call:?} came late"
        );
        refused += 1;
    }
    assert!(
        refused > 0,
        "nothing was tried before the first unit was free"
    );
    assert_eq!(fields(&mut con, "k")["1000"], format!("{}:1:5", index + 1));
}

#[test]
fn time_stands_still_at_a_bucket_of_the_near_future() {
    let server = Server::start();
    let mut con = server.connect();
    let index = bucket("k", DECADE_MS, 1, now(&mut con)) + 1;
    let oracle = store(&mut con, "k", index, [2, 3]);
    let before = state(&mut con);
    let reply = check(&mut con, &oracle, "k", (6, DECADE_MS), 2).value;
    assert_eq!((reply.limited, reply.remaining), (1, 1));
    assert_eq!(state(&mut con), before);
    check(&mut con, &oracle, "k", (6, DECADE_MS), 1);
    assert_eq!(fields(&mut con, "k")[DECADE_FIELD], format!("{index}:3:3"));
}

#[test]
fn a_bucket_of_the_far_future_becomes_the_current_one() {
    let server = Server::start();
    let mut con = server.connect();
    let index = bucket("k", DECADE_MS, 1, now(&mut con));
    for (cost, limit, limited, healed) in [(1, 5, 1, 5), (0, 5, 0, 5), (9, 5, 1, 5), (2, 10, 0, 7)]
    {
        let oracle = store(&mut con, "k", index + 3, [2, 3]);
        let end = end_of_bucket("k", DECADE_MS, 1, index + 3);
        run::<i64>(&mut con, "PEXPIREAT", &["k", &end.to_string()]);
        let reply = check(&mut con, &oracle, "k", (limit, DECADE_MS), cost).value;
        assert_eq!(reply.limited, limited, "{cost} of {limit}");
        let stored = fields(&mut con, "k");
        assert_eq!(stored[DECADE_FIELD], format!("{index}:{healed}:0"));
        let expiry: i64 = run(&mut con, "PEXPIRETIME", &["k"]);
        assert_eq!(expiry, end_of_bucket("k", DECADE_MS, 1, index));
        run::<i64>(&mut con, "DEL", &["k"]);
    }
}
