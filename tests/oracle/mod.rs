//! Naive oracles of the limiters, of what the commands take and of what is stored, written from
//! the rules alone.
//!
//! They keep every recorded cost and add it up again for each question, search for waits instead of
//! solving for them, and share nothing with the production code, so that agreement means something.
//!
//! Nothing is forgotten here. On a server a key goes away once everything in it has expired, and a
//! clock that then steps back finds nothing, where the oracle would still find the old entries. A
//! history that is compared with a server must start afresh, or not step back, while `may_forget`.

// Each test crate includes it whole and uses a part; a broken oracle may as well panic.
#![allow(
    dead_code,
    unused_imports,
    clippy::expect_used,
    clippy::indexing_slicing
)]

mod counter;
mod either;
pub mod grammar;
pub mod headers;
mod lease;
mod log;
pub mod stored;

pub use counter::{Counter, shift};
pub use either::{CLASSIC, Oracle, Question, Shape};
pub use lease::{Lease, Take};
pub use log::Log;

/// The five integers of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    pub limited: i64,
    pub limit: i64,
    pub remaining: i64,
    pub retry_after: i64,
    pub reset_after: i64,
}

/// What a caller asks: tiers of (limit, window in ms), the cost, and FORCE.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub tiers: &'a [(u64, u64)],
    pub cost: u64,
    pub force: bool,
}

/// How much an AGE may be off either way, in ms.
const AGE_SLACK: i128 = 1000;

/// The instants that an aged refund looks at, both ends included.
struct Span {
    first: i128,
    middle: i128,
    last: i128,
}

impl Span {
    fn new(now: i64, age: u64) -> Self {
        let middle = i128::from(now) - i128::from(age);
        Span {
            first: middle - AGE_SLACK,
            middle,
            last: middle + AGE_SLACK,
        }
    }
}

impl Call<'_> {
    fn longest(&self) -> i128 {
        self.tiers
            .iter()
            .map(|tier| i128::from(tier.1))
            .max()
            .expect("at least one tier")
    }
}

/// One tier after the call. A wait of `None` is never; it means nothing if the call was admitted.
struct Judged {
    limit: u64,
    remaining: i128,
    wait: Option<i128>,
    reset: i128,
}

/// The place of the reported tier: of a limited call the one with the longest wait, of an admitted
/// one that with the fewest units left; of equals the first given.
fn reported(limited: bool, tiers: &[Judged]) -> usize {
    let longest = tiers.iter().map(rank).max();
    let fewest = tiers.iter().map(|tier| tier.remaining).min();
    tiers
        .iter()
        .position(|tier| {
            if limited {
                Some(rank(tier)) == longest
            } else {
                Some(tier.remaining) == fewest
            }
        })
        .expect("some tier is the extreme one")
}

/// Waits in order: never is the longest.
fn rank(tier: &Judged) -> i128 {
    tier.wait.unwrap_or(i128::MAX)
}

/// The reply over all tiers. An admitted call waits for nothing.
fn report(limited: bool, tiers: &[Judged]) -> Reply {
    let tier = &tiers[reported(limited, tiers)];
    let int = |value: i128| i64::try_from(value).expect("a reply fits 64 bits");
    Reply {
        limited: i64::from(limited),
        limit: int(i128::from(tier.limit)),
        remaining: int(tier.remaining),
        retry_after: match tier.wait {
            _ if !limited => 0,
            Some(wait) => int(wait),
            None => -1,
        },
        reset_after: int(tier.reset),
    }
}
