//! What replicas and the append-only file get: effects, and of a limited call nothing.

use std::collections::BTreeMap;

use crate::support::oracle::stored;
use crate::support::{
    ALMOST_A_DECADE, ALMOST_A_DECADE_FIELD, DECADE, DECADE_FIELD, Server, Setup, entries,
    eventually, info_number, now, repeated, run, slide, slide_counter, slide_log, state,
    timed_replies,
};
use crate::traffic::run_mixed_calls;

fn with_append_only_file() -> Server {
    Setup::new()
        .line("appendonly yes")
        .line("appendfsync always")
        .start()
}

/// How often each command stands in the append-only file.
fn written(server: &Server) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for command in server.append_only_file() {
        *counts.entry(command[0].to_uppercase()).or_default() += 1;
    }
    counts
}

#[test]
fn a_replica_without_the_module_holds_the_same() {
    let primary = Server::start();
    let replica = Setup::new().without_module().replica_of(&primary).start();
    primary.wait_for(&replica);
    let mut con = primary.connect();
    let admitted = run_mixed_calls(&mut con, 5000);
    assert!(
        (500..4500).contains(&admitted),
        "{admitted} of 5,000 admitted: not a mixture"
    );

    let mut copy = replica.connect();
    // Keys whose time comes while we look are deleted on the primary first.
    eventually("primary and replica are equal", || {
        primary.wait_for(&replica);
        (state(&mut con) == state(&mut copy)).then_some(())
    });
    let (_, keys) = state(&mut copy);
    assert!(keys.len() >= 4, "hardly anything to compare: {keys:?}");
    assert!(
        keys.values().all(|&expiry| expiry > 0),
        "keys without expiry: {keys:?}"
    );
    replica.assert_alive();
}

#[test]
fn limited_calls_add_nothing_to_the_stream() {
    let primary = Server::start();
    let replica = Setup::new().without_module().replica_of(&primary).start();
    let mut con = primary.connect();
    slide_log(&mut con, "log", &[(10, "1d")], &["COST", "10"]);
    slide_counter(&mut con, "counter", &[(10, DECADE)], &["COST", "10"]);
    primary.wait_for(&replica);
    let offset = info_number(&mut con, "replication", "master_repl_offset");
    for _ in 0..50 {
        assert_eq!(slide_log(&mut con, "log", &[(10, "1d")], &[]).limited, 1);
        assert_eq!(
            slide_counter(&mut con, "counter", &[(10, DECADE)], &[]).limited,
            1
        );
        slide_log(&mut con, "log", &[(10, "1d")], &["COST", "0"]);
        slide_counter(&mut con, "new", &[(10, DECADE)], &["COST", "0"]);
    }
    assert_eq!(
        info_number(&mut con, "replication", "master_repl_offset"),
        offset
    );
    // An admitted one does, so the offset above could have moved.
    slide_log(&mut con, "other", &[(10, "1d")], &[]);
    assert!(info_number(&mut con, "replication", "master_repl_offset") > offset);
}

#[test]
fn a_recorded_call_is_written_as_its_effects() {
    let server = with_append_only_file();
    let mut con = server.connect();
    slide_log(&mut con, "k", &[(10, "60s")], &["COST", "3"]);
    let (member, time) = entries(&mut con, "k").remove(0);
    let expiry: i64 = run(&mut con, "PEXPIRETIME", &["k"]);
    assert_eq!(
        server.append_only_file(),
        [
            vec!["ZADD", "k", &time.to_string(), &member],
            vec!["PEXPIREAT", "k", &expiry.to_string()],
        ]
    );

    let server = with_append_only_file();
    let mut con = server.connect();
    slide_counter(
        &mut con,
        "k",
        &[(10, DECADE), (9, ALMOST_A_DECADE)],
        &["COST", "3"],
    );
    let expiry: i64 = run(&mut con, "PEXPIRETIME", &["k"]);
    let fields: Vec<String> = run(
        &mut con,
        "HMGET",
        &["k", DECADE_FIELD, ALMOST_A_DECADE_FIELD],
    );
    let file = server.append_only_file();
    let mut set: Vec<&str> = file
        .iter()
        .filter(|command| command[0] == "HSET")
        .flat_map(|command| command[2..].iter().map(String::as_str))
        .collect();
    set.sort_unstable();
    let mut expected = [DECADE_FIELD, ALMOST_A_DECADE_FIELD, &fields[0], &fields[1]];
    expected.sort_unstable();
    assert_eq!(set, expected);
    assert_eq!(
        *file.last().unwrap(),
        ["PEXPIREAT", "k", &expiry.to_string()]
    );
}

