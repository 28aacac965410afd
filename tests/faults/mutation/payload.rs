//! Dumped keys with corrupted bytes: whatever the server itself takes for good.

use redis::{Cmd, Connection, RedisResult, Value, cmd, from_redis_value, pipe};

use super::{Base, KEY, Kind};
use crate::support::random::{Numbers, effort, seeds};
use crate::support::{Server, command, error_text, info_number, line, reply_of, run};

/// Corrupted payloads of one key.
const PAYLOADS: usize = 200;

/// What ends a payload: the version of its format, and a checksum that is not looked at here.
const TRAILER: usize = 10;

const LIMIT: i64 = 100;
const WINDOW: i64 = 86_400_000;

/// A limiter's error on a key that is not its own; a key that may hold anything can get any.
const ERRORS: [&str; 10] = [
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "ERR key holds a sorted set that SLIDE.LOG did not write",
    "ERR key holds a hash that SLIDE.COUNTER did not write",
    "ERR BUCKETS and STRICT are for counters, and the key holds a log",
    "WRONGTYPE key holds a SLIDE.LOG, SLIDE.COUNTER needs a hash",
    "WRONGTYPE key holds a SLIDE.LEASE, SLIDE.COUNTER needs a hash",
    "WRONGTYPE key holds a SLIDE.COUNTER, SLIDE.LOG needs a sorted set",
    "WRONGTYPE key holds a SLIDE.COUNTER, SLIDE.LEASE needs a sorted set",
    "ERR key holds a sorted set that SLIDE.LEASE did not write",
    "ERR key holds a log, SLIDE.LEASE did not write it",
];

fn commands() -> Vec<Cmd> {
    let tiers = format!("{LIMIT} {WINDOW}ms");
    [
        format!("SLIDE.PEEK {KEY} {tiers}"),
        format!("SLIDE.PEEK {KEY} {tiers} BUCKETS 5"),
        format!("SLIDE.LOG {KEY} {tiers} COST 0"),
        format!("SLIDE.COUNTER {KEY} {tiers} COST 0 BUCKETS 5"),
        format!("SLIDE.LOG {KEY} {tiers} COST 9"),
        format!("SLIDE.COUNTER {KEY} {tiers} FORCE"),
        format!("SLIDE.REFUND {KEY} {LIMIT} AGE 1s"),
        format!("SLIDE.REFUND {KEY} {LIMIT}"),
        format!("SLIDE.LEASE {KEY} {LIMIT} 60s job"),
        format!("SLIDE.RELEASE {KEY} job"),
    ]
    .iter()
    .map(|words| line(words))
    .collect()
}

/// A sorted set from a corrupted dump need not even be sorted, so that waits have no upper bound.
fn is_possible(reply: Value) -> bool {
    if let Value::Int(refunded) = reply {
        return (0..=LIMIT).contains(&refunded);
    }
    let reply = reply_of(&from_redis_value::<Vec<i64>>(reply).expect("integers"));
    matches!(reply.limited, 0 | 1)
        && reply.limit == LIMIT
        && (0..=LIMIT).contains(&reply.remaining)
        && reply.retry_after >= 0
        && reply.reset_after >= 0
}

/// Corrupts a few bytes, and says how many commands met a key that the server had taken for good.
fn try_payload(con: &mut Connection, dumped: &[u8], numbers: &mut Numbers) -> usize {
    let mut payload = dumped.to_vec();
    for _ in 0..numbers.one_to(3) {
        let place = numbers.place(payload.len() - TRAILER);
        payload[place] ^= u8::try_from(numbers.one_to(255)).expect("a byte");
    }
    let mut pipeline = pipe();
    pipeline.ignore_errors();
    pipeline.cmd("DEL").arg(KEY);
    pipeline.cmd("RESTORE").arg(KEY).arg(WINDOW).arg(&payload);
    for command in commands() {
        pipeline.add_command(command);
    }
    let results: Vec<RedisResult<Value>> = pipeline.query(con).unwrap_or_else(|error| {
        panic!(
            "the server no longer answers: {error}, {}",
            payload.escape_ascii()
        )
    });
    let mut results = results.into_iter().skip(1);
    if results.next().expect("a result of RESTORE").is_err() {
        return 0;
    }
    let mut met = 0;
    for (result, command) in results.zip(commands()) {
        let show = || {
            let words = String::from_utf8_lossy(&command.get_packed_command()).into_owned();
            format!("{words:?} on {}: {result:?}", payload.escape_ascii())
        };
        match &result {
            Ok(reply) => assert!(is_possible(reply.clone()), "{}", show()),
            Err(error) => assert!(ERRORS.contains(&&*error_text(error)), "{}", show()),
        }
        met += 1;
    }
    met
}

#[test]
fn a_corrupted_dump_stops_no_server() {
    let server = Server::start();
    let mut con = server.connect();
    // Newer servers always look through what they restore, and have no such setting.
    let _ = command("CONFIG", &["SET", "sanitize-dump-payload", "yes"]).query::<()>(&mut con);
    run::<()>(&mut con, "DEBUG", &["SET-SKIP-CHECKSUM-VALIDATION", "1"]);
    let seeds = seeds(effort(10, 200));
    let rounds = seeds.len();
    let payloads = rounds * PAYLOADS;
    let mut met = 0;
    for seed in seeds {
        println!("corrupted dumps, SLIDE_SEED={seed}");
        let mut numbers = Numbers::new(seed);
        let kind = [Kind::Log, Kind::Counter][numbers.place(2)];
        Base::random(&mut con, kind, KEY, &mut numbers);
        let dumped: Vec<u8> = cmd("DUMP").arg(KEY).query(&mut con).unwrap();
        for _ in 0..PAYLOADS {
            met += try_payload(&mut con, &dumped, &mut numbers);
        }
    }
    println!("corrupted dumps: {payloads} payloads, {met} commands on what was restored");
    // Of one key it may be that hardly any can be.
    assert!(rounds == 1 || met > payloads, "hardly any was restored");
    assert_eq!(info_number(&mut con, "slide", "slide_panics"), 0);
    server.assert_alive();
}
