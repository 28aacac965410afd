//! Leases in memory against the naive oracle.

use proptest::prelude::*;

use super::{LeaseCall, LeaseId, LeaseStore, Take, release};
use crate::limiter::Call;
use crate::limiter::histories::reply;
use crate::limiter::memory::LeaseMemory;
use crate::limiter::oracle::{self, stored::Place};
use crate::limiter::units::{Limit, Timestamp, Ttl};
use crate::limiter::verdict::{Verdict, Wait};

const DAY: i64 = 86_400_000;

/// One call of a history, or one release.
#[derive(Clone, Debug)]
struct Step {
    /// How far the clock went since the last one, in ms; it can go back.
    elapsed: i64,
    limit: u64,
    ttl: u64,
    id: u16,
    force: bool,
    does: Does,
}

#[derive(Clone, Debug)]
enum Does {
    Take,
    /// The call is over another key's limit.
    Refuse,
    Release(Vec<u16>),
}

fn id(number: u16) -> LeaseId {
    LeaseId::new(number.to_string().as_bytes()).unwrap()
}

fn take(limit: u64, ttl: u64, number: u16) -> Take {
    Take {
        limit: Limit::new(limit).unwrap(),
        ttl: Ttl::new(ttl).unwrap(),
        id: id(number),
    }
}

fn at(now: i64) -> Timestamp {
    Timestamp::from_millis(now)
}

/// Plays a call; `record` says what is recorded, given whether it is over the limit.
fn play(
    store: &mut LeaseMemory,
    now: i64,
    take: &Take,
    record: impl FnOnce(bool) -> bool,
) -> Verdict {
    let mut call = LeaseCall::read(store, at(now), take).unwrap();
    let record = record(call.is_over());
    let verdict = call.settle(record).unwrap();
    call.commit();
    verdict
}

fn peek(store: &LeaseMemory, now: i64, limit: u64) -> Verdict {
    let mut store = store.clone();
    let mut call = LeaseCall::peek(&mut store, at(now), Limit::new(limit).unwrap()).unwrap();
    call.settle(false).unwrap()
}

fn places(store: &LeaseMemory) -> Vec<Place> {
    let place = |lease: &super::Lease| Place {
        id: lease.id.member()[1..].to_vec(),
        end: lease.end.as_millis(),
    };
    store.leases.iter().map(place).collect()
}

/// Compares what is stored with what the oracle has. Only ended leases may be missing; the oracle then
/// forgets them too.
fn forget_ended(
    store: &LeaseMemory,
    leases: &mut oracle::Lease,
    now: i64,
) -> Result<(), TestCaseError> {
    let stored = places(store);
    let (mut kept, mut missing) = (leases.places(), leases.places());
    kept.retain(|place| stored.contains(place));
    missing.retain(|place| !stored.contains(place));
    prop_assert_eq!(&kept, &stored);
    prop_assert!(missing.iter().all(|place| place.end <= now), "{missing:?}");
    prop_assert_eq!(missing.len(), store.removed);
    prop_assert!(store.removed <= 64);
    *leases = oracle::Lease::holding(&stored);
    Ok(())
}

