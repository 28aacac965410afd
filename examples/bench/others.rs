//! Ratios beside the bounds.

use crate::rows::{
    COUNTER, COUNTER_HEADERS, COUNTER_LIMITED, FIXED_WINDOW, FLOOR_LOG_LIMITED, FUNCTION_COUNTER,
    INCR, INCREX, LOG_LIMITED, LOG_LIMITED_LONG, LUA_COUNTER_LIMITED, LUA_LOG_LIMITED,
    PEEK_COUNTER, PEEK_LOG, RELEASED_COUNTER, RELEASED_LOG_LIMITED_LONG, THROTTLE,
};
use crate::steady::{self, SIZE, SIZE_COST_100};
use crate::table::{Line, ratio};

/// Ratios that have no bound and are good to know.
pub static OTHERS: &[Line] = &[
    ratio!("COUNTER / 0.1.0", COUNTER.name, RELEASED_COUNTER.name),
    ratio!(
        "LOG, 100 live entries / its floor",
        steady::LOG.at(100),
        steady::FLOOR_LOG.at(100)
    ),
    ratio!(
        "LOG, 400 live entries / its floor",
        steady::LOG.at(400),
        steady::FLOOR_LOG.at(400)
    ),
    ratio!(
        "LOG, 1,000 live entries / its floor",
        steady::LOG.at(1_000),
        steady::FLOOR_LOG.at(1_000)
    ),
    ratio!(
        "LOG, 10,000 live entries / its floor",
        steady::LOG.at(10_000),
        steady::FLOOR_LOG.at(10_000)
    ),
    ratio!(
        "LOG limited / its floor",
        LOG_LIMITED.name,
        FLOOR_LOG_LIMITED.name
    ),
    ratio!(
        "LOG limited, 400 entries / 0.1.0",
        LOG_LIMITED_LONG.name,
        RELEASED_LOG_LIMITED_LONG.name
    ),
    ratio!(
        "COUNTER / INCR and PEXPIRE NX",
        COUNTER.name,
        FIXED_WINDOW.name
    ),
    ratio!("COUNTER / INCREX", COUNTER.name, INCREX.name),
    ratio!(
        "COUNTER / CL.THROTTLE of redis-cell",
        COUNTER.name,
        THROTTLE.name
    ),
    ratio!(
        "COUNTER / Lua function",
        COUNTER.name,
        FUNCTION_COUNTER.name
    ),
    ratio!(
        "LOG / Lua function",
        steady::LOG.at(SIZE),
        steady::FUNCTION_LOG.at(SIZE)
    ),
    ratio!(
        "LOG / Lua script with one ZADD, cost 100",
        steady::LOG_COST_100.at(SIZE_COST_100),
        steady::LUA_AT_ONCE.at(SIZE_COST_100)
    ),
    ratio!(
        "LOG limited / Lua script",
        LOG_LIMITED.name,
        LUA_LOG_LIMITED.name
    ),
    ratio!(
        "COUNTER limited / Lua script",
        COUNTER_LIMITED.name,
        LUA_COUNTER_LIMITED.name
    ),
    ratio!("PEEK of a counter / INCR", PEEK_COUNTER.name, INCR.name),
    ratio!(
        "PEEK of a log, 400 entries / INCR",
        PEEK_LOG.name,
        INCR.name
    ),
    ratio!(
        "COUNTER with HEADERS / without",
        COUNTER_HEADERS.name,
        COUNTER.name
    ),
    ratio!(
        "ALL of a log and a counter / LOG",
        steady::ALL_OF_BOTH.at(SIZE),
        steady::LOG.at(SIZE)
    ),
];
