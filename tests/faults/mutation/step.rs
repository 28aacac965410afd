//! One command on a changed key, with a good key beside it, and what may follow.

use redis::{Cmd, Connection, Pipeline, RedisResult, Value, cmd, from_redis_value_ref, pipe};

use super::content::{Answer, Content};
use crate::support::oracle::grammar::Kind;
use crate::support::oracle::{Call, Oracle, Reply, Shape};
use crate::support::random::{MOST, Numbers, Tiers};
use crate::support::{add_shape, add_tiers, all_replies, error_text};
use crate::wire::five;

const KEY: &str = "changed";
const BESIDE: &str = "beside";

/// What a key is asked about.
#[derive(Debug, Clone)]
pub struct Limits {
    pub tiers: Tiers,
    pub shape: Shape,
}

/// A key whose content somebody changed, and one beside it that is as it should be.
pub struct Case<'a> {
    pub content: &'a Content,
    pub limits: &'a Limits,
    pub beside: &'a Content,
    pub beside_limits: &'a Limits,
    /// When both keys go.
    pub expiry: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Call,
    Peek,
    Refund,
    All,
    /// The command for the other type.
    Wrong,
}

#[derive(Debug)]
pub struct Step {
    name: Name,
    cost: u64,
    force: bool,
    tiers: Tiers,
}

/// What came of a step.
pub struct Seen {
    /// What the key really held: the server may not have taken all, or merged some.
    content: Content,
    before: i64,
    result: RedisResult<Value>,
    /// What a peek says afterwards.
    peek: RedisResult<Value>,
    after: i64,
    unchanged: bool,
}

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
    pub fn random(limits: &Limits, numbers: &mut Numbers) -> Self {
        let (tiers, cost) = numbers.vary(&limits.tiers);
        let name = match numbers.below(16) {
            0..6 => Name::Call,
            6..9 => Name::Peek,
            9..12 => Name::Refund,
            12..15 => Name::All,
            _ => Name::Wrong,
        };
        let force = matches!(name, Name::Call | Name::All) && numbers.one_in(4);
        Step {
            name,
            // A refund of nothing is no command.
            cost: if name == Name::Refund {
                cost.max(1)
            } else {
                cost
            },
            force,
            tiers,
        }
    }

    fn call(&self) -> Call<'_> {
        Call {
            tiers: &self.tiers,
            cost: self.cost,
            force: self.force,
        }
    }

    fn command(&self, case: &Case) -> Cmd {
        let kind = case.content.kind;
        let shape = case.limits.shape;
        let mut command = cmd(match (self.name, kind) {
            (Name::Peek, _) => "SLIDE.PEEK",
            (Name::Refund, _) => "SLIDE.REFUND",
            (Name::All, _) => "SLIDE.ALL",
            (Name::Call, Kind::Log) | (Name::Wrong, Kind::Counter) => "SLIDE.LOG",
            (Name::Call, Kind::Counter) | (Name::Wrong, Kind::Log) => "SLIDE.COUNTER",
        });
        match self.name {
            Name::Refund => {
                command.arg(KEY).arg(self.cost);
            }
            Name::All => {
                command.arg(&["2", KEY, BESIDE]);
                add_clause(&mut command, kind, &self.tiers, shape);
                let beside = case.beside_limits;
                add_clause(&mut command, case.beside.kind, &beside.tiers, beside.shape);
                self.add_options(&mut command);
            }
            Name::Wrong => {
                command.arg(KEY);
                add_tiers(&mut command, &self.tiers);
            }
            Name::Call | Name::Peek => {
                command.arg(KEY);
                add_tiers(&mut command, &self.tiers);
                self.add_options(&mut command);
                if kind == Kind::Counter {
                    add_shape(&mut command, shape);
                }
            }
        }
        command
    }

    fn add_options(&self, command: &mut Cmd) {
        command.arg("COST").arg(self.cost);
        if self.force {
            command.arg("FORCE");
        }
    }

    /// Writes both keys and runs the command, all in one transaction.
    pub fn run(&self, con: &mut Connection, case: &Case) -> Seen {
        let mut transaction = pipe();
        transaction.atomic().ignore_errors();
        case.content.write(&mut transaction, KEY, case.expiry);
        case.beside.write(&mut transaction, BESIDE, case.expiry);
        transaction.add_command(Content::query(case.content.kind, KEY));
        add_digest(&mut transaction);
        transaction.cmd("TIME");
        transaction.add_command(self.command(case));
        transaction.add_command(peek_after(case));
        transaction.cmd("TIME");
        add_digest(&mut transaction);
        let results: Vec<RedisResult<Value>> = transaction
            .query(con)
            .unwrap_or_else(|error| panic!("the server no longer answers: {error}, {self:?}"));
        let mut results = results
            .into_iter()
            .skip(case.content.commands() + case.beside.commands());
        let mut next = || results.next().expect("a result for each command");
        let content = Content::of(case.content.kind, &next().expect("the content"));
        let digest = [next().expect("digests"), next().expect("an expiry")];
        let before = millis(&next());
        let (result, peek) = (next(), next());
        let after = millis(&next());
        let unchanged = digest == [next().expect("digests"), next().expect("an expiry")];
        Seen {
            content,
            before,
            result,
            peek,
            after,
            unchanged,
        }
    }

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
        let answer = seen.content.answer(windows, case.limits.shape);
        match (&answer, &seen.result) {
            (Answer::Of(_), Err(error)) => panic!("{error}: {}", show()),
            (_, Err(error)) => {
                let expected = match case.content.kind {
                    Kind::Log => "ERR key holds a sorted set that SLIDE.LOG did not write",
                    Kind::Counter => "ERR key holds a hash that SLIDE.COUNTER did not write",
                };
                assert_eq!(error_text(error), expected, "{}", show());
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
            Name::Refund => *reply == Value::Int(oracle.refund(self.cost).try_into().unwrap()),
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
        matches!(reply.limited, 0 | 1)
            && self.tiers.iter().any(|tier| int(tier.0) == reply.limit)
            && (0..=reply.limit).contains(&reply.remaining)
            && (-1..=2 * longest).contains(&reply.retry_after)
            && (0..=2 * longest).contains(&reply.reset_after)
    }

    fn beside(&self, case: &Case, now: i64, recorded: bool) -> Reply {
        let limits = case.beside_limits;
        let answer = case.beside.answer(Some(&limits.windows()), limits.shape);
        let Answer::Of(mut oracle) = answer else {
            panic!("the key beside is not good: {:?}", case.beside);
        };
        let call = Call {
            tiers: &limits.tiers,
            ..self.call()
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
            Err(error) => assert!(error_text(error).starts_with("WRONGTYPE "), "{}", show()),
            Ok(_) => panic!("no error: {}", show()),
        }
        1
    }
}