fn agrees_with_the_oracle(start: i64, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut store, mut leases) = (LeaseMemory::default(), oracle::Lease::new());
    let mut now = start;
    for step in steps {
        now = (now + step.elapsed).max(0);
        store.removed = 0;
        let peeked = reply(&peek(&store, now, step.limit));
        prop_assert_eq!(peeked, leases.peek(now, step.limit), "peeking at {}", now);

        if let Does::Release(numbers) = &step.does {
            let ids = numbers.iter().map(|number| id(*number)).collect::<Vec<_>>();
            let released = release(&mut store, at(now), &ids).unwrap();
            let names = ids.iter().map(|id| &id.member()[1..]).collect::<Vec<_>>();
            let expected = leases.release(now, &names);
            prop_assert_eq!(released as u64, expected, "releasing at {}", now);
            forget_ended(&store, &mut leases, now)?;
            continue;
        }

        let take = take(step.limit, step.ttl, step.id);
        let asked = oracle::Take {
            limit: step.limit,
            ttl: step.ttl,
            id: &take.id.member()[1..],
            force: step.force,
        };
        let latest = |leases: &oracle::Lease| leases.places().last().map(|place| place.end);
        let is_misdated = latest(&leases).is_some_and(|end| end > now + DAY);
        let (verdict, expected) = match step.does {
            Does::Refuse => (
                play(&mut store, now, &take, |_| false),
                leases.refuse(now, asked),
            ),
            _ => (
                play(&mut store, now, &take, |over| !over || step.force),
                leases.call(now, asked),
            ),
        };
        prop_assert_eq!(reply(&verdict), expected, "at {} in {:?}", now, step);
        let last = latest(&leases);
        forget_ended(&store, &mut leases, now)?;

        let recorded = !matches!(step.does, Does::Refuse) && (!verdict.over || step.force);
        let expiry = store.expiry.map(Timestamp::as_millis);
        if is_misdated {
            prop_assert_eq!(expiry, last, "the expiry is set afresh");
        } else if recorded {
            prop_assert!(expiry >= last);
        }
        obeys_its_wait(&store, now, &take, &verdict)?;
    }
    Ok(())
}

/// A new id gets in after the wait, and not before.
fn obeys_its_wait(
    store: &LeaseMemory,
    now: i64,
    take: &Take,
    verdict: &Verdict,
) -> Result<(), TestCaseError> {
    let Wait::For(wait) = verdict.retry_after else {
        prop_assert_eq!(take.limit.get(), 0);
        return Ok(());
    };
    let is_over = |now| {
        let newcomer = Take {
            id: LeaseId::new(b"newcomer").unwrap(),
            ..take.clone()
        };
        let mut store = store.clone();
        let call = LeaseCall::read(&mut store, at(now), &newcomer).unwrap();
        (call.is_over(), call.is_healed())
    };
    let fits = now + i64::try_from(wait.get()).unwrap();
    // Once more dates are set right on the way, it may be sooner.
    if verdict.over && !is_over(now).1 {
        prop_assert!(wait.get() > 0);
        prop_assert!(!is_over(fits).0, "at {}", fits);
        prop_assert!(is_over(fits - 1).0, "at {}", fits - 1);
    }
    Ok(())
}

fn steps(ids: u16, count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let elapsed = prop_oneof![
        6 => Just(0_i64),
        10 => 0_i64..40,
        4 => 0_i64..2_000,
        1 => 0..=DAY,
        1 => -50_i64..0,
        1 => -3 * DAY..0,
    ];
    let limit = prop_oneof![
        8 => 0..=u64::from(ids),
        1 => Just((1_u64 << 53) - 1),
    ];
    let ttl = prop_oneof![
        6 => 1_u64..60,
        3 => 1_u64..3_000,
        1 => 1..=DAY.unsigned_abs(),
    ];
    let does = prop_oneof![
        12 => Just(Does::Take),
        2 => Just(Does::Refuse),
        3 => prop::collection::vec(0..ids, 1..4).prop_map(Does::Release),
    ];
    let step = (elapsed, limit, ttl, 0..ids, prop::bool::weighted(0.2), does);
    let step = step.prop_map(|(elapsed, limit, ttl, id, force, does)| Step {
        elapsed,
        limit,
        ttl,
        id,
        force,
        does,
    });
    prop::collection::vec(step, count)
}

/// Many places that are taken at about the same time, before the clock does anything: more than one
/// call removes, dates anew, or walks past.
fn bursts() -> impl Strategy<Value = Vec<Step>> {
    let burst = (1_u16..200, 0_i64..3, 1_u64..300, prop::bool::ANY).prop_map(
        |(count, elapsed, ttl, varied)| {
            (0..count)
                .map(|id| Step {
                    elapsed,
                    limit: 1_000,
                    ttl: if varied { ttl + u64::from(id) } else { ttl },
                    id,
                    force: false,
                    does: Does::Take,
                })
                .collect::<Vec<_>>()
        },
    );
    prop::collection::vec((burst, steps(200, 1..12)), 1..3).prop_map(|parts| {
        let parts = parts.into_iter();
        parts
            .flat_map(|(burst, rest)| [burst, rest].concat())
            .collect()
    })
}

