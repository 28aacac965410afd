//! Stored leases changed under the module: answered by the rules, or left alone.

use redis::{Cmd, Connection, Value, cmd, pipe};

use super::change::Content;
use crate::support::oracle::stored::{self, place};
use crate::support::oracle::{Lease, Take};
use crate::support::random::{Numbers, assert_telling, effort, seeds};
use crate::support::{Reply, Server, error_text, info_number, now, reply_of};

const KEY: &str = "changed";
const FOREIGN: &str = "ERR key holds a sorted set that SLIDE.LEASE did not write";
const LOG: &str = "ERR key holds a log, SLIDE.LEASE did not write it";

/// How many leases a call looks at one by one.
const WALKED: usize = 8;

#[derive(Debug, Clone)]
enum Step {
    Take {
        limit: u64,
        ttl: u64,
        id: Vec<u8>,
        force: bool,
    },
    Peek {
        limit: u64,
    },
    Release {
        ids: [Vec<u8>; 2],
    },
}

#[derive(Debug, Default)]
pub struct Tally {
    answered: usize,
    foreign: usize,
    unseen: usize,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Five(Reply),
    Released(u64),
    Error(String),
}

impl Step {
    fn random(numbers: &mut Numbers) -> Self {
        let id = |numbers: &mut Numbers| numbers.below(20).to_string().into_bytes();
        let limit = numbers.below(16);
        match numbers.below(6) {
            0 => Step::Peek { limit },
            1 => Step::Release {
                ids: [id(numbers), id(numbers)],
            },
            _ => Step::Take {
                limit,
                ttl: [1, 5_000, 86_400_000][numbers.place(3)],
                id: id(numbers),
                force: numbers.one_in(4),
            },
        }
    }

    fn command(&self) -> Cmd {
        match self {
            Step::Take {
                limit,
                ttl,
                id,
                force,
            } => {
                let mut take = cmd("SLIDE.LEASE");
                take.arg(KEY).arg(limit).arg(format!("{ttl}ms")).arg(id);
                if *force {
                    take.arg("FORCE");
                }
                take
            }
            Step::Peek { limit } => {
                let mut peek = cmd("SLIDE.PEEK");
                peek.arg(KEY).arg(limit).arg("1ms");
                peek
            }
            Step::Release { ids } => {
                let mut release = cmd("SLIDE.RELEASE");
                release.arg(KEY).arg(ids);
                release
            }
        }
    }

    /// What the rules say of leases, and what is then held.
    fn expected(&self, leases: &Lease, now: i64) -> (Answer, Lease) {
        let mut leases = leases.clone();
        let answer = match self {
            Step::Take {
                limit,
                ttl,
                id,
                force,
            } => {
                let (limit, ttl, force) = (*limit, *ttl, *force);
                Answer::Five(leases.call(
                    now,
                    Take {
                        limit,
                        ttl,
                        id,
                        force,
                    },
                ))
            }
            Step::Peek { limit } => Answer::Five(leases.peek(now, *limit)),
            Step::Release { ids: [one, other] } => {
                Answer::Released(leases.release(now, &[one, other]))
            }
        };
        (answer, leases)
    }

    /// The ids that it looks up.
    fn ids(&self) -> Vec<&[u8]> {
        match self {
            Step::Take { id, .. } => vec![id],
            Step::Peek { .. } => vec![],
            Step::Release { ids } => ids.iter().map(Vec::as_slice).collect(),
        }
    }
}

fn is_lease((member, score): &(Vec<u8>, f64)) -> bool {
    place(member, *score).is_some()
}

/// Whether the call reads something that is no lease.
fn reads_foreign(step: &Step, members: &[(Vec<u8>, f64)], before: i64) -> bool {
    let last = members.last().expect("some member");
    let has_odd_end = |id: &&[u8]| {
        let named = [b"@", *id].concat();
        members
            .iter()
            .any(|other| other.0 == named && !is_lease(other))
    };
    let walks = !matches!(step, Step::Release { .. });
    // It walks from the first to end up to one that is live, or gives up.
    #[allow(clippy::cast_precision_loss)]
    let ended = members
        .iter()
        .take_while(|(_, score)| *score <= before as f64);
    let walked = (ended.count() + 1).min(WALKED);
    // A set of which nothing is live is not walked.
    #[allow(clippy::cast_precision_loss)]
    let walks = walks && last.1 > before as f64;
    !is_lease(last)
        || step.ids().iter().any(has_odd_end)
        || (walks && members.iter().take(walked).any(|other| !is_lease(other)))
}

