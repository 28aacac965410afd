//! What a restart finds, with the module and without it.

use std::collections::BTreeMap;

use crate::support::oracle::{Call, Counter, stored};
use crate::support::{
    DECADE, DECADE_MS, Server, Setup, eventually, info_number, now, run, slide, slide_counter,
    slide_log, state, timed_reply,
};
use crate::traffic::run_mixed_calls;

/// Runs calls and waits until only keys are left that stay, so that two looks at the data are
/// comparable.
fn fill(server: &Server) {
    let mut con = server.connect();
    assert!(run_mixed_calls(&mut con, 1000) > 0);
    slide_log(&mut con, "log", &[(10, "1d")], &["COST", "4"]);
    slide_log(&mut con, "log", &[(10, "1d")], &["COST", "5"]);
    slide_counter(&mut con, "counter", &[(10, DECADE)], &["COST", "9"]);
    let soon = now(&mut con) + 30_000;
    eventually("the short-lived keys are gone", || {
        let (_, keys) = state(&mut con);
        // A digest has what has expired but not been deleted, a list of keys has not.
        let deleted = run::<usize>(&mut con, "DBSIZE", &[]) == keys.len();
        (deleted && keys.values().all(|&expiry| expiry > soon)).then_some(())
    });
}

/// After a kill -9 the data is there without the module, and after another with it.
fn assert_survives_a_crash(
    server: Server,
    setup: Setup,
    before: &(String, BTreeMap<Vec<u8>, i64>),
) {
    let dir = server.crash();

    let server = setup.clone().without_module().in_dir(dir).start();
    assert_eq!(state(&mut server.connect()), *before);
    let dir = server.crash();

    let server = setup.in_dir(dir).start();
    assert_usage_is_remembered(&server);
}

#[test]
fn the_append_only_file_survives_a_crash_and_needs_no_module() {
    let setup = Setup::new()
        .line("appendonly yes")
        .line("appendfsync always");
    let server = setup.clone().start();
    fill(&server);
    let before = state(&mut server.connect());
    assert!(before.1.len() >= 4, "{before:?}");
    assert_survives_a_crash(server, setup, &before);
}

#[test]
fn a_snapshot_survives_a_crash_and_needs_no_module() {
    let setup = Setup::new();
    let server = setup.clone().start();
    fill(&server);
    let mut con = server.connect();
    run::<()>(&mut con, "SAVE", &[]);
    let before = state(&mut con);
    assert!(before.1.len() >= 4, "{before:?}");
    assert_survives_a_crash(server, setup, &before);
}

/// Recorded calls are changes by which the server's own save points are reached.
#[test]
fn recorded_calls_count_for_the_next_snapshot() {
    let server = Server::start();
    let mut con = server.connect();
    for key in ["a", "b", "c"] {
        slide_log(&mut con, key, &[(10, "1d")], &[]);
        slide_counter(&mut con, [key, "2"].concat(), &[(10, DECADE)], &[]);
    }
    let changes = info_number(&mut con, "persistence", "rdb_changes_since_last_save");
    assert!(changes >= 6, "{changes}");
}

#[test]
fn copies_and_dumps_go_on_counting() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(10, "1d")], &["COST", "9"]);
    slide_counter(&mut con, "counter", &[(10, DECADE)], &["COST", "9"]);
    for key in ["log", "counter"] {
        run::<i64>(&mut con, "COPY", &[key, &format!("{key}:copy")]);
        let dump: Vec<u8> = run(&mut con, "DUMP", &[key]);
        let mut restore = redis::cmd("RESTORE");
        restore.arg(format!("{key}:restored")).arg(0).arg(dump);
        restore.query::<()>(&mut con).unwrap();
        run::<()>(&mut con, "RENAME", &[key, &format!("{key}:renamed")]);
    }
    run::<()>(&mut con, "DEBUG", &["RELOAD"]);
    for copy in ["copy", "restored", "renamed"] {
        let log = slide_log(&mut con, format!("log:{copy}"), &[(10, "1d")], &[]);
        assert_eq!((log.limited, log.remaining), (0, 0), "{copy}");
        // Another key's windows begin at other moments, so what the counts mean is shifted.
        let key = format!("counter:{copy}");
        let stored: Vec<(Vec<u8>, Vec<u8>)> = run(&mut con, "HGETALL", &[&key]);
        let field = stored::field(&stored[0].0, &stored[0].1).unwrap();
        let oracle = Counter::holding(key.as_bytes(), &[field]);
        let call = Call {
            tiers: &[(10, DECADE_MS.unsigned_abs())],
            cost: 1,
            force: false,
        };
        timed_reply(&mut con, slide("SLIDE.COUNTER", &key, &[(10, DECADE)], &[]))
            .matches(|now| oracle.clone().call(now, call, 1, false));
    }
}

fn assert_usage_is_remembered(server: &Server) {
    let mut con = server.connect();
    let log = slide_log(&mut con, "log", &[(10, "1d")], &["COST", "2"]);
    assert_eq!((log.limited, log.remaining), (1, 1));
    let counter = slide_counter(&mut con, "counter", &[(10, DECADE)], &["COST", "2"]);
    assert_eq!((counter.limited, counter.remaining), (1, 1));
}