fn starts() -> impl Strategy<Value = i64> {
    prop_oneof![0..3_i64, Just(1_767_323_045_678_i64)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]
    #[test]
    fn every_reply_equals_the_oracles(start in starts(), steps in steps(12, 1..24)) {
        agrees_with_the_oracle(start, &steps)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]
    #[test]
    fn every_reply_equals_the_oracles_in_bursts(start in starts(), steps in bursts()) {
        agrees_with_the_oracle(start, &steps)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    #[test]
    fn no_more_places_than_the_limit(steps in steps(12, 1..40), limit in 0_u64..6) {
        let mut store = LeaseMemory::default();
        let mut now = 1_000_000_000;
        for step in steps {
            now += step.elapsed.abs();
            if let Does::Release(numbers) = &step.does {
                let ids = numbers.iter().map(|number| id(*number)).collect::<Vec<_>>();
                release(&mut store, at(now), &ids).unwrap();
            } else {
                play(&mut store, now, &take(limit, step.ttl, step.id), |over| !over);
            }
            let live = store.leases.iter().filter(|lease| lease.end > at(now)).count();
            prop_assert!(live as u64 <= limit);
        }
    }
}

/// Leases 0, 1, 2 … that end at these times.
fn holding(ends: impl IntoIterator<Item = i64>) -> LeaseMemory {
    let leases = ends.into_iter().zip(0..);
    let leases = leases.map(|(end, number)| super::Lease {
        end: at(end),
        id: id(number),
    });
    LeaseMemory {
        leases: leases.collect(),
        ..LeaseMemory::default()
    }
}

/// How many leases a call looked at, and how often it had them counted.
fn looks(store: &mut LeaseMemory, call: impl FnOnce(&mut LeaseMemory)) -> (usize, usize) {
    store.shown.set(0);
    store.counted.set(0);
    call(store);
    (store.shown.get(), store.counted.get())
}

#[test]
fn ended_leases_are_not_walked_and_go_64_at_a_time() {
    let mut store = holding((0..10_000).map(|place| 1_000 + place));
    let now = 20_000;
    for gone in 1..=157_u16 {
        let take = take(1, 5_000, 20_000);
        let looks = looks(&mut store, |store| {
            assert!(!play(store, now, &take, |over| !over).over);
        });
        assert!(looks.0 <= 20 && looks.1 <= 1, "{looks:?}");
        let left = 10_000_usize.saturating_sub(64 * usize::from(gone));
        assert_eq!(store.len(), 1 + left);
    }
}

#[test]
fn a_long_wait_is_searched_not_walked() {
    // Of 10,000 leases all but one have to end.
    let ends = (0..10_000).map(|place| 1_000_000 + 7 * place);
    let mut store = holding(ends);
    let mut wait = Wait::NONE;
    let looked = looks(&mut store, |store| {
        wait = play(store, 0, &take(1, 5_000, 20_000), |over| !over).retry_after;
    });
    let last = 1_000_000 + 7 * 9_999;
    assert_eq!(wait, Wait::For(at(last).since(at(0))));
    assert!(looked.0 <= 20 && looked.1 <= 30, "{looked:?}");
}

#[test]
fn a_renewal_keeps_one_place() {
    let mut store = LeaseMemory::default();
    for now in 0..10_000 {
        let verdict = play(&mut store, now, &take(2, 60_000, 7), |over| !over);
        assert_eq!((verdict.over, verdict.reported.remaining), (false, 1));
        assert_eq!(store.len(), 1);
    }
}

#[test]
fn only_a_renewal_needs_no_memory() {
    let mut store = holding([1_000, 5_000]);
    let mut needs_memory = |number| {
        let take = take(9, 1_000, number);
        let call = LeaseCall::read(&mut store, at(2_000), &take).unwrap();
        call.needs_memory()
    };
    assert!(needs_memory(0), "it has ended");
    assert!(!needs_memory(1));
    assert!(needs_memory(2));
}
