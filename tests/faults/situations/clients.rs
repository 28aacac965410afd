//! Clients in numbers, in a hurry, or asleep.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use redis::{Connection, PushInfo, Value, from_redis_value_ref};

use crate::support::{
    DECADE, DECADE_FIELD, Server, Setup, eventually, info_number, line, run, slide_log, slide_peek,
};
use crate::units::{units_of_counter, units_of_log};
use crate::wire::{Stop, assert_agree, exec, receive, send, start_pair};

/// A bare connection, which sends nothing by itself.
fn dial(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("a connection");
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).expect("a timeout");
    stream.set_write_timeout(patience).expect("a timeout");
    stream
}

/// The first line of the answer to a command.
fn first_line(stream: &TcpStream, command: &str) -> String {
    let mut line = String::new();
    // A connection that is turned away may be closed before it is written to.
    let _ = (&*stream).write_all(format!("{command}\r\n").as_bytes());
    BufReader::new(stream)
        .read_line(&mut line)
        .expect("an answer");
    line.trim_end().to_owned()
}

#[test]
fn with_all_connections_taken_the_connected_go_on() {
    let server = Setup::new().line("maxclients 30").start();
    let mut clients = Vec::new();
    let refused = loop {
        assert!(clients.len() <= 30, "nobody was turned away");
        let client = dial(&server);
        match first_line(&client, "PING").as_str() {
            "+PONG" => clients.push(client),
            error => break error.to_owned(),
        }
    };
    assert_eq!(refused, "-ERR max number of clients reached");
    assert!(clients.len() > 20, "only {} were served", clients.len());
    for client in &clients {
        assert_eq!(first_line(client, "SLIDE.LOG log 1000 1d"), "*5");
        let counter = format!("SLIDE.COUNTER counter 1000 {DECADE}");
        let other = dial(&server);
        assert_eq!(first_line(&other, &counter), refused);
    }
    let called = clients.len() as u64;
    drop(clients);
    let mut con = eventually("there is room again", || {
        let client = dial(&server);
        (first_line(&client, "PING") == "+PONG").then(|| server.connect())
    });
    assert_eq!(units_of_log(&mut con, "log"), called);
    assert_eq!(units_of_counter(&mut con, "counter", DECADE_FIELD), 0);
}

