//! What others get of leases: replicas, the append-only file, subscribers, watchers.

use redis::{Cmd, Value, cmd, pipe};

use super::{lease, release, slide_lease, store};
use crate::events::{events, of};
use crate::support::random::Numbers;
use crate::support::{
    Server, Setup, entries, eventually, info_number, now, run, slide_peek, state, wait_until,
};

fn with_append_only_file() -> Server {
    Setup::new()
        .line("appendonly yes")
        .line("appendfsync always")
        .start()
}

fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn a_call_is_written_as_its_effects() {
    let server = with_append_only_file();
    let mut con = server.connect();
    let mut expected = Vec::new();
    let mut expiry = 0;
    for id in ["a", "b", "a"] {
        slide_lease(&mut con, "k", 2, "60s", id, &[]);
        let end: i64 = run(&mut con, "ZSCORE", &["k", &format!("@{id}")]);
        expected.push(words(&["ZADD", "k", &end.to_string(), &format!("@{id}")]));
        // Within one ms the key's time stays what it is.
        if end > expiry {
            expected.push(words(&["PEXPIREAT", "k", &end.to_string()]));
        }
        expiry = end;
    }
    assert_eq!(run::<i64>(&mut con, "PEXPIRETIME", &["k"]), expiry);
    // Limited, shortened, nobody's: nothing more than the one ZADD.
    slide_lease(&mut con, "k", 2, "60s", "c", &[]);
    slide_lease(&mut con, "k", 2, "1s", "b", &[]);
    let shortened = entries(&mut con, "k")[0].1.to_string();
    expected.push(words(&["ZADD", "k", &shortened, "@b"]));
    assert_eq!(release(&mut con, "k", "nobody"), 0);
    assert_eq!(run::<i64>(&mut con, "PEXPIRETIME", &["k"]), expiry);
    assert_eq!(release(&mut con, "k", &["b", "x", "a", "b"]), 2);
    expected.push(words(&["ZREM", "k", "@a", "@b"]));
    assert_eq!(server.append_only_file(), expected);
}

#[test]
fn ended_leases_ride_along_with_a_recorded_call() {
    let server = with_append_only_file();
    let mut con = server.connect();
    let time = now(&mut con);
    store(&mut con, "k", (0..70).map(|place| time - 100 + place));
    let before = server.append_only_file().len();
    assert_eq!(slide_lease(&mut con, "k", 0, "60s", "a", &[]).limited, 1);
    slide_peek(&mut con, "k", &[(5, "1s")], &[]);
    assert_eq!(
        server.append_only_file().len(),
        before,
        "nothing was recorded"
    );
    slide_lease(&mut con, "k", 1, "60s", "a", &[]);
    let file = server.append_only_file();
    let names: Vec<&str> = file[before..].iter().map(|c| c[0].as_str()).collect();
    assert_eq!(names, ["ZADD", "ZREM", "PEXPIREAT"]);
    assert_eq!(file[before + 1].len(), 2 + 64);
    let left: Vec<String> = run(&mut con, "ZRANGE", &["k", "0", "-1"]);
    assert_eq!(left, ["@64", "@65", "@66", "@67", "@68", "@69", "@a"]);
}

/// A call for a place, a release, or a look at one of a few keys.
fn mixed_call(numbers: &mut Numbers) -> Cmd {
    let key = format!("lease:{}", numbers.below(6));
    let id = numbers.below(12);
    match numbers.below(8) {
        0..2 => {
            let mut release = cmd("SLIDE.RELEASE");
            release.arg(key).arg(id).arg(numbers.below(12));
            release
        }
        2 => {
            let mut peek = cmd("SLIDE.PEEK");
            peek.arg(key).arg(&["5", "1s"]);
            peek
        }
        _ => {
            let ttl = ["20ms", "150ms", "1h", "1d"][numbers.place(4)];
            let options: &[&str] = if numbers.one_in(10) { &["FORCE"] } else { &[] };
            lease(&key, 5, ttl, id, options)
        }
    }
}

#[test]
fn a_replica_without_the_module_holds_the_same() {
    let primary = Server::start();
    let replica = Setup::new().without_module().replica_of(&primary).start();
    primary.wait_for(&replica);
    let (mut con, mut copy) = (primary.connect(), replica.connect());
    let mut numbers = Numbers::new(0x1ea);
    for _ in 0..60 {
        let mut pipeline = pipe();
        for _ in 0..50 {
            pipeline.add_command(mixed_call(&mut numbers));
        }
        pipeline.query::<Vec<Value>>(&mut con).unwrap();
        let until = now(&mut con) + i64::try_from(numbers.below(30)).unwrap();
        wait_until(&mut con, until);
    }
    eventually("primary and replica are equal", || {
        primary.wait_for(&replica);
        (state(&mut con) == state(&mut copy)).then_some(())
    });
    let (_, keys) = state(&mut copy);
    assert!(keys.len() >= 4, "hardly anything to compare: {keys:?}");
    assert!(keys.values().all(|&expiry| expiry > 0), "{keys:?}");
}

