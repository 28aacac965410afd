//! Generated commands of every kind of wrong: the server lives, and an error changes nothing.

mod expected;
mod words;

use redis::{Cmd, Connection, RedisResult, Value, cmd, pipe};

use crate::support::oracle::grammar::{self, Asks, Refusal, Request};
use crate::support::random::{Numbers, effort, seeds};
use crate::support::{Server, error_text, info_number, run, slide_counter, slide_log, state};
use expected::{Expected, Holds, check_error, check_reply, expected, show};
use words::{Line, line};

/// Commands of one pipeline.
const BATCH: usize = 500;

/// The shortest of the longest windows of a good call: its key stays while the round lasts.
const A_MINUTE: u64 = 60_000;

/// Which of the things that can happen did.
#[derive(Debug, Default)]
pub struct Tally {
    replies: u64,
    limited: u64,
    arity: u64,
    wrong_type: u64,
    foreign: u64,
    syntax: u64,
    other_errors: u64,
}

impl Tally {
    fn errors_of_the_module(&self) -> u64 {
        self.wrong_type + self.foreign + self.syntax + self.other_errors
    }

    fn add(&mut self, result: &RedisResult<Value>) {
        let count = match result {
            Ok(Value::Array(parts)) if parts[0] == Value::Int(1) => &mut self.limited,
            Ok(_) => &mut self.replies,
            Err(error) => match error_text(error).as_str() {
                text if text.starts_with("WRONGTYPE ") => &mut self.wrong_type,
                text if text.contains(" did not write") => &mut self.foreign,
                text if text.starts_with("ERR syntax error: ") => &mut self.syntax,
                text if text.to_lowercase().starts_with("err wrong number") => &mut self.arity,
                _ => &mut self.other_errors,
            },
        };
        *count += 1;
    }
}

fn command((name, words): &Line) -> Cmd {
    let mut command = cmd(name.spelling());
    for word in words {
        command.arg(word.as_slice());
    }
    command
}

/// Keys of every type, of the module's kinds among them, to live for an hour at least.
fn set_up(con: &mut Connection) {
    run::<()>(con, "FLUSHALL", &[]);
    for (name, arguments) in [
        ("SET", &["string", "9"][..]),
        ("RPUSH", &["list", "1:1"]),
        ("SADD", &["set", "1:1"]),
        ("XADD", &["stream", "*", "1", "1"]),
        ("ZADD", &["foreign set", "250", "alice", "310", "bob"]),
        ("HSET", &["foreign hash", "name", "alice", "age", "30"]),
    ] {
        run::<Value>(con, name, arguments);
    }
    let mut ranking = cmd("ZADD");
    ranking.arg("large foreign set");
    let mut session = cmd("HSET");
    session.arg("large foreign hash");
    for number in 0..1000 {
        ranking.arg(number).arg(format!("player {number}"));
        session.arg(format!("field {number}")).arg("a value");
    }
    ranking.query::<i64>(con).unwrap();
    session.query::<i64>(con).unwrap();
    for number in 0..2 {
        let (log, counter) = (format!("log:{number}"), format!("counter:{number}"));
        for cost in ["1", "2", "3"] {
            let tiers = [(10, "1h"), (1000, "7d")];
            slide_log(con, &log, &tiers, &["COST", cost]);
            slide_counter(con, &counter, &tiers, &["COST", cost]);
        }
        for id in ["job:1", "job:2"] {
            let lease = format!("lease:{number}");
            run::<Value>(con, "SLIDE.LEASE", &[&lease, "5", "2h", id]);
        }
    }
}

fn holds_at_first(key: &[u8]) -> Holds {
    match key {
        b"log:0" | b"log:1" => Holds::Log,
        b"counter:0" | b"counter:1" => Holds::Counter,
        b"lease:0" | b"lease:1" => Holds::Leases,
        b"string" | b"list" | b"set" | b"stream" => Holds::Other,
        _ => foreign(key).unwrap_or(Holds::Nothing),
    }
}

fn foreign(key: &[u8]) -> Option<Holds> {
    match key {
        b"foreign set" | b"large foreign set" => Some(Holds::ForeignSet),
        b"foreign hash" | b"large foreign hash" => Some(Holds::ForeignHash),
        _ => None,
    }
}

fn send(con: &mut Connection, commands: impl IntoIterator<Item = Cmd>) -> Vec<RedisResult<Value>> {
    let mut pipeline = pipe();
    for command in commands {
        pipeline.add_command(command);
    }
    pipeline
        .ignore_errors()
        .query(con)
        .unwrap_or_else(|error| panic!("the server no longer answers: {error}"))
}

/// Commands that must fail, all in a row: no key is another after them.
fn errors_change_nothing(con: &mut Connection, numbers: &mut Numbers, tally: &mut Tally) {
    let wrong: Vec<(Line, Refusal)> = std::iter::repeat_with(|| line(numbers))
        .filter_map(|line| match expected(&line, holds_at_first) {
            Expected::Error(refusal) => Some((line, refusal)),
            Expected::Reply(_) => None,
        })
        .take(BATCH)
        .collect();
    let before = state(con);
    let results = send(con, wrong.iter().map(|(line, _)| command(line)));
    for ((line, refusal), result) in wrong.iter().zip(&results) {
        tally.add(result);
        match result {
            Ok(value) => panic!("{}: {refusal:?}, but got {value:?}", show(line)),
            Err(error) => check_error(line, refusal, &error_text(error)),
        }
    }
    assert_eq!(state(con), before, "an error changed something");
}

