//! A client that wants as many calls as it can get within one window, and knows the limiter.

use crate::judge::Score;
use crate::limiters::{BUCKETS, Kind, Model, WINDOW};
use crate::traffic::{Answered, BEGIN, History};

const ATTACKS: usize = 20;

/// How long one attack goes on.
const DURATION: i64 = 2 * WINDOW;

/// Attack after attack, each when the limiter has forgotten the one before and its windows or
/// buckets stand as is worst for it.
pub fn attacks(kind: Kind, key: &str) -> History {
    let phase = worst_phase(kind, key);
    let mut model = kind.model(key);
    let mut history = History::new();
    let mut begin = BEGIN + phase;
    for _ in 0..ATTACKS {
        history.extend(attack(&mut model, begin));
        if let Some(last) = history.last() {
            let forgotten = last.at + last.reply.reset_after;
            let windows = (forgotten - phase).unsigned_abs();
            begin = windows
                .next_multiple_of(WINDOW.unsigned_abs())
                .cast_signed()
                + phase;
        }
    }
    history
}

/// Calls until it is refused, waits exactly as long as the reply says, and calls again.
fn attack(model: &mut Model, begin: i64) -> History {
    let mut history = History::new();
    let mut at = begin;
    while at < begin + DURATION {
        let reply = model.call(at);
        history.push(Answered { at, reply });
        if reply.limited == 1 {
            at += reply.retry_after;
        }
    }
    history
}

/// Where in a minute to begin, found by trying on an empty limiter: just before and just after the
/// start of each bucket of the key.
fn worst_phase(kind: Kind, key: &str) -> i64 {
    let bucket = WINDOW / BUCKETS.cast_signed();
    let shift = kind.shift(key);
    let starts = (0..BUCKETS.cast_signed()).map(|index| index * bucket - shift);
    let phases = starts.flat_map(|start| [start, start + bucket - 1]);
    let phases = phases.map(|phase| phase.rem_euclid(WINDOW));
    let most = |&phase: &i64| {
        let mut score = Score::default();
        score.add(&attack(&mut kind.model(key), BEGIN + phase));
        score.worst
    };
    phases.max_by_key(most).unwrap_or(0)
}