/// Runs a step, and reads what is left. Nothing expires in between: some leases end at once.
fn run_step(con: &mut Connection, step: &Step) -> (Answer, Vec<(Vec<u8>, f64)>) {
    let mut both = pipe();
    both.atomic().ignore_errors();
    both.add_command(step.command());
    both.cmd("ZRANGE").arg(KEY).arg(&["0", "-1", "WITHSCORES"]);
    let results: Vec<redis::RedisResult<Value>> = both.query(con).expect("answers");
    let [answer, left]: [_; 2] = results.try_into().expect("two answers");
    let answer = match answer {
        Ok(Value::Int(released)) => Answer::Released(released.unsigned_abs()),
        Ok(five) => Answer::Five(reply_of(
            &redis::from_redis_value::<Vec<i64>>(five).unwrap(),
        )),
        Err(error) => Answer::Error(error_text(&error)),
    };
    let left = redis::from_redis_value(left.expect("a sorted set")).expect("members");
    (answer, left)
}

fn check(con: &mut Connection, changed: &Content, step: &Step, tally: &mut Tally) {
    let members = changed.sorted();
    let far = now(con) + 3_600_000;
    let mut write = pipe();
    changed.write(&mut write, KEY, far);
    write.query::<()>(con).unwrap();
    let what = || format!("{step:?} on {members:?}");
    let last_is_lease = members.last().is_some_and(is_lease);
    if matches!(step, Step::Peek { .. }) && !last_is_lease {
        // Then it is a peek at a log.
        return;
    }
    let before = now(con);
    let (answer, left) = run_step(con, step);
    let after = now(con);
    if let Some(places) = stored::places(&members) {
        let leases = Lease::holding(&places);
        let holds = |now| {
            let (expected, next) = step.expected(&leases, now);
            let live = |place: &&stored::Place| place.end > now;
            let next = next.places();
            let left = stored::places(&left).expect("leases");
            answer == expected && next.iter().filter(live).eq(left.iter().filter(live))
        };
        assert!(
            (before..=after).any(holds),
            "{answer:?} to {}, left {left:?}",
            what()
        );
        tally.answered += 1;
        return;
    }
    if let Answer::Error(error) = &answer {
        assert!(
            [FOREIGN, LOG].contains(&error.as_str()),
            "{error} to {}",
            what()
        );
        assert_eq!(left, members, "{}", what());
        tally.foreign += 1;
        return;
    }
    assert!(
        !reads_foreign(step, &members, before),
        "{answer:?} to {}",
        what()
    );
    // What it did not see it left alone.
    for other in members.iter().filter(|other| !is_lease(other)) {
        assert!(left.contains(other), "{other:?} is gone after {}", what());
    }
    tally.unseen += 1;
}

/// Leases in many changed forms, and each time another command on them.
pub fn round(con: &mut Connection, seed: u64, tally: &mut Tally) {
    println!("changed leases, SLIDE_SEED={seed}");
    let numbers = &mut Numbers::new(seed);
    for _ in 0..40 {
        let time = now(con);
        let base = Content::random(time, numbers);
        check(con, &base, &Step::random(numbers), tally);
        for _ in 0..6 {
            let changed = base.changed(numbers);
            check(con, &changed, &Step::random(numbers), tally);
        }
    }
}

#[test]
fn changed_leases_are_answered_by_the_rules_or_left_alone() {
    let server = Server::start();
    let mut con = server.connect();
    let mut tally = Tally::default();
    for seed in seeds(effort(15, 100)) {
        round(&mut con, seed, &mut tally);
    }
    println!("{tally:?}");
    let least = tally.answered.min(tally.foreign).min(tally.unseen);
    assert_telling(least > 30, format!("{tally:?}"));
    assert_eq!(info_number(&mut con, "slide", "slide_panics"), 0);
    server.assert_alive();
}
