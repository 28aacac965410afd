//! Logs whose older entries are packed into few members, on a server: what is stored, what is
//! propagated, and that the replies stay exact.

use redis::{Connection, cmd, pipe};

use crate::support::oracle::stored;
use crate::support::{
    Reply, Server, Setup, entries, eventually, info_number, now, run, slide, slide_log, state,
    timed_reply,
};

const ROOMY: u64 = 1 << 50;

/// A log as 0.1 left it: single entries of cost 2, a ms apart, the last one at `last`.
fn fill(con: &mut Connection, key: &str, count: i64, last: i64) {
    let mut fill = cmd("ZADD");
    fill.arg(key);
    for entry in 1..=count {
        fill.arg(last - count + entry)
            .arg(format!("{}:2", 2 * entry));
    }
    fill.query::<i64>(con).unwrap();
}

/// The entries of a log, packed or not, oldest first.
fn unpacked(con: &mut Connection, key: &str) -> Vec<stored::Entry> {
    let members = entries(con, key).into_iter();
    #[allow(clippy::cast_precision_loss)] // times are far below 2^53
    let members: Vec<(Vec<u8>, f64)> = members
        .map(|(member, time)| (member.into_bytes(), time as f64))
        .collect();
    stored::log(&members).unwrap_or_else(|| panic!("{members:?} is no log"))
}

fn longest_member(con: &mut Connection, key: &str) -> usize {
    let members = entries(con, key);
    members.iter().map(|entry| entry.0.len()).max().unwrap()
}

fn encoding(con: &mut Connection, key: &str) -> String {
    run(con, "OBJECT", &["ENCODING", key])
}

/// Calls of cost 1, each in a ms of its own.
fn call(con: &mut Connection, key: &str, times: usize) {
    for _ in 0..times {
        let last = entries(con, key).last().unwrap().1;
        eventually("the next ms", || (now(con) > last).then_some(()));
        assert_eq!(slide_log(con, key, &[(ROOMY, "1h")], &[]).limited, 0);
    }
}

#[test]
fn a_small_log_stays_a_listpack() {
    let server = Server::start();
    let mut con = server.connect();
    let last = now(&mut con) - 1000;
    fill(&mut con, "k", 60, last);
    let before = unpacked(&mut con, "k");
    call(&mut con, "k", 40);
    let after = unpacked(&mut con, "k");
    assert_eq!(after[..60], before);
    assert_eq!(after.len(), 100);
    let members = entries(&mut con, "k").len();
    assert!(members <= 6 + 24, "{members} members");
    assert_eq!(
        longest_member(&mut con, "k").min(65),
        longest_member(&mut con, "k")
    );
    assert!(longest_member(&mut con, "k") > 32);
    assert_eq!(encoding(&mut con, "k"), "listpack");
    let packed = info_number(&mut con, "slide", "slide_packed_entries");
    assert!((70..100).contains(&packed), "{packed}");
}

#[test]
fn a_large_log_is_a_skiplist_of_longer_members() {
    let server = Server::start();
    let mut con = server.connect();
    let last = now(&mut con) - 1000;
    fill(&mut con, "k", 2000, last);
    let before = unpacked(&mut con, "k");
    call(&mut con, "k", 400);
    let after = unpacked(&mut con, "k");
    assert_eq!(after[..2000], before);
    let members = entries(&mut con, "k").len();
    assert!(members <= 2400 / 32 + 48, "{members} members");
    let longest = longest_member(&mut con, "k");
    assert!((100..=256).contains(&longest), "{longest}");
    assert_eq!(encoding(&mut con, "k"), "skiplist");
}

#[test]
fn replies_are_exact_where_entries_are_packed() {
    let server = Server::start();
    let mut con = server.connect();
    let last = now(&mut con) - 1000;
    for count in [60, 1000] {
        run::<i64>(&mut con, "DEL", &["k"]);
        fill(&mut con, "k", count, last);
        call(&mut con, "k", 100);
        let used = 2 * count + 100;
        let limit = u64::try_from(used).unwrap();
        let newest = entries(&mut con, "k").last().unwrap().1;
        for entry in 1..=count {
            let cost = (2 * entry).to_string();
            let call = slide("SLIDE.LOG", "k", &[(limit, "1h")], &["COST", &cost]);
            timed_reply(&mut con, call).matches(|now| Reply {
                limited: 1,
                limit: used,
                remaining: 0,
                retry_after: last - count + entry + 3_600_000 - now,
                reset_after: newest + 3_600_000 - now,
            });
        }
    }
}

