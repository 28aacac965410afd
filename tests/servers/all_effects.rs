//! `SLIDE.ALL` beyond its reply: what replicas and the append-only file get, and calls from
//! transactions, scripts, functions and many clients at once.

use std::thread;

use redis::{Cmd, Connection, Value, pipe};

use crate::all::slide_all;
use crate::support::random::Numbers;
use crate::support::{
    DECADE, DECADE_FIELD, Server, Setup, all_replies, entries, eventually, line, now, repeated,
    run, slide_peek, state, wait_until,
};

fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn the_effects_of_all_keys_are_one_transaction() {
    let server = Setup::new()
        .line("appendonly yes")
        .line("appendfsync always")
        .start();
    let (mut con, mut look) = (server.connect(), server.connect());
    let clauses = |cost| {
        format!(
            "3 a b c LOG 9 1d COST {cost} COUNTER 9 {DECADE} BUCKETS 2 COST {cost} \
             LOG 5 1h COST {cost}"
        )
    };
    let mut call = |cost, force| slide_all(&mut con, &format!("{}{force}", clauses(cost))).0;
    assert_eq!(call(3, ""), 0);
    let mut expected = vec![words(&["MULTI"])];
    for key in ["a", "b", "c"] {
        let expiry: i64 = run(&mut look, "PEXPIRETIME", &[key]);
        expected.push(if key == "b" {
            let field = format!("{DECADE_FIELD}/2");
            let value: String = run(&mut look, "HGET", &["b", &field]);
            words(&["HSET", "b", &field, &value])
        } else {
            let (member, time) = entries(&mut look, key).remove(0);
            words(&["ZADD", key, &time.to_string(), &member])
        });
        expected.push(words(&["PEXPIREAT", key, &expiry.to_string()]));
    }
    expected.push(words(&["EXEC"]));
    // Servers select the database before the transaction or within it.
    let stream = || {
        let mut commands = server.append_only_stream();
        commands.retain(|command| command[0] != "SELECT");
        commands
    };
    assert_eq!(stream(), expected);

    // What records nothing leaves nothing there, not even an empty transaction.
    assert_eq!(call(3, ""), 1);
    assert_eq!(call(0, " FORCE"), 0);
    assert_eq!(stream(), expected);

    // The next recorded call has no expiry to change.
    assert_eq!(call(1, ""), 0);
    let written = stream();
    let names: Vec<&str> = written[expected.len()..]
        .iter()
        .map(|command| command[0].as_str())
        .collect();
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "ZREM").collect(); // a merge
    assert_eq!(names, ["MULTI", "ZADD", "HSET", "ZADD", "EXEC"]);
}

/// A call on two or three of ten keys, each with a clause of its own.
fn mixed_call(numbers: &mut Numbers) -> Cmd {
    let mut keys = Vec::new();
    let mut clauses = Vec::new();
    for _ in 0..2 + numbers.below(2) {
        let key = numbers.below(10);
        let tiers = match key {
            0..4 => "60 40ms 250 200ms",
            4..7 => "250 300ms",
            _ => "500 60s 900 1h",
        };
        let cost = numbers.below(8);
        let (name, clause) = match key % 3 {
            0 => (format!("log:{key}"), format!("LOG {tiers} COST {cost}")),
            1 => (
                format!("counter:{key}"),
                format!("COUNTER {tiers} COST {cost}"),
            ),
            _ => (
                format!("sharp:{key}"),
                format!("COUNTER {tiers} BUCKETS {} STRICT COST {cost}", key * 7),
            ),
        };
        if !keys.contains(&name) {
            keys.push(name);
            clauses.push(clause);
        }
    }
    let force = if numbers.below(20) == 0 { " FORCE" } else { "" };
    line(&format!(
        "SLIDE.ALL {} {} {}{force}",
        keys.len(),
        keys.join(" "),
        clauses.join(" "),
    ))
}

#[test]
fn a_replica_without_the_module_holds_the_same() {
    let primary = Server::start();
    let replica = Setup::new().without_module().replica_of(&primary).start();
    primary.wait_for(&replica);
    let (mut con, mut copy) = (primary.connect(), replica.connect());
    let mut numbers = Numbers::new(0xa11);
    let mut limited = 0;
    for _ in 0..60 {
        let mut pipeline = pipe();
        for _ in 0..50 {
            pipeline.add_command(mixed_call(&mut numbers));
        }
        let replies: Vec<Value> = pipeline.query(&mut con).unwrap();
        limited += replies
            .iter()
            .filter(|reply| all_replies(reply).0 == 1)
            .count();
        let pause = i64::try_from(numbers.below(40)).unwrap();
        let until = now(&mut con) + pause;
        wait_until(&mut con, until);
    }
    assert!(
        (300..2700).contains(&limited),
        "{limited} of 3,000 limited: not a mixture"
    );
    // Keys whose time comes while we look are deleted on the primary first.
    eventually("primary and replica are equal", || {
        primary.wait_for(&replica);
        (state(&mut con) == state(&mut copy)).then_some(())
    });
    let (_, keys) = state(&mut copy);
    assert!(keys.len() >= 3, "hardly anything to compare: {keys:?}");
    assert!(keys.values().all(|&expiry| expiry > 0), "{keys:?}");
}