#[test]
fn limited_calls_add_nothing_to_the_stream() {
    let primary = Server::start();
    let replica = Setup::new().without_module().replica_of(&primary).start();
    let mut con = primary.connect();
    slide_lease(&mut con, "k", 1, "1h", "a", &[]);
    primary.wait_for(&replica);
    let offset = info_number(&mut con, "replication", "master_repl_offset");
    for call in 0..50 {
        assert_eq!(slide_lease(&mut con, "k", 1, "1h", call, &[]).limited, 1);
        assert_eq!(release(&mut con, "k", call), 0);
    }
    let after = info_number(&mut con, "replication", "master_repl_offset");
    assert_eq!(after, offset);
    slide_lease(&mut con, "k", 1, "1h", "a", &[]);
    assert!(info_number(&mut con, "replication", "master_repl_offset") > offset);
}

#[test]
fn leases_survive_a_crash_and_need_no_module() {
    for lines in [&["appendonly yes", "appendfsync always"][..], &[]] {
        let setup = lines
            .iter()
            .fold(Setup::new(), |setup, line| setup.line(line));
        let server = setup.clone().start();
        let mut con = server.connect();
        for id in ["a", "b", "c"] {
            slide_lease(&mut con, "k", 3, "1h", id, &[]);
        }
        release(&mut con, "k", "b");
        if lines.is_empty() {
            run::<()>(&mut con, "SAVE", &[]);
        }
        let before = state(&mut con);
        let dir = server.crash();
        let server = setup.clone().without_module().in_dir(dir).start();
        assert_eq!(state(&mut server.connect()), before);
        let server = setup.in_dir(server.crash()).start();
        let mut con = server.connect();
        let taken = slide_lease(&mut con, "k", 3, "1h", "d", &[]);
        assert_eq!((taken.limited, taken.remaining), (0, 0));
        assert_eq!(slide_lease(&mut con, "k", 3, "1h", "e", &[]).limited, 1);
        assert_eq!(slide_lease(&mut con, "k", 3, "1h", "a", &[]).limited, 0);
    }
}

#[test]
fn effects_are_events_and_so_is_a_limited_call() {
    let server = Server::start();
    let seen = events(&server, "zgxd", |con| {
        slide_lease(con, "k", 1, "1h", "a", &[]);
        slide_lease(con, "k", 1, "1h", "b", &[]);
        slide_lease(con, "k", 1, "1s", "a", &[]);
        slide_peek(con, "k", &[(1, "1s")], &[]);
        release(con, "k", "b");
        release(con, "k", "a");
    });
    assert_eq!(
        of(&seen, "k"),
        ["zadd", "expire", "slide.limited", "zadd", "zrem", "del"]
    );
    let seen = events(&server, "zgxd", |con| {
        slide_lease(con, "k", 1, "1h", "a", &[]);
        slide_lease(con, "k", 1, "2h", "b", &["FORCE"]);
    });
    assert_eq!(
        of(&seen, "k"),
        ["zadd", "expire", "zadd", "expire", "slide.limited"]
    );
}

#[test]
fn only_what_changes_leases_breaks_watch() {
    let server = Server::start();
    let (mut con, mut other) = (server.connect(), server.connect());
    let mut release_a = cmd("SLIDE.RELEASE");
    release_a.arg(&["k", "a"]);
    for (what, call, goes_through) in [
        ("a new lease", lease("k", 1, "1h", "a", &[]), false),
        ("a limited call", lease("k", 1, "1h", "b", &[]), true),
        ("a renewal", lease("k", 1, "1h", "a", &[]), false),
        ("a release", release_a.clone(), false),
        ("a release of nothing", release_a, true),
    ] {
        run::<()>(&mut con, "WATCH", &["k"]);
        call.query::<Value>(&mut other).unwrap();
        run::<()>(&mut con, "MULTI", &[]);
        run::<()>(&mut con, "PING", &[]);
        let done: Option<Vec<String>> = cmd("EXEC").query(&mut con).unwrap();
        assert_eq!(done.is_some(), goes_through, "{what}");
    }
}
