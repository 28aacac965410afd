//! Whether what came of a step is what the rules say.

use redis::{Value, from_redis_value_ref};

use super::{BESIDE, Case, KEY, Name, Seen, Step};
use crate::mutation::content::{Answer, Kind};
use crate::support::oracle::{Call, Oracle, Question, Reply, Shape};
use crate::support::{all_replies, error_text};
use crate::wire::five;

/// How the answers were, for the test to see that there were all kinds.
#[derive(Debug, Default)]
pub struct Tally {
    as_the_oracle: u64,
    foreign: u64,
    only_possible: u64,
    wrong_type: u64,
}

impl Tally {
    /// How many answers there were of the rarest kind. Of a counter all is sure.
    pub fn least(&self, kind: Kind) -> u64 {
        let least = self.as_the_oracle.min(self.foreign).min(self.wrong_type);
        match kind {
            Kind::Log => least.min(self.only_possible),
            Kind::Counter => least,
        }
    }
}

impl Step {
    /// Checks what came of it against what the rules say of such a key.
    #[track_caller]
    pub fn check(&self, case: &Case, seen: &Seen, tally: &mut Tally) {
        let show = || self.show(case, seen);
        if seen.result.is_err() || self.name == Name::Peek {
            assert!(seen.unchanged, "it changed something: {}", show());
        }
        if self.name == Name::Wrong {
            tally.wrong_type += seen.check_wrong_type(&show);
            return;
        }
        let windows = case.limits.windows();
        let windows = (self.name != Name::Refund).then_some(&windows[..]);
        let answer = seen.content.answer(KEY, windows, case.limits.shape);
        match (&answer, &seen.result) {
            (Answer::Of(_), Err(error)) => panic!("{error}: {}", show()),
            (_, Err(error)) => {
                let expected = seen.content.foreign(self.name == Name::Peek);
                let told = error_text(error);
                assert!(expected.contains(&told.as_str()), "{told}: {}", show());
                tally.foreign += 1;
            }
            (Answer::Foreign, Ok(_)) => panic!("no error: {}", show()),
            (Answer::Of(oracle) | Answer::OfOrForeign(oracle), Ok(reply)) => {
                let sure = matches!(answer, Answer::Of(_));
                let agrees = seen.clock().any(|now| {
                    let mut oracle = oracle.clone();
                    self.replied(case, &mut oracle, now, reply)
                        && (!sure || seen.peeked(case, &oracle, now))
                });
                let peek = oracle.peek(seen.before, self.call(), case.limits.shape);
                assert!(agrees, "not {peek:?} or what follows: {}", show());
                tally.as_the_oracle += 1;
            }
            (Answer::PossibleOrForeign, Ok(reply)) => {
                let possible = seen.clock().any(|now| self.may_reply(case, now, reply));
                assert!(possible, "impossible: {}", show());
                tally.only_possible += 1;
            }
        }
    }

    fn show(&self, case: &Case, seen: &Seen) -> String {
        format!(
            "{self:?} on {} beside {} from {} to {}: {:?}, then {:?}",
            seen.content.show(),
            case.beside.show(),
            seen.before,
            seen.after,
            seen.result,
            seen.peek
        )
    }

    /// Whether this is the reply of a key with this state, which is then as after the step.
    fn replied(&self, case: &Case, oracle: &mut Oracle, now: i64, reply: &Value) -> bool {
        let shape = case.limits.shape;
        match self.name {
            Name::Refund => {
                let taken = match self.age {
                    None => oracle.refund(now, self.cost),
                    Some(age) => oracle.refund_aged(now, self.cost, age),
                };
                *reply == Value::Int(taken.try_into().expect("less than 2^53"))
            }
            Name::Peek => five(reply) == oracle.peek(now, self.call(), shape),
            Name::Call => five(reply) == oracle.call(now, self.call(), shape),
            Name::All => {
                let here = oracle.peek(now, self.call(), shape);
                let over = here.limited == 1 || self.beside(case, now, false).limited == 1;
                let recorded = !over || self.force;
                let own = judge(oracle, now, self.call(), shape, recorded);
                all_replies(reply) == (i64::from(over), vec![own, self.beside(case, now, recorded)])
            }
            Name::Wrong => false,
        }
    }

    /// Whether a key of some state or other may give this reply, and the good key this one.
    fn may_reply(&self, case: &Case, now: i64, reply: &Value) -> bool {
        match self.name {
            Name::Refund => {
                from_redis_value_ref::<u64>(reply).is_ok_and(|taken| taken <= self.cost)
            }
            Name::All => {
                let (limited, replies) = all_replies(reply);
                let recorded = limited == 0 || self.force;
                let any = replies.iter().any(|reply| reply.limited == 1);
                limited == i64::from(any)
                    && self.is_possible(replies[0])
                    && replies[1..] == [self.beside(case, now, recorded)]
            }
            Name::Call | Name::Peek | Name::Wrong => self.is_possible(five(reply)),
        }
    }

    fn is_possible(&self, reply: Reply) -> bool {
        let int = |number: u64| i64::try_from(number).expect("less than 2^53");
        let longest = self.tiers.iter().map(|tier| int(tier.1)).max();
        let longest = longest.expect("at least one tier");
        let waits = match (reply.limited, reply.retry_after) {
            (0, wait) => wait == 0,
            (1, wait) => wait == -1 || (1..=2 * longest).contains(&wait),
            _ => false,
        };
        waits
            && self.tiers.iter().any(|tier| int(tier.0) == reply.limit)
            && (0..=reply.limit).contains(&reply.remaining)
            && (0..=2 * longest).contains(&reply.reset_after)
    }

    fn beside(&self, case: &Case, now: i64, recorded: bool) -> Reply {
        let limits = case.beside_limits;
        let answer = case
            .beside
            .answer(BESIDE, Some(&limits.windows()), limits.shape);
        let Answer::Of(mut oracle) = answer else {
            panic!("the key beside is not good: {:?}", case.beside);
        };
        let call = Call {
            tiers: &limits.tiers,
            cost: self.cost_beside,
            force: self.force,
        };
        judge(&mut oracle, now, call, limits.shape, recorded)
    }
}

impl Seen {
    fn clock(&self) -> std::ops::RangeInclusive<i64> {
        self.before..=self.after
    }

    /// Whether the peek that followed says what this state does, at this time or a little later.
    fn peeked(&self, case: &Case, oracle: &Oracle, now: i64) -> bool {
        let tiers = [case.limits.widest()];
        let call = Call {
            tiers: &tiers,
            cost: 1,
            force: false,
        };
        let peek = self.peek.as_ref().map(five);
        (now..=self.after).any(|later| peek == Ok(oracle.peek(later, call, case.limits.shape)))
    }

    /// A key that is missing has no type to be wrong.
    #[track_caller]
    fn check_wrong_type(&self, show: &impl Fn() -> String) -> u64 {
        if self.content.pairs.is_empty() {
            return 0;
        }
        match &self.result {
            Err(error) => {
                let told = error_text(error);
                assert!(
                    self.content.wrong_type().contains(&told),
                    "{told}: {}",
                    show()
                );
            }
            Ok(_) => panic!("no error: {}", show()),
        }
        1
    }
}

fn judge(oracle: &mut Oracle, now: i64, call: Call, shape: Shape, recorded: bool) -> Reply {
    if recorded {
        // What is recorded for both keys, is so whatever this key says.
        let call = Call {
            force: true,
            ..call
        };
        oracle.call(now, call, shape)
    } else {
        oracle.refuse(now, Question::Limit(call, shape))
    }
}
