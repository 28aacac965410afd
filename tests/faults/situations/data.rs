//! The data set as a whole is swapped, flushed, reloaded or freed while clients call.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use redis::{Connection, Value, cmd};

use crate::support::random::effort;
use crate::support::{
    DECADE, DECADE_FIELD, Server, Setup, entries, error_text, eventually, info_number, line, now,
    repeated, run, skip, slide_counter, slide_log, slide_peek,
};
use crate::units::{FOUR_BUCKETS, store_log, units_of_counter, units_of_log};
use crate::wire::{Stop, assert_agree, exec, five, start_pair};

const ROOMY: u64 = 1_000_000_000;

/// Calls on a log and a counter until told to stop. Says how often each recorded, and how often the
/// server was loading.
fn call_until(stop: &AtomicBool, server: &Server, database: u8, done: &AtomicU64) -> (u64, u64) {
    let mut con = server.connect();
    run::<()>(&mut con, "SELECT", &[&database.to_string()]);
    let call = line(&format!(
        "SLIDE.ALL 2 log counter LOG {ROOMY} 1d COUNTER {ROOMY} {DECADE} BUCKETS 4"
    ));
    let (mut recorded, mut loading) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        match call.query::<Value>(&mut con) {
            Ok(_) => {
                recorded += 1;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                let error = error_text(&error);
                assert!(error.starts_with("LOADING "), "{error}");
                loading += 1;
            }
        }
    }
    (recorded, loading)
}

/// Runs `disturb` again and again while clients call in the databases 0 and 1, and says how often
/// these recorded and were told that the server is loading.
fn under_load(server: &Server, times: u64, mut disturb: impl FnMut(&mut Connection)) -> (u64, u64) {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut con = server.connect();
    let (mut recorded, mut loading) = (0, 0);
    thread::scope(|scope| {
        let stop = Stop(&stop);
        let (flag, done) = (stop.0, &done);
        let client = |place: u8| scope.spawn(move || call_until(flag, server, place % 2, done));
        let clients: Vec<_> = (0..3).map(client).collect();
        for _ in 0..times {
            let before = done.load(Ordering::Relaxed);
            eventually("clients call in between", || {
                (done.load(Ordering::Relaxed) >= before + 20).then_some(())
            });
            disturb(&mut con);
        }
        drop(stop);
        for client in clients {
            let counts = client.join().expect("no call failed");
            recorded += counts.0;
            loading += counts.1;
        }
    });
    (recorded, loading)
}

/// The units of the log and of the counter, in both databases together.
fn units(con: &mut Connection) -> [u64; 2] {
    let mut sum = [0, 0];
    for database in ["0", "1"] {
        run::<()>(con, "SELECT", &[database]);
        sum[0] += units_of_log(con, "log");
        sum[1] += units_of_counter(con, "counter", FOUR_BUCKETS);
    }
    sum
}

#[test]
fn databases_are_swapped_under_load() {
    let (primary, replica) = start_pair();
    let (recorded, _) = under_load(&primary, effort(100, 2000), |con| {
        run::<()>(con, "SWAPDB", &["0", "1"]);
    });
    assert_eq!(units(&mut primary.connect()), [recorded; 2]);
    assert_agree(&primary, &replica);
}

/// Moves a key to the other database, which has one already too, and that gets another name.
fn move_key(con: &mut Connection, key: &str, [from, to]: [&str; 2], number: u64) {
    eventually("both databases have the key", || {
        let mut has = |database| {
            run::<()>(con, "SELECT", &[database]);
            run::<bool>(con, "EXISTS", &[key])
        };
        (has(from) && has(to)).then_some(())
    });
    let script = "
        redis.call('SELECT', ARGV[2])
        redis.call('RENAME', KEYS[1], KEYS[1] .. ':' .. ARGV[3])
        redis.call('SELECT', ARGV[1])
        return redis.call('MOVE', KEYS[1], ARGV[2])";
    let number = number.to_string();
    let mut call = cmd("EVAL");
    call.arg(script).arg(1).arg(&[key, from, to, &number]);
    let moved: bool = call.query(con).expect("both keys are there");
    assert!(moved, "{key} was not moved");
}

