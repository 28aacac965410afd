//! The counter in memory against the naive oracle.

use proptest::prelude::*;

use super::{BucketCount, BucketLayout, CounterCall, Phase, Shape, refund, refund_aged};
use crate::limiter::histories::{History, Refund, cost, histories, reply, tiers};
use crate::limiter::memory::CounterMemory;
use crate::limiter::refund::RecordedAt;
use crate::limiter::tier::Tiers;
use crate::limiter::units::{Age, Cost, Timestamp};
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
    let key = history.key.as_slice();
    let (mut store, mut counter) = (CounterMemory::of_key(key), oracle::Counter::new(key));
    let mut now = history.start;
    for step in &history.steps {
        now = (now + step.elapsed).max(0);
        if let Some(Refund { units, age }) = step.refund {
            let time = Timestamp::from_millis(now);
            let (refunded, expected) = match age {
                None => (
                    refund(&mut store, units, time),
                    counter.refund(now, units.get()),
                ),
                Some(age) => {
                    let recorded = RecordedAt::ago(time, Age::new(age).unwrap());
                    (
                        refund_aged(&mut store, units, time, recorded),
                        counter.refund_aged(now, units.get(), age),
                    )
                }
            };
            prop_assert_eq!(refunded, Ok(expected), "refunding at {} in {:?}", now, step);
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

        if verdict.over
            && let Wait::For(wait) = verdict.retry_after
        {
            let fits = now + i64::try_from(wait.get()).unwrap();
            prop_assert!(!is_over(&store, fits, &tiers, shape, cost(step.cost)));
            prop_assert!(is_over(&store, fits - 1, &tiers, shape, cost(step.cost)));
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    /// A caller whose window is new in each call, such as "until midnight".
    #[test]
    fn a_counter_of_ever_new_windows_stays_small(
        longest in 10_u64..500,
        gaps in prop::collection::vec(0_i64..20, 400),
    ) {
        let mut store = CounterMemory::default();
        let mut now = 1_000_000;
        for (place, gap) in gaps.iter().enumerate() {
            now += gap;
            let window = 1 + u64::try_from(place).unwrap() % longest;
            let before = store.fields.clone();
            play(&mut store, now, &tiers(&[(1_000_000, window)]), CLASSIC, Cost::ONE, false);
            for field in before.keys().filter(|field| !store.fields.contains_key(*field)) {
                let layout = BucketLayout::parse(field).unwrap();
                let counted = CounterMemory { fields: before.clone(), ..Default::default() };
                let tiers = tiers(&[(0, layout.window().get())]);
                prop_assert!(!is_over(&counted, now, &tiers, CLASSIC, cost(0)), "{layout:?} counts");
            }
        }
        let most = usize::try_from(2 * longest).unwrap();
        prop_assert!(store.fields.len() <= most.min(200) + 40, "{} fields", store.fields.len());
    }
}

#[test]
fn keys_have_their_windows_at_different_moments() {
    let tiers = tiers(&[(1, 3_600_000)]);
    let mut ends = std::collections::HashSet::new();
    for client in 0..200 {
        let mut store = CounterMemory::of_key(format!("client:{client}").as_bytes());
        let verdict = play(
            &mut store,
            1_767_323_045_000,
            &tiers,
            CLASSIC,
            Cost::ONE,
            false,
        );
        ends.insert(verdict.reported.reset.get());
    }
    assert!(ends.len() > 190, "only {} different ends", ends.len());
    assert_eq!(Phase::of(b"client:1"), Phase::of(b"client:1"));
}

#[test]
fn a_bucket_saturates_below_2_to_the_57() {
    let tiers = tiers(&[(10, 1_000)]);
    let most = (1_u64 << 57) - 1;
    let mut store = CounterMemory::default();
    let cost = cost((1 << 53) - 1);
    for _ in 0..17 {
        play(&mut store, 5_500, &tiers, CLASSIC, cost, true);
    }
    let field = || format!("5:{most}:0").into_bytes();
    assert_eq!(store.fields.get(&b"1000"[..]), Some(&field()));
    // Nothing overflows where it counts as the bucket that leaves, nor where strict counts both.
    play(&mut store, 6_500, &tiers, CLASSIC, cost, true);
    let strict = Shape {
        strict: true,
        ..CLASSIC
    };
    assert!(is_over(&store, 6_500, &tiers, strict, Cost::ONE));
}

#[test]
fn a_clock_fault_cuts_the_expiry_and_nothing_else_does() {
    let tiers = tiers(&[(10, 1_000)]);
    let mut store = CounterMemory::default();
    play(&mut store, 90_000, &tiers, CLASSIC, Cost::ONE, false);
    assert_eq!(store.expiry, Some(Timestamp::from_millis(92_000)));
    // Up to a window back, time stands still, and so does the expiry.
    play(&mut store, 89_100, &tiers, CLASSIC, Cost::ONE, false);
    assert_eq!(store.expiry, Some(Timestamp::from_millis(92_000)));
    // By more, what was recorded is dated anew, by a limited call too.
    play(&mut store, 5_000, &tiers, CLASSIC, cost(10), false);
    assert_eq!(store.expiry, Some(Timestamp::from_millis(7_000)));
    assert_eq!(store.fields.get(&b"1000"[..]), Some(&b"5:2:0".to_vec()));
    // A limited call changes no expiry otherwise.
    store.expiry = None;
    play(&mut store, 6_000, &tiers, CLASSIC, cost(10), false);
    assert_eq!(store.expiry, None);
}

/// No counter writes such an index, and a hash can hold it all the same.
#[test]
fn a_refund_at_the_end_of_time_takes_what_is_there() {
    let mut store = CounterMemory::default();
    let value = format!("{}:7:0", u64::MAX);
    store.fields.insert(b"60000".to_vec(), value.into_bytes());
    let now = Timestamp::from_millis(1_767_323_045_000);
    let units = std::num::NonZeroU64::new(5).unwrap();
    let recorded = RecordedAt::ago(now, Age::new(0).unwrap());
    assert_eq!(refund_aged(&mut store, units, now, recorded), Ok(0));
    assert_eq!(refund(&mut store, units, now), Ok(5));
}
