//! What callers are told.

use super::{lease, release, slide_lease, store};
use crate::support::{
    Reply, Server, entries, now, repeated, run, slide_peek, timed_reply, wait_until,
};

#[test]
fn the_reply_describes_the_state_after_the_call() {
    let server = Server::start();
    let mut con = server.connect();
    let mut ends = Vec::new();
    for (id, remaining) in [("a", 1), ("b", 0)] {
        let call = timed_reply(&mut con, lease("k", 2, "60s", id, &[]));
        assert_eq!(
            call.value,
            Reply {
                limited: 0,
                limit: 2,
                remaining,
                retry_after: 0,
                reset_after: 60_000
            }
        );
        ends.push(entries(&mut con, "k").pop().unwrap().1);
        assert!((call.before..=call.after).contains(&(ends[ends.len() - 1] - 60_000)));
    }
    let full = |now: i64| Reply {
        limited: 1,
        limit: 2,
        remaining: 0,
        retry_after: ends[0] - now,
        reset_after: ends[1] - now,
    };
    timed_reply(&mut con, lease("k", 2, "1s", "c", &[])).matches(full);
    let mut peek = redis::cmd("SLIDE.PEEK");
    peek.arg(&["k", "2", "1ms"]);
    timed_reply(&mut con, peek).matches(full);
}

#[test]
fn a_place_that_is_given_back_is_free_at_once() {
    let server = Server::start();
    let mut con = server.connect();
    for id in ["a", "b"] {
        assert_eq!(slide_lease(&mut con, "k", 2, "60s", id, &[]).limited, 0);
    }
    assert_eq!(slide_lease(&mut con, "k", 2, "60s", "c", &[]).limited, 1);
    assert_eq!(release(&mut con, "k", "a"), 1);
    assert_eq!(release(&mut con, "k", "a"), 0, "it is nobody's any more");
    assert_eq!(slide_lease(&mut con, "k", 2, "60s", "c", &[]).limited, 0);
    // Each id counts once, and those that hold nothing do not.
    assert_eq!(release(&mut con, "k", &["b", "x", "b", "c", "c"]), 2);
    assert_eq!(run::<i64>(&mut con, "EXISTS", &["k"]), 0);
    assert_eq!(release(&mut con, "k", "b"), 0, "a missing key");
}

/// A caller that lost a reply does not know whether it holds a place. It asks again.
#[test]
fn a_retry_takes_no_second_place() {
    let server = Server::start();
    let mut con = server.connect();
    for _ in 0..3 {
        let again = slide_lease(&mut con, "k", 2, "60s", "a", &[]);
        assert_eq!((again.limited, again.remaining), (0, 1));
    }
    let heartbeat = repeated(&lease("k", 1, "60s", "a", &[]), 10_000);
    let replies: Vec<Vec<i64>> = heartbeat.query(&mut con).unwrap();
    assert!(replies.iter().all(|reply| reply[..3] == [0, 1, 0]));
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["k"]), 1);
    // Its end moves either way.
    let end = |con: &mut _| entries(con, "k")[0].1;
    let late = end(&mut con);
    assert_eq!(slide_lease(&mut con, "k", 1, "5s", "a", &[]).limited, 0);
    assert!(end(&mut con) < late - 50_000);
    // It keeps its place where there is none to take.
    for id in ["b", "c"] {
        slide_lease(&mut con, "k", 9, "60s", id, &[]);
    }
    let kept = slide_lease(&mut con, "k", 1, "60s", "a", &[]);
    assert_eq!((kept.limited, kept.remaining, kept.retry_after), (0, 0, 0));
}

#[test]
fn a_holder_that_died_is_waited_for_to_the_ms() {
    let server = Server::start();
    let mut con = server.connect();
    slide_lease(&mut con, "k", 1, "80ms", "dead", &[]);
    let end = entries(&mut con, "k")[0].1;
    let mut limited = 0;
    loop {
        let call = timed_reply(&mut con, lease("k", 1, "60s", "next", &[]));
        if call.value.limited == 0 {
            assert!(call.after >= end, "before the place was free");
            break;
        }
        assert!(call.before < end, "after the place was free");
        limited += 1;
    }
    assert!(limited > 0, "the server was too slow to be asked in time");
}

