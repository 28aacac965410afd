//! Scripts and functions: that take too long, are killed, or meet errors.

use redis::{Connection, Value, cmd};

use crate::support::{
    DECADE, DECADE_FIELD, Server, Setup, eventually, line, run, slide_log, slide_peek,
};
use crate::units::{units_of_counter, units_of_log};
use crate::wire::{assert_agree, receive, send, start_pair};

/// Scripts count as slow after a ms: the server then takes orders from others.
fn impatient() -> Server {
    Setup::new().line("busy-reply-threshold 1").start()
}

/// What the server says when somebody asks it to kill what runs, once it listens.
fn kill(server: &Server, kind: &str) -> Result<Value, String> {
    let mut con = server.connect();
    eventually("the server takes orders", || {
        send(&mut con, &line(&format!("{kind} KILL")));
        let answer = receive(&mut con);
        let idle = matches!(&answer, Err(error) if error.starts_with("NOTBUSY "));
        (!idle).then_some(answer)
    })
}

fn assert_busy(server: &Server) {
    for call in ["SLIDE.LOG k 5 1d", "SLIDE.PEEK k 5 1d"] {
        let mut con = server.connect();
        eventually("others are turned away", || {
            send(&mut con, &line(call));
            let answer = receive(&mut con);
            matches!(answer, Err(error) if error.starts_with("BUSY ")).then_some(())
        });
    }
}

#[test]
fn a_script_that_only_peeks_can_be_killed() {
    let server = impatient();
    let (mut con, mut running) = (server.connect(), server.connect());
    slide_log(&mut con, "log", &[(5, "1d")], &["COST", "5"]);
    let script = "while true do redis.call('SLIDE.PEEK', KEYS[1], 5, '1d') end";
    send(&mut running, cmd("EVAL").arg(&[script, "1", "log"]));
    assert_busy(&server);
    assert_eq!(kill(&server, "SCRIPT"), Ok(Value::Okay));
    let error = receive(&mut running).expect_err("it was killed");
    assert!(error.contains("killed by user"), "{error}");
    assert_eq!(units_of_log(&mut con, "log"), 5);
    assert_eq!(slide_log(&mut con, "log", &[(6, "1d")], &[]).remaining, 0);
}

/// For the server a script has written as soon as it called a command that may: it is not killed,
/// and what it recorded stays, all of it.
#[test]
fn a_script_that_has_called_a_limiter_is_not_killed() {
    let server = impatient();
    let (mut con, mut running) = (server.connect(), server.connect());
    slide_log(&mut con, "full", &[(1, "1d")], &[]);
    // It runs for some seconds, so that it is still there when a client that waits for the processor
    // asks to kill it. Redis 7.0 has no clock of its own for scripts; later on TIME stands still there.
    let script = "
        local function seconds()
            local there, clock = pcall(function() return os.clock() end)
            if there then return clock end
            local time = redis.call('TIME')
            return time[1] + time[2] / 1000000
        end
        local ends_at = seconds() + 3
        local admitted, calls = 0, 0
        repeat
            local answer = redis.call('SLIDE.LOG', KEYS[1], ARGV[1], '1d')
            if answer[1] == 0 then admitted = admitted + 1 end
            calls = calls + 1
        until calls > 1000 and seconds() > ends_at
        return admitted";
    for (key, limit, admitted) in [("log", "1000", 1000), ("full", "1", 0)] {
        send(&mut running, cmd("EVAL").arg(&[script, "1", key, limit]));
        let error = kill(&server, "SCRIPT").expect_err("it may have written");
        assert!(error.starts_with("UNKILLABLE "), "{error}");
        assert_eq!(receive(&mut running), Ok(Value::Int(admitted)), "{key}");
    }
    assert_eq!(units_of_log(&mut con, "log"), 1000);
    assert_eq!(units_of_log(&mut con, "full"), 1);
}

const LIBRARY: &str = "#!lua name=limits
    local function allow(keys, args)
        return redis.call('SLIDE.LOG', keys[1], args[1], '1d')
    end
    local function look(keys, args)
        return redis.call('SLIDE.PEEK', keys[1], args[1], '1d')
    end
    local function look_forever(keys, args)
        while true do look(keys, args) end
    end
    local function register_reader(name, callback)
        redis.register_function{
            function_name = name, callback = callback, flags = {'no-writes'}}
    end
    redis.register_function('allow', allow)
    register_reader('look', look)
    register_reader('look_forever', look_forever)
    register_reader('wrong', allow)";

