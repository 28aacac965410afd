//! docs/ACCURACY.md.

use std::fmt::Write as _;

use crate::Row;
use crate::judge::Score;
use crate::limiters::{Kind, LIMIT, WINDOW};
use crate::server::COMPARED;
use crate::traffic::{Traffic, WINDOWS};

const CLOUDFLARE: &str = "https://blog.cloudflare.com/counting-things-a-lot-of-different-things/";

/// The page, from what every traffic got, what COUNTER did with traffic of half the limit, and the
/// number of replies that a server gave as well.
pub fn write(rows: &[Row], half: Score, compared: usize) -> String {
    [
        introduction(),
        traffics(rows),
        worst_window(rows),
        wrongly_refused(rows),
        wrongly_admitted(rows),
        admitted(rows),
        cloudflare(rows, half),
        conditions(compared),
    ]
    .join("\n")
}

fn introduction() -> String {
    format!(
        "# How exact each limiter is

Written by `make accuracy`, which repeats everything below and overwrites this page.

The limit is {LIMIT} calls in {} seconds. The same calls are played to six limiters:

| limiter | what it is |
|---|---|
| fixed window | a count for each minute of the clock (`INCR` on a key with the minute in its name) |
| GCRA | the algorithm of redis-cell, `CL.THROTTLE key {} {LIMIT} {}`: the limit is the burst too |
| COUNTER | `SLIDE.COUNTER`: the current window and the weighted one before it, the classic two-window counter |
| COUNTER BUCKETS 10 | the same with ten buckets to a window |
| COUNTER BUCKETS 10 STRICT | the same, and the bucket that leaves the window counts whole |
| LOG | `SLIDE.LOG`: exact |

The windows of a COUNTER begin at a moment of the minute that depends on its key, and every client has a
key of its own. The fixed windows of all clients begin together, with the minute.
",
        WINDOW / 1000,
        LIMIT - 1,
        WINDOW / 1000,
    )
}

fn traffics(rows: &[Row]) -> String {
    let mut text = "## The traffic\n\n| traffic | calls | what it is |\n|---|---|---|\n".to_owned();
    for row in rows {
        let calls = match row.traffic {
            Traffic::Adversary => "as many as each limiter lets it try".to_owned(),
            _ => row
                .scores
                .first()
                .map_or(0, |score| score.calls)
                .to_string(),
        };
        let (name, what) = (row.traffic.name(), description(row.traffic));
        let _ = writeln!(text, "| {name} | {calls} | {what} |");
    }
    text
}

fn description(traffic: Traffic) -> &'static str {
    match traffic {
        Traffic::Steady(1000) => "the same, ten times as many calls as are allowed",
        Traffic::Steady(_) => "calls at random instants, each ms as likely as any other",
        Traffic::Bursts => {
            "20 % of the limit at random instants, and around every third start of a minute of the \
             clock, within 2 seconds before and after it, twice the limit"
        }
        Traffic::Adversary => {
            "a client that knows the limiter and its own key: it begins at the moment of its window \
             that tries on a copy have shown to be worst, calls until it is refused, waits exactly as long as the \
             reply says, calls again, for two minutes; then it waits until the limiter has \
             forgotten it, and begins anew"
        }
    }
}

fn worst_window(rows: &[Row]) -> String {
    format!(
        "## The worst window

Calls admitted in the worst window of one minute, wherever it begins, as a multiple of the limit.

![Calls admitted in the worst window of one minute](accuracy-worst-window.svg)

{}
A fixed window forgets at the boundary; GCRA refills while a burst is still in the window. A burst at the
minute meets the boundary of every client's fixed window, and that of a COUNTER's windows only by chance.
The adversary knows where the windows of its own key begin, and gets nearly twice the limit from every
limiter but STRICT and LOG. BUCKETS 10 stops it only within nine tenths of a window: what it promises is
that no window of that length holds more than the limit, and a client that knows where the buckets begin
uses the last tenth.
",
        table(rows, |score, _| format!("{:.2}", score.worst_of_limit()))
    )
}

