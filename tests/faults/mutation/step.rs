//! One command on a changed key, with a good key beside it, and what may follow.

mod check;

use redis::{Cmd, Connection, Pipeline, RedisResult, Value, cmd, from_redis_value_ref, pipe};

use super::content::{Content, Kind};
use crate::support::oracle::{Call, Shape};
use crate::support::random::{MOST, Numbers, Tiers};
use crate::support::{add_shape, add_tiers};
pub use check::Tally;

pub const KEY: &str = "changed";
pub const BESIDE: &str = "beside";

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
    /// That of the good key's clause.
    cost_beside: u64,
    /// How long ago what is refunded was recorded, in ms.
    age: Option<u64>,
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
        let longest = limits.widest().1;
        let age = match numbers.below(4) {
            0 => Some(numbers.below(2000)),
            1 => Some(numbers.below(longest)),
            _ => None,
        };
        Step {
            name,
            // A refund of nothing is no command.
            cost: if name == Name::Refund {
                cost.max(1)
            } else {
                cost
            },
            cost_beside: numbers.below(9),
            age,
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
                if let Some(age) = self.age {
                    command.arg("AGE").arg(format!("{age}ms"));
                }
            }
            Name::All => {
                command.arg(&["2", KEY, BESIDE]);
                let Step {
                    tiers,
                    cost,
                    cost_beside,
                    ..
                } = self;
                add_clause(&mut command, kind, (tiers, *cost), shape);
                let (kind, limits) = (case.beside.kind, case.beside_limits);
                let asked = (&limits.tiers[..], *cost_beside);
                add_clause(&mut command, kind, asked, limits.shape);
                self.add_force(&mut command);
            }
            Name::Wrong => {
                command.arg(KEY);
                add_tiers(&mut command, &self.tiers);
            }
            Name::Call | Name::Peek => {
                command.arg(KEY);
                add_tiers(&mut command, &self.tiers);
                command.arg("COST").arg(self.cost);
                self.add_force(&mut command);
                if kind == Kind::Counter {
                    add_shape(&mut command, shape);
                }
            }
        }
        command
    }

    fn add_force(&self, command: &mut Cmd) {
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

fn add_clause(command: &mut Cmd, kind: Kind, (tiers, cost): (&[(u64, u64)], u64), shape: Shape) {
    command.arg(kind.word());
    add_tiers(command, tiers);
    command.arg("COST").arg(cost);
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
