//! How much memory one call may take while it runs: what its arguments and the contract bound.
//!
//! Measured as the server's own peak of resident memory. Its figures say nothing of what a call has
//! already given back when it ends.

use std::fs;

use redis::{Cmd, Connection, RedisResult, Value, cmd};

use crate::support::{Server, command, error_text, eventually, info_number, line, now, run};
use crate::units::store_log;

const KIB: i64 = 1024;
const MIB: i64 = 1024 * KIB;

/// What any call may take beside what its bound says: pages, the server's own buffers, and what it
/// does by the way on a busy machine. It is half of what a call would take that kept 8 bytes for each
/// of a million entries, and far less than one that read a whole hash or copied a huge argument.
const LEEWAY: i64 = 4 * MIB;

/// A field of the server's memory as the kernel sees it, in bytes.
fn resident(con: &mut Connection, field: &str) -> i64 {
    let process = info_number(con, "server", "process_id");
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    KIB * kib.expect("the field").parse::<i64>().expect("a number")
}

/// Forgets the peak of resident memory, and gives back what is free.
fn forget_the_peak(con: &mut Connection) {
    // What another thread of the server still frees would count as growth.
    eventually("nothing is left to be freed", || {
        (info_number(con, "memory", "lazyfree_pending_objects") == 0).then_some(())
    });
    run::<()>(con, "MEMORY", &["PURGE"]);
    let process = info_number(con, "server", "process_id");
    fs::write(format!("/proc/{process}/clear_refs"), "5").expect("our own server");
}

/// By how many bytes the server's memory grew at most while it ran a command, and what it said.
fn growth(con: &mut Connection, command: &Cmd) -> (i64, RedisResult<Value>) {
    forget_the_peak(con);
    let before = resident(con, "VmRSS");
    let result = command.query::<Value>(con);
    let growth = resident(con, "VmHWM") - before;
    (growth, result)
}

#[track_caller]
fn assert_grows_by(
    con: &mut Connection,
    what: &str,
    command: &Cmd,
    bound: i64,
) -> RedisResult<Value> {
    let (growth, result) = growth(con, command);
    println!("{what}: {} KiB of {} KiB", growth / KIB, bound / KIB);
    assert!(growth <= bound, "{what}: {growth} bytes, more than {bound}");
    result
}

/// Every call on a log of a million entries, and the refund of a thousand, take next to nothing.
#[test]
fn calls_on_a_huge_log_take_little() {
    let server = Server::start();
    let mut con = server.connect();
    let time = now(&mut con);
    store_log(&mut con, "log", 1_000_000, time);
    store_log(&mut con, "future", 1_000_000, time + 86_400_000);
    for (words, most) in [
        ("SLIDE.LOG log 2000000 1h 3000000 1d", 0),
        ("SLIDE.LOG log 1000 1h COST 500 HEADERS", 0),
        ("SLIDE.PEEK log 1000 1m 2000 1h", 0),
        // Each entry is read, and its member spelled again.
        ("SLIDE.REFUND log 1000", 1000 * KIB),
        // A clock fault gives all of it back.
        ("SLIDE.LOG future 5 60s", 0),
    ] {
        let reply = assert_grows_by(&mut con, words, &line(words), most + LEEWAY);
        assert!(reply.is_ok(), "{words}: {reply:?}");
    }
    assert_eq!(
        run::<i64>(&mut con, "ZCARD", &["future"]),
        1,
        "it was not healed"
    );

    // The newest thousand are gone, and it takes from the oldest of the thousand before: all of these
    // are spelled again.
    let age = now(&mut con) - time + 1990;
    let words = format!("SLIDE.REFUND log 9 AGE {age}ms");
    let taken = assert_grows_by(&mut con, &words, &line(&words), 1000 * KIB + LEEWAY);
    assert_eq!(taken.expect("a number"), Value::Int(9));
}