/// Good and bad commands in any order. What their keys hold is asked just before each.
fn mixed_commands_are_answered(con: &mut Connection, numbers: &mut Numbers, tally: &mut Tally) {
    let lines: Vec<(Line, Vec<Vec<u8>>)> = std::iter::repeat_with(|| line(numbers))
        .filter_map(|line| keys_that_stay(&line).map(|keys| (line, keys)))
        .take(BATCH)
        .collect();
    let commands = lines.iter().flat_map(|(line, keys)| {
        let looks = keys.iter().flat_map(|key| look(key));
        looks.chain([command(line)]).collect::<Vec<_>>()
    });
    let mut results = send(con, commands).into_iter();
    for (line, keys) in &lines {
        let types: Vec<(&[u8], Holds)> = keys
            .iter()
            .map(|key| (key.as_slice(), holds(key, results.next(), results.next())))
            .collect();
        let result = results.next().expect("a result for each command");
        tally.add(&result);
        let of_key = |key: &[u8]| types.iter().find(|known| known.0 == key).unwrap().1;
        match (expected(line, of_key), result) {
            (Expected::Reply(request), Ok(value)) => check_reply(line, &request, &value),
            (Expected::Error(refusal), Err(error)) => {
                check_error(line, &refusal, &error_text(&error));
            }
            (expected, result) => panic!("{}: {expected:?}, but got {result:?}", show(line)),
        }
    }
}

/// A command's keys; `None` where a good call would write a key that is soon gone again.
fn keys_that_stay((name, words): &Line) -> Option<Vec<Vec<u8>>> {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    match grammar::read(*name, &words) {
        Err(_) => Some(Vec::new()),
        Ok(Request::Refund { key, .. } | Request::Release { key, .. }) => Some(vec![key]),
        Ok(Request::Limit { clauses, .. }) => clauses
            .into_iter()
            .map(|clause| {
                let longest = match clause.asks {
                    Asks::Limit { tiers, .. } => tiers.iter().map(|tier| tier.1).max()?,
                    Asks::Lease { ttl, .. } => ttl,
                };
                (longest >= A_MINUTE).then_some(clause.key)
            })
            .collect(),
    }
}

/// Two commands that say what a key holds. The second fails where that is no sorted set.
fn look(key: &[u8]) -> [Cmd; 2] {
    let newest = cmd("ZRANGE").arg(key).arg(&["-1", "-1"]).clone();
    [cmd("TYPE").arg(key).clone(), newest]
}

/// What their answers say.
fn holds(
    key: &[u8],
    kind: Option<RedisResult<Value>>,
    newest: Option<RedisResult<Value>>,
) -> Holds {
    let kind: String = redis::from_redis_value(kind.expect("a result").expect("TYPE")).unwrap();
    let is_lease = || {
        let newest = newest.expect("a result").expect("ZRANGE");
        let members: Vec<Vec<u8>> = redis::from_redis_value(newest).expect("members");
        members[0].starts_with(b"@")
    };
    foreign(key).unwrap_or_else(|| match kind.as_str() {
        "none" => Holds::Nothing,
        "zset" if is_lease() => Holds::Leases,
        "zset" => Holds::Log,
        "hash" => Holds::Counter,
        _ => Holds::Other,
    })
}

/// Bad commands alone, then good and bad ones together.
pub fn round(con: &mut Connection, seed: u64, tally: &mut Tally) {
    println!("hostile commands, SLIDE_SEED={seed}");
    let mut numbers = Numbers::new(seed);
    set_up(con);
    errors_change_nothing(con, &mut numbers, tally);
    mixed_commands_are_answered(con, &mut numbers, tally);
}

#[test]
fn hostile_commands_are_turned_down_and_change_nothing() {
    let server = Server::start();
    let mut con = server.connect();
    let seeds = seeds(effort(50, 1_000));
    // A single round need not have many of each.
    let least = if seeds.len() > 1 { 10 } else { 0 };
    let rounds = seeds.len() as u64;
    let mut tally = Tally::default();
    for seed in seeds {
        round(&mut con, seed, &mut tally);
    }
    println!("hostile commands: {tally:?}");
    for (what, count) in [
        ("replies", tally.replies),
        ("limited calls", tally.limited),
        ("calls with too few words", tally.arity),
        ("wrong types", tally.wrong_type),
        ("foreign keys", tally.foreign),
        ("syntax errors", tally.syntax),
        ("other errors", tally.other_errors),
    ] {
        assert!(count >= least * rounds, "{count} {what} in {rounds} rounds");
    }
    assert_eq!(info_number(&mut con, "slide", "slide_panics"), 0);
    let errors = info_number(&mut con, "slide", "slide_errors");
    assert_eq!(errors.unsigned_abs(), tally.errors_of_the_module());
    server.assert_alive();
}
