//! Data written by earlier versions stays readable.
//!
//! `fixtures/<version>.rdb` was written by that version of the module on Redis 7.0, whose format all
//! servers read. The longest windows are 10 years and all times those of the day of writing, so that
//! every entry counts and every key lives for some ten years more. A version that stores anything in
//! another way writes one of its own:
//!
//! ```sh
//! SLIDE_SERVER=.servers/redis-7.0/redis-server cargo test --test faults write_fixture -- --ignored
//! ```

mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use redis::Connection;

use crate::support::oracle::stored::Field;
use crate::support::oracle::{Call, Counter, Log};
use crate::support::random::{MOST, Tiers};
use crate::support::{Reply, Server, Setup, Timed, all_replies, line, now, reply, run};
use crate::units::{DECADE, DECADE_MS, stored_counter, stored_log};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/fixtures")
}

/// A server that has loaded the file.
fn load(fixture: &Path) -> Server {
    let setup = Setup::new();
    fs::copy(fixture, setup.dir().join("dump.rdb")).expect("the folder is writable");
    setup.start()
}

fn keys(con: &mut Connection, kind: &str) -> Vec<String> {
    let mut keys: Vec<String> = run(con, "KEYS", &[&format!("{kind}:*")]);
    keys.sort();
    keys
}

/// When the last bucket stops mattering, rounded up to ms.
fn end(field: &Field) -> u64 {
    ((field.index + field.buckets + 1) * field.window).div_ceil(field.buckets)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("a time or a duration")
}

/// A call on a key with these tiers, in words.
fn tiers_in_words(tiers: &[(u64, u64)]) -> String {
    let words = tiers
        .iter()
        .map(|(limit, window)| format!("{limit} {window}"));
    words.collect::<Vec<_>>().join(" ")
}

/// Runs a call between two readings of the server's clock.
fn timed<T>(con: &mut Connection, call: impl FnOnce(&mut Connection) -> T) -> Timed<T> {
    let before = now(con);
    let value = call(con);
    Timed {
        before,
        value,
        after: now(con),
    }
}

/// A key with the same content, to be changed.
fn copy(con: &mut Connection, key: &str) -> String {
    let (kind, _) = key.split_once(':').expect("<kind>:<name>");
    let copy = format!("copy:{kind}");
    run::<i64>(con, "COPY", &[key, &copy, "REPLACE"]);
    copy
}

/// Limits around what is used, and at the ends.
fn limits(used: u64) -> impl Iterator<Item = u64> {
    let around = [used.saturating_sub(1), used, used + 1, used + 7];
    let all = around.into_iter().chain([0, MOST]);
    all.filter(|&limit| limit <= MOST)
}

/// Tiers and costs to ask with: each kind of tiers with all limits and all costs.
fn questions<const N: usize>(used: u64, kinds: impl Fn(u64) -> [Tiers; N]) -> Vec<(Tiers, u64)> {
    let tiers = limits(used).flat_map(kinds);
    tiers
        .flat_map(|tiers| [0, 1, 7, MOST].map(|cost| (tiers.clone(), cost)))
        .collect()
}

/// Asks with PEEK, and then calls a copy with and without FORCE.
fn check_calls(
    con: &mut Connection,
    key: &str,
    name: &str,
    (tiers, cost, options): (&Tiers, u64, &str),
    expected: impl Fn(Kind, i64) -> Reply,
) {
    let words = format!("{} COST {cost}{options}", tiers_in_words(tiers));
    let peek = line(&format!("SLIDE.PEEK {key} {words}"));
    timed(con, |con| reply(con, &peek)).matches(|now| expected(Kind::Peek, now));
    for (kind, force) in [(Kind::Call, ""), (Kind::Force, " FORCE")] {
        let copy = copy(con, key);
        let call = line(&format!("{name} {copy} {words}{force}"));
        timed(con, |con| reply(con, &call)).matches(|now| expected(kind, now));
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Peek,
    Call,
    Force,
}

fn check_log(con: &mut Connection, key: &str) {
    let stored = stored_log(con, key);
    let log = Log::holding(&stored);
    let newest = stored.last().expect("an entry").time;
    let expiry: i64 = run(con, "PEXPIRETIME", &[key]);
    let end = newest + signed(DECADE_MS);
    assert!(
        (end..=end + signed(DECADE_MS / 4)).contains(&expiry),
        "{key}"
    );

    let used: u64 = stored.iter().map(|entry| entry.cost).sum();
    let kinds = |limit| {
        [
            vec![(limit, DECADE_MS)],
            vec![(5, 60_000), (limit, DECADE_MS)],
            vec![(limit, DECADE_MS), (MOST, 86_400_000)],
        ]
    };
    for (tiers, cost) in questions(used, kinds) {
        check_calls(con, key, "SLIDE.LOG", (&tiers, cost, ""), |kind, now| {
            let (tiers, force) = (&tiers, kind == Kind::Force);
            let call = Call { tiers, cost, force };
            match kind {
                Kind::Peek => log.peek(now, call),
                Kind::Call | Kind::Force => log.clone().call(now, call),
            }
        });
    }
    for units in [1, 4, used, MOST]
        .into_iter()
        .filter(|&units| units <= MOST)
    {
        let copy = copy(con, key);
        let mut rest = log.clone();
        let taken: u64 = run(con, "SLIDE.REFUND", &[&copy, &units.to_string()]);
        assert_eq!(taken, rest.refund(units), "{key}");
        let peek = line(&format!("SLIDE.PEEK {copy} {MOST} {DECADE}"));
        timed(con, |con| reply(con, &peek)).matches(|now| rest.peek(now, roomy()));
    }
}

/// One unit of a limit that is out of reach.
fn roomy() -> Call<'static> {
    Call {
        tiers: &[(MOST, DECADE_MS)],
        cost: 1,
        force: false,
    }
}