#[test]
fn packing_adds_first_and_removes_after() {
    let server = Setup::new()
        .line("appendonly yes")
        .line("appendfsync always")
        .start();
    let mut con = server.connect();
    let last = now(&mut con) - 1000;
    fill(&mut con, "k", 30, last);
    call(&mut con, "k", 1);
    let mut written = server.append_only_file().len();
    let mut seen = 0;
    for _ in 0..60 {
        call(&mut con, "k", 1);
        let effects = server.append_only_file().split_off(written);
        written += effects.len();
        let names: Vec<&str> = effects.iter().map(|effect| effect[0].as_str()).collect();
        match names[..] {
            ["ZADD"] => assert_eq!(effects[0].len(), 4),
            ["ZADD", "ZREM", "ZREMRANGEBYSCORE"] => {
                seen += 1;
                // The new entry, then the packed member that takes the place of single ones.
                let [add, remove, range] = &effects[..] else {
                    unreachable!()
                };
                assert_eq!(add.len(), 6, "{add:?}");
                assert_eq!(add[3].split(':').count(), 2);
                assert_eq!(add[5].split(':').count(), 3);
                assert_eq!(remove.len(), 3, "{remove:?}");
                assert_eq!(range[3], format!("({}", add[4]));
            }
            _ => panic!("{effects:?}"),
        }
    }
    assert!((2..=5).contains(&seen), "packed {seen} times in 60 calls");
}

#[test]
fn replicas_and_files_hold_the_same() {
    let primary = Setup::new().line("appendonly yes").start();
    let replica = Setup::new().without_module().replica_of(&primary).start();
    primary.wait_for(&replica);
    let mut con = primary.connect();
    let last = now(&mut con) - 1000;
    for (key, count) in [("small", 60), ("large", 700)] {
        fill(&mut con, key, count, last);
        run::<i64>(&mut con, "PEXPIRE", &[key, "7200000"]);
        call(&mut con, key, 60);
        // Into the midst of a packed member, and where the age says.
        run::<i64>(&mut con, "SLIDE.REFUND", &[key, "41"]);
        run::<i64>(&mut con, "SLIDE.REFUND", &[key, "33", "AGE", "1100ms"]);
        call(&mut con, key, 30);
        unpacked(&mut con, key);
    }
    primary.wait_for(&replica);
    let held = state(&mut con);
    assert_eq!(state(&mut replica.connect()), held);
    for reload in [&["RELOAD"][..], &["LOADAOF"]] {
        run::<()>(&mut con, "DEBUG", reload);
        assert_eq!(state(&mut con), held, "{reload:?}");
    }
    let dump: Vec<u8> = run(&mut con, "DUMP", &["large"]);
    let restored = cmd("RESTORE")
        .arg("copy")
        .arg(0)
        .arg(dump)
        .query::<()>(&mut con);
    restored.unwrap();
    assert_eq!(unpacked(&mut con, "copy"), unpacked(&mut con, "large"));
}

/// Several logs are packed by one call, also inside a transaction and a script.
#[test]
fn one_call_packs_several_logs() {
    let (primary, replica) = {
        let primary = Server::start();
        let replica = Setup::new().without_module().replica_of(&primary).start();
        (primary, replica)
    };
    let mut con = primary.connect();
    let last = now(&mut con) - 1000;
    for key in ["a", "b", "c"] {
        // One call more and the length is a multiple of 8.
        fill(&mut con, key, 39, last);
    }
    let words = "3 a b c LOG 1000000 1h LOG 1000000 1h LOG 1000000 1h";
    let words: Vec<&str> = words.split(' ').collect();
    let mut all = cmd("SLIDE.ALL");
    all.arg(&words);
    let script = "return redis.call('SLIDE.ALL', unpack(ARGV))";
    let mut transaction = pipe();
    transaction.atomic().add_command(all).ignore();
    transaction
        .cmd("EVAL")
        .arg(script)
        .arg(0)
        .arg(&words)
        .ignore();
    transaction.query::<()>(&mut con).unwrap();
    for key in ["a", "b", "c"] {
        let entries_now = unpacked(&mut con, key);
        let total = entries_now.last().unwrap().total;
        assert_eq!(total, 2 * 39 + 2);
        assert!(entries(&mut con, key).len() < 30);
    }
    primary.wait_for(&replica);
    assert_eq!(state(&mut con), state(&mut replica.connect()));
}
