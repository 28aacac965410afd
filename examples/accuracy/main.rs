//! How exact limiters are: plays the same traffic through a fixed window, GCRA and the limiters of
//! this module, and writes what each let through to docs/. `make accuracy` runs it.
//!
//! The limiters are models in memory. The first calls of each traffic also go to the real commands on
//! a server whose clock is moved for each call, and have to be answered as the model answered them.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // of the tests' modules, which may panic

mod adversary;
#[path = "../shared/drawing.rs"]
mod drawing;
mod judge;
mod limiters;
mod page;
mod plot;
mod server;
#[path = "../../tests/support/mod.rs"]
mod support;
mod traffic;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::thread;

use judge::Score;
use limiters::{Kind, LIMIT};
use server::Comparison;
use traffic::{Answered, History, Traffic};

/// One traffic, and what it got from each limiter, in the order of `Kind::ALL`.
#[derive(Debug)]
struct Row {
    traffic: Traffic,
    scores: Vec<Score>,
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::var_os("SLIDE_SERVER").is_none() {
        return Err("SLIDE_SERVER does not name a server: run `make accuracy`".into());
    }
    let mut comparison = Comparison::default();
    let rows: Vec<Row> = Traffic::ALL
        .into_iter()
        .map(|traffic| {
            eprintln!("Playing: {}", traffic.name());
            play(traffic, &mut comparison)
        })
        .collect();
    eprintln!("Comparing with the server");
    let compared = comparison.run();
    keeps_its_promises(&rows)?;

    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    fs::create_dir_all(&docs)?;
    plot::worst_window(&docs.join("accuracy-worst-window.svg"), &rows)?;
    plot::wrongly_refused(&docs.join("accuracy-wrongly-refused.svg"), &rows)?;
    let half = score(&Traffic::Steady(50).play(Kind::Classic));
    let page = page::write(&rows, half, compared);
    fs::write(docs.join("ACCURACY.md"), page)?;
    eprintln!("{compared} replies of the server were the models'. Written: docs/ACCURACY.md");
    Ok(())
}

fn play(traffic: Traffic, comparison: &mut Comparison) -> Row {
    // The oracles are slow: the limiters play side by side.
    let played = thread::scope(|scope| {
        let threads = Kind::ALL.map(|kind| scope.spawn(move || (kind, traffic.play(kind))));
        threads.map(|thread| thread.join().expect("a limiter that does not panic"))
    });
    let mut scores = Vec::new();
    for (kind, clients) in &played {
        comparison.add(traffic, *kind, clients);
        scores.push(score(clients));
    }
    Row { traffic, scores }
}

/// One client's calls, put to a limiter that has recorded nothing yet.
fn replay(kind: Kind, key: &str, arrivals: &[i64]) -> History {
    let mut model = kind.model(key);
    let answer = |&at: &i64| Answered {
        at,
        reply: model.call(at),
    };
    arrivals.iter().map(answer).collect()
}

fn score(clients: &[History]) -> Score {
    let mut score = Score::default();
    for history in clients {
        score.add(history);
    }
    score
}

/// Numbers that contradict what this module promises must not be published as if they were fine.
fn keeps_its_promises(rows: &[Row]) -> Result<(), String> {
    for Row { traffic, scores } in rows {
        for (kind, score) in Kind::ALL.iter().zip(scores) {
            let within = score.worst <= LIMIT.unsigned_abs();
            let exact = score.wrong() == 0;
            let kept = match kind {
                Kind::Log => within && exact,
                Kind::Strict => within,
                _ => true,
            };
            if !kept {
                return Err(format!("{kind:?} under {traffic:?}: {score:?}"));
            }
        }
    }
    Ok(())
}
