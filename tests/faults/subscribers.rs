//! Another module is told of what a call does, and meddles with its keys at once: opens, deletes or
//! replaces all of them. All of the call has been written by then, and its keys are closed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use redis::{Connection, Value, cmd, from_redis_value_ref};

use crate::support::compiled::library;
use crate::support::{
    DECADE, Server, Setup, error_of, line, now, reply, run, slide_log, wait_until,
};
use crate::units::store_log;
use crate::wire::assert_agree;

/// The keys of all calls here, whether a call has all of them or not.
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// What the other module does with each of these keys.
const ACTIONS: [&str; 4] = ["look", "drop", "delete", "replace"];

const DAY: i64 = 86_400_000;

/// Entries of a log that has something to trim. One more is a number at which a call trims.
const OLD: i64 = 151;

/// A server with this and the other module.
pub fn with_meddler(setup: Setup) -> Setup {
    static MEDDLER: OnceLock<PathBuf> = OnceLock::new();
    let meddler: &Path = MEDDLER.get_or_init(|| library("tests/faults/subscribers/meddler.c"));
    setup.line(&format!("loadmodule {}", meddler.display()))
}

fn query(con: &mut Connection, words: &str) -> Value {
    let answer = line(words).query(con);
    answer.unwrap_or_else(|error| panic!("{words}: {error}"))
}

fn meddle(con: &mut Connection, event: &str, action: &str) {
    let words = [&[event, action], &KEYS[..]].concat();
    run::<()>(con, "MEDDLE.ON", &words);
}

/// The first event that the other module was told of, and how many of the keys there were then.
fn seen(con: &mut Connection) -> (String, usize) {
    run(con, "MEDDLE.SEEN", &[])
}

fn count_keys(con: &mut Connection) -> usize {
    run(con, "EXISTS", &KEYS)
}

fn nothing(_: &mut Connection) {}

fn in_use(con: &mut Connection) {
    query(con, "SLIDE.LOG a 9 60s COST 5");
    query(con, &format!("SLIDE.COUNTER b 9 {DECADE} COST 5"));
    query(con, "SLIDE.LEASE c 9 60s job");
    query(con, "SLIDE.LOG d 9 60s COST 5");
}

/// What has expired is removed by the next call, and what has a wrong date is moved.
fn old_and_misdated(con: &mut Connection) {
    let time = now(con);
    store_log(con, "a", OLD, time - DAY);
    let mut fields = cmd("HSET");
    fields.arg("b");
    for window in 1000..1010 {
        fields.arg(window).arg("5:1:0");
    }
    fields.query::<i64>(con).expect("HSET");
    let mut leases = cmd("ZADD");
    leases.arg("c").arg(time - DAY).arg("@ended");
    leases.arg(time + 10 * DAY).arg("@misdated");
    leases.query::<i64>(con).expect("ZADD");
    store_log(con, "d", OLD, time + 10 * DAY);
}

/// What the keys hold before, and the call.
type Case = (fn(&mut Connection), String);

fn cases() -> Vec<Case> {
    let all = |tail: &str| {
        format!(
            "SLIDE.ALL 4 a b c d LOG 9 60s COST 2 COUNTER 9 {DECADE} COST 3 LEASE 9 60s new \
             LOG 1000 1h{tail}"
        )
    };
    let narrow = |tail: &str| {
        format!("SLIDE.ALL 3 a b c LOG 1 60s COUNTER 1 {DECADE} LEASE 1 60s new{tail}")
    };
    let counter = format!("SLIDE.COUNTER b 9 {DECADE}");
    vec![
        (nothing, all("")),
        (in_use, all("")),
        (in_use, narrow("")),
        (in_use, narrow(" FORCE")),
        (old_and_misdated, all("")),
        (nothing, "SLIDE.LOG a 9 60s".to_owned()),
        (in_use, "SLIDE.LOG a 9 60s COST 9".to_owned()),
        (old_and_misdated, "SLIDE.LOG a 9 60s".to_owned()),
        (old_and_misdated, "SLIDE.LOG d 9 60s".to_owned()),
        (in_use, counter.clone()),
        (old_and_misdated, counter),
        (in_use, "SLIDE.LEASE c 9 60s other".to_owned()),
        (old_and_misdated, "SLIDE.LEASE c 9 60s other".to_owned()),
        (in_use, "SLIDE.RELEASE c job".to_owned()),
        (in_use, "SLIDE.REFUND a 2".to_owned()),
        (in_use, "SLIDE.REFUND a 5".to_owned()),
        (in_use, "SLIDE.REFUND a 2 AGE 1s".to_owned()),
        (in_use, "SLIDE.REFUND b 2".to_owned()),
        (in_use, "SLIDE.REFUND b 2 AGE 1s".to_owned()),
    ]
}

