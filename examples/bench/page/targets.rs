//! What the module is held to.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Cells, table};
use crate::bounds::BOUNDS;
use crate::counted::{self, COUNTED};
use crate::others::OTHERS;
use crate::results::Results;
use crate::table::Line;

pub fn write(all: &[Results], counts: &Results) -> [String; 3] {
    [bounds(all), others(all), instructions(counts)]
}

fn lines(all: &[Results], lines: &[Line], bounded: bool) -> String {
    let cells = |line: &Line| -> Cells {
        let mut head = vec![line.what.to_owned()];
        if bounded {
            head.push(line.bound(all));
        }
        (head, all.iter().map(|results| line.cell(results)).collect())
    };
    let rows: Vec<_> = lines.iter().map(cells).collect();
    let first: &[&str] = if bounded { &["", "at most"] } else { &[""] };
    table(all, first, &rows)
}

fn bounds(all: &[Results]) -> String {
    let unmet = |line: &&Line| all.iter().any(|results| !line.is_met(results));
    let missed: Vec<&Line> = BOUNDS.iter().filter(unmet).collect();
    let mut verdict = match missed.len() {
        0 => "Every bound is met.\n".to_owned(),
        1 => "One bound is not met everywhere.\n".to_owned(),
        count => format!("{count} of the bounds are not met everywhere.\n"),
    };
    let reasons: BTreeSet<&str> = missed.iter().map(|line| line.why).collect();
    for reason in reasons {
        let of_it = missed.iter().filter(|line| line.why == reason);
        let names: Vec<&str> = of_it.map(|line| line.what).collect();
        let _ = writeln!(verdict, "- {}: {reason}", names.join("; "));
    }
    format!(
        "## The targets

The bounds that this module is held to. Most are ratios of the CPU time of the whole server a call. \"0.1.0\" is this
module's first release, on a server of its own in the same run. The \"floor\" is a module in C that makes the same calls of
the server's API and decides nothing (examples/bench/peers/floor.c): what no module that stores this can save.

{}
{verdict}",
        lines(all, BOUNDS, true)
    )
}

fn others(all: &[Results]) -> String {
    format!(
        "Ratios without a bound:

{}",
        lines(all, OTHERS, false)
    )
}

/// Where a call's time goes: the server's part and the module's own.
fn instructions(counts: &Results) -> String {
    let mut text = format!(
        "## Where the time goes

Instructions a call, counted by valgrind on {}. `make bench-guard` fails when the module's own become 3 %
more, or a ratio 15 %. The rest is the server's: it reads and dispatches the
command, opens the key, reads and writes its value, propagates the effects and sends the reply.

| | instructions | of these the module's own | as a multiple of | ratio | without the module's own |
|---|--:|--:|---|--:|--:|
",
        counts.text("server"),
    );
    for counting in &COUNTED {
        let Some(peer) = counting.peer else { continue };
        let number = |name: String| counts.number(&name).unwrap_or(f64::NAN);
        let all = number(counted::in_all(counting.name));
        let own = number(counted::own(counting.name));
        let peer_all = number(counted::in_all(peer));
        let _ = writeln!(
            text,
            "| {} | {all:.0} | {own:.0} | {peer} | {:.2} | {:.2} |",
            counting.name,
            all / peer_all,
            (all - own) / peer_all
        );
    }
    text
}
