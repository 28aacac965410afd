//! Attempts to unload the module while clients refer to its commands in every way that a server
//! remembers, and loading that the server itself takes back.

use redis::{Connection, Value};

use crate::support::{Server, Setup, command, error_of, eventually, info, line, run, slide_log};
use crate::units::units_of_log;
use crate::wire::{exec, five, receive, send};

/// Clients whose last command was one of these.
const LAST: [&str; 7] = [
    "SLIDE.LOG log 1000 1d",
    "SLIDE.COUNTER counter 1000 1d",
    "SLIDE.LEASE lease 1000 1d job",
    "SLIDE.PEEK log 1000 1d",
    "SLIDE.REFUND none 1",
    "SLIDE.RELEASE none job",
    "SLIDE.ALL 2 log counter LOG 1000 1d COUNTER 1000 1d HEADERS",
];

const CLIENTS: usize = 20;

#[track_caller]
fn assert_stays(con: &mut Connection) {
    let error = error_of(con, &command("MODULE", &["UNLOAD", "slide"]));
    assert!(error.starts_with("ERR Error unloading module"), "{error}");
}

fn is_listed(con: &mut Connection) -> bool {
    let modules: Vec<Value> = run(con, "MODULE", &["LIST"]);
    format!("{modules:?}").contains("slide")
}

/// Sends a command that a pause holds back.
fn hold(server: &Server, con: &mut Connection, call: &str) -> Connection {
    let mut held = server.connect();
    let id: String = run(&mut held, "CLIENT", &["ID"]);
    send(&mut held, &line(call));
    eventually("the call is held", || {
        let client: String = run(con, "CLIENT", &["LIST", "ID", &id]);
        client.contains("flags=b").then_some(())
    });
    held
}

#[test]
fn no_client_is_left_with_a_command_that_is_gone() {
    let server = Server::start();
    let mut con = server.connect();

    let mut clients: Vec<Connection> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (place, client) in clients.iter_mut().enumerate() {
        let call = LAST[place % LAST.len()];
        line(call).query::<Value>(client).expect(call);
    }
    // Rules that name its commands.
    run::<()>(
        &mut con,
        "ACL",
        &[
            "SETUSER",
            "limiter",
            "on",
            "nopass",
            "~*",
            "-@all",
            "+slide.log",
            "-slide.peek",
        ],
    );
    let mut limiter = server.connect();
    run::<()>(&mut limiter, "AUTH", &["limiter", "x"]);
    let script = "return redis.call('SLIDE.LOG', KEYS[1], 1000, '1d')";
    let sha: String = run(&mut con, "SCRIPT", &["LOAD", script]);

    let mut queued = server.connect();
    run::<()>(&mut queued, "WATCH", &["watched"]);
    run::<()>(&mut queued, "MULTI", &[]);
    for call in LAST {
        line(call).query::<()>(&mut queued).expect("QUEUED");
    }
    run::<()>(&mut con, "CLIENT", &["PAUSE", "100000", "WRITE"]);
    let mut held: Vec<Connection> = ["SLIDE.LOG held 1000 1d", LAST[1], LAST[6]]
        .into_iter()
        .map(|call| hold(&server, &mut con, call))
        .collect();

    for _ in 0..3 {
        assert_stays(&mut con);
    }
    run::<()>(&mut con, "CLIENT", &["UNPAUSE"]);
    for held in &mut held {
        receive(held).expect("the pause is over");
    }
    assert_eq!(units_of_log(&mut con, "held"), 1);
    for (call, answer) in LAST.into_iter().zip(exec(&mut queued)) {
        assert!(answer.is_ok(), "{call}: {answer:?}");
    }
    for (place, client) in clients.iter_mut().enumerate() {
        let call = LAST[place % LAST.len()];
        line(call).query::<Value>(client).expect(call);
    }
    slide_log(&mut limiter, "log", &[(1000, "1d")], &[]);
    let users: Vec<String> = run(&mut con, "ACL", &["LIST"]);
    assert!(
        users.iter().any(|user| user.contains("+slide.log")),
        "{users:?}"
    );
    run::<Vec<i64>>(&mut con, "EVALSHA", &[&sha, "1", "log"]);
    // Twice those of the clients, then those of the transaction, the limiter, the script and the hold.
    let of_clients = (0..CLIENTS).filter(|place| [0, 6].contains(&(place % LAST.len())));
    let expected = 2 * of_clients.count() as u64 + 2 + 1 + 1 + 1;
    assert_eq!(units_of_log(&mut con, "log"), expected);
    server.assert_alive();
}

/// A module that the server takes back at once, because of its configuration, and loads again.
#[test]
fn a_refused_configuration_takes_the_loading_back() {
    let server = Setup::new().without_module().start();
    let (mut con, mut other) = (server.connect(), server.connect());
    let file = Setup::module_file();
    let file = file.to_str().expect("a path");
    for round in 0..5 {
        for refused in [
            &["CONFIG", "slide.enforce", "maybe"][..],
            &["CONFIG", "slide.nonsense", "1"],
            &[
                "CONFIG",
                "slide.enforce",
                "no",
                "CONFIG",
                "slide.nonsense",
                "1",
            ],
            &["CONFIG", "slide.enforce", "yes", "ARGS", "x"],
        ] {
            let load = command("MODULE", &[&["LOADEX", file], refused].concat());
            let error = error_of(&mut con, &load);
            assert!(error.starts_with("ERR "), "{refused:?}: {error}");
            for con in [&mut con, &mut other] {
                let gone = error_of(con, &line("SLIDE.LOG k 5 1d")).to_lowercase();
                assert!(
                    gone.contains("unknown command"),
                    "{round}, {refused:?}: {gone}"
                );
                assert!(!is_listed(con), "{round}, {refused:?}");
            }
        }
    }
    // A good one, of which all holds.
    run::<()>(
        &mut con,
        "MODULE",
        &["LOADEX", file, "CONFIG", "slide.enforce", "no"],
    );
    assert!(is_listed(&mut con));
    let enforce: (String, String) = run(&mut con, "CONFIG", &["GET", "slide.enforce"]);
    assert_eq!(enforce.1, "no");
    for (remaining, retries) in [(1, false), (0, false), (0, true)] {
        let reply = slide_log(&mut other, "k", &[(2, "1d")], &[]);
        assert_eq!((reply.limited, reply.remaining), (0, remaining));
        assert_eq!(reply.retry_after > 0, retries);
    }
    // Redis 7.0 takes it for loaded from the next tick on, which also moves this clock.
    let clock = |con: &mut Connection| info(con, "server", "lru_clock");
    let loaded = clock(&mut con);
    eventually("the server has ticked", || {
        (clock(&mut con) != loaded).then_some(())
    });
    assert_stays(&mut con);
    let queue = |con: &mut Connection| line("SLIDE.LOG k 2 1d").query::<()>(con);
    run::<()>(&mut other, "MULTI", &[]);
    queue(&mut other).expect("QUEUED");
    assert_stays(&mut con);
    let answers = exec(&mut other);
    assert_eq!(five(answers[0].as_ref().expect("five")).limit, 2);
    server.assert_alive();
}