#[test]
fn the_effects_are_few() {
    let server = with_append_only_file();
    let mut con = server.connect();
    let calls = 2000;
    let log = slide("SLIDE.LOG", "log", &[(10_000, "1h")], &[]);
    repeated(&log, calls).query::<()>(&mut con).unwrap();
    let counts = written(&server);
    let members: Vec<(Vec<u8>, f64)> = run(&mut con, "ZRANGE", &["log", "0", "-1", "WITHSCORES"]);
    let entries = stored::log(&members).expect("a log").len();
    let merged = calls - entries;
    // One ZADD a call; one ZREM a merge; the expiry once, as the hour has hardly moved. Packing takes at
    // most two commands more, and goes with one in eight calls that add an entry at most.
    let packing = entries / 4;
    assert_eq!(counts.get("ZADD"), Some(&calls));
    let removals = counts.get("ZREM").copied().unwrap_or(0);
    assert!(
        (merged..=merged + packing).contains(&removals),
        "{counts:?}, {merged} merged"
    );
    assert_eq!(counts.get("PEXPIREAT"), Some(&1));
    let all = counts.values().sum::<usize>();
    assert!(
        all <= calls + merged + packing + 1,
        "{counts:?}, {merged} merged"
    );

    let counter = slide("SLIDE.COUNTER", "counter", &[(10_000, DECADE)], &[]);
    repeated(&counter, calls).query::<()>(&mut con).unwrap();
    let counts = written(&server);
    assert_eq!(counts.get("HSET"), Some(&calls));
    assert_eq!(
        counts.get("PEXPIREAT"),
        Some(&2),
        "a counter's bucket never changed"
    );
}

#[test]
fn trimming_rides_along_with_few_calls() {
    let server = with_append_only_file();
    let mut con = server.connect();
    let old = now(&mut con) - 10_000_000;
    let mut fill = redis::cmd("ZADD");
    fill.arg("k");
    for entry in 1..=1000 {
        fill.arg(old + entry).arg(format!("{entry}:1"));
    }
    fill.query::<i64>(&mut con).unwrap();
    let trimmed = |con: &mut redis::Connection| info_number(con, "slide", "slide_trimmed_entries");
    let (mut trims, mut gone) = (0, 0);
    let calls = 320;
    for _ in 0..calls {
        slide_log(&mut con, "k", &[(100_000, "60s")], &[]);
        let now_gone = trimmed(&mut con);
        assert!(now_gone - gone <= 64, "{} at once", now_gone - gone);
        trims += i64::from(now_gone > gone);
        gone = now_gone;
    }
    assert!(trims > 0, "nothing was trimmed");
    assert!(trims <= calls / 4, "{trims} of {calls} calls trimmed");
    let expired: i64 = run(
        &mut con,
        "ZCOUNT",
        &["k", "-inf", &(old + 1000).to_string()],
    );
    assert_eq!(expired, 1000 - gone);
}

#[test]
fn effects_are_the_ordinary_commands() {
    let server = with_append_only_file();
    let mut con = server.connect();
    run_mixed_calls(&mut con, 1000);
    // Merges and a healed entry too.
    let merging = slide("SLIDE.LOG", "merging", &[(100, "60s")], &[]);
    timed_replies(&mut con, &[merging.clone(), merging.clone(), merging]);
    let future = (now(&mut con) + 3_600_000).to_string();
    run::<i64>(&mut con, "ZADD", &["healed", &future, "5:5"]);
    assert_eq!(slide_log(&mut con, "healed", &[(5, "60s")], &[]).limited, 1);

    let file = server.append_only_file();
    let healed: Vec<&str> = file
        .iter()
        .filter(|command| command[1] == "healed")
        .map(|command| command[0].as_str())
        .collect();
    assert_eq!(healed, ["ZADD", "UNLINK", "ZADD", "PEXPIREAT"]);
    for command in written(&server).keys() {
        // The server itself writes DEL or UNLINK for expired keys.
        let known = [
            "ZADD",
            "ZREM",
            "ZREMRANGEBYSCORE",
            "HSET",
            "PEXPIREAT",
            "UNLINK",
            "DEL",
        ];
        assert!(known.contains(&command.as_str()), "{command}");
    }
}
