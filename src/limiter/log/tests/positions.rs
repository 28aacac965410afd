//! Refunds, merges, healing and trimming at every place of packed members.

use std::num::NonZeroU64;

use super::dense::unpacked;
use super::{Pair, refund};
use crate::limiter::Call;
use crate::limiter::histories::{Refund, cost, tiers};
use crate::limiter::log::{LogCall, Member};
use crate::limiter::memory::LogMemory;
use crate::limiter::oracle;
use crate::limiter::units::Timestamp;

const START: i64 = 1_767_323_045_000;

/// The last call of [`packed`].
const END: i64 = START + 49 * GAP;
const GAP: i64 = 10;

/// A log of 50 entries, each of cost 3, in packed and single members.
fn packed() -> Pair {
    let mut pair = Pair::new(&[(1 << 40, 10_000), (1 << 40, 300)]);
    for call in 0..50 {
        pair.call(START + call * GAP, 3, false).unwrap();
    }
    let members = pair.set.members();
    let packed = members
        .iter()
        .filter(|(member, score)| !Member::read(*score, member).unwrap().is_single());
    let packed = packed.count();
    assert!(packed >= 2 && members.len() - packed >= 2, "{members:?}");
    pair
}

fn back(units: u64, age: Option<u64>) -> Refund {
    Refund {
        units: NonZeroU64::new(units).unwrap(),
        age,
    }
}

/// What may come next: a merge, calls enough to pack again, and a refund of all.
fn goes_on(mut pair: Pair) {
    pair.call(END, 2, false).unwrap();
    for call in 1..40 {
        pair.call(END + call * GAP, 1, false).unwrap();
    }
    pair.refund(END + 400, back(1 << 50, None)).unwrap();
    assert!(pair.set.ordered.is_empty());
}

#[test]
fn a_refund_ends_anywhere() {
    let pair = packed();
    for units in 1..=151 {
        let mut pair = pair.clone();
        pair.refund(END, back(units, None)).unwrap();
        goes_on(pair);
    }
}

#[test]
fn an_aged_refund_begins_anywhere_and_ends_anywhere() {
    let pair = packed();
    for entry in 0..50_u64 {
        for units in [1, 3, 4, 40, 150] {
            let mut pair = pair.clone();
            pair.refund(END, back(units, Some(entry * 10))).unwrap();
            goes_on(pair);
        }
    }
}

/// A second is more than this log spans, so here the entries are further apart.
#[test]
fn an_aged_refund_looks_at_a_second_either_way() {
    let mut pair = Pair::new(&[(1 << 40, 1_000_000)]);
    for call in 0..50 {
        pair.call(START + call * 400, 3, false).unwrap();
    }
    let now = START + 49 * 400;
    for age in (0..20_000).step_by(50) {
        for units in [2, 6, 60] {
            let mut pair = pair.clone();
            pair.refund(now, back(units, Some(age))).unwrap();
            for call in 1..40 {
                pair.call(now + call * GAP, 1, false).unwrap();
            }
        }
    }
}

#[test]
fn healing_sees_exactly_what_is_live() {
    let pair = packed();
    for window in (5..600).step_by(5) {
        let mut pair = pair.clone();
        pair.tiers = vec![(1 << 40, window)];
        pair.call(START - 100_000, 1, false).unwrap();
        assert_eq!(pair.set.ordered.len(), 1);
    }
}

#[test]
fn trimming_stops_at_a_member_with_a_live_entry() {
    let pair = packed();
    for past in 0..60 {
        let mut pair = pair.clone();
        pair.tiers = vec![(1 << 40, 1_000)];
        let now = START + 1_000 + past * GAP;
        for call in 0..20 {
            pair.call(now + call, 1, false).unwrap();
        }
        let expired = now + 19 - 1_000;
        let left = pair.set.ordered.range(..=(expired, vec![u8::MAX])).count();
        assert!(left < 8 + 8, "{left} expired members");
    }
}

#[test]
fn a_refund_takes_from_1000_entries_at_most() {
    for packing in [true, false] {
        let tiers = tiers(&[(1 << 40, 1_000_000)]);
        let (mut set, _) = unpacked(0, &vec![(1, 2); 1_500]);
        if packing {
            set = LogMemory::default();
            for now in 0..1_500 {
                super::play(&mut set, now, &tiers, cost(2), false);
            }
            assert!(set.ordered.len() < 100);
        }
        let some = |units| NonZeroU64::new(units).unwrap();
        assert_eq!(refund(&mut set, some(2_999)), Ok(2_000));
        assert_eq!(refund(&mut set, some(999)), Ok(999));
        let left = oracle::stored::log(&set.members()).unwrap();
        assert_eq!((left.len(), left[0].total, left[0].cost), (1, 1, 1));
        assert_eq!(refund(&mut set, some(5)), Ok(1));
        assert_eq!(refund(&mut set, some(5)), Ok(0));
    }
}

#[test]
fn totals_wrap_around() {
    let mut pair = Pair::new(&[(60, 1_000)]);
    let first = (1_000, format!("{}:3", u64::MAX - 20).into_bytes());
    pair.set = LogMemory::of([first]);
    pair.oracle = oracle::Log::holding(&oracle::stored::log(&pair.set.members()).unwrap());
    for call in 1..120 {
        pair.call(1_000 + call * GAP, 1, false).unwrap();
    }
    assert!(pair.set.work.packed > 30);
    pair.refund(2_200, back(55, None)).unwrap();
    pair.call(2_200, 5, false).unwrap();
}

/// Entries that do not follow each other stay as they are; what comes after them is packed.
#[test]
fn what_does_not_follow_is_not_packed() {
    let tiers = tiers(&[(1 << 40, 1_000_000)]);
    let strangers = [(10, "5:5"), (20, "90:1"), (20, "91:1"), (30, "200:1")];
    let strangers = strangers.map(|(time, member)| (time, member.as_bytes().to_vec()));
    let mut set = LogMemory::of(strangers.clone());
    for call in 0..200 {
        let mut call = LogCall::read(&mut set, Timestamp::from_millis(40 + call), &tiers, cost(1));
        let call = call.as_mut().unwrap();
        call.settle(true).unwrap();
        call.commit();
    }
    assert!(set.ordered.len() < 40, "{set:?}");
    assert!(
        strangers[..3]
            .iter()
            .all(|stranger| set.ordered.contains(stranger))
    );
}