impl Limits {
    pub fn windows(&self) -> Vec<u64> {
        self.tiers.iter().map(|tier| tier.1).collect()
    }

    /// The longest window, with a limit that nothing reaches.
    fn widest(&self) -> (u64, u64) {
        let longest = self.windows().into_iter().max();
        (MOST, longest.expect("at least one tier"))
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
        oracle.refuse(now, call, shape)
    }
}

fn peek_after(case: &Case) -> Cmd {
    let mut peek = cmd("SLIDE.PEEK");
    peek.arg(KEY);
    add_tiers(&mut peek, &[case.limits.widest()]);
    if case.content.kind == Kind::Counter {
        add_shape(&mut peek, case.limits.shape);
    }
    peek
}

fn add_digest(pipeline: &mut Pipeline) {
    pipeline.cmd("DEBUG").arg(&["DIGEST-VALUE", KEY, BESIDE]);
    pipeline.cmd("PEXPIRETIME").arg(KEY);
}

fn add_clause(command: &mut Cmd, kind: Kind, tiers: &[(u64, u64)], shape: Shape) {
    command.arg(match kind {
        Kind::Log => "LOG",
        Kind::Counter => "COUNTER",
    });
    add_tiers(command, tiers);
    if kind == Kind::Counter {
        add_shape(command, shape);
    }
}

/// What TIME replied, in ms.
fn millis(time: &RedisResult<Value>) -> i64 {
    let time = time.as_ref().expect("TIME");
    let [seconds, micros] = from_redis_value_ref(time).expect("two numbers");
    let (seconds, micros): (i64, i64) = (seconds, micros);
    seconds * 1000 + micros / 1000
}
