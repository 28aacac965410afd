//! Logs of which somebody changed a part.

use std::num::NonZeroU64;

use proptest::prelude::*;

use super::{play, refund, refund_aged};
use crate::limiter::histories::{cost, tiers};
use crate::limiter::log::LogCall;
use crate::limiter::memory::LogMemory;
use crate::limiter::refund::RecordedAt;
use crate::limiter::units::{Age, Cost, Timestamp};
use crate::limiter::{Call, Foreign};

const NOW: i64 = 1_767_323_045_000;

fn packed() -> LogMemory {
    let tiers = tiers(&[(1 << 40, 10_000)]);
    let mut set = LogMemory::default();
    for call in 0..60 {
        play(&mut set, NOW - 600 + 10 * call, &tiers, cost(3), false);
    }
    set
}

fn call(set: &mut LogMemory, now: i64, window: u64, limit: u64) -> Result<(), Foreign> {
    let tiers = tiers(&[(limit, window)]);
    let mut call = LogCall::read(set, Timestamp::from_millis(now), &tiers, cost(7))?;
    call.settle(true)?;
    call.outlooks()?;
    call.commit();
    Ok(())
}

fn refund_all(set: &mut LogMemory, units: u64) -> Result<(), Foreign> {
    refund(set, NonZeroU64::new(units).unwrap()).map(drop)
}

fn refund_old(set: &mut LogMemory, units: u64, age: u64) -> Result<(), Foreign> {
    let recorded = RecordedAt::ago(Timestamp::from_millis(NOW), Age::new(age).unwrap());
    refund_aged(set, NonZeroU64::new(units).unwrap(), recorded).map(drop)
}

type Action<'a> = &'a dyn Fn(&mut LogMemory) -> Result<(), Foreign>;

/// Whatever read it is that finds foreign data, nothing has been written before it.
#[test]
fn a_failed_read_leaves_all_as_it_was() {
    let actions: [(Action<'_>, usize); 8] = [
        (&|set| call(set, NOW, 10_000, 100), 3),
        (&|set| call(set, NOW, 300, 90), 3),
        (&|set| call(set, NOW - 9_000, 300, 90), 2),
        (&|set| refund_all(set, 1), 1),
        (&|set| refund_all(set, 6), 2),
        (&|set| refund_all(set, 100), 5),
        (&|set| refund_old(set, 2, 600), 5),
        (&|set| refund_old(set, 200, 300), 5),
    ];
    for (place, (action, at_least)) in actions.iter().enumerate() {
        let mut failures = 0;
        for reads in 0.. {
            let mut set = packed();
            set.reads_left.set(Some(reads));
            let before = set.ordered.clone();
            if action(&mut set).is_ok() {
                break;
            }
            failures += 1;
            assert_eq!(set.ordered, before, "action {place} after {reads} reads");
        }
        assert!(
            failures >= *at_least,
            "only {failures} reads by action {place}"
        );
    }
}

#[test]
fn totals_that_do_not_add_up_are_foreign() {
    let tiers = tiers(&[(10, 100)]);
    let members = [(1_000, "50:5"), (1_001, "49:7")];
    let members = members.map(|(time, member)| (time, member.as_bytes().to_vec()));
    let mut set = LogMemory::of(members);
    let read = LogCall::read(&mut set, Timestamp::from_millis(1_002), &tiers, Cost::ONE);
    assert_eq!(read.err(), Some(Foreign::Log));
}

#[test]
fn the_newest_entry_is_never_packed() {
    let mut set = LogMemory::of([(NOW, b"5:2:33".to_vec())]);
    assert_eq!(call(&mut set, NOW, 1_000, 10), Err(Foreign::Log));
    assert_eq!(refund_all(&mut set, 1), Err(Foreign::Log));
    let mut set = LogMemory::of([(NOW, b"@5".to_vec())]);
    assert_eq!(call(&mut set, NOW, 1_000, 10), Err(Foreign::LogOfLeases));
    assert_eq!(refund_all(&mut set, 1), Err(Foreign::LogOfLeases));
}

/// Members in the shape of a log's, or nearly.
fn strange() -> impl Strategy<Value = (i64, Vec<u8>)> {
    let text = prop_oneof![
        6 => "[0-9]{1,3}:[1-9](:[0-9A-Z_-]{2,9})?",
        1 => "[0-9]{1,20}:[1-9][0-9]{0,19}(:[0-9A-Za-z_-]{0,40})?",
        1 => "[0-9a-z:@_-]{0,9}",
    ];
    (-50_i64..50, text).prop_map(|(time, text)| (NOW + time, text.into_bytes()))
}

/// A log of which single bytes of some members are others.
fn mutated() -> impl Strategy<Value = LogMemory> {
    let change = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<u8>(),
    );
    prop::collection::vec(change, 1..4).prop_map(|changes| {
        let mut members = packed().ordered.into_iter().collect::<Vec<_>>();
        for (member, byte, value) in changes {
            let text = &mut member.get_mut(&mut members).1;
            let place = byte.index(text.len());
            // Mostly another character that may stand there.
            text[place] = if value < 200 {
                b"0123456789:ZWz_-"[usize::from(value % 16)]
            } else {
                value
            };
        }
        LogMemory::of(members)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn nothing_that_is_stored_makes_a_panic(
        set in prop_oneof![
            prop::collection::vec(strange(), 0..40).prop_map(LogMemory::of),
            mutated(),
        ],
        window in prop_oneof![1_u64..700, Just(315_576_000_000)],
        limit in prop_oneof![1_u64..300, Just((1 << 53) - 1)],
        step in -700_i64..700,
        units in prop_oneof![1_u64..300, Just((1 << 53) - 1)],
        age in 0_u64..2_000,
    ) {
        let actions: [Action<'_>; 3] = [
            &|set| (0..20).try_for_each(|later| call(set, NOW + step + later, window, limit)),
            &|set| refund_all(set, units),
            &|set| refund_old(set, units, age),
        ];
        for action in actions {
            let mut set = set.clone();
            let before = set.ordered.clone();
            let work = set.work.commands;
            if action(&mut set).is_err() && set.work.commands == work {
                prop_assert_eq!(&set.ordered, &before);
            }
        }
    }
}
