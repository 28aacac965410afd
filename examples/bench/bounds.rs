//! The bounds that the module is held to.

use crate::hot;
use crate::memory;
use crate::results::Results;
use crate::rows::{
    COUNTER, COUNTER_LIMITED, FLOOR_COUNTER, FLOOR_COUNTER_LIMITED, HINCRBY, INCR, LEASE,
    LOG_LIMITED, LUA_COUNTER, RELEASED_LOG_LIMITED, ZADD_ZREM,
};
use crate::slowest::SLOW;
use crate::steady::{self, SIZE, SIZE_COST_100};
use crate::table::{Line, ratio};
use crate::traffic;

macro_rules! plain {
    ($what:expr, $value:expr, $bound:expr, $why:expr) => {
        Line {
            what: $what,
            value: $value,
            bound: |_| Some($bound),
            ratio: false,
            why: $why,
        }
    };
}

const NOISE: &str = "Between runs on this machine these ratios vary by about a tenth.";
const OWN: &str = "The module's own instructions are counted below; the rest is the server's.";
const CACHES: &str =
    "The whole log does not fit the processor's caches, and each call touches its oldest entry.";

pub static BOUNDS: &[Line] = &[
    ratio!(
        "COUNTER / its floor",
        COUNTER.name,
        FLOOR_COUNTER.name,
        1.1,
        OWN
    ),
    ratio!("COUNTER / HINCRBY", COUNTER.name, HINCRBY.name, 2.1, OWN),
    ratio!(
        "COUNTER limited / its floor",
        COUNTER_LIMITED.name,
        FLOOR_COUNTER_LIMITED.name,
        1.1,
        OWN
    ),
    ratio!(
        "COUNTER limited / INCR",
        COUNTER_LIMITED.name,
        INCR.name,
        2.0,
        OWN
    ),
    ratio!(
        "LOG, 100 live entries / 0.1.0",
        steady::LOG.at(100),
        steady::RELEASED_LOG.at(100),
        0.65,
        NOISE
    ),
    ratio!(
        "LOG, 400 live entries / 0.1.0",
        steady::LOG.at(400),
        steady::RELEASED_LOG.at(400),
        0.95,
        NOISE
    ),
    ratio!(
        "LOG, 1,000 live entries / 0.1.0",
        steady::LOG.at(1_000),
        steady::RELEASED_LOG.at(1_000),
        1.1,
        NOISE
    ),
    ratio!(
        "LOG, 10,000 live entries / 0.1.0",
        steady::LOG.at(10_000),
        steady::RELEASED_LOG.at(10_000),
        0.75,
        NOISE
    ),
    ratio!(
        "one hot log of 100 / 0.1.0, time in the server",
        hot::ADMITTED.at(100),
        hot::RELEASED.at(100),
        1.5,
        NOISE
    ),
    ratio!(
        "one hot log of 1,000 / 0.1.0",
        hot::ADMITTED.at(1_000),
        hot::RELEASED.at(1_000),
        1.5,
        NOISE
    ),
    ratio!(
        "one hot log of 1,000,000 / 0.1.0",
        hot::ADMITTED.at(1_000_000),
        hot::RELEASED.at(1_000_000),
        0.9,
        NOISE
    ),
    ratio!(
        "LOG limited / 0.1.0",
        LOG_LIMITED.name,
        RELEASED_LOG_LIMITED.name,
        1.1,
        NOISE
    ),
    ratio!("LOG limited / INCR", LOG_LIMITED.name, INCR.name, 2.3, OWN),
    ratio!(
        "LOG / Lua script",
        steady::LOG.at(SIZE),
        steady::LUA_LOG.at(SIZE),
        0.4,
        OWN
    ),
    ratio!(
        "COUNTER / Lua script",
        COUNTER.name,
        LUA_COUNTER.name,
        0.2,
        OWN
    ),
    ratio!(
        "LOG / Lua script, cost 100",
        steady::LOG_COST_100.at(SIZE_COST_100),
        steady::LUA_COST_100.at(SIZE_COST_100),
        1.0 / 50.0,
        OWN
    ),
    ratio!(
        "a log of 1,000,000 / of 1,000, admitted",
        hot::ADMITTED.at(1_000_000),
        hot::ADMITTED.at(1_000),
        1.5,
        CACHES
    ),
    ratio!(
        "a log of 1,000,000 / of 1,000, limited",
        hot::LIMITED.at(1_000_000),
        hot::LIMITED.at(1_000),
        1.5,
        CACHES
    ),
    ratio!(
        "a log of 1,000,000 / of 1,000, limited, deep",
        hot::DEEP.at(1_000_000),
        hot::DEEP.at(1_000),
        1.5,
        CACHES
    ),
    plain!(
        "slowest single call but refunds, ms",
        |results| slowest(results, 0.5),
        0.5,
        NOISE
    ),
    plain!(
        "slowest refund, ms",
        |results| slowest(results, 1.0),
        1.0,
        NOISE
    ),
    plain!(
        "bytes a call, 100 live entries",
        |results| memory_of_log(results, 100),
        10.0,
        ""
    ),
    plain!(
        "bytes a call, 1,000 live entries",
        |results| memory_of_log(results, 1_000),
        12.0,
        ""
    ),
    plain!(
        "bytes a call, 10,000 live entries",
        |results| memory_of_log(results, 10_000),
        8.0,
        ""
    ),
    plain!(
        "bytes a call, 100,000 live entries",
        |results| memory_of_log(results, 100_000),
        6.0,
        ""
    ),
    ratio!(
        "bytes sent by a call, 100 live entries / 0.1.0",
        sent(&traffic::LOG, 100),
        sent(&traffic::RELEASED, 100),
        1.3,
        ""
    ),
    ratio!(
        "bytes sent by a call, 1,000 live entries / 0.1.0",
        sent(&traffic::LOG, 1_000),
        sent(&traffic::RELEASED, 1_000),
        1.15,
        ""
    ),
    ratio!(
        "bytes sent by a call, 10,000 live entries / 0.1.0",
        sent(&traffic::LOG, 10_000),
        sent(&traffic::RELEASED, 10_000),
        1.15,
        ""
    ),
    ratio!(
        "bytes sent by a call, 100,000 live entries / 0.1.0",
        sent(&traffic::LOG, 100_000),
        sent(&traffic::RELEASED, 100_000),
        1.15,
        ""
    ),
    Line {
        what: "bytes a counter (bounds: Redis 7.0, 8.2)",
        value: |results| results.number(&memory::of(&COUNTER)),
        bound: |results| match results.text("server") {
            server if server.starts_with("Redis 7.0") => Some(170.0),
            server if server.starts_with("Redis 8.2") => Some(120.0),
            _ => None,
        },
        ratio: false,
        why: "",
    },
    ratio!(
        "LEASE and RELEASE / ZADD and ZREM",
        LEASE.name,
        ZADD_ZREM.name,
        1.5,
        OWN
    ),
];

/// The slowest call in ms of those that have this bound.
fn slowest(results: &Results, bound: f64) -> Option<f64> {
    let bounded = SLOW
        .iter()
        .filter(|slow| (slow.bound - bound).abs() < f64::EPSILON);
    let times = bounded.map(|slow| results.number(&slow.name()));
    let times = times.collect::<Option<Vec<f64>>>()?;
    Some(times.into_iter().fold(0.0, f64::max) / 1000.0)
}

fn memory_of_log(results: &Results, size: u64) -> Option<f64> {
    results.number(&format!("{} {size}", traffic::LOG.memory()))
}

fn sent(kept: &traffic::Kept, size: u64) -> String {
    format!("{} {size}", kept.sent())
}
