//! Memory under long traffic: it comes back once all keys have expired, and does not creep.

use std::thread::sleep;
use std::time::Duration;

use redis::{Cmd, Connection, RedisResult, Value, cmd, pipe};

use crate::support::random::{Numbers, effort, seeds};
use crate::support::{Server, Setup, eventually, info_number, run};

/// Calls of one connection.
const CALLS: u64 = 1_000;

const KEYS: u64 = 1_000;

/// What the server's own buffers and tables may take more or less of. If one call in ten lost its
/// smallest allocation, 16 bytes, it were more, even after the fewest calls.
const LEEWAY: i64 = 100_000;

/// Any command, a tenth of them wrong, on one of many keys that are soon gone.
fn call(numbers: &mut Numbers) -> Cmd {
    let key = numbers.below(KEYS);
    let (log, counter) = (format!("log:{key}"), format!("counter:{key}"));
    let limit = numbers.one_to(20);
    let window = format!("{}ms", 50 + numbers.below(200));
    let cost = numbers.below(4);
    let mut call = match numbers.below(20) {
        0..7 => {
            let mut call = cmd("SLIDE.LOG");
            call.arg(log).arg(limit).arg(window);
            call.arg("COST").arg(cost).clone()
        }
        7..14 => {
            let mut call = cmd("SLIDE.COUNTER");
            call.arg(counter).arg(limit).arg(window);
            call.arg("BUCKETS").arg(numbers.buckets()).clone()
        }
        14 => cmd("SLIDE.PEEK").arg(log).arg(limit).arg(window).clone(),
        15 => {
            let mut refund = cmd("SLIDE.REFUND");
            refund.arg(counter).arg(1 + cost);
            if numbers.one_in(2) {
                refund.arg("AGE").arg(&window);
            }
            refund
        }
        16 => {
            let mut call = cmd("SLIDE.ALL");
            call.arg(2).arg(log).arg(counter);
            call.arg("LOG")
                .arg(limit)
                .arg(&window)
                .arg("COST")
                .arg(cost);
            call.arg("COUNTER").arg(limit).arg(window).clone()
        }
        17 => cmd("SLIDE.LOG").arg(counter).arg(limit).arg(window).clone(),
        18 => cmd("SLIDE.COUNTER")
            .arg(counter)
            .arg(limit)
            .arg("x")
            .clone(),
        _ => cmd("SLIDE.LOG")
            .arg(log)
            .arg(limit)
            .arg(window)
            .arg("NX")
            .clone(),
    };
    if numbers.one_in(200) {
        call.arg("HEADERS");
    }
    call
}

/// One client comes, calls, and goes, at times without waiting for what is said.
fn one_client(server: &Server, numbers: &mut Numbers) -> u64 {
    let mut pipeline = pipe();
    pipeline.ignore_errors();
    for _ in 0..CALLS {
        pipeline.add_command(call(numbers));
    }
    let mut con = server.connect();
    if numbers.one_in(10) {
        con.send_packed_command(&pipeline.get_packed_pipeline())
            .expect("the server reads");
        return 0;
    }
    let results: Vec<RedisResult<Value>> = pipeline.query(&mut con).expect("replies");
    let limited = |result: &RedisResult<Value>| match result {
        Ok(Value::Array(parts)) => parts[0] == Value::Int(1),
        _ => false,
    };
    results.iter().filter(|&result| limited(result)).count() as u64
}

/// Once there are no keys and no other clients.
fn memory_at_rest(con: &mut Connection) -> i64 {
    eventually("all keys have expired, and all clients are gone", || {
        let keys: i64 = run(con, "DBSIZE", &[]);
        let clients = info_number(con, "clients", "connected_clients");
        (keys == 0 && clients == 1).then_some(())
    });
    // The server's buffers and tables shrink by and by: the least is what counts.
    let mut reading = || {
        sleep(Duration::from_millis(50));
        info_number(con, "memory", "used_memory")
    };
    (0..20).map(|_| reading()).min().expect("readings")
}

#[test]
fn memory_comes_back_and_does_not_creep() {
    // Commands that a busy machine makes slow would be remembered, each with its words.
    let server = Setup::new().line("slowlog-log-slower-than -1").start();
    let mut con = server.connect();
    let seed = seeds(1)[0];
    println!("soak, SLIDE_SEED={seed}");
    let mut numbers = Numbers::new(seed);
    // What the server makes at first use is there before the first reading.
    for _ in 0..10 {
        one_client(&server, &mut numbers);
    }
    let mut at_rest = vec![memory_at_rest(&mut con)];
    let (legs, clients) = effort((4, 50), (10, 400));
    let mut limited = 0;
    let mut most = 0;
    for _ in 0..legs {
        for _ in 0..clients {
            limited += one_client(&server, &mut numbers);
        }
        most = most.max(info_number(&mut con, "memory", "used_memory"));
        at_rest.push(memory_at_rest(&mut con));
    }
    let calls = legs * clients * CALLS;
    println!("soak: {calls} calls, {limited} limited; up to {most} bytes, at rest {at_rest:?}");
    assert!(limited > calls / 50, "only {limited} of {calls} limited");
    let (first, middle, last) = (
        at_rest[0],
        at_rest[at_rest.len() / 2],
        at_rest[at_rest.len() - 1],
    );
    assert!(most > first + 4 * LEEWAY, "hardly anything was stored");
    assert!(last - first < LEEWAY, "it does not come back: {at_rest:?}");
    assert!(last - middle < LEEWAY / 5, "it creeps: {at_rest:?}");
    server.assert_alive();
}