/// Sends calls and reads no answer, until the server has had enough.
fn send_without_reading(server: &Server, call: &str) {
    let mut stream = dial(server);
    let calls = format!("{call}\r\n").repeat(1000);
    for _ in 0..10_000 {
        match stream
            .write_all(calls.as_bytes())
            .map_err(|error| error.kind())
        {
            Ok(()) => {}
            Err(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => return,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("ten million calls without reading were taken");
}

#[test]
fn a_client_that_does_not_read_is_closed() {
    let server = Setup::new()
        .line("client-output-buffer-limit normal 4mb 0 0")
        .start();
    let (stop, others) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let stop = Stop(&stop);
        let (stop_flag, others, server) = (stop.0, &others, &server);
        scope.spawn(move || {
            let mut con = server.connect();
            while !stop_flag.load(Ordering::Relaxed) {
                let reply = slide_log(&mut con, "other", &[(1_000_000_000, "1d")], &[]);
                assert_eq!(reply.limited, 0);
                others.fetch_add(1, Ordering::Relaxed);
            }
        });
        for call in [
            "SLIDE.LOG slow 1000 1d HEADERS",
            &format!("SLIDE.COUNTER slow:counter 1000 {DECADE} HEADERS"),
        ] {
            eventually("others are served", || {
                (others.load(Ordering::Relaxed) > 0).then_some(())
            });
            let before = others.load(Ordering::Relaxed);
            send_without_reading(server, call);
            let during = others.load(Ordering::Relaxed) - before;
            assert!(during > 0, "nobody else was served");
        }
        drop(stop);
    });
    let closed = server.log().matches("output buffer limits").count();
    assert_eq!(closed, 2, "{}", server.log());
    let mut con = server.connect();
    eventually("the buffers are freed", || {
        (info_number(&mut con, "memory", "mem_clients_normal") < 1_000_000).then_some(())
    });
    // What was recorded was recorded once.
    assert_eq!(units_of_log(&mut con, "slow"), 1000);
    assert_eq!(
        units_of_counter(&mut con, "slow:counter", DECADE_FIELD),
        1000
    );
    assert_eq!(units_of_log(&mut con, "other"), others.into_inner());
}

#[test]
fn calls_whose_answers_nobody_wants_are_recorded() {
    let server = Server::start();
    let mut con = server.connect();
    send(&mut con, &line("CLIENT REPLY OFF"));
    for _ in 0..100 {
        send(&mut con, &line("SLIDE.LOG log 60 1d HEADERS"));
        send(&mut con, &line("SLIDE.LOG log x 1d"));
        send(
            &mut con,
            &line("SLIDE.ALL 2 a b LOG 60 1d COUNTER 60 315576000000ms"),
        );
    }
    send(&mut con, &line("CLIENT REPLY ON"));
    assert_eq!(receive(&mut con), Ok(Value::Okay));
    for key in ["log", "a"] {
        assert_eq!(units_of_log(&mut con, key), 60);
    }
    assert_eq!(units_of_counter(&mut con, "b", DECADE_FIELD), 60);
    send(&mut con, &line("CLIENT REPLY SKIP"));
    send(&mut con, &line("SLIDE.LOG skipped 5 1d"));
    assert_eq!(
        slide_log(&mut con, "skipped", &[(5, "1d")], &[]).remaining,
        3
    );
}

/// A log is a sorted set, so whoever waits for one gets the entry; the log goes on without it.
#[test]
fn a_client_that_waits_for_a_sorted_set_gets_the_entry() {
    let (primary, replica) = start_pair();
    let (mut con, mut waiting) = (primary.connect(), primary.connect());
    let wait = |con: &mut Connection, waiting: &mut Connection| {
        send(waiting, &line("BZPOPMIN log 0"));
        eventually("the client is blocked", || {
            (info_number(con, "clients", "blocked_clients") == 1).then_some(())
        });
    };
    let popped = |waiting: &mut Connection| {
        let popped = receive(waiting).expect("an entry");
        let (key, member, _): (String, String, f64) = from_redis_value_ref(&popped).unwrap();
        assert_eq!(key, "log");
        member
    };
    wait(&mut con, &mut waiting);
    assert_eq!(slide_log(&mut con, "log", &[(5, "1d")], &[]).remaining, 4);
    assert_eq!(popped(&mut waiting), "1:1");
    assert_eq!(slide_peek(&mut con, "log", &[(5, "1d")], &[]).remaining, 5);

    // In a transaction it waits for the end of that; both calls fall into one entry, or two.
    wait(&mut con, &mut waiting);
    for command in ["MULTI", "SLIDE.LOG log 5 1d COST 2", "SLIDE.LOG log 5 1d"] {
        send(&mut con, &line(command));
        receive(&mut con).expect("OK or QUEUED");
    }
    assert_eq!(exec(&mut con).len(), 2);
    let left = match popped(&mut waiting).as_str() {
        "3:3" => 5,
        "2:2" => 4,
        other => panic!("{other}"),
    };
    assert_eq!(
        slide_peek(&mut con, "log", &[(5, "1d")], &[]).remaining,
        left
    );

    // A client that is no longer blocked, or that waits for something else, gets none.
    wait(&mut con, &mut waiting);
    let id: String = info_of_blocked(&mut con);
    assert_eq!(run::<i64>(&mut con, "CLIENT", &["UNBLOCK", &id]), 1);
    assert_eq!(receive(&mut waiting), Ok(Value::Nil));
    run::<i64>(&mut con, "DEL", &["log"]);
    assert_eq!(slide_log(&mut con, "log", &[(5, "1d")], &[]).remaining, 4);
    assert_eq!(units_of_log(&mut con, "log"), 1);
    assert_agree(&primary, &replica);
}

/// The number of the one client that waits.
fn info_of_blocked(con: &mut Connection) -> String {
    let list: String = run(con, "CLIENT", &["LIST"]);
    let blocked = list.lines().find(|client| client.contains("cmd=bzpopmin"));
    let id = blocked.and_then(|client| client.split(' ').next()?.strip_prefix("id="));
    id.expect("it is listed").to_owned()
}

/// What a client that tracks what it reads was told of since the last look.
fn invalidated(con: &mut Connection, received: &Receiver<PushInfo>, marker: &str) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    eventually("the marker is invalidated", || {
        run::<String>(con, "PING", &[]);
        for push in received.try_iter() {
            if let Some(Value::Array(names)) = push.data.first() {
                keys.extend(names.iter().map(|name| from_redis_value_ref(name).unwrap()));
            }
        }
        keys.iter().any(|key| key == marker).then_some(())
    });
    keys.retain(|key| key != marker);
    keys
}

/// A client that caches what `SLIDE.PEEK` said is told when, and only when, it is no longer true by
/// somebody's call.
#[test]
fn a_cached_peek_is_invalidated_by_recorded_calls_only() {
    let server = Server::start();
    let mut other = server.connect();
    let (sender, received) = channel();
    let mut con = server.connect_resp3();
    con.set_push_sender(sender);
    run::<()>(&mut con, "CLIENT", &["TRACKING", "ON"]);
    let calls = [
        ("SLIDE.LOG log 2 1d COST 0", ""),
        ("SLIDE.LOG log 2 1d", "log"),
        ("SLIDE.LOG log 2 1d COST 2", ""),
        ("SLIDE.LOG log x 1d", ""),
        ("SLIDE.PEEK log 2 1d", ""),
        ("SLIDE.LOG log 0 1d FORCE", "log"),
        ("SLIDE.REFUND log 1", "log"),
        ("SLIDE.COUNTER counter 2 315576000000ms COST 3", ""),
        ("SLIDE.COUNTER counter 2 315576000000ms", "counter"),
        (
            "SLIDE.ALL 2 log counter LOG 9 1d COUNTER 1 315576000000ms",
            "",
        ),
        (
            "SLIDE.ALL 2 log counter LOG 9 1d COUNTER 2 315576000000ms",
            "counter log",
        ),
        ("SLIDE.REFUND counter 9", "counter"),
        ("SLIDE.REFUND counter 9", ""),
    ];
    for (place, (call, expected)) in calls.into_iter().enumerate() {
        let marker = format!("marker:{place}");
        run::<Value>(&mut con, "GET", &[&marker]);
        for key in ["log", "counter"] {
            slide_peek(&mut con, key, &[(9, DECADE)], &[]);
        }
        // An error is one of the calls.
        let _ = line(call).query::<Value>(&mut other);
        run::<()>(&mut other, "SET", &[&marker, "1"]);
        let mut keys = invalidated(&mut con, &received, &marker);
        keys.sort();
        assert_eq!(keys.join(" "), expected, "{call}");
    }
}
