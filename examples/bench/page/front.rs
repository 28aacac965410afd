//! What a user asks: how many calls, how long each takes, how much it keeps and sends.

use super::{Cells, NOTHING, figure, grouped, plain_table};
use crate::memory;
use crate::propagation;
use crate::results::Results;
use crate::row::Row;
use crate::rows::{
    COUNTER, FIXED_WINDOW, INCR, INCREX, LEASE, LOG, LUA_COUNTER, LUA_LOG, PING, THROTTLE,
};
use crate::service::{self, CLIENTS, MEDIAN, P99, RATE};
use crate::steady::{self, SIZE, Steady};
use crate::traffic::{self, Kept};

/// The live calls for which a log's memory is said.
const LIVE: u64 = 1_000;

/// One of the things that a user can pick.
struct Choice {
    what: &'static str,
    row: &'static Row,
    /// Where it is a log: what has its figures in the steady state.
    log: Option<(&'static Steady, &'static Kept)>,
}

static CHOICES: [Choice; 10] = [
    choice("`SLIDE.COUNTER`", &COUNTER),
    log("`SLIDE.LOG`", &LOG, &steady::LOG, &traffic::LOG),
    choice("`SLIDE.LEASE`, then `SLIDE.RELEASE`", &LEASE),
    choice("fixed window: `INCR` and `PEXPIRE NX`", &FIXED_WINDOW),
    choice("fixed window: `INCREX`", &INCREX),
    choice("GCRA: `CL.THROTTLE` of redis-cell", &THROTTLE),
    choice("two-window counter in Lua", &LUA_COUNTER),
    log("log in Lua", &LUA_LOG, &steady::LUA_LOG, &traffic::LUA),
    choice("(`INCR` alone)", &INCR),
    choice("(`PING`)", &PING),
];

const fn choice(what: &'static str, row: &'static Row) -> Choice {
    Choice {
        what,
        row,
        log: None,
    }
}

const fn log(
    what: &'static str,
    row: &'static Row,
    steady: &'static Steady,
    kept: &'static Kept,
) -> Choice {
    Choice {
        what,
        row,
        log: Some((steady, kept)),
    }
}

impl Choice {
    /// Calls a second of one core, pipelined.
    fn of_a_core(&self, results: &Results) -> Option<f64> {
        let micros = match self.log {
            Some((steady, _)) => results.number(&steady.at(SIZE)),
            None => results.number(self.row.name),
        };
        Some(1e6 / micros?)
    }

    fn latency(&self, results: &Results) -> String {
        let at = |thousandth| results.number(&service::latency_of(self.row, thousandth));
        match (at(MEDIAN), at(P99)) {
            (Some(median), Some(p99)) => format!("{median:.0} / {p99:.0}"),
            _ => NOTHING.to_owned(),
        }
    }

    fn sent(&self, results: &Results) -> Option<f64> {
        match self.log {
            Some((_, kept)) => results.number(&format!("{} {LIVE}", kept.sent())),
            None => results.number(&propagation::of(self.row)),
        }
    }

    fn memory(&self, results: &Results) -> String {
        let (name, unit) = match self.log {
            Some((_, kept)) => (format!("{} {LIVE}", kept.memory()), "call"),
            None => (memory::of(self.row), "key"),
        };
        match results.number(&name) {
            Some(bytes) => format!("{bytes:.0} a {unit}"),
            None => NOTHING.to_owned(),
        }
    }

    fn cells(&self, results: &Results) -> Cells {
        let rate = results.number(&service::rate_of(self.row));
        // No more digits than mean something.
        let thousands = |rate: Option<f64>| match rate {
            Some(rate) => format!("{},000", grouped((rate / 1000.0).round() as u64)),
            None => NOTHING.to_owned(),
        };
        let cells = vec![
            thousands(self.of_a_core(results)),
            thousands(rate),
            self.latency(results),
            figure(self.sent(results), 0),
            self.memory(results),
        ];
        (vec![self.what.to_owned()], cells)
    }
}

pub fn write(all: &[Results]) -> String {
    let of_redis = |results: &&Results| results.text("name").starts_with("redis");
    let newest = all.iter().rev().find(of_redis).or(all.last());
    let Some(results) = newest else {
        return String::new();
    };
    let rows: Vec<_> = CHOICES.iter().map(|choice| choice.cells(results)).collect();
    let columns = [
        "calls a second of one core, pipelined",
        "calls a second in `redis-benchmark`",
        "round trip, µs, p50 / p99",
        "bytes sent to a replica",
        "bytes of memory",
    ];
    format!(
        "# How fast it is

Written by `make bench`, which repeats everything below and overwrites this page.

What a call costs beside the alternatives, on {}, the newest Redis that was measured:

{}
- The first column is the processor's time: all that the server does for a call, when calls come
  pipelined and the network costs next to nothing.
- `redis-benchmark` runs as it is by default: {CLIENTS} clients, each waiting for its reply. Most of the time of a
  call is then the network's, on which a limiter has no influence. (It sends one command a call, so that it cannot
  measure two.)
- The round trip is that of one client that calls {} times a second. What a call adds to a request is this, and the
  way to the server. `PING` is the part of the machine.
- A log sends and keeps an entry for each recorded call. Here it holds {LIVE} calls in an hour's window, and {SIZE} live
  ones in the first column; other sizes are [below](#memory).
- `SLIDE.COUNTER` and `SLIDE.LOG` answer what is left and when to come back. `INCR`
  and `INCREX` count windows that begin and end for everybody at once.
",
        results.text("server"),
        plain_table(&[""], &columns, &rows),
        grouped(RATE.into()),
    )
}
