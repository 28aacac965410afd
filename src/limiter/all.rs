//! Several limiters at once: a call is recorded in all of them or in none.

use super::verdict::{Outlook, Verdict};
use super::{Call, Foreign};

/// The calls on several keys, read and not yet written.
pub struct AllCall<'a> {
    calls: Vec<Box<dyn Call + 'a>>,
}

impl<'a> AllCall<'a> {
    /// One call for each key.
    pub fn new(calls: Vec<Box<dyn Call + 'a>>) -> Self {
        Self { calls }
    }

    /// The single calls, in their order.
    pub fn each(&self) -> impl Iterator<Item = &(dyn Call + 'a)> {
        self.calls.iter().map(Box::as_ref)
    }

    /// Whether a tier of any key is over its limit.
    pub fn is_over(&self) -> bool {
        self.each().any(Call::is_over)
    }

    /// Whether there is anything to record in any key.
    pub fn records(&self) -> bool {
        self.each().any(Call::records)
    }

    /// Whether recording takes memory that some store does not use yet.
    pub fn needs_memory(&self) -> bool {
        self.each().any(Call::needs_memory)
    }

    /// Every tier of each key, once settled.
    ///
    /// # Errors
    /// As for [`Call::outlooks`].
    pub fn outlooks(&mut self) -> Result<Vec<Vec<Outlook>>, Foreign> {
        self.calls.iter_mut().map(|call| call.outlooks()).collect()
    }

    /// Decides whether the cost is recorded, in all keys, and says how each stands after the call.
    ///
    /// # Errors
    /// As for [`Call::settle`].
    pub fn settle(&mut self, record: bool) -> Result<Vec<Verdict>, Foreign> {
        self.calls
            .iter_mut()
            .map(|call| call.settle(record))
            .collect()
    }

    /// Writes what was decided.
    pub fn commit(&mut self) {
        for call in &mut self.calls {
            call.commit();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::AllCall;
    use crate::limiter::Call;
    use crate::limiter::counter::{BucketCount, CounterCall, Shape};
    use crate::limiter::histories::{History, cost, histories, reply, tiers};
    use crate::limiter::log::LogCall;
    use crate::limiter::memory::{CounterMemory, LogMemory};
    use crate::limiter::oracle::{self, Reply};
    use crate::limiter::units::{Millis, Timestamp};

    /// Plays one history on a log and two counters together, the tiers of each its own.
    fn agrees_with_the_oracles(
        history: &History,
        others: [&History; 2],
        shape: Shape,
    ) -> Result<(), TestCaseError> {
        let histories = [history, others[0], others[1]];
        let tiers = histories.map(|history| tiers(&history.tiers));
        let shapes = [
            shape,
            Shape {
                strict: false,
                ..shape
            },
        ];
        let mut log = LogMemory::default();
        let keys = others.map(|history| history.key.as_slice());
        let mut counters = keys.map(CounterMemory::of_key);
        let mut log_oracle = oracle::Log::new();
        let mut counter_oracles = keys.map(oracle::Counter::new);
        let mut now = history.start;
        for (place, step) in history.steps.iter().enumerate() {
            now = (now + step.elapsed).max(0);
            let time = Timestamp::from_millis(now);
            let costs = histories.map(|history| history.steps[place % history.steps.len()].cost);
            let [first, second] = &mut counters;
            let mut all = AllCall::new(vec![
                Box::new(LogCall::read(&mut log, time, &tiers[0], cost(costs[0])).unwrap())
                    as Box<dyn Call>,
                Box::new(
                    CounterCall::read(first, time, &tiers[1], shapes[0], cost(costs[1])).unwrap(),
                ),
                Box::new(
                    CounterCall::read(second, time, &tiers[2], shapes[1], cost(costs[2])).unwrap(),
                ),
            ]);
            let over = all.is_over();
            let verdicts = all.settle(!over || step.force).unwrap();
            let outlooks = all.outlooks().unwrap();
            all.commit();

            let call = |key: usize| oracle::Call {
                tiers: &histories[key].tiers,
                cost: costs[key],
                force: true,
            };
            let (log_call, counter_calls) = (call(0), [call(1), call(2)]);
            let mut expected = vec![log_oracle.peek(now, log_call)];
            for i in 0..2 {
                let buckets = shape.buckets.get();
                let strict = shapes[i].strict;
                expected.push(counter_oracles[i].peek(now, counter_calls[i], buckets, strict));
            }
            let limited = expected.iter().any(|reply| reply.limited == 1);
            prop_assert_eq!(over, limited);
            let record = !limited || step.force;
            expected[0] = if record {
                log_oracle.call(now, log_call)
            } else {
                log_oracle.refuse(now, log_call)
            };
            for i in 0..2 {
                let (buckets, strict) = (shape.buckets.get(), shapes[i].strict);
                expected[i + 1] = if record {
                    counter_oracles[i].call(now, counter_calls[i], buckets, strict)
                } else {
                    counter_oracles[i].refuse(now, counter_calls[i], buckets, strict)
                };
            }
            let replies = verdicts.iter().map(reply).collect::<Vec<Reply>>();
            prop_assert_eq!(&replies, &expected, "at {} in {:?}", now, step);

            let mut standings = vec![log_oracle.standing(now, log_call, expected[0])];
            for i in 0..2 {
                let (buckets, strict) = (shape.buckets.get(), shapes[i].strict);
                let (call, reply) = (counter_calls[i], expected[i + 1]);
                standings.push(counter_oracles[i].standing(now, call, (buckets, strict), reply));
            }
            for (key, standing) in standings.iter().enumerate() {
                let outlooks = outlooks[key].iter().map(|outlook| oracle::headers::Tier {
                    limit: outlook.tier.limit.get(),
                    window: outlook.tier.window.get(),
                    remaining: outlook.remaining,
                    t: outlook.next_unit.map(Millis::get),
                });
                prop_assert_eq!(&outlooks.collect::<Vec<_>>(), &standing.tiers);
                prop_assert_eq!(verdicts[key].reported_tier, standing.reported);
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30_000))]
        #[test]
        fn every_reply_equals_the_oracles(
            history in histories(),
            second in histories(),
            third in histories(),
            buckets in 1_u64..=64,
            strict: bool,
        ) {
            let buckets = BucketCount::new(buckets).unwrap();
            agrees_with_the_oracles(&history, [&second, &third], Shape { buckets, strict })?;
        }
    }
}
