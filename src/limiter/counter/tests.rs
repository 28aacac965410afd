//! The counter in memory against the naive oracle.

use proptest::prelude::*;

use super::{BucketCount, CounterCall, Shape, refund};
use crate::limiter::histories::{History, cost, histories, reply, tiers};
use crate::limiter::memory::CounterMemory;
use crate::limiter::tier::Tiers;
use crate::limiter::units::{Cost, Timestamp};
use crate::limiter::verdict::{Verdict, Wait};
use crate::limiter::{Call, oracle};

/// The current window and the weighted previous one.
const CLASSIC: Shape = Shape {
    buckets: BucketCount::ONE,
    strict: false,
};

fn play(
    store: &mut CounterMemory,
    now: i64,
    tiers: &Tiers,
    shape: Shape,
    units: Cost,
    force: bool,
) -> Verdict {
    let mut call =
        CounterCall::read(store, Timestamp::from_millis(now), tiers, shape, units).unwrap();
    let record = force || !call.is_over();
    let verdict = call.settle(record).unwrap();
    call.commit();
    verdict
}

fn peek(store: &CounterMemory, now: i64, tiers: &Tiers, shape: Shape, units: Cost) -> Verdict {
    let mut store = store.clone();
    CounterCall::read(&mut store, Timestamp::from_millis(now), tiers, shape, units)
        .unwrap()
        .settle(false)
        .unwrap()
}

fn is_over(store: &CounterMemory, now: i64, tiers: &Tiers, shape: Shape, units: Cost) -> bool {
    let mut store = store.clone();
    CounterCall::read(&mut store, Timestamp::from_millis(now), tiers, shape, units)
        .unwrap()
        .is_over()
}

fn agrees_with_the_oracle(history: &History, shape: Shape) -> Result<(), TestCaseError> {
    let tiers = tiers(&history.tiers);
    let buckets = shape.buckets.get();
    let (mut store, mut counter) = (CounterMemory::default(), oracle::Counter::new());
    let mut now = history.start;
    for step in &history.steps {
        now = (now + step.elapsed).max(0);
        if let Some(units) = step.refund {
            let refunded = refund(&mut store, units).unwrap();
            prop_assert_eq!(
                refunded,
                counter.refund(units.get()),
                "refunding at {}",
                now
            );
        }
        let call = oracle::Call {
            tiers: &history.tiers,
            cost: step.cost,
            force: step.force,
        };
        let peeked = peek(&store, now, &tiers, shape, cost(step.cost));
        prop_assert_eq!(
            reply(&peeked),
            counter.peek(now, call, buckets, shape.strict),
            "peeking at {}",
            now
        );
        let verdict = play(&mut store, now, &tiers, shape, cost(step.cost), step.force);
        let expected = counter.call(now, call, buckets, shape.strict);
        prop_assert_eq!(reply(&verdict), expected, "at {} in {:?}", now, step);

        if let Wait::For(wait) = verdict.retry_after {
            let fits = now + i64::try_from(wait.get()).unwrap();
            prop_assert!(!is_over(&store, fits, &tiers, shape, cost(step.cost)));
            if fits > now {
                prop_assert!(is_over(&store, fits - 1, &tiers, shape, cost(step.cost)));
            }
        }
    }
    Ok(())
}

fn shapes() -> impl Strategy<Value = Shape> {
    let buckets = prop_oneof![2 => 1_u64..8, 1 => 1_u64..=64];
    (buckets, any::<bool>()).prop_map(|(buckets, strict)| Shape {
        buckets: BucketCount::new(buckets).unwrap(),
        strict,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]
    #[test]
    fn every_reply_equals_the_oracles(history in histories()) {
        agrees_with_the_oracle(&history, CLASSIC)?;
    }

    #[test]
    fn every_reply_equals_the_oracles_in_every_shape(history in histories(), shape in shapes()) {
        agrees_with_the_oracle(&history, shape)?;
    }
}

#[test]
fn the_key_outlives_its_newest_bucket_by_a_window() {
    let tiers = tiers(&[(10, 60), (100, 1_000)]);
    let mut store = CounterMemory::default();
    play(&mut store, 1_030, &tiers, CLASSIC, Cost::ONE, false);
    assert_eq!(store.expiry, Some(Timestamp::from_millis(3_000)));
    play(&mut store, 1_090, &tiers, CLASSIC, Cost::ONE, false);
    assert_eq!(store.expiry, Some(Timestamp::from_millis(3_000)));
    play(&mut store, 2_000, &tiers, CLASSIC, Cost::ONE, false);
    assert_eq!(store.expiry, Some(Timestamp::from_millis(4_000)));
}
