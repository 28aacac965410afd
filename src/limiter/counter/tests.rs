//! The counter in memory against the naive oracle.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Buckets, CounterCall, CounterStore, Division, refund};
use crate::limiter::histories::{History, cost, histories, reply};
use crate::limiter::tier::Tiers;
use crate::limiter::units::{Cost, Timestamp};
use crate::limiter::verdict::{Verdict, Wait};
use crate::limiter::{Call, Foreign, oracle};

#[derive(Clone, Debug, Default)]
struct Memory {
    fields: BTreeMap<Vec<u8>, Vec<u8>>,
    expiry: Option<Timestamp>,
}

impl CounterStore for Memory {
    fn read(&mut self, division: Division) -> Result<Option<Buckets>, Foreign> {
        let value = self.fields.get(division.field().as_slice());
        value
            .map(|value| Buckets::parse(value, division).ok_or(Foreign))
            .transpose()
    }

    fn read_all(&mut self) -> Result<Vec<(Division, Buckets)>, Foreign> {
        let fields = self.fields.iter().map(|(field, value)| {
            let division = Division::parse(field).ok_or(Foreign)?;
            Ok((division, Buckets::parse(value, division).ok_or(Foreign)?))
        });
        fields.collect()
    }

    fn write(&mut self, division: Division, buckets: &Buckets) {
        self.fields
            .insert(division.field().to_vec(), buckets.value().to_vec());
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.expiry
    }

    fn expire_at(&mut self, time: Timestamp) {
        self.expiry = Some(time);
    }
}

fn play(store: &mut Memory, now: i64, tiers: &Tiers, units: Cost, force: bool) -> Verdict {
    let mut call = CounterCall::read(store, Timestamp::from_millis(now), tiers, units).unwrap();
    let record = force || !call.is_over();
    let verdict = call.settle(record).unwrap();
    call.commit();
    verdict
}

fn peek(store: &Memory, now: i64, tiers: &Tiers, units: Cost) -> Verdict {
    let mut store = store.clone();
    CounterCall::read(&mut store, Timestamp::from_millis(now), tiers, units)
        .unwrap()
        .settle(false)
        .unwrap()
}

fn is_over(store: &Memory, now: i64, tiers: &Tiers, units: Cost) -> bool {
    let mut store = store.clone();
    CounterCall::read(&mut store, Timestamp::from_millis(now), tiers, units)
        .unwrap()
        .is_over()
}

fn agrees_with_the_oracle(history: &History) -> Result<(), TestCaseError> {
    let tiers = history.tiers();
    let (mut store, mut counter) = (Memory::default(), oracle::Counter::new());
    let mut now = history.start;
    for step in &history.steps {
        now = (now + step.elapsed).max(0);
        if let Some(units) = step.refund {
            let refunded = refund(&mut store, units).unwrap();
            prop_assert_eq!(refunded, counter.refund(units), "refunding at {}", now);
        }
        let call = oracle::Call {
            tiers: &history.tiers,
            cost: step.cost,
            force: step.force,
        };
        let peeked = peek(&store, now, &tiers, cost(step.cost));
        prop_assert_eq!(
            reply(&peeked),
            counter.peek(now, call, 1, false),
            "peeking at {}",
            now
        );
        let verdict = play(&mut store, now, &tiers, cost(step.cost), step.force);
        let expected = counter.call(now, call, 1, false);
        prop_assert_eq!(reply(&verdict), expected, "at {} in {:?}", now, step);

        if let Wait::For(wait) = verdict.retry_after {
            let fits = now + i64::try_from(wait.get()).unwrap();
            prop_assert!(!is_over(&store, fits, &tiers, cost(step.cost)));
            if fits > now {
                prop_assert!(is_over(&store, fits - 1, &tiers, cost(step.cost)));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]
    #[test]
    fn every_reply_equals_the_oracles(history in histories()) {
        agrees_with_the_oracle(&history)?;
    }
}

#[test]
fn the_key_outlives_its_newest_bucket_by_a_window() {
    let tiers = History {
        tiers: vec![(10, 60), (100, 1_000)],
        start: 0,
        steps: vec![],
    }
    .tiers();
    let mut store = Memory::default();
    play(&mut store, 1_030, &tiers, Cost::ONE, false);
    assert_eq!(store.expiry, Some(Timestamp::from_millis(3_000)));
    play(&mut store, 1_090, &tiers, Cost::ONE, false);
    assert_eq!(store.expiry, Some(Timestamp::from_millis(3_000)));
    play(&mut store, 2_000, &tiers, Cost::ONE, false);
    assert_eq!(store.expiry, Some(Timestamp::from_millis(4_000)));
}
