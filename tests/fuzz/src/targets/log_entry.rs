//! A sorted set's member and score: read as the rules say, and written as they were read.
//!
//! The first eight bytes are the score, the others the member.

use crate::limiter::log::Entry;
use crate::oracle::stored;

pub fn check(input: &[u8]) {
    let Some((score, member)) = input.split_first_chunk() else {
        return;
    };
    let score = f64::from_le_bytes(*score);
    let read = Entry::parse(score, member);
    if let Some(entry) = read {
        assert_eq!(
            entry.member().as_slice(),
            member,
            "it is not written as it was read"
        );
    }
    let read = read.map(|entry| stored::Entry {
        time: entry.time.as_millis(),
        total: entry.total,
        cost: entry.cost,
    });
    assert_eq!(read, stored::entry(member, score));
}