/// A hash of somebody else's is told by its first fields, however many there are.
#[test]
fn a_huge_foreign_hash_takes_little() {
    let server = Server::start();
    let mut con = server.connect();
    for first in (0..100_000).step_by(1000) {
        let mut add = cmd("HSET");
        add.arg("session");
        for number in first..first + 1000 {
            add.arg(format!("field {number}")).arg("x".repeat(100));
        }
        add.query::<()>(&mut con).unwrap();
    }
    for words in [
        "SLIDE.COUNTER session 5 60s",
        "SLIDE.PEEK session 5 60s BUCKETS 9",
        "SLIDE.REFUND session 5",
        "SLIDE.ALL 2 a session LOG 5 60s COUNTER 5 60s",
    ] {
        let reply = assert_grows_by(&mut con, words, &line(words), LEEWAY);
        let error = error_text(&reply.expect_err("it is somebody else's"));
        assert!(
            error.ends_with("a hash that SLIDE.COUNTER did not write"),
            "{error}"
        );
    }
}

/// A refund reads all windows of a counter before it writes any.
#[test]
fn a_refund_takes_its_windows_room() {
    const WINDOWS: i64 = 100_000;
    let server = Server::start();
    let mut con = server.connect();
    let index = now(&mut con) / 60_000;
    for first in (0..WINDOWS).step_by(1000) {
        let mut add = cmd("HSET");
        add.arg("counter");
        for number in first..first + 1000 {
            let window = 60_000 + number;
            add.arg(window).arg(format!("{index}:1:0"));
        }
        add.query::<()>(&mut con).unwrap();
    }
    let words = "SLIDE.REFUND counter 1";
    // Each field is written, and propagated.
    let bound = WINDOWS * KIB / 2 + LEEWAY;
    let taken = assert_grows_by(&mut con, words, &line(words), bound);
    assert_eq!(taken.expect("it is a counter"), Value::Int(1));
}

/// The most that one call can ask: 64 keys, with 16 tiers each, and headers for all of them.
#[test]
fn a_call_on_all_keys_that_it_may_have_takes_room_for_each() {
    const KEYS: i64 = 64;
    const TIERS: i64 = 16;
    /// Buckets, the words of the headers, and what is written and propagated.
    const EACH: i64 = 2 * KIB;
    let server = Server::start();
    let mut con = server.connect();
    let mut all = cmd("SLIDE.ALL");
    all.arg(KEYS);
    for key in 0..KEYS {
        all.arg(format!("key:{key}"));
    }
    for key in 0..KEYS {
        all.arg(if key % 2 == 0 { "LOG" } else { "COUNTER" });
        for tier in 1..=TIERS {
            all.arg(tier).arg(format!("{tier}h"));
        }
        all.arg(&["COST", "1"]);
        if key % 2 == 1 {
            all.arg(&["BUCKETS", "64"]);
        }
    }
    all.arg("HEADERS");
    let bound = KEYS * TIERS * EACH + LEEWAY / 4;
    for (what, limited) in [("recorded in 64 keys", 0), ("limited by 64 keys", 1)] {
        let reply = assert_grows_by(&mut con, what, &all, bound);
        let Ok(Value::Array(parts)) = reply else {
            panic!("no array but {reply:?}");
        };
        assert_eq!(parts[0], Value::Int(limited));
    }
}

/// An argument of 100 MB is quoted in 64 bytes. The server itself has to take it in.
#[test]
fn a_huge_argument_is_not_copied() {
    let huge = "7".repeat(100_000_000);
    let peak = |arguments: &[&str]| {
        let server = Server::start();
        let mut con = server.connect();
        let (growth, result) = growth(&mut con, &command(arguments[0], &arguments[1..]));
        (growth, error_text(&result.expect_err("a wrong argument")))
    };
    let (taken_in, _) = peak(&["GET", "k", &huge]);
    assert!(taken_in > 90_000_000, "the peak is not seen: {taken_in}");
    for arguments in [
        &["SLIDE.LOG", "k", &huge, "60s"][..],
        &["SLIDE.COUNTER", "k", "5", &huge],
        &["SLIDE.PEEK", "k", "5", "60s", &huge],
        &["SLIDE.REFUND", "k", &huge],
        &["SLIDE.REFUND", "k", "1", "AGE", &huge],
        &["SLIDE.ALL", &huge, "k", "LOG", "5", "60s"],
    ] {
        let (growth, error) = peak(arguments);
        println!("{}: {growth} bytes, GET {taken_in}", arguments[0]);
        assert!(
            error.contains(&"7".repeat(64)) && error.len() < 400,
            "{error}"
        );
        assert!(
            growth <= taken_in + LEEWAY,
            "{growth} bytes, GET {taken_in}"
        );
    }
}