fn check_field(con: &mut Connection, key: &str, field: &Field, counter: &Counter) {
    let (window, buckets) = (field.window, field.buckets);
    let kinds = |limit| {
        [
            vec![(limit, window)],
            // A field that is not there yet counts from 0.
            vec![(limit, window), (3, window - 2)],
        ]
    };
    for (tiers, cost) in questions(field.counts.iter().sum(), kinds) {
        for (strict, word) in [(false, ""), (true, " STRICT")] {
            let options = format!(" BUCKETS {buckets}{word}");
            let asked = (&tiers, cost, options.as_str());
            check_calls(con, key, "SLIDE.COUNTER", asked, |kind, now| {
                let (tiers, force) = (&tiers, kind == Kind::Force);
                let call = Call { tiers, cost, force };
                match kind {
                    Kind::Peek => counter.peek(now, call, buckets, strict),
                    Kind::Call | Kind::Force => counter.clone().call(now, call, buckets, strict),
                }
            });
        }
    }
}

fn check_counter(con: &mut Connection, key: &str) {
    let fields = stored_counter(con, key);
    let counter = Counter::holding(&fields);
    let expiry: u64 = run(con, "PEXPIRETIME", &[key]);
    let end = fields.iter().map(end).max();
    assert_eq!(Some(expiry), end, "{key}");

    for field in &fields {
        check_field(con, key, field, &counter);
    }
    for units in [1, 4, MOST] {
        let copy = copy(con, key);
        let mut rest = counter.clone();
        let taken: u64 = run(con, "SLIDE.REFUND", &[&copy, &units.to_string()]);
        assert_eq!(taken, rest.refund(units), "{key}");
        let buckets = fields[0].buckets;
        let peek = line(&format!(
            "SLIDE.PEEK {copy} {MOST} {DECADE} BUCKETS {buckets}"
        ));
        timed(con, |con| reply(con, &peek)).matches(|now| rest.peek(now, roomy(), buckets, false));
    }
}

/// A log and a counter together: in both or in none.
fn check_pair(con: &mut Connection, keys: [&str; 2]) {
    let log = Log::holding(&stored_log(con, keys[0]));
    let fields = stored_counter(con, keys[1]);
    let counter = Counter::holding(&fields);
    let buckets = fields[0].buckets;
    for limit in [2, 9, 12, 1000, MOST] {
        let copies = keys.map(|key| copy(con, key));
        let clauses =
            format!("LOG {limit} {DECADE} COUNTER {limit} {DECADE} BUCKETS {buckets} COST 3");
        let all = line(&format!("SLIDE.ALL 2 {} {clauses}", copies.join(" ")));
        let replies = timed(con, |con| all_replies(&all.query(con).expect("an answer")));
        replies.matches(|now| {
            let tiers = [(limit, DECADE_MS)];
            let call = Call {
                tiers: &tiers,
                cost: 3,
                force: false,
            };
            let (mut log, mut counter) = (log.clone(), counter.clone());
            let alone = [log.peek(now, call), counter.peek(now, call, buckets, false)];
            if alone.iter().any(|reply| reply.limited == 1) {
                let refused = [
                    log.refuse(now, call),
                    counter.refuse(now, call, buckets, false),
                ];
                return (1, refused.to_vec());
            }
            let recorded = [log.call(now, call), counter.call(now, call, buckets, false)];
            (0, recorded.to_vec())
        });
    }
}

#[test]
fn every_call_understands_what_earlier_versions_wrote() {
    let files = fs::read_dir(fixtures()).expect("a folder of fixtures");
    let mut read = 0;
    for file in files {
        let file = file.expect("a fixture").path();
        println!("  {}", file.display());
        let server = load(&file);
        let mut con = server.connect();
        let (logs, counters) = (keys(&mut con, "log"), keys(&mut con, "counter"));
        assert!(logs.len() > 5 && counters.len() > 5, "{}", file.display());
        for key in &logs {
            check_log(&mut con, key);
            for counter in &counters {
                check_pair(&mut con, [key, counter]);
            }
        }
        for key in &counters {
            check_counter(&mut con, key);
        }
        read += 1;
    }
    assert!(read > 0);
}
