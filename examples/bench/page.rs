//! docs/BENCHMARKS.md.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use crate::growth::{BUCKETS, COSTS, NUMBERS_OF_KEYS, TIERS};
use crate::guard::GUARDED;
use crate::host::ENDLESS;
use crate::large::SIZES;
use crate::memory::LOGS;
use crate::results::Results;
use crate::rows::{CALLS, KEYS, LIVE, ROUNDS_IN_WINDOW, SWEEPS};
use crate::service::{CLIENTS, COMMANDS, RATE};
use crate::table::{BOUNDS, Line, OTHERS, SLOWEST};

/// The page, from the figures of all servers, those of the one that also has the curves, and counts
/// of instructions.
///
/// # Errors
/// When the machine does not say what it is.
pub fn write(all: &[Results], grown: &Results, counts: &Results) -> Result<String, Box<dyn Error>> {
    let parts = [
        introduction(),
        machine(all)?,
        bounds(all),
        others(all),
        instructions(counts),
        times(all),
        long_logs(all, grown),
        slowest(all),
        costs(grown),
        growth(grown),
        memory(all),
        bytes(all),
        service(all),
        method(all, grown),
    ];
    Ok(parts.join("\n"))
}

fn introduction() -> String {
    "# How fast it is

Written by `make bench`, which repeats everything below and overwrites this page.

Times are worth little on another machine, ratios to what the same server takes for its own commands
in the same run are worth more. So the bounds that this module is held to are ratios.
"
    .to_owned()
}

fn machine(all: &[Results]) -> Result<String, Box<dyn Error>> {
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("an unknown processor", |(_, model)| model);
    let date = Command::new("date").arg("+%F").output()?;
    let mut text = format!(
        "- Machine: {model}, {} cores; client and server share it.\n- Date: {}. slide {}.\n",
        available_parallelism()?,
        String::from_utf8(date.stdout)?.trim(),
        env!("CARGO_PKG_VERSION"),
    );
    for results in all {
        let (name, server) = (results.text("name"), results.text("server"));
        let _ = writeln!(text, "- {name}: {server}");
    }
    Ok(text)
}

/// A table with a column for each server.
fn table(all: &[Results], first: &[&str], rows: &[(Vec<String>, Vec<String>)]) -> String {
    let mut text = format!("| {} |", first.join(" | "));
    for results in all {
        let _ = write!(text, " {} |", results.text("name"));
    }
    let _ = write!(
        text,
        "\n|---|{}",
        "--:|".repeat(first.len() - 1 + all.len())
    );
    for (head, cells) in rows {
        let _ = write!(text, "\n| {} | {} |", head.join(" | "), cells.join(" | "));
    }
    text.push('\n');
    text
}

/// Rows whose cells are figures of the results.
fn figures(all: &[Results], rows: &[(String, String)], digits: usize) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|(title, name)| {
            let cells = all.iter().map(|results| figure(results, name, digits));
            (vec![title.clone()], cells.collect())
        })
        .collect();
    table(all, &[""], &rows)
}

fn figure(results: &Results, name: &str, digits: usize) -> String {
    results
        .number(name)
        .map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

fn lines(all: &[Results], lines: &[Line], bounded: bool) -> String {
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            let mut head = vec![line.what.to_owned()];
            if bounded {
                head.push(line.bound(all));
            }
            (head, all.iter().map(|results| line.cell(results)).collect())
        })
        .filter(|(_, cells): &(_, Vec<String>)| cells.iter().any(|cell| cell != "–"))
        .collect();
    let first: &[&str] = if bounded { &["", "at most"] } else { &[""] };
    table(all, first, &rows)
}

fn bounds(all: &[Results]) -> String {
    let unmet: usize = all
        .iter()
        .map(|results| BOUNDS.iter().filter(|line| !line.is_met(results)).count())
        .sum();
    let verdict = match unmet {
        0 => "Every bound is met.".to_owned(),
        _ => format!("{unmet} of these figures do not meet their bound, and say so."),
    };
    format!(
        "## The bounds

CPU time of the whole server a call as a multiple of another command's, and a few plain figures.
{verdict}

{}",
        lines(all, &BOUNDS, true)
    )
}

fn others(all: &[Results]) -> String {
    format!(
        "Ratios without a bound:

{}",
        lines(all, &OTHERS, false)
    )
}

