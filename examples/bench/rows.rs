//! CPU time a call, pipelined: rounds in which each command has its turn.
//!
//! The logs have to be in their steady state, in which each call adds an entry and another one
//! expires. So rounds begin at fixed intervals, and a log's window is a whole number of rounds: what a
//! turn adds expires in the same turn that many rounds later.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::host::{ENDLESS, Expected, Host, fill_log, keys};
use crate::results::Results;
use crate::scripts::Scripts;
use crate::support::{now, run};
use crate::wire::Batch;

pub const KEYS: usize = 500;

/// Calls in a turn, where nothing else is said.
pub const CALLS: usize = 20_000;

/// The least time between the beginnings of two rounds.
const ROUND: Duration = Duration::from_millis(1200);
pub const ROUNDS_IN_WINDOW: usize = 5;

/// Calls on each key in a turn of a log, each in a ms of its own.
pub const SWEEPS: usize = 80;

/// Live entries of a log in its steady state.
pub const LIVE: usize = SWEEPS * ROUNDS_IN_WINDOW;

/// Fewer for calls that take longer, to keep a round short.
const LONG_CALLS: usize = 5_000;
const LONG_SWEEPS: usize = 30;

/// Fewer keys too for calls of cost 100 by Lua: one takes as long as a hundred others.
const LONG_KEYS: usize = 60;

/// A command and the least that a call of it has cost.
struct Row {
    name: &'static str,
    expected: Expected,
    batches: Vec<Batch>,
    least: f64,
}

impl Row {
    /// Calls on all keys in turn, at full speed.
    fn flat(name: &'static str, prefix: &str, line: impl Fn(&str) -> String) -> Self {
        Self::called(name, prefix, CALLS, line)
    }

    fn called(
        name: &'static str,
        prefix: &str,
        calls: usize,
        line: impl Fn(&str) -> String,
    ) -> Self {
        let keys = keys(prefix, KEYS);
        let lines = keys.iter().cycle().take(calls).map(|key| line(key));
        Self::new(name, vec![lines.collect()])
    }

    /// A call on each key, and again, each time in a later ms.
    fn swept(
        name: &'static str,
        prefix: &str,
        (count, sweeps): (usize, usize),
        line: impl Fn(&str) -> String,
    ) -> Self {
        let keys = keys(prefix, count);
        let sweep = |_| keys.iter().map(|key| line(key)).collect();
        Self::new(name, (0..sweeps).map(sweep).collect())
    }

    fn new(name: &'static str, batches: Vec<Batch>) -> Self {
        Self {
            name,
            expected: Expected::Admitted,
            batches,
            least: f64::INFINITY,
        }
    }

    fn limited(mut self) -> Self {
        self.expected = Expected::Limited;
        self
    }
}

/// Plain sorted sets of a log's size, to which `ZADD` adds the members that a log would.
struct Peer {
    keys: Vec<String>,
    added: usize,
}

impl Peer {
    const START: usize = 1_800_000_000_000;

    fn filled(host: &mut Host, size: usize) -> Self {
        let keys = keys("set", KEYS);
        let start = Self::START as u64;
        for key in &keys {
            fill_log(host, key, size as u64, start, 1);
        }
        Self { keys, added: size }
    }

    fn turn(&mut self) -> Row {
        let mut sweep = |_| {
            self.added += 1;
            let (time, total) = (Self::START + self.added, self.added);
            let line = |key| format!("ZADD {key} {time} {total}:1");
            self.keys.iter().map(line).collect()
        };
        Row::new("ZADD", (0..SWEEPS).map(&mut sweep).collect())
    }

    /// Back to the size before the turn, oldest members first.
    fn shrink(&self, host: &mut Host) {
        let last = SWEEPS - 1;
        let line = |key| format!("ZREMRANGEBYRANK {key} 0 {last}");
        host.run(&self.keys.iter().map(line).collect());
    }
}

/// Measures all rows, in this many rounds after those that bring the logs into their steady state.
pub fn measure(host: &mut Host, rounds: usize, results: &mut Results) {
    let warm_up = ROUNDS_IN_WINDOW + 1;
    let interval = interval(host);
    let mut rows = rows(host, interval);
    let mut peer: Option<(Peer, f64)> = None;
    let mut next = Instant::now();
    for round in 0..warm_up + rounds {
        for row in &mut rows {
            let cost = host.cost(&row.batches, row.expected);
            if round >= warm_up {
                row.least = row.least.min(cost);
            }
        }
        if round + 1 == warm_up {
            let size = entries(host).0.saturating_sub(SWEEPS / 2);
            peer = Some((Peer::filled(host, size), f64::INFINITY));
        } else if let Some((peer, least)) = &mut peer {
            let turn = peer.turn();
            *least = least.min(host.cost(&turn.batches, turn.expected));
            peer.shrink(host);
        }
        next = (next + interval).max(Instant::now());
        sleep(next.saturating_duration_since(Instant::now()));
    }
    let (mean, fewest, most) = entries(host);
    results.set("log entries", mean);
    results.set("log entries, fewest", fewest);
    results.set("log entries, most", most);
    results.set("rounds", rounds);
    results.set("round, ms", interval.as_millis());
    for row in rows {
        results.set(row.name, row.least);
    }
    if let Some((_, least)) = peer {
        results.set("ZADD", least);
    }
    host.flush();
}

/// Tries how long a round takes here, and adds a good part for what else the machine does.
fn interval(host: &mut Host) -> Duration {
    let rows = rows(host, ROUND);
    let peer = &mut Peer::filled(host, LIVE);
    let begin = Instant::now();
    for row in rows.iter().chain([&peer.turn()]) {
        host.cost(&row.batches, row.expected);
    }
    let interval = begin.elapsed().mul_f64(1.25).max(ROUND);
    host.flush();
    interval
}

