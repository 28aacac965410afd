//! The server refuses to write, for reasons of its own: nothing is recorded, and PEEK answers.

use std::fs;

use redis::{Connection, Value, cmd};

use super::RECORDING;
use crate::support::{
    Server, Setup, error_of, eventually, info, line, run, slide_log, slide_peek, state,
};
use crate::units::units_of_log;
use crate::wire::{assert_agree, exec, receive, send};

/// Calls that write nothing, but are of commands that may.
const LIMITED: [&str; 2] = ["SLIDE.LOG log 5 1d", "SLIDE.REFUND none 1"];

/// All that may write is refused with this error, alone, in transactions and in scripts; PEEK is not.
fn assert_only_peek_works(con: &mut Connection, code: &str) {
    let before = state(con);
    for call in [&RECORDING[..], &LIMITED].concat() {
        let error = error_of(con, &line(call));
        assert!(error.starts_with(code), "{call}: {error}");

        run::<()>(con, "MULTI", &[]);
        send(con, &line(call));
        let error = receive(con).expect_err("not queued");
        assert!(error.starts_with(code), "{call}: {error}");
        send(con, &line("EXEC"));
        let error = receive(con).expect_err("nothing was queued");
        assert!(error.starts_with("EXECABORT "), "{error}");

        let words: Vec<String> = call.split(' ').map(|word| format!("'{word}'")).collect();
        let script = format!("return redis.call({})", words.join(","));
        let error = error_of(con, cmd("EVAL").arg(&[&script, "0"]));
        assert!(error.contains(code.trim_end()), "{call}: {error}");
    }
    assert_peeks(con);
    assert_eq!(state(con), before, "something was written");
}

/// PEEK answers, alone, in a transaction and in scripts.
fn assert_peeks(con: &mut Connection) {
    assert_eq!(slide_peek(con, "log", &[(5, "1d")], &[]).limited, 1);
    run::<()>(con, "MULTI", &[]);
    run::<String>(con, "SLIDE.PEEK", &["log", "5", "1d"]);
    assert_eq!(exec(con).iter().filter(|answer| answer.is_ok()).count(), 1);
    let script = "return redis.call('SLIDE.PEEK', KEYS[1], 5, '1d')";
    for eval in ["EVAL", "EVAL_RO"] {
        let five: Vec<i64> = run(con, eval, &[script, "1", "log"]);
        assert_eq!(five[0], 1, "{eval}");
    }
}

/// A server on which `log` is at its limit of 5.
fn server_with_a_full_log(setup: Setup) -> Server {
    let server = setup.start();
    slide_log(&mut server.connect(), "log", &[(5, "1d")], &["COST", "5"]);
    server
}

fn assert_records_again(con: &mut Connection) {
    for call in RECORDING {
        line(call).query::<Value>(con).expect(call);
    }
    assert_eq!(slide_log(con, "log", &[(6, "1d")], &[]).remaining, 0);
}

#[test]
fn too_few_replicas() {
    let server = server_with_a_full_log(Setup::new());
    let mut con = server.connect();
    run::<()>(&mut con, "CONFIG", &["SET", "min-replicas-to-write", "1"]);
    assert_only_peek_works(&mut con, "NOREPLICAS ");
    let replica = Setup::new().replica_of(&server).start();
    eventually("the replica counts as good", || {
        (info(&mut con, "replication", "min_slaves_good_slaves")? == "1").then_some(())
    });
    assert_records_again(&mut con);
    assert_agree(&server, &replica);
}

#[test]
fn a_replica_only_peeks() {
    let primary = server_with_a_full_log(Setup::new());
    let replica = Setup::new().replica_of(&primary).start();
    primary.wait_for(&replica);
    let mut con = replica.connect();
    assert_only_peek_works(&mut con, "READONLY ");
    // Without its primary it answers with what it last knew, unless it may not.
    primary.crash();
    eventually("the link is down", || {
        (info(&mut con, "replication", "master_link_status")? == "down").then_some(())
    });
    assert_peeks(&mut con);
    run::<()>(
        &mut con,
        "CONFIG",
        &["SET", "replica-serve-stale-data", "no"],
    );
    let error = error_of(&mut con, &line("SLIDE.PEEK log 5 1d"));
    assert!(error.starts_with("MASTERDOWN "), "{error}");
    run::<()>(
        &mut con,
        "CONFIG",
        &["SET", "replica-serve-stale-data", "yes"],
    );
    run::<()>(&mut con, "REPLICAOF", &["NO", "ONE"]);
    assert_records_again(&mut con);
}

/// A replica that may be written to keeps what it records to itself.
#[test]
fn a_writable_replica_records_for_itself() {
    let primary = server_with_a_full_log(Setup::new());
    let replica = Setup::new()
        .replica_of(&primary)
        .line("replica-read-only no")
        .start();
    primary.wait_for(&replica);
    let mut con = replica.connect();
    assert_records_again(&mut con);
    assert_eq!(units_of_log(&mut primary.connect(), "log"), 5);
    slide_log(&mut primary.connect(), "log", &[(9, "1d")], &[]);
    primary.wait_for(&replica);
    replica.assert_alive();
}

/// The last snapshot failed, because there is a folder in the place of the file.
#[test]
fn a_failed_snapshot() {
    let server = server_with_a_full_log(Setup::new().line("dbfilename snapshot.rdb"));
    let mut con = server.connect();
    run::<()>(&mut con, "CONFIG", &["SET", "save", "3600 1000000"]);
    let obstacle = server.dir().join("snapshot.rdb");
    fs::create_dir(&obstacle).expect("the folder is writable");
    let mut save = |status: &str| {
        run::<Value>(&mut con, "BGSAVE", &[]);
        eventually("the snapshot has an end", || {
            let field = |con: &mut Connection, name| info(con, "persistence", name);
            let over = field(&mut con, "rdb_bgsave_in_progress")? == "0";
            (over && field(&mut con, "rdb_last_bgsave_status")? == status).then_some(())
        });
    };
    save("err");
    assert_only_peek_works(&mut server.connect(), "MISCONF ");
    fs::remove_dir(&obstacle).expect("it is empty");
    save("ok");
    assert_records_again(&mut con);
}