/// An answer without the waits in it, which depend on the moment.
fn without_waits(answer: &Value) -> Vec<i64> {
    let Value::Array(parts) = answer else {
        return vec![from_redis_value_ref(answer).expect("an integer")];
    };
    if matches!(parts[1], Value::Int(_)) {
        return from_redis_value_ref::<Vec<i64>>(answer).expect("integers")[..3].to_vec();
    }
    let five = parts[1..].iter().flat_map(without_waits);
    [from_redis_value_ref(&parts[0]).expect("an integer")]
        .into_iter()
        .chain(five)
        .collect()
}

/// Every case with every action, each compared with the same call left in peace.
pub fn meddle_with_every_call(con: &mut Connection) {
    for (set_up, call) in cases() {
        let begin = |con: &mut Connection| {
            run::<()>(con, "FLUSHALL", &[]);
            set_up(con);
        };
        begin(con);
        let peaceful = without_waits(&query(con, &call));
        let written = count_keys(con);
        for action in ACTIONS {
            begin(con);
            meddle(con, "*", action);
            let answer = query(con, &call);
            assert_eq!(without_waits(&answer), peaceful, "{call}, {action}");
            let (event, there) = seen(con);
            assert!(!event.is_empty(), "{call}, {action}: no event");
            assert_eq!(there, written, "{call}, {action}, at {event}");
            // Nothing is written behind the other module's back.
            let left = count_keys(con);
            match action {
                "look" => assert_eq!(left, written, "{call}"),
                "replace" => {
                    let values: Vec<Option<String>> = run(con, "MGET", &KEYS);
                    assert!(
                        values
                            .iter()
                            .all(|value| value.as_deref() == Some("replaced")),
                        "{call}: {values:?}"
                    );
                }
                _ => assert_eq!(left, 0, "{call}, {action}"),
            }
        }
    }
}

/// What the call on old and misdated data is about.
#[test]
fn a_call_on_old_and_misdated_data_removes_and_moves() {
    let server = Server::start();
    let mut con = server.connect();
    old_and_misdated(&mut con);
    let (_, call) = cases().swap_remove(4);
    query(&mut con, &call);
    assert!(run::<i64>(&mut con, "ZCARD", &["a"]) < OLD);
    assert_eq!(run::<usize>(&mut con, "HLEN", &["b"]), 1);
    let ended: Option<i64> = run(&mut con, "ZSCORE", &["c", "@ended"]);
    assert_eq!(ended, None);
    let moved: i64 = run(&mut con, "ZSCORE", &["c", "@misdated"]);
    assert!(moved < now(&mut con) + DAY);
    assert_eq!(run::<usize>(&mut con, "ZCARD", &["d"]), 1);
}

#[test]
fn a_subscriber_that_meddles_with_the_keys_comes_after_the_call() {
    let server = with_meddler(Setup::new()).start();
    let replica = Setup::new().without_module().replica_of(&server).start();
    server.wait_for(&replica);
    let mut con = server.connect();
    meddle_with_every_call(&mut con);
    assert_agree(&server, &replica);
    run::<()>(&mut con, "FLUSHALL", &[]);
    in_use(&mut con);
    assert_agree(&server, &replica);
}

/// The last key of a call has expired: the server removes it when it is opened, and tells at once.
fn with_an_expired_key(server: &Server, action: &str) -> Connection {
    let mut con = server.connect();
    run::<()>(&mut con, "FLUSHALL", &[]);
    run::<()>(&mut con, "DEBUG", &["SET-ACTIVE-EXPIRE", "0"]);
    in_use(&mut con);
    // Whoever looked whether it is still there would remove it.
    run::<()>(&mut con, "PEXPIRE", &["d", "1"]);
    let expired = now(&mut con) + 2;
    wait_until(&mut con, expired);
    meddle(&mut con, "expired", action);
    con
}

#[test]
fn a_subscriber_that_meddles_when_a_key_expires_comes_before_the_call() {
    let server = with_meddler(Setup::new()).start();
    let call = "SLIDE.ALL 2 a d LOG 9 60s LOG 9 60s";
    for action in ["drop", "delete"] {
        let mut con = with_an_expired_key(&server, action);
        let replies = without_waits(&query(&mut con, call));
        assert_eq!(seen(&mut con).0, "expired");
        // What the first key held is gone.
        assert_eq!(replies, [0, 0, 9, 8, 0, 9, 8], "{action}");
        assert_eq!(reply(&mut con, &line("SLIDE.PEEK a 9 60s")).remaining, 8);
    }
    let mut con = with_an_expired_key(&server, "replace");
    let error = error_of(&mut con, &line(call));
    assert!(error.starts_with("WRONGTYPE "), "{error}");
    assert_eq!(seen(&mut con).0, "expired");
    let values: Vec<String> = run(&mut con, "MGET", &KEYS);
    assert_eq!(values, ["replaced"; 4]);
    run::<()>(&mut con, "FLUSHALL", &[]);
    assert_eq!(slide_log(&mut con, "a", &[(9, "60s")], &[]).remaining, 8);
    server.assert_alive();
}