#[test]
fn a_wait_that_is_obeyed_gets_in() {
    let server = Server::start();
    let mut con = server.connect();
    for (id, ttl) in [("a", "70ms"), ("b", "40ms"), ("c", "100ms")] {
        slide_lease(&mut con, "k", 3, ttl, id, &[]);
    }
    // All but one have to end for a limit of 2.
    let call = timed_reply(&mut con, lease("k", 2, "60s", "x", &[]));
    assert_eq!(call.value.limited, 1);
    wait_until(&mut con, call.after + call.value.retry_after);
    assert_eq!(slide_lease(&mut con, "k", 2, "60s", "x", &[]).limited, 0);
}

#[test]
fn force_takes_a_place_beyond_the_limit() {
    let server = Server::start();
    let mut con = server.connect();
    assert_eq!(
        slide_lease(&mut con, "k", 1, "60s", "a", &["FORCE"]).limited,
        0
    );
    let forced = slide_lease(&mut con, "k", 1, "90s", "b", &["force"]);
    assert_eq!((forced.limited, forced.remaining), (1, 0));
    // Both have to end, and the later one ends in 90 s.
    assert_eq!(forced.retry_after, 90_000);
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["k"]), 2);
    let never = slide_lease(&mut con, "k", 0, "60s", "c", &["FORCE"]);
    assert_eq!((never.limited, never.retry_after), (1, -1));
    assert_eq!(run::<i64>(&mut con, "ZCARD", &["k"]), 3);
}

#[test]
fn a_limit_of_0_has_no_places() {
    let server = Server::start();
    let mut con = server.connect();
    let reply = slide_lease(&mut con, "k", 0, "60s", "a", &[]);
    assert_eq!(
        reply,
        Reply {
            limited: 1,
            limit: 0,
            remaining: 0,
            retry_after: -1,
            reset_after: 0
        }
    );
    assert_eq!(run::<i64>(&mut con, "EXISTS", &["k"]), 0);
}

#[test]
fn any_bytes_are_an_id() {
    let server = Server::start();
    let mut con = server.connect();
    let every: Vec<u8> = (0..=255).collect();
    let ids = [
        &every[..128],
        &every[128..],
        b"\0",
        b"@",
        b"@a",
        b"1:1",
        b"FORCE",
        &[b'x'; 128],
    ];
    for (place, id) in ids.into_iter().enumerate() {
        let taken = slide_lease(&mut con, "k", 9, "60s", id, &[]);
        let left = 8 - i64::try_from(place).unwrap();
        assert_eq!((taken.limited, taken.remaining), (0, left), "{id:?}");
        let kept = slide_lease(&mut con, "k", 9, "60s", id, &[]);
        assert_eq!(kept.remaining, left, "{id:?}");
        let mut member = b"@".to_vec();
        member.extend(id);
        let mut score = redis::cmd("ZSCORE");
        let end: Option<f64> = score.arg("k").arg(member).query(&mut con).unwrap();
        assert!(end.is_some(), "{id:?}");
    }
    assert_eq!(release(&mut con, "k", &ids[..]), 8);
    assert_eq!(run::<i64>(&mut con, "EXISTS", &["k"]), 0);
}

/// Whoever holds a place can be listed by a command of the server.
#[test]
fn the_holders_are_a_range_of_the_sorted_set() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    store(&mut con, "k", [time - 5, time - 1]);
    for id in ["job-7", "job-8"] {
        slide_lease(&mut con, "k", 5, "60s", id, &[]);
    }
    store(&mut con, "k", [time - 5]);
    let from = format!("({}", now(&mut con));
    let holders: Vec<String> = run(&mut con, "ZRANGE", &["k", &from, "+inf", "BYSCORE"]);
    assert_eq!(holders, ["@job-7", "@job-8"]);
}

#[test]
fn a_peek_takes_one_limit_and_nothing_else() {
    let server = Server::start();
    let mut con = server.connect();
    for id in ["a", "b"] {
        slide_lease(&mut con, "k", 5, "60s", id, &[]);
    }
    let before = entries(&mut con, "k");
    for window in ["1ms", "60s", "3652d"] {
        let free = slide_peek(&mut con, "k", &[(3, window)], &[]);
        assert_eq!((free.limited, free.remaining, free.retry_after), (0, 1, 0));
        let full = slide_peek(&mut con, "k", &[(2, window)], &[]);
        assert_eq!((full.limited, full.remaining), (1, 0));
        assert!((50_000..=60_000).contains(&full.retry_after), "{full:?}");
    }
    assert_eq!(entries(&mut con, "k"), before);
}