#[test]
fn keys_move_between_databases_under_load() {
    let (primary, replica) = start_pair();
    let mut number = 0;
    let (recorded, _) = under_load(&primary, effort(100, 2000), |con| {
        for way in [["0", "1"], ["1", "0"]] {
            for key in ["log", "counter"] {
                number += 1;
                move_key(con, key, way, number);
            }
        }
    });
    let mut con = primary.connect();
    let mut units = [0, 0];
    for database in ["0", "1"] {
        run::<()>(&mut con, "SELECT", &[database]);
        for key in run::<Vec<String>>(&mut con, "KEYS", &["log*"]) {
            units[0] += units_of_log(&mut con, &key);
        }
        for key in run::<Vec<String>>(&mut con, "KEYS", &["counter*"]) {
            units[1] += units_of_counter(&mut con, &key, FOUR_BUCKETS);
        }
    }
    assert_eq!(units, [recorded; 2]);
    assert_agree(&primary, &replica);
}

#[test]
fn everything_is_flushed_under_load() {
    let (primary, replica) = start_pair();
    let mut con = primary.connect();
    for flush in ["FLUSHALL", "FLUSHALL ASYNC", "FLUSHDB", "FLUSHDB ASYNC"] {
        // FLUSHDB leaves the other database as it was.
        run::<()>(&mut con, "FLUSHALL", &[]);
        let (recorded, _) = under_load(&primary, effort(25, 500), |con| {
            line(flush).query::<()>(con).expect(flush);
        });
        let [log, counter] = units(&mut con);
        assert_eq!(log, counter, "{flush}: both or neither");
        assert!(log < recorded, "{flush}: {log} of {recorded} are left");
        assert_agree(&primary, &replica);
    }
    // In the middle of a transaction, the next call begins anew.
    for command in ["MULTI", "SLIDE.LOG k 5 1d", "FLUSHALL", "SLIDE.LOG k 5 1d"] {
        line(command).query::<String>(&mut con).expect(command);
    }
    let answers = exec(&mut con);
    assert_eq!(five(answers[2].as_ref().expect("five")).remaining, 4);
    assert_agree(&primary, &replica);
}

/// While a data set is loaded, every call is told so, and none is lost or counted in part.
#[test]
fn the_data_set_is_reloaded_under_load() {
    let server = Setup::new()
        // Clients are served in between, to be told that there is nothing to serve yet.
        .line("loading-process-events-interval-bytes 1024")
        .line("key-load-delay 300")
        .start();
    let mut con = server.connect();
    for key in 0..500 {
        slide_log(
            &mut con,
            format!("filling:{key}"),
            &[(5, "1d")],
            &["COST", "4"],
        );
    }
    let mut recorded = 0;
    let mut told = 0;
    for _ in 0..effort(1, 10) {
        let (more, loading) = under_load(&server, 3, |con| {
            run::<()>(con, "DEBUG", &["RELOAD"]);
        });
        recorded += more;
        told += loading;
    }
    assert!(told > 0, "nobody called while it was loading");
    assert_eq!(units(&mut con), [recorded; 2]);
    run::<()>(&mut con, "SELECT", &["0"]);
    for key in 0..500 {
        let key = format!("filling:{key}");
        assert_eq!(slide_peek(&mut con, key, &[(5, "1d")], &[]).remaining, 1);
    }
}

fn store_log_up_to_now(con: &mut Connection, key: &str, count: i64) {
    let last = now(con);
    store_log(con, key, count, last);
}