/// Entries of the logs in their steady state: the mean, the fewest, the most.
fn entries(host: &mut Host) -> (usize, usize, usize) {
    let mut sizes: Vec<usize> = keys("log", KEYS)
        .iter()
        .map(|key| run(&mut host.con, "ZCARD", &[key]))
        .collect();
    sizes.sort_unstable();
    let sum: usize = sizes.iter().sum();
    (sum / KEYS, sizes[0], sizes[KEYS - 1])
}

/// All rows but `ZADD`, with logs whose window is so many rounds of this length.
fn rows(host: &mut Host, round: Duration) -> Vec<Row> {
    let window = round.as_millis() * ROUNDS_IN_WINDOW as u128;
    let mut rows = plain(host);
    rows.extend(module(host, window));
    rows.extend(lua(host, window));
    // The logs' turns come first, so that they always begin at the same time of their round.
    rows.sort_by_key(|row| row.batches.len() == 1);
    rows
}

fn plain(host: &mut Host) -> Vec<Row> {
    let mut rows = vec![
        Row::flat("INCR", "int", |key| format!("INCR {key}")),
        Row::flat("HINCRBY", "map", |key| format!("HINCRBY {key} 60000 1")),
    ];
    let known: Vec<Option<Vec<redis::Value>>> = run(&mut host.con, "COMMAND", &["INFO", "INCREX"]);
    if known.iter().any(Option::is_some) {
        let mut row = Row::flat("INCREX", "fix", |key| {
            format!("INCREX {key} BYINT 1 UBOUND {ENDLESS} PX 60000 ENX")
        });
        row.expected = Expected::NoVerdict;
        rows.push(row);
    }
    rows
}

fn module(host: &mut Host, window: u128) -> Vec<Row> {
    let now = now(&mut host.con).unsigned_abs();
    for (prefix, entries) in [("few", 5), ("all", LIVE as u64), ("two", LIVE as u64)] {
        for key in keys(prefix, KEYS) {
            fill_log(host, &key, entries, now, 1);
        }
    }
    for key in keys("ctl", KEYS) {
        let line = format!("SLIDE.COUNTER {key} 5 1d COST 5");
        host.run(&[line].iter().collect());
    }
    vec![
        Row::flat("COUNTER", "cnt", |key| {
            format!("SLIDE.COUNTER {key} {ENDLESS} 60s")
        }),
        Row::flat("COUNTER limited", "ctl", |key| {
            format!("SLIDE.COUNTER {key} 5 1d")
        })
        .limited(),
        Row::swept("LOG", "log", (KEYS, SWEEPS), |key| {
            format!("SLIDE.LOG {key} {ENDLESS} {window}")
        }),
        Row::flat("LOG limited", "few", |key| format!("SLIDE.LOG {key} 5 1d")).limited(),
        Row::flat("LOG limited, long", "all", |key| {
            format!("SLIDE.LOG {key} {LIVE} 1d")
        })
        .limited(),
        Row::swept("LOG COST 100", "exp", (KEYS, LONG_SWEEPS), |key| {
            format!("SLIDE.LOG {key} {ENDLESS} {window} COST 100")
        }),
        Row::flat("PEEK of a log", "all", |key| {
            format!("SLIDE.PEEK {key} {ENDLESS} 1d")
        }),
        Row::flat("PEEK of a counter", "cnt", |key| {
            format!("SLIDE.PEEK {key} {ENDLESS} 60s")
        }),
        Row::called("COUNTER HEADERS", "cnt", LONG_CALLS, |key| {
            format!("SLIDE.COUNTER {key} {ENDLESS} 60s HEADERS")
        }),
        Row::swept(
            "ALL of a log and a counter",
            "two",
            (KEYS, LONG_SWEEPS),
            |key| format!("SLIDE.ALL 2 {key} c{key} LOG {ENDLESS} {window} COUNTER {ENDLESS} 60s"),
        ),
    ]
}

fn lua(host: &mut Host, window: u128) -> Vec<Row> {
    let Scripts {
        log,
        log_at_once,
        counter,
    } = Scripts::load(&mut host.con);
    // A member for each of the units that the limit allows.
    for key in keys("lul", KEYS) {
        let line = format!("{log} {key} 5 86400000 5");
        host.run(&[line].iter().collect());
    }
    for key in keys("lcl", KEYS) {
        let line = format!("{counter} {key} 5 86400000 5");
        host.run(&[line].iter().collect());
    }
    vec![
        Row::called("Lua counter", "luc", LONG_CALLS, |key| {
            format!("{counter} {key} {ENDLESS} 60000 1")
        }),
        Row::called("Lua counter limited", "lcl", LONG_CALLS, |key| {
            format!("{counter} {key} 5 86400000 1")
        })
        .limited(),
        Row::swept("Lua log", "lua", (KEYS, SWEEPS), |key| {
            format!("{log} {key} {ENDLESS} {window} 1")
        }),
        Row::called("Lua log limited", "lul", LONG_CALLS, |key| {
            format!("{log} {key} 5 86400000 1")
        })
        .limited(),
        Row::swept("Lua log COST 100", "lux", (LONG_KEYS, LONG_SWEEPS), |key| {
            format!("{log} {key} {ENDLESS} {window} 100")
        }),
        Row::swept(
            "Lua log COST 100, one ZADD",
            "lu1",
            (LONG_KEYS, LONG_SWEEPS),
            |key| format!("{log_at_once} {key} {ENDLESS} {window} 100"),
        ),
    ]
}