/// A call for one of two users and everybody, as words after the command's name.
fn call_of(user: &str) -> String {
    format!("2 {user} everybody COUNTER 150 3652d BUCKETS 10 LOG 200 1d")
}

/// How many units are in a user's counter and in everybody's log.
fn used(con: &mut Connection, user: &str) -> [i64; 2] {
    let most = 1_000_000;
    let log = slide_peek(con, "everybody", &[(most, "1d")], &["COST", "0"]);
    let counter = [(most, "3652d")];
    let user = slide_peek(con, user, &counter, &["COST", "0", "BUCKETS", "10"]);
    [user, log].map(|reply| 1_000_000 - reply.remaining)
}

#[test]
fn in_one_transaction() {
    let server = Server::start();
    let mut con = server.connect();
    let call = line(&format!("SLIDE.ALL {}", call_of("user")));
    let replies: Vec<Value> = repeated(&call, 300).atomic().query(&mut con).unwrap();
    let limited: Vec<i64> = replies.iter().map(|reply| all_replies(reply).0).collect();
    assert_eq!(limited, [vec![0; 150], vec![1; 150]].concat());
    assert_eq!(used(&mut con, "user"), [150, 150]);
    run::<()>(&mut con, "MULTI", &[]);
    assert_eq!(call.query::<String>(&mut con).unwrap(), "QUEUED");
    run::<()>(&mut con, "DISCARD", &[]);
    assert_eq!(used(&mut con, "user"), [150, 150]);
}

#[test]
fn in_a_script_and_in_a_function() {
    let server = Server::start();
    let mut con = server.connect();
    let body = "local admitted = 0
        for _ = 1, 120 do
            local reply = redis.call('SLIDE.ALL', 2, keys[1], keys[2],
                'COUNTER', 150, '3652d', 'BUCKETS', 10, 'LOG', 200, '1d')
            if #reply ~= 3 or #reply[2] ~= 5 or #reply[3] ~= 5 then return reply end
            if reply[1] == 0 then admitted = admitted + 1 end
        end
        return admitted";
    let script = format!("local keys = KEYS\n{body}");
    let library = format!(
        "#!lua name=limits\nredis.register_function('admit', function(keys, args)\n{body}\nend)"
    );
    run::<String>(&mut con, "FUNCTION", &["LOAD", &library]);
    let mut admitted = Vec::new();
    for user in ["one", "two"] {
        admitted.push(run::<i64>(
            &mut con,
            "EVAL",
            &[&script, "2", user, "everybody"],
        ));
        admitted.push(run::<i64>(
            &mut con,
            "FCALL",
            &["admit", "2", user, "everybody"],
        ));
    }
    // The first user's limit is 150, and everybody's 200.
    assert_eq!(admitted, [120, 30, 50, 0]);
    assert_eq!(used(&mut con, "one"), [150, 200]);
    assert_eq!(used(&mut con, "two"), [50, 200]);
}

#[test]
fn sixteen_connections() {
    let server = Server::start();
    let admitted: Vec<i64> = thread::scope(|scope| {
        let clients: Vec<_> = (0..16)
            .map(|client| {
                let server = &server;
                scope.spawn(move || {
                    let mut con = server.connect();
                    let call = call_of(&format!("user:{}", client % 2));
                    let limited: i64 = (0..40).map(|_| slide_all(&mut con, &call).0).sum();
                    40 - limited
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    let mut con = server.connect();
    let [first, everybody] = used(&mut con, "user:0");
    let [second, _] = used(&mut con, "user:1");
    assert_eq!(everybody, 200);
    assert_eq!(first + second, 200, "{first} and {second}");
    assert!(first <= 150 && second <= 150, "{first} and {second}");
    assert_eq!(admitted.iter().sum::<i64>(), 200, "{admitted:?}");
    let of_first: i64 = admitted.iter().step_by(2).sum();
    assert_eq!(of_first, first, "{admitted:?}");
}
