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

mod leases;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use redis::Connection;

use crate::support::oracle::grammar::LONGEST_WINDOW;
use crate::support::oracle::stored::Field;
use crate::support::oracle::{Call, Counter, Log, shift};
use crate::support::random::{MOST, Tiers};
use crate::support::{DECADE, Reply, Server, Setup, Timed, all_replies, line, now, reply, run};
use crate::units::{stored_counter, stored_log};

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
        .map(|(limit, window)| format!("{limit} {window}ms"));
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

/// The name of the copy of a key.
fn copy_of(key: &str) -> String {
    let (kind, _) = key.split_once(':').expect("<kind>:<name>");
    format!("copy:{kind}")
}

/// A key with the same content, to be changed. A counter's windows are shifted by the name.
fn copy(con: &mut Connection, key: &str) -> String {
    let copy = copy_of(key);
    run::<i64>(con, "COPY", &[key, &copy, "REPLACE"]);
    copy
}

/// Gives back what a copy of the key recorded at this age, and compares how much that was.
fn check_aged_refund(
    con: &mut Connection,
    key: &str,
    (units, age): (u64, u64),
    expected: impl Fn(i64) -> u64,
) {
    let copy = copy(con, key);
    let refund = line(&format!("SLIDE.REFUND {copy} {units} AGE {age}ms"));
    let taken = timed(con, |con| refund.query::<u64>(con).expect("a number"));
    taken.matches(expected);
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

/// Units to give back of those that are used.
fn refunds(used: u64) -> impl Iterator<Item = u64> {
    let refunds = [1, 4, used, MOST];
    refunds.into_iter().filter(|&units| units <= MOST)
}

fn check_log(con: &mut Connection, key: &str) {
    let stored = stored_log(con, key);
    let log = Log::holding(&stored);
    let newest = stored.last().expect("an entry").time;
    let expiry: i64 = run(con, "PEXPIRETIME", &[key]);
    let end = newest + signed(LONGEST_WINDOW);
    assert!(
        (end..=end + signed(LONGEST_WINDOW / 4)).contains(&expiry),
        "{key}"
    );

    let used: u64 = stored.iter().map(|entry| entry.cost).sum();
    let kinds = |limit| {
        [
            vec![(limit, LONGEST_WINDOW)],
            vec![(5, 60_000), (limit, LONGEST_WINDOW)],
            vec![(limit, LONGEST_WINDOW), (MOST, 86_400_000)],
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
    for units in refunds(used) {
        let copy = copy(con, key);
        let mut rest = log.clone();
        let taken: u64 = run(con, "SLIDE.REFUND", &[&copy, &units.to_string()]);
        assert_eq!(taken, rest.refund(units), "{key}");
        let peek = line(&format!("SLIDE.PEEK {copy} {MOST} {DECADE}"));
        timed(con, |con| reply(con, &peek)).matches(|now| rest.peek(now, roomy()));

        let ago = (now(con) - newest).unsigned_abs();
        for age in [0, ago, ago + 500, ago + 2000] {
            check_aged_refund(con, key, (units, age), |now| {
                log.clone().refund_aged(now, units, age)
            });
        }
    }
}

/// One unit of a limit that is out of reach.
fn roomy() -> Call<'static> {
    Call {
        tiers: &[(MOST, LONGEST_WINDOW)],
        cost: 1,
        force: false,
    }
}

fn check_field(con: &mut Connection, key: &str, field: &Field, fields: &[Field]) {
    let (window, buckets) = (field.window, field.buckets);
    let counter = Counter::holding(key.as_bytes(), fields);
    let copied = Counter::holding(copy_of(key).as_bytes(), fields);
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
                    Kind::Call | Kind::Force => copied.clone().call(now, call, buckets, strict),
                }
            });
        }
    }
}

/// The first version shifted no windows, and this one reads them as if they were.
fn check_counter(con: &mut Connection, key: &str, were_shifted: bool) {
    let fields = stored_counter(con, key);
    let expiry: u64 = run(con, "PEXPIRETIME", &[key]);
    let end = fields.iter().map(|field| {
        let shift = shift(key.as_bytes(), field.window);
        end(field) - if were_shifted { shift } else { 0 }
    });
    assert_eq!(Some(expiry), end.max(), "{key}");

    for field in &fields {
        check_field(con, key, field, &fields);
    }
    let copied = Counter::holding(copy_of(key).as_bytes(), &fields);
    for units in refunds(MOST) {
        let copy = copy(con, key);
        let mut rest = copied.clone();
        let instant = now(con);
        let taken: u64 = run(con, "SLIDE.REFUND", &[&copy, &units.to_string()]);
        assert_eq!(taken, rest.refund(instant, units), "{key}");
        let buckets = fields[0].buckets;
        let peek = line(&format!(
            "SLIDE.PEEK {copy} {MOST} {DECADE} BUCKETS {buckets}"
        ));
        timed(con, |con| reply(con, &peek)).matches(|now| rest.peek(now, roomy(), buckets, false));

        for years in [0, 1, 5, 10] {
            let age = years * (LONGEST_WINDOW / 10);
            check_aged_refund(con, key, (units, age), |now| {
                copied.clone().refund_aged(now, units, age)
            });
        }
    }
}

/// A log and a counter together: in both or in none.
fn check_pair(con: &mut Connection, keys: [&str; 2]) {
    let log = Log::holding(&stored_log(con, keys[0]));
    let fields = stored_counter(con, keys[1]);
    let counter = Counter::holding(copy_of(keys[1]).as_bytes(), &fields);
    let buckets = fields[0].buckets;
    for limit in [2, 9, 12, 1000, MOST] {
        let copies = keys.map(|key| copy(con, key));
        let clauses = format!(
            "LOG {limit} {DECADE} COST 3 COUNTER {limit} {DECADE} BUCKETS {buckets} COST 2"
        );
        let all = line(&format!("SLIDE.ALL 2 {} {clauses}", copies.join(" ")));
        let replies = timed(con, |con| all_replies(&all.query(con).expect("an answer")));
        replies.matches(|now| {
            let tiers = [(limit, LONGEST_WINDOW)];
            let [of_log, of_counter] = [3, 2].map(|cost| Call {
                tiers: &tiers,
                cost,
                force: false,
            });
            let (mut log, mut counter) = (log.clone(), counter.clone());
            let alone = [
                log.peek(now, of_log),
                counter.peek(now, of_counter, buckets, false),
            ];
            if alone.iter().any(|reply| reply.limited == 1) {
                let refused = [
                    log.refuse(now, of_log),
                    counter.refuse(now, of_counter, buckets, false),
                ];
                return (1, refused.to_vec());
            }
            let recorded = [
                log.call(now, of_log),
                counter.call(now, of_counter, buckets, false),
            ];
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
            check_counter(&mut con, key, !file.ends_with("0.1.0.rdb"));
        }
        let leases = keys(&mut con, "lease");
        assert_eq!(leases.is_empty(), file.ends_with("0.1.0.rdb"));
        for key in leases {
            leases::check(&mut con, &key);
        }
        read += 1;
    }
    assert!(read > 0);
}
