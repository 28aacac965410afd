//! All that was measured.

use std::fmt::Write as _;

use super::{Cells, figure, figures, grouped, table};
use crate::growth::{
    BUCKETS_COUNTER, COST_COUNTER, COST_LOG, COST_LUA, Curve, KEYS_COUNTER, KEYS_HINCRBY,
    TIERS_COUNTER, TIERS_LOG,
};
use crate::hot::{self, KINDS};
use crate::memory;
use crate::propagation;
use crate::results::Results;
use crate::rows;
use crate::service::{self, CLIENTS, MEDIAN, P99, RATE};
use crate::slowest::{self, LAZY, SLOW};
use crate::steady;
use crate::traffic;

pub fn write(all: &[Results], shown: &Results) -> [String; 7] {
    [
        times(all),
        long_logs(all, shown),
        slowest(all),
        growth(shown),
        memory(all, shown),
        bytes(all),
        service(all),
    ]
}

fn times(all: &[Results]) -> String {
    let rows: Vec<_> = rows::ALL
        .iter()
        .map(|row| (row.name.to_owned(), row.name.to_owned()))
        .collect();
    let steady = steady::ALL.iter().flat_map(|call| {
        let at = |size: &u64| {
            let title = format!("{}, {} live calls", call.name, grouped(*size));
            (title, call.at(*size))
        };
        call.sizes.iter().map(at)
    });
    format!(
        "## Time a call

![CPU time of the whole server a call](bench-commands.svg)

CPU time of the whole server a call, µs, pipelined:

{}
Logs of which an entry expires with every call:

{}
SLIDE.LOG limited has 5 entries in its log, unless it says otherwise.
",
        figures(all, &rows, 2),
        figures(all, &steady.collect::<Vec<_>>(), 2)
    )
}

fn long_logs(all: &[Results], shown: &Results) -> String {
    let rows: Vec<_> = hot::SIZES
        .iter()
        .flat_map(|size| {
            KINDS.map(|kind| {
                let title = format!("{} entries, {}", grouped(*size), kind.name);
                (title, kind.at(*size))
            })
        })
        .collect();
    format!(
        "## Single logs

![Time of a call against the entries of its log](bench-entries.svg)

Time inside the server of a call on one log, as `INFO commandstats` counts it, µs. (The picture is of {}.) \"Deep\" is a
call that costs half the limit on a full log, so that half of the entries have to expire: its wait is found by bisecting.

{}",
        shown.text("name"),
        figures(all, &rows, 1)
    )
}

fn slowest(all: &[Results]) -> String {
    let slow = SLOW.iter().chain([&slowest::INCR]);
    let rows: Vec<_> = slow
        .map(|slow| (slow.what.to_owned(), slow.name()))
        .collect();
    let freeing = LAZY.map(|lazy| {
        let title = format!("`lazyfree-lazy-expire {lazy}`");
        (title, slowest::freeing(lazy))
    });
    format!(
        "## The slowest call

The slowest single call of those that do the most, µs:

{}
Not slide's, but worth knowing: a key that has expired as a whole is freed by the server when it is next
called or found, by default at once. The first call after a log of 1,000,000 entries has expired, µs:

{}",
        figures(all, &rows, 0),
        figures(all, &freeing, 0)
    )
}

fn growth(shown: &Results) -> String {
    format!(
        "## Cost, tiers, buckets, keys

![Time a call against its cost](bench-cost.svg)

CPU time a call on {}, µs, by its cost:

{}
By its tiers:

{}
By the buckets of a counter (above about 25 its value passes 64 bytes, and the hash becomes a table):

{}
By the number of keys, each call on one that is chosen anew:

{}",
        shown.text("name"),
        curves(shown, &[&COST_LOG, &COST_COUNTER, &COST_LUA]),
        curves(shown, &[&TIERS_LOG, &TIERS_COUNTER]),
        curves(shown, &[&BUCKETS_COUNTER]),
        curves(shown, &[&KEYS_COUNTER, &KEYS_HINCRBY]),
    )
}

/// Curves of the same places as rows, one column for each place.
fn curves(results: &Results, curves: &[&Curve]) -> String {
    let Some(first) = curves.first() else {
        return String::new();
    };
    let mut text = format!("| {} |", first.what);
    for place in first.places {
        let _ = write!(text, " {} |", grouped(*place));
    }
    let _ = write!(text, "\n|---|{}", "--:|".repeat(first.places.len()));
    for curve in curves {
        let _ = write!(text, "\n| {} |", curve.title);
        for place in curve.places {
            let value = results.number(&format!("{} {place}", curve.name()));
            let _ = write!(text, " {} |", figure(value, 2));
        }
    }
    text.push('\n');
    text
}

/// The figures of logs by their live calls, whose names end in the number of these.
fn by_live_calls(figure: fn(&traffic::Kept) -> String) -> Vec<(String, String)> {
    let of = |kept: &traffic::Kept| {
        let title = kept.name;
        let name = figure(kept);
        traffic::SIZES.map(|(size, _)| {
            let title = format!("{title}, {} live calls", grouped(size));
            (title, format!("{name} {size}"))
        })
    };
    traffic::ALL.iter().flat_map(|kept| of(kept)).collect()
}

fn memory(all: &[Results], shown: &Results) -> String {
    let keys = memory::ROWS.map(|row| (row.name.to_owned(), memory::of(row)));
    format!(
        "## Memory

![Memory of a key against the calls that its window holds](bench-memory.svg)

Bytes of the server's memory that a live call takes in a log, with the log's part of the key and of its expiry. The
calls cost 1 and come by chance; the window is an hour. (The picture is of {}.)

{}
Bytes a key, of 1,000,000 (`ip:` and 16 digits, with its expiry):

{}",
        shown.text("name"),
        figures(all, &by_live_calls(traffic::Kept::memory), 1),
        figures(all, &keys, 0)
    )
}

fn bytes(all: &[Results]) -> String {
    let rows: Vec<_> = rows::ALL
        .iter()
        .map(|row| (row.name.to_owned(), propagation::of(row)))
        .collect();
    format!(
        "## What replicas and the append-only file get

Bytes a call of a log in steady traffic, with all that trims and packs it:

{}
Bytes a call of the others:

{}",
        figures(all, &by_live_calls(traffic::Kept::sent), 0),
        figures(all, &rows, 0)
    )
}

fn service(all: &[Results]) -> String {
    let cells = |row: &&crate::row::Row| -> Cells {
        let cell = |results: &Results| {
            [MEDIAN, P99]
                .map(|at| figure(results.number(&service::latency_of(row, at)), 0))
                .join(" / ")
        };
        let cells = all.iter().map(cell).map(|cell| match cell.as_str() {
            "– / –" => super::NOTHING.to_owned(),
            _ => cell,
        });
        (vec![row.name.to_owned()], cells.collect())
    };
    let latency: Vec<_> = service::ROWS.iter().map(cells).collect();
    let rate = service::ROWS.map(|row| (row.name.to_owned(), service::rate_of(row)));
    format!(
        "## One call at a time

Round trip, µs, p50 / p99, of one client that calls {} times a second (a few µs more or less are the
machine's):

{}
Calls a second in `redis-benchmark`, {CLIENTS} clients that each wait for a reply before the next call:

{}",
        grouped(RATE.into()),
        table(all, &[""], &latency),
        figures(all, &rate, 0)
    )
}
