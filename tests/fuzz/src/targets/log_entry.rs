//! A sorted set's member and score: read as the rules say, and written as they were read.
//!
//! The first eight bytes are the score, the others the member.

use crate::limiter::log::member::spell;
use crate::limiter::log::{Entry, Member};
use crate::oracle::stored;

pub fn check(input: &[u8]) {
    let Some((score, member)) = input.split_first_chunk() else {
        return;
    };
    let score = f64::from_le_bytes(*score);
    let read = entries(score, member);
    if let Some(entries) = &read {
        assert_eq!(
            spell(entries).as_deref(),
            Some(member),
            "it is not written as it was read"
        );
    }
    let read = read.map(|entries| {
        let stored = |entry: &Entry| stored::Entry {
            time: entry.time.as_millis(),
            total: entry.total,
            cost: entry.cost,
        };
        entries.iter().map(stored).collect()
    });
    assert_eq!(read, stored::entries(member, score));
}

/// The entries of a member, the oldest first.
fn entries(score: f64, member: &[u8]) -> Option<Vec<Entry>> {
    let member = Member::read(score, member).ok()?;
    let mut entries = member.entries().collect::<Result<Vec<_>, _>>().ok()?;
    entries.reverse();
    Some(entries)
}
