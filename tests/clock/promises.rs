//! What the limiters promise whatever the clock does, each promise by adding up what was admitted:
//! the oracles have no part in it.
//!
//! An adversary takes all it can get while the clock steps. Time is measured as *passage*: what
//! really passed, and what the clock was put forward meanwhile. Steps back do not count.
//!
//! - No free pass: no window's length of passage holds more than the limit (of a classic counter,
//!   twice the limit; of one in n buckets that is not strict, (n-1)/n of a window). So without a
//!   step forward that is so for real time, and a step forward can let no more through than the
//!   same time would have.
//! - No usage is forgotten: a step back lowers the usage of no tier.
//! - No lockout: a key left alone is empty as soon as a unit recorded at the call would be: in a
//!   log after the longest window, in a counter after a window and a bucket. Where the newest entry
//!   or bucket is ahead of the clock by no more than its window, the clock has to catch up first.

use crate::adversary::{Adversary, Steps, Tally};
use crate::support::clock::{Frozen, START};
use crate::support::random::{assert_telling, effort, seeds};
use crate::support::{line, reply};

fn attack(steps: Steps) {
    let mut frozen = Frozen::start();
    let mut tally = Tally::default();
    let seeds = seeds(effort(16, 200));
    for &seed in &seeds {
        let mut adversary = Adversary::new(seed, steps);
        adversary.attack(&mut frozen);
        tally.add(&adversary.tally);
    }
    tally.assert_telling(seeds.len());
    assert_telling(tally.left_alone > 0, "no key was left alone");
    match steps {
        Steps::Back => assert_eq!(tally.steps_forward, 0),
        Steps::BackAndForward => assert_telling(tally.steps_forward > 0, "no step forward"),
    }
}

#[test]
fn steps_back_let_nothing_through_forget_nothing_and_lock_nobody_out() {
    attack(Steps::Back);
}

#[test]
fn steps_forward_let_no_more_through_than_the_time_would() {
    attack(Steps::BackAndForward);
}

/// The one exception, to the ms: the clock's word is all that a limiter has.
#[test]
fn a_step_forward_frees_what_is_a_window_old_by_the_clock() {
    let mut frozen = Frozen::start();
    let log = "SLIDE.LOG k 10 60s COST 10";
    let call = |frozen: &mut Frozen| reply(&mut frozen.con, &line(log)).limited;
    assert_eq!(call(&mut frozen), 0);
    frozen.set(START + 59_999);
    assert_eq!(call(&mut frozen), 1);
    frozen.set(START + 60_000);
    assert_eq!(call(&mut frozen), 0);
    // Back where it was, the wrong date has added nothing to what counts, nor taken from it.
    frozen.set(START);
    assert_eq!(call(&mut frozen), 1);
}
