//! Transactions in which something is wrong.

use redis::{Connection, Value};

use super::RECORDING;
use crate::support::{DECADE_FIELD, Server, line, run, slide_log};
use crate::units::{units_of_counter, units_of_log};
use crate::wire::{assert_agree, exec, five, receive, send, start_pair};

fn queue(con: &mut Connection, commands: &[&str]) {
    for command in [&["MULTI"][..], commands].concat() {
        line(command).query::<String>(con).expect("OK or QUEUED");
    }
}

/// A command that cannot be queued aborts them all.
#[test]
fn a_call_that_cannot_be_queued_aborts_the_transaction() {
    let server = Server::start();
    let mut con = server.connect();
    for wrong in [
        "SLIDE.LOG new",
        "SLIDE.LOG new 5",
        "SLIDE.COUNTER new 5",
        "SLIDE.PEEK new 5",
        "SLIDE.REFUND new",
        "SLIDE.LEASE new 5 1s",
        "SLIDE.RELEASE new",
        "SLIDE.ALL 1 new LOG 5",
        "SLIDE.NONE new 5 1d",
    ] {
        queue(&mut con, &RECORDING);
        send(&mut con, &line(wrong));
        let error = receive(&mut con).expect_err("too few arguments, or too many");
        assert!(error.starts_with("ERR "), "{wrong}: {error}");
        send(&mut con, &line("EXEC"));
        let error = receive(&mut con).expect_err("nothing runs");
        assert!(error.starts_with("EXECABORT "), "{wrong}: {error}");
        assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0, "{wrong}");
    }
}

/// What fails when it runs fails alone.
#[test]
fn a_call_that_fails_leaves_the_others_of_its_transaction() {
    let (primary, replica) = start_pair();
    let mut con = primary.connect();
    run::<()>(&mut con, "SET", &["text", "1"]);
    let commands = [
        ("SLIDE.LOG log 5 1d COST 2", Ok(3)),
        ("SLIDE.LOG log -5 1d", Err("ERR ")),
        ("SLIDE.LOG text 5 1d", Err("WRONGTYPE ")),
        ("SLIDE.COUNTER log 5 1d", Err("WRONGTYPE ")),
        ("SLIDE.COUNTER counter 5 315576000000ms", Ok(4)),
        (
            "SLIDE.COUNTER counter 5 315576000000ms BUCKETS 65",
            Err("ERR "),
        ),
        ("SLIDE.LOG log 5 1d COST 2", Ok(1)),
        (
            "SLIDE.ALL 2 log counter LOG 9 1d LOG 9 1d",
            Err("WRONGTYPE "),
        ),
        ("SLIDE.LOG log 5 1d COST 2", Ok(1)),
        ("SLIDE.PEEK counter 5 315576000000ms BUCKETS 0", Err("ERR ")),
        ("SLIDE.PEEK log 5 1d", Ok(1)),
    ];
    queue(&mut con, &commands.map(|(command, _)| command));
    for ((command, expected), answer) in commands.into_iter().zip(exec(&mut con)) {
        match expected {
            Ok(remaining) => {
                assert_eq!(
                    five(&answer.expect(command)).remaining,
                    remaining,
                    "{command}"
                );
            }
            Err(code) => {
                let error = answer.expect_err(command);
                assert!(error.starts_with(code), "{command}: {error}");
            }
        }
    }
    assert_eq!(units_of_log(&mut con, "log"), 4);
    assert_eq!(units_of_counter(&mut con, "counter", DECADE_FIELD), 1);
    assert_agree(&primary, &replica);
}

/// Whoever watched the key decides on what is still true, or not at all.
#[test]
fn a_transaction_that_watched_the_key_runs_on_what_it_saw() {
    let server = Server::start();
    let (mut con, mut other) = (server.connect(), server.connect());
    let calls = [
        ("SLIDE.LOG log 3 1d COST 4", true),
        ("SLIDE.LOG log 3 1d COST 2", false),
        ("SLIDE.REFUND log 1", false),
        ("SLIDE.ALL 2 log new LOG 9 1d LOG 0 1d", true),
        ("SLIDE.ALL 2 log new LOG 9 1d LOG 9 1d", false),
    ];
    for (call, runs) in calls {
        run::<()>(&mut con, "WATCH", &["log"]);
        line(call).query::<Value>(&mut other).expect(call);
        let before = units_of_log(&mut other, "log");
        queue(
            &mut con,
            &["SLIDE.LOG log 1000 1d", "SLIDE.LOG log 1000 1d"],
        );
        send(&mut con, &line("EXEC"));
        let ran = receive(&mut con).expect("answers or nil") != Value::Nil;
        assert_eq!(ran, runs, "{call}");
        let recorded = units_of_log(&mut other, "log") - before;
        assert_eq!(recorded, if runs { 2 } else { 0 }, "{call}");
        run::<i64>(&mut other, "DEL", &["log", "new"]);
        slide_log(&mut other, "log", &[(3, "1d")], &[]);
    }
    // Its own calls do not stand in its way.
    run::<()>(&mut con, "WATCH", &["other"]);
    slide_log(&mut con, "log", &[(1000, "1d")], &[]);
    queue(&mut con, &["SLIDE.LOG log 1000 1d"]);
    assert_eq!(exec(&mut con).len(), 1);
}