fn fcall(con: &mut Connection, name: &str, function: &str, limit: &str) -> Result<Value, String> {
    send(con, cmd(name).arg(&[function, "1", "log", limit]));
    receive(con)
}

#[test]
fn functions_call_the_limiter() {
    let (primary, replica) = start_pair();
    let mut con = primary.connect();
    run::<String>(&mut con, "FUNCTION", &["LOAD", LIBRARY]);
    let limited = |answer: &Value| match answer {
        Value::Array(five) => five[0].clone(),
        other => panic!("{other:?}"),
    };
    for call in 0..20 {
        let answer = fcall(&mut con, "FCALL", "allow", "10").expect("five integers");
        assert_eq!(limited(&answer), Value::Int(i64::from(call >= 10)));
    }
    assert_agree(&primary, &replica);
    for server in [&primary, &replica] {
        let mut con = server.connect();
        for name in ["FCALL", "FCALL_RO"] {
            let answer = fcall(&mut con, name, "look", "10").expect("five integers");
            assert_eq!(limited(&answer), Value::Int(1));
        }
        // It has promised not to write.
        fcall(&mut con, "FCALL", "wrong", "99").expect_err("a write command");
    }
    let error = fcall(&mut replica.connect(), "FCALL", "allow", "99").expect_err("a write");
    assert!(
        error.contains("READONLY") || error.contains("read-only"),
        "{error}"
    );
    assert_eq!(units_of_log(&mut con, "log"), 10);
    assert_agree(&primary, &replica);
}

#[test]
fn a_function_that_only_peeks_can_be_killed() {
    let server = impatient();
    let (mut con, mut running) = (server.connect(), server.connect());
    run::<String>(&mut con, "FUNCTION", &["LOAD", LIBRARY]);
    send(
        &mut running,
        cmd("FCALL").arg(&["look_forever", "1", "log", "5"]),
    );
    assert_busy(&server);
    assert_eq!(kill(&server, "FUNCTION"), Ok(Value::Okay));
    receive(&mut running).expect_err("it was killed");
    assert_eq!(slide_peek(&mut con, "log", &[(5, "1d")], &[]).remaining, 5);
}

/// A script that catches errors goes on; one that does not ends, and what it had recorded stays.
#[test]
fn errors_within_a_script_undo_nothing() {
    let (primary, replica) = start_pair();
    let mut con = primary.connect();
    run::<()>(&mut con, "SET", &["text", "1"]);
    run::<i64>(&mut con, "ZADD", &["foreign", "1", "alice"]);
    let script = "
        local errors = {}
        local function try(...)
            local answer = redis.pcall(...)
            table.insert(errors, answer.err and string.match(answer.err, '^%S+') or 'none')
        end
        try('SLIDE.LOG', KEYS[1], 10, '1d')
        try('SLIDE.LOG', KEYS[1], 'x', '1d')
        try('SLIDE.LOG', KEYS[1], 10, 60)
        try('SLIDE.LOG', KEYS[2], 10, '1d')
        try('SLIDE.LOG', KEYS[3], 10, '1d')
        try('SLIDE.ALL', 2, KEYS[1], KEYS[2], 'LOG', 10, '1d', 'COUNTER', 10, '1d')
        try('SLIDE.COUNTER', KEYS[4], 10, ARGV[1])
        try('SLIDE.LOG', KEYS[1], 10, '1d', 'COST', 2)
        return errors";
    let mut call = cmd("EVAL");
    call.arg(script)
        .arg(4)
        .arg(&["log", "text", "foreign", "counter", DECADE]);
    let errors: Vec<String> = call.query(&mut con).expect("errors were caught");
    assert_eq!(
        errors,
        [
            "none",
            "ERR",
            "ERR",
            "WRONGTYPE",
            "ERR",
            "WRONGTYPE",
            "none",
            "none"
        ]
    );
    assert_eq!(units_of_log(&mut con, "log"), 3);
    assert_eq!(units_of_counter(&mut con, "counter", DECADE_FIELD), 1);

    let script = "
        redis.call('SLIDE.LOG', KEYS[1], 10, '1d')
        redis.call('SLIDE.LOG', KEYS[2], 10, '1d')
        redis.call('SLIDE.LOG', KEYS[1], 10, '1d')";
    send(&mut con, cmd("EVAL").arg(&[script, "2", "log", "text"]));
    let error = receive(&mut con).expect_err("nobody caught it");
    assert!(error.contains("wrong kind of value"), "{error}");
    assert_eq!(units_of_log(&mut con, "log"), 4);
    assert_agree(&primary, &replica);
}
