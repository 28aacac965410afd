//! CLIENT PAUSE: what may write waits, and is decided when it runs.

use redis::{Connection, cmd};

use crate::support::{
    Server, entries, eventually, line, now, run, slide_log, slide_peek, wait_until,
};
use crate::units::units_of_log;
use crate::wire::{five, receive, send};

/// Longer than a test waits for anything.
const LONG: &str = "600000";

/// Sends a call on a connection of its own and sees that the server holds it.
fn send_and_wait(server: &Server, con: &mut Connection, call: &redis::Cmd) -> Connection {
    let mut held = server.connect();
    let id: String = run(&mut held, "CLIENT", &["ID"]);
    send(&mut held, call);
    eventually("the call is held", || {
        let client: String = run(con, "CLIENT", &["LIST", "ID", &id]);
        client.contains("flags=b").then_some(())
    });
    held
}

#[test]
fn calls_wait_for_the_end_of_a_pause_and_are_decided_then() {
    let server = Server::start();
    let mut con = server.connect();
    let full = slide_log(&mut con, "log", &[(1, "300ms")], &[]);
    let passes = now(&mut con) + full.reset_after + 1;
    run::<()>(&mut con, "CLIENT", &["PAUSE", LONG, "WRITE"]);
    assert_eq!(slide_peek(&mut con, "new", &[(1, "1d")], &[]).remaining, 1);

    let script = "return redis.call('SLIDE.LOG', KEYS[1], 1, '1d')";
    let mut held = [
        // Over its limit when it comes, and not when it runs.
        line("SLIDE.LOG log 1 300ms"),
        line("SLIDE.COUNTER counter 0 1d"),
        line("SLIDE.ALL 1 all LOG 1 1d"),
        line("SLIDE.REFUND none 1"),
        cmd("EVAL").arg(&[script, "1", "script"]).to_owned(),
    ]
    .map(|call| send_and_wait(&server, &mut con, &call));
    wait_until(&mut con, passes);
    // What only reads goes on, and sees that the entry has expired.
    assert_eq!(
        slide_peek(&mut con, "log", &[(1, "300ms")], &[]).remaining,
        1
    );
    let look = "return redis.call('SLIDE.PEEK', KEYS[1], 1, '300ms')";
    let looked: Vec<i64> = run(&mut con, "EVAL_RO", &[look, "1", "log"]);
    assert_eq!(looked[2], 1);
    let end = now(&mut con);
    run::<()>(&mut con, "CLIENT", &["UNPAUSE"]);
    let answers = held.each_mut().map(|con| receive(con).expect("an answer"));
    let decided = five(&answers[0]);
    assert_eq!((decided.limited, decided.remaining), (0, 0));
    assert!(decided.reset_after <= 300);
    let recorded = entries(&mut con, "log").pop().expect("an entry").1;
    assert!(recorded >= end, "recorded at {recorded}, before {end}");
    assert_eq!(five(&answers[1]).limited, 1);
    assert_eq!(answers[3], redis::Value::Int(0));
    for key in ["all", "script"] {
        assert_eq!(units_of_log(&mut con, key), 1);
        assert!(entries(&mut con, key)[0].1 >= end);
    }
}

/// Nobody can end it, or ask about it, before its time.
#[test]
fn a_full_pause_holds_everything() {
    let server = Server::start();
    let mut con = server.connect();
    let mut waiting = [server.connect(), server.connect()];
    let begin = now(&mut con);
    slide_log(&mut con, "log", &[(1, "1s")], &[]);
    run::<()>(&mut con, "CLIENT", &["PAUSE", "1500", "ALL"]);
    let calls = ["SLIDE.PEEK log 1 1s", "SLIDE.LOG log 1 1s"];
    for (con, call) in waiting.iter_mut().zip(calls) {
        send(con, &line(call));
    }
    for con in &mut waiting {
        // When they came, the limit was reached.
        assert_eq!(five(&receive(con).expect("an answer")).limited, 0);
    }
    let recorded = entries(&mut con, "log").pop().expect("an entry").1;
    assert!(recorded >= begin + 1500, "recorded in the pause");
}
