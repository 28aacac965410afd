//! Writes the fixture: every form that stored data has.

use std::collections::BTreeMap;
use std::fs;

use redis::{Connection, pipe};

use super::{fixtures, keys, leases, load};
use crate::support::random::MOST;
use crate::support::{
    ALMOST_A_DECADE, ALMOST_A_DECADE_FIELD, DECADE, DECADE_FIELD, DECADE_MS, Server, at_least,
    entries, eventually, line, now, run, wait_until,
};

/// A wrong date, beyond the end of all windows.
const FAR_AHEAD: i64 = 2 * DECADE_MS;

/// Entries of the long log, which no listpack takes.
const LONG: u64 = 150;

/// What the keys hold, by the rules: a log's members, a counter's fields and counts without the
/// index of the newest bucket, which depends on the day of writing.
fn expected() -> BTreeMap<String, String> {
    let zeros = |count| ":0".repeat(count);
    let long: Vec<String> = (1..=LONG).map(|total| format!("{total}:1")).collect();
    let large = (1..=3).map(|calls| format!("{}:{MOST}", calls * MOST));
    let large: Vec<String> = large.collect();
    [
        ("log:plain", "2:2 5:3 6:1".to_owned()),
        ("log:tiers", "1:1 3:2".to_owned()),
        ("log:merged", "7:7".to_owned()),
        ("log:large", large.join(" ")),
        // 2^64 - 6, 2^64 - 2, and 5 more than 2^64.
        (
            "log:wrapped",
            "18446744073709551610:5 18446744073709551614:4 5:7".to_owned(),
        ),
        ("log:refunded", "5:5 6:1".to_owned()),
        // The usage that the wrong date had and the call that met it.
        ("log:healed", "11:6".to_owned()),
        ("log:long", long.join(" ")),
        ("counter:1", format!("{DECADE_FIELD}=3:0")),
        ("counter:10", format!("{DECADE_FIELD}/10=9{}", zeros(10))),
        ("counter:64", format!("{DECADE_FIELD}/64=6{}", zeros(64))),
        (
            "counter:fields",
            format!(
                "{ALMOST_A_DECADE_FIELD}=2:0 {DECADE_FIELD}=2:0 {DECADE_FIELD}/4=1{}",
                zeros(4)
            ),
        ),
        ("counter:refunded", format!("{DECADE_FIELD}=5:0")),
        // 2^57 - 1
        (
            "counter:saturated",
            format!("{DECADE_FIELD}=144115188075855871:0"),
        ),
        ("counter:healed", format!("{DECADE_FIELD}=9:0")),
        (
            "counter:healed10",
            format!("{DECADE_FIELD}/10=7{}", zeros(10)),
        ),
    ]
    .map(|(key, content)| (key.to_owned(), content))
    .into()
}

fn contents(con: &mut Connection) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for key in keys(con, "log") {
        let members = entries(con, &key).into_iter().map(|entry| entry.0);
        found.insert(key, members.collect::<Vec<_>>().join(" "));
    }
    for key in keys(con, "counter") {
        let fields: BTreeMap<String, String> = run(con, "HGETALL", &[&key]);
        let counts = |value: &str| value.split_once(':').expect("an index").1.to_owned();
        let fields = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", counts(value)));
        found.insert(key, fields.collect::<Vec<_>>().join(" "));
    }
    found
}

/// Runs a command, in a ms of its own.
fn call(con: &mut Connection, words: &str) {
    let instant = now(con) + 1;
    wait_until(con, instant);
    line(words).query::<redis::Value>(con).expect(words);
}

fn log(con: &mut Connection, key: &str, costs: &[u64]) {
    for cost in costs {
        call(
            con,
            &format!("SLIDE.LOG log:{key} 1000 {DECADE} COST {cost} FORCE"),
        );
    }
}

fn counter(con: &mut Connection, key: &str, options: &str) {
    call(
        con,
        &format!("SLIDE.COUNTER counter:{key} 1000 {DECADE} {options}"),
    );
}

fn write_logs(con: &mut Connection) {
    log(con, "plain", &[2, 3, 1]);
    for cost in [1, 2] {
        call(
            con,
            &format!("SLIDE.LOG log:tiers 1000 60s 1000 1d 1000 {DECADE} COST {cost}"),
        );
    }
    eventually("two calls fall into one ms", || {
        let mut both = pipe();
        both.atomic().cmd("DEL").arg("log:merged");
        for cost in [2, 5] {
            both.add_command(line(&format!(
                "SLIDE.LOG log:merged 1000 {DECADE} COST {cost}"
            )));
        }
        both.query::<()>(con).expect("a transaction");
        (entries(con, "log:merged").len() == 1).then_some(())
    });
    log(con, "large", &[MOST; 3]);
    let early = now(con);
    call(
        con,
        &format!("ZADD log:wrapped {early} 18446744073709551610:5"),
    );
    log(con, "wrapped", &[4, 7]);
    log(con, "refunded", &[5, 3, 2]);
    call(con, "SLIDE.REFUND log:refunded 4");
    let wrong = now(con) + FAR_AHEAD;
    call(con, &format!("ZADD log:healed {wrong} 9:4"));
    log(con, "healed", &[2]);
    for _ in 0..LONG {
        log(con, "long", &[1]);
    }
}

fn write_counters(con: &mut Connection) {
    counter(con, "1", "COST 3");
    counter(con, "10", "BUCKETS 10 COST 4");
    counter(con, "10", "BUCKETS 10 COST 5 STRICT");
    counter(con, "64", "BUCKETS 64 COST 6");
    counter(con, "fields", &format!("1000 {ALMOST_A_DECADE} COST 2"));
    counter(con, "fields", "BUCKETS 4");
    counter(con, "refunded", "COST 9");
    call(con, "SLIDE.REFUND counter:refunded 4");
    for _ in 0..17 {
        counter(con, "saturated", &format!("COST {MOST} FORCE"));
    }
    let decades_from_0 = now(con) / DECADE_MS;
    let wrong = decades_from_0 + 3;
    call(
        con,
        &format!("HSET counter:healed {DECADE_FIELD} {wrong}:4:3"),
    );
    counter(con, "healed", "COST 2");
    let counts = "0:0:1:0:2:0:0:3:0:0:0";
    call(
        con,
        &format!(
            "HSET counter:healed10 {DECADE_FIELD}/10 {}:{counts}",
            wrong * 10
        ),
    );
    counter(con, "healed10", "BUCKETS 10");
}

#[test]
#[ignore = "writes the fixture of this version, once, on Redis 7.0"]
fn write_fixture() {
    let server = Server::start();
    let mut con = server.connect();
    assert!(
        !at_least(&mut con, 7, 2),
        "Redis 7.0 writes what all can read"
    );
    write_logs(&mut con);
    write_counters(&mut con);
    leases::write(&mut con);
    assert_eq!(contents(&mut con), expected());
    run::<()>(&mut con, "SAVE", &[]);
    let file = fixtures().join(concat!(env!("CARGO_PKG_VERSION"), ".rdb"));
    fs::copy(server.dir().join("dump.rdb"), &file).expect("the folder is writable");
}

/// What the first version wrote is what the rules say, so that the fixture has all the forms.
#[test]
fn the_fixture_holds_every_form() {
    let server = load(&fixtures().join("0.1.0.rdb"));
    assert_eq!(contents(&mut server.connect()), expected());
}
