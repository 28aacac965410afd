//! Leases under faults: stored data that somebody changed, servers that die, data sets that are swapped.

mod change;
mod changed;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use redis::{Connection, Value};

pub use changed::{Tally, round};

use crate::support::oracle::stored::{self, Place};
use crate::support::random::{Numbers, effort, seeds};
use crate::support::{
    Server, Setup, error_text, eventually, info_number, line, now, reply, run, wait_until,
};
use crate::wire::{Stop, assert_agree, start_pair};

/// A key's leases, the first to end first.
#[track_caller]
fn places(con: &mut Connection, key: &str) -> Vec<Place> {
    let members: Vec<(Vec<u8>, f64)> = run(con, "ZRANGE", &[key, "0", "-1", "WITHSCORES"]);
    stored::places(&members).unwrap_or_else(|| panic!("{key} holds other things: {members:?}"))
}

/// A random call on one of a few keys, some of which are full.
fn call(numbers: &mut Numbers) -> redis::Cmd {
    let key = numbers.below(4);
    let id = numbers.below(20);
    if numbers.one_in(4) {
        return line(&format!("SLIDE.RELEASE k{key} {id} {}", numbers.below(20)));
    }
    let ttl = ["30ms", "300ms", "1h"][numbers.place(3)];
    let force = if numbers.one_in(20) { " FORCE" } else { "" };
    line(&format!("SLIDE.LEASE k{key} 5 {ttl} {id}{force}"))
}

/// The primary is killed while callers come and go. Its replica has every lease that had reached it, and
/// who held a place there holds it still.
#[test]
fn a_promoted_replica_knows_who_holds_a_place() {
    for seed in seeds(effort(3, 12)) {
        println!("SLIDE_SEED={seed}");
        let mut numbers = Numbers::new(seed);
        let (primary, replica) = start_pair();
        let mut con = primary.connect();
        for _ in 0..numbers.one_to(2_000) {
            call(&mut numbers).query::<Value>(&mut con).unwrap();
        }
        for id in ["a", "b", "c"] {
            let take = line(&format!("SLIDE.LEASE held 3 1h {id}"));
            assert_eq!(reply(&mut con, &take).limited, 0);
        }
        assert_agree(&primary, &replica);
        let held = places(&mut con, "held");
        primary.crash();

        let mut con = replica.connect();
        run::<()>(&mut con, "REPLICAOF", &["NO", "ONE"]);
        assert_eq!(places(&mut con, "held"), held);
        let mut ask = |id| reply(&mut con, &line(&format!("SLIDE.LEASE held 3 1h {id}"))).limited;
        assert_eq!([ask("d"), ask("a"), ask("c")], [1, 0, 0]);
        assert_eq!(
            run::<i64>(&mut con, "SLIDE.RELEASE", &["held", "b", "x"]),
            1
        );
        let take = line("SLIDE.LEASE held 3 1h d");
        assert_eq!(reply(&mut con, &take).limited, 0);
        for _ in 0..500 {
            call(&mut numbers).query::<Value>(&mut con).unwrap();
        }
        replica.assert_alive();
    }
}

/// Takes, renews and releases until told to stop.
fn call_until(stop: &AtomicBool, server: &Server, seed: u64, done: &AtomicU64) {
    let mut con = server.connect();
    let mut numbers = Numbers::new(seed);
    while !stop.load(Ordering::Relaxed) {
        match call(&mut numbers).query::<Value>(&mut con) {
            Ok(_) => done.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                let error = error_text(&error);
                assert!(error.starts_with("LOADING "), "{error}");
                0
            }
        };
    }
}

#[test]
fn the_data_set_is_flushed_swapped_and_reloaded_under_callers() {
    let (primary, replica) = start_pair();
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut con = primary.connect();
    thread::scope(|scope| {
        let stop = Stop(&stop);
        let (flag, done, server) = (stop.0, &done, &primary);
        for seed in 0..3 {
            scope.spawn(move || call_until(flag, server, seed, done));
        }
        for turn in 0..effort(20, 80) {
            let before = done.load(Ordering::Relaxed);
            eventually("clients call in between", || {
                (done.load(Ordering::Relaxed) >= before + 50).then_some(())
            });
            let disturb = ["FLUSHALL ASYNC", "SWAPDB 0 1", "DEBUG RELOAD", "DEL k0 k1"];
            let disturb = disturb[turn % disturb.len()];
            line(disturb).query::<()>(&mut con).unwrap();
        }
        drop(stop);
    });
    // Short leases end on both sides.
    eventually("both hold the same", || {
        let soon = now(&mut con) + 5;
        wait_until(&mut con, soon);
        let keys: Vec<String> = run(&mut con, "KEYS", &["k*"]);
        keys.iter()
            .all(|key| run::<i64>(&mut con, "PTTL", &[key]) > 5_000)
            .then_some(())
    });
    assert_agree(&primary, &replica);
    assert_eq!(info_number(&mut con, "slide", "slide_panics"), 0);
}

/// Under a memory limit with eviction leases are keys like others: one that is evicted forgets its places,
/// and is a new one to the next call.
#[test]
fn evicted_leases_are_forgotten_whole() {
    let server = Setup::new().line("maxmemory-policy allkeys-random").start();
    let mut con = server.connect();
    let used = info_number(&mut con, "memory", "used_memory");
    let limit = (used + 2_000_000).to_string();
    run::<()>(&mut con, "CONFIG", &["SET", "maxmemory", &limit]);
    let id = "x".repeat(120);
    for round in 0..effort(10_000, 30_000) {
        let key = format!("k{}", round % 4_000);
        let call = line(&format!("SLIDE.LEASE {key} 3 1h {id}{}", round % 5));
        let five = reply(&mut con, &call);
        assert!(five.remaining >= 0 && five.limit == 3);
    }
    assert!(info_number(&mut con, "stats", "evicted_keys") > 0);
    run::<()>(&mut con, "CONFIG", &["SET", "maxmemory", "0"]);
    let keys: Vec<String> = run(&mut con, "KEYS", &["k*"]);
    for key in keys {
        assert!((1..=3).contains(&places(&mut con, &key).len()), "{key}");
    }
}