/// Where a call's time goes: the server's part and the module's own.
fn instructions(counts: &Results) -> String {
    let mut text = format!(
        "## Where the time goes

Instructions a call, counted by valgrind on {}. The last column is the floor: what the ratio
would be if the module itself took nothing. The rest is the server's: it reads and dispatches the
command, opens the key, reads and writes its value, propagates the effects and sends five integers.

| | instructions | of these the module's own | as a multiple of | ratio | without the module's own |
|---|--:|--:|---|--:|--:|
",
        counts.text("server"),
    );
    for (name, peer) in GUARDED {
        let number = |name: String| counts.number(&name).unwrap_or(f64::NAN);
        let all = number(format!("instructions {name}"));
        let own = number(format!("own instructions {name}"));
        let peer_all = number(format!("instructions {peer}"));
        let _ = writeln!(
            text,
            "| {name} | {all:.0} | {own:.0} | {peer} | {:.2} | {:.2} |",
            all / peer_all,
            (all - own) / peer_all
        );
    }
    text.push_str(
        "
Where a bound above is lower than the last column, no module can meet it on this server: the server's own
part does not fit it. LOG here has as many expired entries as calls, and ALL is one log and one counter. A
call of LOG in its steady state, besides adding a member as `ZADD` does, reads two others, removes one on
average and looks for the next to remove: each stands elsewhere in memory, so that its time also depends
on how the server happened to lay them out, and varies by 20 % from run to run.
",
    );
    text
}

fn times(all: &[Results]) -> String {
    const ROWS: [&str; 20] = [
        "INCR",
        "HINCRBY",
        "ZADD",
        "INCREX",
        "COUNTER",
        "COUNTER limited",
        "COUNTER HEADERS",
        "LOG",
        "LOG COST 100",
        "LOG limited",
        "LOG limited, long",
        "PEEK of a counter",
        "PEEK of a log",
        "ALL of a log and a counter",
        "Lua counter",
        "Lua counter limited",
        "Lua log",
        "Lua log limited",
        "Lua log COST 100",
        "Lua log COST 100, one ZADD",
    ];
    let known = |name: &&str| all.iter().any(|results| results.number(name).is_some());
    let rows: Vec<_> = ROWS
        .into_iter()
        .filter(known)
        .map(|name| (name.to_owned(), name.to_owned()))
        .collect();
    format!(
        "## Time a call

![CPU time of the whole server a call](bench-commands.svg)

CPU time of the whole server a call, µs, pipelined:

{}
LOG limited has 5 entries in its log, and \"long\" {LIVE}, as has the log of PEEK.
",
        figures(all, &rows, 2)
    )
}

fn long_logs(all: &[Results], grown: &Results) -> String {
    let kinds = ["admitted", "limited", "limited, deep"];
    let rows: Vec<_> = SIZES
        .iter()
        .flat_map(|size| {
            kinds.map(|kind| {
                (
                    format!("{} entries, {kind}", grouped(*size)),
                    format!("µs {kind} {size}"),
                )
            })
        })
        .collect();
    format!(
        "## Long logs

![Time of a call against the entries of its log](bench-entries.svg)

Time inside the server of a call, µs. (Here on {}, in the table on all.) \"Deep\" is a call that costs
half the limit on a full log, so that half of the entries have to expire: its wait is found by bisecting. Up to 128 entries
a log is a listpack, of which the server reads all.

{}",
        grown.text("name"),
        figures(all, &rows, 1)
    )
}

