//! Real servers for the tests: each test starts its own, in a folder of its own, and talks to it.

#![allow(dead_code)] // each test crate uses a part

#[path = "../oracle/mod.rs"]
pub mod oracle;

pub mod clock;
pub mod compiled;
pub mod random;
mod server;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{Write as _, stdout};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use redis::{
    Cmd, Connection, FromRedisValue, Pipeline, ToRedisArgs, Value, cmd, from_redis_value_ref, pipe,
};

use oracle::Shape;

pub use oracle::Reply;
pub use server::{Server, Setup};

/// The longest window there is: no test meets the boundary of a bucket.
pub const DECADE: &str = "315576000000ms";
pub const DECADE_MS: i64 = 315_576_000_000;

/// A window almost as long.
pub const ALMOST_A_DECADE: &str = "315575999999ms";

/// The fields of these windows in a counter of one bucket.
pub const DECADE_FIELD: &str = "315576000000";
pub const ALMOST_A_DECADE_FIELD: &str = "315575999999";

/// What a condition may take before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Polls until there is something, and fails the test when it takes too long.
#[track_caller]
pub fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "waited {PATIENCE:?} in vain: {what}"
        );
        sleep(Duration::from_millis(2));
    }
}

/// Says that a test, or a part of one, proves nothing here: a run lists these lines. (What `println!`
/// prints, a test that passes does not show.)
pub fn skip(why: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or_default();
    writeln!(stdout(), "SKIPPED: {test}: {why}").expect("standard output is open");
}

/// A command with its arguments, of which bytes are sent as they are.
pub fn command(name: &str, arguments: &[&str]) -> Cmd {
    let mut command = cmd(name);
    command.arg(arguments);
    command
}

/// A command written as on a command line: words with one space between.
pub fn line(words: &str) -> Cmd {
    let mut words = words.split(' ');
    let mut command = cmd(words.next().expect("a name"));
    for word in words {
        command.arg(word);
    }
    command
}

/// Runs a command that must succeed.
#[track_caller]
pub fn run<T: FromRedisValue>(con: &mut Connection, name: &str, arguments: &[&str]) -> T {
    command(name, arguments)
        .query(con)
        .unwrap_or_else(|error| panic!("{name} {arguments:?}: {error}"))
}

/// Runs a command that must fail, and gives the error as the server sent it.
#[track_caller]
pub fn error_of(con: &mut Connection, command: &Cmd) -> String {
    match command.query::<Value>(con) {
        Ok(value) => panic!("no error but {value:?}"),
        Err(error) => error_text(&error),
    }
}

/// The error as the server sent it: its code, a space, the sentence.
pub fn error_text(error: &redis::RedisError) -> String {
    let code = error
        .code()
        .unwrap_or_else(|| panic!("not from the server: {error}"));
    format!("{code} {}", error.detail().unwrap_or_default())
}

/// The command line of a limiter call.
pub fn slide(name: &str, key: impl ToRedisArgs, tiers: &[(u64, &str)], options: &[&str]) -> Cmd {
    let mut command = cmd(name);
    command.arg(key);
    for &(limit, window) in tiers {
        command.arg(limit).arg(window);
    }
    command.arg(options);
    command
}

/// Adds the words of tiers with windows in ms.
pub fn add_tiers(command: &mut Cmd, tiers: &[(u64, u64)]) {
    for &(limit, window) in tiers {
        command.arg(limit).arg(format!("{window}ms"));
    }
}

/// Adds the words that say how a counter counts.
pub fn add_shape(command: &mut Cmd, Shape { buckets, strict }: Shape) {
    command.arg("BUCKETS").arg(buckets);
    if strict {
        command.arg("STRICT");
    }
}

/// The index of a key's current bucket, of so many in a window of so many ms.
pub fn bucket(key: &str, window: i64, buckets: i64, now: i64) -> i64 {
    (now + shift(key, window)) * buckets / window
}

/// When that bucket begins, rounded up.
pub fn start_of_bucket(key: &str, window: i64, buckets: i64, index: i64) -> i64 {
    let ticks = index * window;
    ticks / buckets + i64::from(ticks % buckets > 0) - shift(key, window)
}

