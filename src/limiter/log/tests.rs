//! The log in memory against the naive oracle.

mod bounds;
mod dense;
mod foreign;
mod positions;
mod search;

use proptest::prelude::*;

use super::{LogCall, refund, refund_aged};
use crate::limiter::histories::{History, Refund, Step, cost, histories, reply, tiers};
use crate::limiter::memory::LogMemory;
use crate::limiter::refund::RecordedAt;
use crate::limiter::tier::Tiers;
use crate::limiter::units::{Age, Cost, Timestamp};
use crate::limiter::verdict::{Verdict, Wait};
use crate::limiter::{Call, oracle};

fn play(store: &mut LogMemory, now: i64, tiers: &Tiers, units: Cost, force: bool) -> Verdict {
    let mut call = LogCall::read(store, Timestamp::from_millis(now), tiers, units).unwrap();
    let record = force || !call.is_over();
    let verdict = call.settle(record).unwrap();
    call.commit();
    verdict
}

fn peek(store: &LogMemory, now: i64, tiers: &Tiers, units: Cost) -> Verdict {
    let mut store = store.clone();
    LogCall::read(&mut store, Timestamp::from_millis(now), tiers, units)
        .unwrap()
        .settle(false)
        .unwrap()
}

fn is_over(store: &LogMemory, now: i64, tiers: &Tiers, units: Cost) -> bool {
    let mut store = store.clone();
    LogCall::read(&mut store, Timestamp::from_millis(now), tiers, units)
        .unwrap()
        .is_over()
}

/// A log and what the oracle says of it.
#[derive(Clone, Debug)]
struct Pair {
    set: LogMemory,
    oracle: oracle::Log,
    tiers: Vec<(u64, u64)>,
}

impl Pair {
    fn new(tiers: &[(u64, u64)]) -> Self {
        Self {
            set: LogMemory::default(),
            oracle: oracle::Log::new(),
            tiers: tiers.to_vec(),
        }
    }

    fn step(&mut self, now: i64, step: &Step) -> Result<(), TestCaseError> {
        if let Some(refund) = step.refund {
            self.refund(now, refund)?;
        }
        self.call(now, step.cost, step.force)
    }

    fn refund(&mut self, now: i64, Refund { units, age }: Refund) -> Result<(), TestCaseError> {
        let (refunded, expected) = match age {
            None => (
                refund(&mut self.set, units),
                self.oracle.refund(units.get()),
            ),
            Some(age) => {
                let time = Timestamp::from_millis(now);
                let recorded = RecordedAt::ago(time, Age::new(age).unwrap());
                (
                    refund_aged(&mut self.set, units, recorded),
                    self.oracle.refund_aged(now, units.get(), age),
                )
            }
        };
        prop_assert_eq!(
            refunded,
            Ok(expected),
            "refunding {} of {:?} at {}",
            units,
            age,
            now
        );
        self.check(i128::MIN)
    }

    fn call(&mut self, now: i64, units: u64, force: bool) -> Result<(), TestCaseError> {
        let call = oracle::Call {
            tiers: &self.tiers,
            cost: units,
            force,
        };
        let tiers = tiers(&self.tiers);
        let units = cost(units);
        let peeked = peek(&self.set, now, &tiers, units);
        prop_assert_eq!(
            reply(&peeked),
            self.oracle.peek(now, call),
            "peeking at {}",
            now
        );
        let verdict = play(&mut self.set, now, &tiers, units, force);
        let expected = self.oracle.call(now, call);
        prop_assert_eq!(reply(&verdict), expected, "{:?} at {}", call, now);

        if verdict.over
            && let Wait::For(wait) = verdict.retry_after
        {
            let fits = now + i64::try_from(wait.get()).unwrap();
            prop_assert!(!is_over(&self.set, fits, &tiers, units));
            prop_assert!(is_over(&self.set, fits - 1, &tiers, units));
        }
        let newest = self.oracle.entries().last().map_or(0, |newest| newest.0);
        let longest = self.tiers.iter().map(|tier| tier.1).max().unwrap();
        self.check(newest.max(now.into()) - i128::from(longest))
    }

    /// Checks that the set holds what it should, spelled as it should be, and nothing that has not
    /// expired is missing.
    fn check(&mut self, expired: i128) -> Result<(), TestCaseError> {
        let members = self.set.members();
        let Some(stored) = oracle::stored::log(&members) else {
            return Err(TestCaseError::fail(format!("{members:?} is no log")));
        };
        prop_assert!(members.iter().all(|(member, _)| member.len() <= 256));
        let wide = |entry: &oracle::stored::Entry| (i128::from(entry.time), i128::from(entry.cost));
        let entries = stored.iter().map(wide).collect::<Vec<_>>();
        let all = self.oracle.entries();
        prop_assert!(
            all.ends_with(&entries),
            "{entries:?} is not the end of {all:?}"
        );
        let missing = &all[..all.len() - entries.len()];
        prop_assert!(
            missing.iter().all(|entry| entry.0 <= expired),
            "{missing:?} is missing"
        );
        if !missing.is_empty() {
            self.oracle = oracle::Log::holding(&stored);
        }
        Ok(())
    }
}

fn agrees_with_the_oracle(history: &History) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(&history.tiers);
    let mut now = history.start;
    for step in &history.steps {
        now = (now + step.elapsed).max(0);
        pair.step(now, step)?;
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