fn slowest(all: &[Results]) -> String {
    let mut rows = SLOWEST
        .map(|(name, what)| (what.to_owned(), name.to_owned()))
        .to_vec();
    rows.push((
        "`INCR`, to know the machine's part".to_owned(),
        "slowest INCR".to_owned(),
    ));
    let freeing = ["no", "yes"].map(|lazy| {
        let name = format!("freeing 1,000,000 entries, lazyfree-lazy-expire {lazy}");
        (format!("`lazyfree-lazy-expire {lazy}`"), name)
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

fn costs(grown: &Results) -> String {
    let series = [
        ("SLIDE.LOG", "cost LOG"),
        ("SLIDE.COUNTER", "cost COUNTER"),
        ("log in Lua", "cost Lua log"),
    ];
    format!(
        "## The cost of a call

![Time a call against its cost](bench-cost.svg)

CPU time a call by its cost, µs, on {}:

{}",
        grown.text("name"),
        curve(grown, "cost", &COSTS, &series)
    )
}

fn growth(grown: &Results) -> String {
    let both = [
        ("SLIDE.LOG", "tiers LOG"),
        ("SLIDE.COUNTER", "tiers COUNTER"),
    ];
    let keys = [
        ("SLIDE.COUNTER", "keys COUNTER"),
        ("HINCRBY", "keys HINCRBY"),
    ];
    format!(
        "## Tiers, buckets, keys

CPU time a call by its tiers, µs, on {}:

{}
By the buckets of a counter (above about 25 its value passes 64 bytes, and the hash becomes a table):

{}
By the number of keys, each call on one that is chosen anew:

{}",
        grown.text("name"),
        curve(grown, "tiers", &TIERS, &both),
        curve(grown, "buckets", &BUCKETS, &[("SLIDE.COUNTER", "buckets COUNTER")]),
        curve(grown, "keys", &NUMBERS_OF_KEYS.map(|keys| keys as u64), &keys)
    )
}

/// Series as rows, one column for each of the places.
fn curve(results: &Results, what: &str, places: &[u64], series: &[(&str, &str)]) -> String {
    let mut text = format!("| {what} |");
    for place in places {
        let _ = write!(text, " {} |", grouped(*place));
    }
    let _ = write!(text, "\n|---|{}", "--:|".repeat(places.len()));
    for (title, name) in series {
        let _ = write!(text, "\n| {title} |");
        for place in places {
            let _ = write!(
                text,
                " {} |",
                figure(results, &format!("{name} {place}"), 2)
            );
        }
    }
    text.push('\n');
    text
}

fn memory(all: &[Results]) -> String {
    let mut rows = vec![(
        "a counter, of 1,000,000".to_owned(),
        "bytes a counter".to_owned(),
    )];
    rows.extend(LOGS.iter().map(|(entries, _)| {
        (
            format!("an entry of a log of {}", grouped(*entries)),
            format!("bytes an entry {entries}"),
        )
    }));
    format!(
        "## Memory

Bytes of the server's memory, with the key (`ip:` or `log:` and 16 digits) and its expiry:

{}",
        figures(all, &rows, 0)
    )
}

fn bytes(all: &[Results]) -> String {
    let rows = [
        "INCR",
        "COUNTER",
        "COUNTER BUCKETS 10",
        "COUNTER limited",
        "LOG",
        "LOG COST 100",
        "LOG limited",
        "Lua counter",
        "Lua log",
        "Lua log COST 100",
    ]
    .map(|name| (name.to_owned(), format!("bytes sent by {name}")));
    format!(
        "## What replicas and the append-only file get

Bytes a call, with the trims that a log's steady state has:

{}",
        figures(all, &rows, 0)
    )
}

fn service(all: &[Results]) -> String {
    let rows = COMMANDS.map(|name| {
        let cell = |results: &Results| {
            [("p50 ", 0), ("p99 ", 0)]
                .map(|(label, digits)| figure(results, &format!("{label}{name}"), digits))
                .join(" / ")
        };
        (vec![name.to_owned()], all.iter().map(cell).collect())
    });
    let throughput = COMMANDS.map(|name| (name.to_owned(), format!("calls/s {name}")));
    format!(
        "## One call at a time

Latency, µs, p50 / p99, of one client that calls {} times a second (a few µs more or less are the
machine's):

{}
Calls a second of {CLIENTS} clients that each wait for a reply before the next call:

{}",
        grouped(RATE.into()),
        table(all, &[""], &rows),
        figures(all, &throughput, 0)
    )
}

fn method(all: &[Results], grown: &Results) -> String {
    let rounds = all.first().map_or("", |results| results.text("rounds"));
    let sizes = |name| {
        let sizes: Vec<&str> = all.iter().map(|results| results.text(name)).collect();
        sizes.join(", ")
    };
    format!(
        "## How this was measured

- `make bench` installs what it needs, builds the module, starts each server with it, measures and
  writes this page and its pictures. `make bench SERVERS=redis-7.0` narrows it, `ROUNDS=20` makes it more
  thorough, `QUICK=1` less: that prints the table and leaves this page alone.
- CPU time is that of the server's main thread, from `INFO cpu`, divided by the calls: all the server
  does for them, reading and answering too. Commands are pipelined, 200 at a time. Each figure is the
  least of {rounds} rounds, in each of which every command has its turn, mostly {} calls on {KEYS} keys. An error
  reply ends the run, and so does a call that is limited where it should be admitted, or the reverse.
  Where calls are admitted the limit is {}.
- Steady state of LOG: rounds begin at fixed intervals ({} ms), and the window is
  {ROUNDS_IN_WINDOW} rounds long. In its turn each key gets {SWEEPS} calls, each in a ms of its own (a sweep over
  the keys takes that long, or else waits), and what a turn adds expires in the same turn {ROUNDS_IN_WINDOW}
  rounds later: {LIVE} live entries. The first {} rounds only bring that about. With expired entries that
  wait to be trimmed the logs then held {} entries on average
  (the fewest {}, the most {}). `ZADD` and the script are paced
  likewise; `ZADD` adds members of the same form to sets of the same size, which are cut back after
  each turn.
- The scripts are in examples/bench/scripts.rs. They do what is usually done: trim, count, add a member
  for each unit, expire; and the current and the previous window in a hash. They are called by `EVALSHA`.
  With COST 100 the script gets the same calls on each key as LOG does, but on fewer keys.
- Long logs and the slowest call: from the slow log, which then logs all calls. The times of long logs are
  means without the slowest 5 %; the slowest call is the least of 5 rounds' slowest, so that what
  else the machine does has less part in it. (3 rounds with `QUICK=1`.)
- Bytes are those that the append-only file grew by.
- Latency counts from when a call was due, so that a slow one delays those behind it.
- The curves of cost, tiers, buckets and keys are those of {}.
",
        grouped(CALLS as u64),
        grouped(ENDLESS),
        sizes("round, ms"),
        ROUNDS_IN_WINDOW + 1,
        sizes("log entries"),
        sizes("log entries, fewest"),
        sizes("log entries, most"),
        grown.text("name"),
    )
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
