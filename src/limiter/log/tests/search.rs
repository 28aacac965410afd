//! The search for the entry that makes room.

use proptest::prelude::*;

use super::dense::unpacked;
use super::{Pair, play};
use crate::limiter::Call;
use crate::limiter::histories::{cost, reply, tiers};
use crate::limiter::log::LogCall;
use crate::limiter::memory::LogMemory;
use crate::limiter::oracle;
use crate::limiter::units::{Cost, Timestamp};

#[test]
fn a_long_log_is_searched_to_the_exact_entry() {
    let tiers = tiers(&[(100_000, 1_000_000)]);
    let mut packed = LogMemory::default();
    for now in 1..=100_000_i64 {
        play(&mut packed, now * 7, &tiers, Cost::ONE, false);
    }
    assert!(packed.ordered.len() < 2_000);
    let (single, now) = unpacked(0, &vec![(7, 1); 100_000]);
    for mut set in [packed, single] {
        for excess in [1, 2, 4, 5, 6, 50, 70, 1_000, 54_321, 99_999, 100_000] {
            let time = Timestamp::from_millis(now);
            let reads = set.work.reads.get();
            let mut call = LogCall::read(&mut set, time, &tiers, cost(excess)).unwrap();
            let verdict = call.settle(false).unwrap();
            let leaves = i64::try_from(excess).unwrap() * 7 + 1_000_000;
            assert_eq!(
                reply(&verdict).retry_after,
                leaves - now,
                "to free {excess}"
            );
            assert!(
                set.work.reads.get() - reads <= 12,
                "steady traffic is found at once"
            );
        }
    }
}

/// Bursts with long gaps, of all sizes.
fn bursts() -> impl Strategy<Value = Vec<(i64, u64)>> {
    let burst = (
        1_i64..5_000_000,
        1_usize..60,
        1_i64..5,
        prop_oneof![Just(1_u64), 1..500_u64],
    );
    prop::collection::vec(burst, 1..30).prop_map(|bursts| {
        let entries = bursts.into_iter().flat_map(|(gap, count, within, cost)| {
            let mut entries = vec![(within, cost); count];
            entries[0].0 = gap;
            entries
        });
        entries.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn no_traffic_takes_long(entries in bursts(), packs: bool, part in 0_u64..=100) {
        let window = 1_000_000_000;
        let mut pair = Pair::new(&[((1 << 53) - 1, window)]);
        let (set, now) = unpacked(1_000, &entries);
        if packs {
            let tiers = tiers(&pair.tiers);
            let mut now = 1_000;
            for (gap, units) in &entries {
                now += gap;
                play(&mut pair.set, now, &tiers, cost(*units), false);
            }
        } else {
            pair.set = set;
        }
        pair.oracle = oracle::Log::holding(&oracle::stored::log(&pair.set.members()).unwrap());
        let used = entries.iter().map(|entry| entry.1).sum::<u64>();
        pair.tiers = vec![(used, window)];
        let units = (used * part / 100).max(1);
        pair.call(now, units, false)?;
        let reads = pair.set.work.reads.get();
        let time = Timestamp::from_millis(now);
        let tiers = tiers(&pair.tiers);
        let mut call = LogCall::read(&mut pair.set, time, &tiers, cost(units)).unwrap();
        call.settle(false).unwrap();
        prop_assert!(pair.set.work.reads.get() - reads <= 80);
    }
}