fn wrongly_refused(rows: &[Row]) -> String {
    format!(
        "## Wrongly refused

Calls that were refused though an exact log would have admitted them, had it recorded the same calls
as the limiter; in per cent of all calls.

![Calls wrongly refused](accuracy-wrongly-refused.svg)

{}
One call is enough to be wrong: a limiter that holds {} where {LIMIT} would fit wrongly refuses every
call until the next one fits, and under overload those are many. What that costs in
calls is under [Admitted in all](#admitted-in-all).
",
        table(rows, |score, _| percent(score.percent_refused())),
        LIMIT - 1
    )
}

fn wrongly_admitted(rows: &[Row]) -> String {
    format!(
        "## Wrongly admitted

The reverse: admitted though an exact log that had recorded the same calls would have refused; in per
cent of all calls.

{}",
        table(rows, |score, _| percent(score.percent_admitted()))
    )
}

fn admitted(rows: &[Row]) -> String {
    format!(
        "## Admitted in all

Calls admitted, as a multiple of those that LOG admitted of the same traffic. (The adversary's calls
are others for each limiter.)

{}",
        table(rows, |score, row| match row.traffic {
            Traffic::Adversary => "–".to_owned(),
            _ => row
                .scores
                .last()
                .map_or_else(String::new, |log| format!("{:.3}", score.admitted_of(*log))),
        })
    )
}

fn cloudflare(rows: &[Row], half: Score) -> String {
    let mut wrong = String::new();
    for row in rows {
        for (kind, score) in Kind::ALL.iter().zip(&row.scores) {
            if *kind == Kind::Classic {
                let (name, share) = (row.traffic.name(), percent(score.percent_wrong()));
                let _ = writeln!(wrong, "| {name} | {share} |");
            }
        }
    }
    format!(
        "## Next to Cloudflare's 0.003 %

[Cloudflare published]({CLOUDFLARE})
that of 400 million requests of 270,000 sources the classic counter wrongly allowed or limited
0.003 %. Here, wrongly refused and wrongly admitted together, in per cent of all calls, COUNTER gave:

| traffic | % wrong |
|---|---|
| steady, 50 % of the limit | {} |
{wrong}
A client that stays well below its limit is never refused, and no decision about it is wrong: at half
the limit {} of {} were. So a share of all requests says above all how many of them came from clients
near or over a limit, and of Cloudflare's that is not known. Here all but those at 50 % are, and for
them COUNTER is wrong far more often than 0.003 %.
",
        percent(half.percent_wrong()),
        half.wrong(),
        half.calls
    )
}

fn conditions(compared: usize) -> String {
    format!(
        "## Conditions

- `make accuracy` installs what it needs, builds the module, plays everything and writes this page and
  its pictures, in about a minute once all is built. The seeds are fixed and all is counted in
  integers: every run writes the same.
- A traffic is that of many clients, each with a key of its own that is empty at first: a client begins
  somewhere in a minute and calls for {WINDOWS} minutes. (The adversary is one client.) Each call costs 1.
- The limiters are models in memory, those of COUNTER and LOG the oracles of this module's tests. The
  first {COMPARED} calls of each traffic also went to the real commands, on Redis 8.2.3 with its clock
  set for each call: {compared} replies, all five integers of each equal to the model's.
  Where one differs, `make accuracy` fails.
- The fixed window and GCRA are models only, of one key on one server, with a clock of whole ms.
"
    )
}

fn table(rows: &[Row], cell: impl Fn(Score, &Row) -> String) -> String {
    let names = Kind::ALL.map(Kind::name).join(" | ");
    let mut text = format!("| | {names} |\n|---|{}\n", "--:|".repeat(Kind::ALL.len()));
    for row in rows {
        let cells: Vec<String> = row.scores.iter().map(|score| cell(*score, row)).collect();
        let _ = writeln!(text, "| {} | {} |", row.traffic.name(), cells.join(" | "));
    }
    text
}

/// A share of nothing at all is told apart from one that rounds to nothing.
fn percent(share: f64) -> String {
    if share == 0.0 {
        "0".to_owned()
    } else {
        format!("{share:.3}")
    }
}