/// When that bucket stops to matter: at the end of the window after its own, rounded up.
pub fn end_of_bucket(key: &str, window: i64, buckets: i64, index: i64) -> i64 {
    start_of_bucket(key, window, buckets, index + buckets + 1)
}

/// A key, and the index of its current bucket, of which a given part has just passed: keys differ in
/// when their windows begin.
pub fn key_with_passed(
    con: &mut Connection,
    window: i64,
    buckets: i64,
    part: f64,
) -> (String, i64) {
    let now = now(con);
    let has_passed = |key: &String| {
        let ticks = (now + shift(key, window)) * buckets % window;
        #[allow(clippy::cast_precision_loss)] // it need not be exact
        let passed = ticks as f64 / window as f64;
        (part..part + 0.0005).contains(&passed)
    };
    let mut keys = (0..).map(|number| format!("key{number}"));
    let key = keys.find(has_passed).expect("some key");
    let index = bucket(&key, window, buckets, now);
    (key, index)
}

/// How much earlier than the epoch's the windows of a key begin, in ms.
pub fn shift(key: &str, window: i64) -> i64 {
    let shift = oracle::shift(key.as_bytes(), window.unsigned_abs());
    i64::try_from(shift).expect("less than a window")
}

/// Runs a limiter call and checks the shape of its reply.
#[track_caller]
pub fn reply(con: &mut Connection, command: &Cmd) -> Reply {
    let five: Vec<i64> = command.query(con).unwrap_or_else(|error| panic!("{error}"));
    reply_of(&five)
}

#[track_caller]
pub fn reply_of(five: &[i64]) -> Reply {
    let &[limited, limit, remaining, retry_after, reset_after] = five else {
        panic!("a reply has five integers, not {five:?}");
    };
    Reply {
        limited,
        limit,
        remaining,
        retry_after,
        reset_after,
    }
}

