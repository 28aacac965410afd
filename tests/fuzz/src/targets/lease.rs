//! A sorted set's member and score: read as a lease as the rules say, and written as it was read.
//!
//! The first eight bytes are the score, the others the member.

use crate::limiter::lease::Lease;
use crate::oracle::stored;

pub fn check(input: &[u8]) {
    let Some((score, member)) = input.split_first_chunk() else {
        return;
    };
    let score = f64::from_le_bytes(*score);
    let read = Lease::parse(score, member);
    if let Some(lease) = &read {
        assert_eq!(
            lease.id.member(),
            member,
            "it is not written as it was read"
        );
    }
    let read = read.map(|lease| stored::Place {
        id: lease.id.member()[1..].to_vec(),
        end: lease.end.as_millis(),
    });
    assert_eq!(read, stored::place(member, score));
}