/// A long log that is freed in the background is gone at once for the next call.
#[test]
fn long_logs_are_freed_in_the_background() {
    let server = Setup::new()
        .line("lazyfree-lazy-user-del yes")
        .line("lazyfree-lazy-expire yes")
        .start();
    let mut con = server.connect();
    let freed = |con: &mut Connection| info_number(con, "memory", "lazyfreed_objects");
    for (place, free) in ["UNLINK log", "DEL log", "PEXPIRE log 1", "RENAME other log"]
        .into_iter()
        .enumerate()
    {
        store_log_up_to_now(&mut con, "log", 50_000);
        assert_eq!(
            slide_log(&mut con, "log", &[(50_000, "1d")], &[]).limited,
            1
        );
        slide_log(&mut con, "other", &[(5, "1d")], &["COST", "0"]);
        slide_log(&mut con, "other", &[(5, "1d")], &["COST", "2"]);
        let before = freed(&mut con);
        line(free).query::<Value>(&mut con).expect(free);
        eventually("the log is gone", || {
            let peek = slide_peek(&mut con, "log", &[(50_000, "1d")], &[]);
            (peek.remaining > 49_000).then_some(())
        });
        let used = if free.starts_with("RENAME") { 2 } else { 0 };
        let reply = slide_log(&mut con, "log", &[(5, "1d")], &[]);
        assert_eq!(reply.remaining, 4 - used, "{free}");
        if place < 3 {
            eventually("it was freed in the background", || {
                (freed(&mut con) > before).then_some(())
            });
        }
        run::<i64>(&mut con, "DEL", &["log", "other"]);
    }
    // Healing drops a long log too.
    store_log_up_to_now(&mut con, "log", 50_000);
    let wrong = (now(&mut con) + 10_000_000).to_string();
    run::<i64>(&mut con, "ZADD", &["log", &wrong, "50009:9"]);
    let before = freed(&mut con);
    let reply = slide_log(&mut con, "log", &[(100, "60s")], &["COST", "0"]);
    assert_eq!(reply.remaining, 91);
    eventually("it was freed in the background", || {
        (freed(&mut con) > before).then_some(())
    });
    assert_eq!(entries(&mut con, "log")[0].0, "50009:9");
}

/// Entries and counters that move in memory while they are used.
#[test]
fn memory_is_defragmented_under_load() {
    let (primary, replica) = start_pair();
    let mut con = primary.connect();
    let defragment = line("CONFIG SET activedefrag yes");
    if let Err(error) = defragment.query::<()>(&mut con) {
        let error = error_text(&error);
        assert!(
            error.contains("efragmentation cannot be enabled"),
            "{error}"
        );
        skip("memory is not defragmented: this server cannot");
        return;
    }
    for (name, value) in [
        ("active-defrag-ignore-bytes", "1"),
        ("active-defrag-threshold-lower", "0"),
        ("active-defrag-threshold-upper", "1"),
        ("active-defrag-cycle-min", "60"),
        ("active-defrag-cycle-max", "70"),
    ] {
        run::<()>(&mut con, "CONFIG", &["SET", name, value]);
    }
    let key = |number: u64| format!("log:{}", number % 3000);
    for number in 0..3000 {
        slide_counter(&mut con, format!("counter:{number}"), &[(9, DECADE)], &[]);
        slide_log(&mut con, key(number), &[(9, "1d")], &["COST", "1"]);
    }
    store_log_up_to_now(&mut con, "long", 20_000);
    // Holes.
    for number in (0..3000).filter(|number| number % 3 != 0) {
        run::<i64>(
            &mut con,
            "DEL",
            &[&key(number), &format!("counter:{number}")],
        );
    }
    let mut calls = 0;
    eventually("something was moved", || {
        for number in (0..3000).step_by(30) {
            slide_log(&mut con, key(number), &[(ROOMY, "1d")], &[]);
            slide_counter(
                &mut con,
                format!("counter:{number}"),
                &[(ROOMY, DECADE)],
                &[],
            );
        }
        let long = line("SLIDE.LOG long 1000000000 1d");
        repeated(&long, 10)
            .query::<()>(&mut con)
            .expect("calls record");
        calls += 1;
        let hits = info_number(&mut con, "stats", "active_defrag_hits");
        (hits > 1000 && calls > 20).then_some(())
    });
    for number in (0..3000).step_by(3) {
        let units = if number % 30 == 0 { 1 + calls } else { 1 };
        assert_eq!(units_of_log(&mut con, &key(number)), units);
        let counter = format!("counter:{number}");
        assert_eq!(units_of_counter(&mut con, &counter, DECADE_FIELD), units);
    }
    assert_eq!(units_of_log(&mut con, "long"), 20_000 + 10 * calls);
    assert_agree(&primary, &replica);
}