/// The map of headers that a call with HEADERS is answered.
#[track_caller]
pub fn headers_of(map: &Value) -> Vec<(String, String)> {
    let pairs = map
        .as_map_iter()
        .unwrap_or_else(|| panic!("no map: {map:?}"));
    let text = |value| from_redis_value_ref(value).expect("text");
    pairs
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

/// The reply to `SLIDE.ALL`: whether any key was over its limit, and each key's own five integers.
#[track_caller]
pub fn all_replies(value: &Value) -> (i64, Vec<Reply>) {
    let Value::Array(parts) = value else {
        panic!("no array but {value:?}");
    };
    let (limited, keys) = parts.split_first().expect("an integer at least");
    let five = |key| reply_of(&from_redis_value_ref::<Vec<i64>>(key).expect("integers"));
    (
        from_redis_value_ref(limited).expect("an integer"),
        keys.iter().map(five).collect(),
    )
}

#[track_caller]
pub fn slide_log(
    con: &mut Connection,
    key: impl ToRedisArgs,
    tiers: &[(u64, &str)],
    options: &[&str],
) -> Reply {
    reply(con, &slide("SLIDE.LOG", key, tiers, options))
}

#[track_caller]
pub fn slide_counter(
    con: &mut Connection,
    key: impl ToRedisArgs,
    tiers: &[(u64, &str)],
    options: &[&str],
) -> Reply {
    reply(con, &slide("SLIDE.COUNTER", key, tiers, options))
}

#[track_caller]
pub fn slide_peek(
    con: &mut Connection,
    key: impl ToRedisArgs,
    tiers: &[(u64, &str)],
    options: &[&str],
) -> Reply {
    reply(con, &slide("SLIDE.PEEK", key, tiers, options))
}

/// A value with the server's clock just before and just after it was made.
#[derive(Debug, Clone, Copy)]
pub struct Timed<T> {
    pub before: i64,
    pub value: T,
    pub after: i64,
}

impl<T: Debug> Timed<T> {
    /// Checks the value against what it should be at some instant between the two readings.
    #[track_caller]
    pub fn matches<U: Debug>(&self, expected: impl Fn(i64) -> U)
    where
        T: PartialEq<U>,
    {
        assert!(
            (self.before..=self.after).any(|now| self.value == expected(now)),
            "{self:?}, but expected {:?}",
            expected(self.before)
        );
    }
}

/// Runs limiter calls in one transaction, between two readings of the server's clock.
#[track_caller]
pub fn timed_replies(con: &mut Connection, commands: &[Cmd]) -> Timed<Vec<Reply>> {
    let mut transaction = pipe();
    transaction.atomic().cmd("TIME");
    for command in commands {
        transaction.add_command(command.clone());
    }
    transaction.cmd("TIME");
    let mut values: Vec<Vec<i64>> = transaction
        .query(con)
        .unwrap_or_else(|error| panic!("{error}"));
    let after = values.pop().map(|time| millis(&time)).expect("a last TIME");
    let before = millis(&values.remove(0));
    Timed {
        before,
        value: values.iter().map(|five| reply_of(five)).collect(),
        after,
    }
}

/// Runs one limiter call between two readings of the server's clock.
#[track_caller]
pub fn timed_reply(con: &mut Connection, command: Cmd) -> Timed<Reply> {
    let Timed {
        before,
        value,
        after,
    } = timed_replies(con, &[command]);
    Timed {
        before,
        value: value[0],
        after,
    }
}

fn millis(time: &[i64]) -> i64 {
    time[0] * 1000 + time[1] / 1000
}

/// The server's clock in ms.
pub fn now(con: &mut Connection) -> i64 {
    millis(&run::<Vec<i64>>(con, "TIME", &[]))
}

/// Waits until the server's clock has reached an instant.
pub fn wait_until(con: &mut Connection, instant: i64) {
    loop {
        match instant - now(con) {
            ..=0 => return,
            left => sleep(Duration::from_millis(left.unsigned_abs())),
        }
    }
}

/// Runs a pipeline of one command many times over.
pub fn repeated(command: &Cmd, times: usize) -> Pipeline {
    let mut pipeline = pipe();
    for _ in 0..times {
        pipeline.add_command(command.clone());
    }
    pipeline
}

/// How many of these replies are of admitted calls.
pub fn admitted(replies: &[Vec<i64>]) -> usize {
    replies
        .iter()
        .filter(|five| reply_of(five).limited == 0)
        .count()
}

/// A log's entries: member and time, oldest first.
pub fn entries(con: &mut Connection, key: impl ToRedisArgs) -> Vec<(String, i64)> {
    let flat: Vec<(String, f64)> = cmd("ZRANGE")
        .arg(key)
        .arg(&["0", "-1", "WITHSCORES"])
        .query(con)
        .expect("the log is a sorted set");
    #[allow(clippy::cast_possible_truncation)] // times are whole numbers far below 2^53
    flat.into_iter()
        .map(|(member, score)| (member, score as i64))
        .collect()
}

/// A digest of the whole data set, expiries included, and the expiry of each key: two servers with
/// the same pair hold the same.
pub fn state(con: &mut Connection) -> (String, BTreeMap<Vec<u8>, i64>) {
    let digest = run(con, "DEBUG", &["DIGEST"]);
    let keys: Vec<Vec<u8>> = run(con, "KEYS", &["*"]);
    let expiry = |key: Vec<u8>| {
        let at = cmd("PEXPIRETIME")
            .arg(&key)
            .query(con)
            .expect("PEXPIRETIME");
        (key, at)
    };
    (digest, keys.into_iter().map(expiry).collect())
}

/// A field of INFO, as text.
pub fn info(con: &mut Connection, section: &str, field: &str) -> Option<String> {
    let text: String = run(con, "INFO", &[section]);
    let prefix = format!("{field}:");
    text.lines()
        .find_map(|line| line.strip_prefix(&prefix))
        .map(str::to_owned)
}

/// A field of INFO that is a number.
#[track_caller]
pub fn info_number(con: &mut Connection, section: &str, field: &str) -> i64 {
    let text = info(con, section, field).unwrap_or_else(|| panic!("INFO has no {field}"));
    text.parse()
        .unwrap_or_else(|error| panic!("{field}:{text}: {error}"))
}

/// Whether the server has what came with this version of Redis. Valkey says which Redis it equals.
pub fn at_least(con: &mut Connection, major: u32, minor: u32) -> bool {
    let version = info(con, "server", "redis_version").expect("a version");
    let mut parts = version
        .split('.')
        .map(|part| part.parse::<u32>().expect("a number"));
    (parts.next(), parts.next()) >= (Some(major), Some(minor))
}
