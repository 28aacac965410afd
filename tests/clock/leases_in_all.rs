//! `SLIDE.ALL` with a lease and a log: both are taken, or neither.

use redis::{Cmd, Value};

use crate::support::clock::{Frozen, START};
use crate::support::oracle::headers::headers;
use crate::support::oracle::{CLASSIC, Call, Oracle, Question, Take};
use crate::support::random::{Numbers, assert_telling, effort, seeds};
use crate::support::{all_replies, headers_of, line};

/// One call for a place and for units of a log, and the same to the oracles.
struct Both {
    leases: Oracle,
    log: Oracle,
    seed: u64,
}

impl Both {
    fn ask(&mut self, frozen: &mut Frozen, numbers: &mut Numbers, now: i64) -> bool {
        let (limit, ttl) = (numbers.below(5), numbers.one_to(400));
        let id = numbers.below(7).to_string();
        let (tiers, cost) = ([(20, 300)], numbers.below(8));
        let force = numbers.one_in(8);
        let mut command: Cmd = line(&format!(
            "SLIDE.ALL 2 {0}:k {0}:l LEASE {limit} {ttl}ms {id} LOG 20 300ms COST {cost} HEADERS",
            self.seed
        ));
        if force {
            command.arg("FORCE");
        }
        // Whether it is recorded is decided for both together.
        let take = Take {
            limit,
            ttl,
            id: id.as_bytes(),
            force: true,
        };
        let call = Call {
            tiers: &tiers,
            cost,
            force: true,
        };
        let questions = [Question::Lease(take), Question::Limit(call, CLASSIC)];
        let refused = [
            self.leases.clone().refuse(now, questions[0]),
            self.log.clone().refuse(now, questions[1]),
        ];
        let over = refused.iter().any(|reply| reply.limited == 1);
        let answer = |oracle: &mut Oracle, question| {
            if over && !force {
                oracle.refuse(now, question)
            } else {
                oracle.ask(now, question)
            }
        };
        let expected = [
            answer(&mut self.leases, questions[0]),
            answer(&mut self.log, questions[1]),
        ];
        let standings = [
            self.leases.standing(now, questions[0], expected[0]),
            self.log.standing(now, questions[1], expected[1]),
        ];
        let Value::Array(mut parts) = command.query(&mut frozen.con).unwrap() else {
            panic!("no array");
        };
        let map = headers_of(&parts.pop().unwrap());
        let (limited, replies) = all_replies(&Value::Array(parts));
        let what = format!("{:?} at {now}", self.seed);
        assert_eq!(
            (limited == 1, &replies[..]),
            (over, &expected[..]),
            "{what}"
        );
        assert_eq!(map, headers(now, over, &standings), "{what}");
        over
    }
}

#[test]
fn in_all_a_place_and_units_are_taken_together_or_not_at_all() {
    let mut frozen = Frozen::start();
    let (mut over, mut calls) = (0, 0);
    let mut now = START;
    for seed in seeds(effort(6, 20)) {
        println!("SLIDE_SEED={seed}");
        let mut numbers = Numbers::new(seed);
        let (leases, log) = (Oracle::lease(), Oracle::log());
        let mut both = Both { leases, log, seed };
        for _ in 0..300 {
            now += i64::try_from(numbers.below(60)).unwrap();
            frozen.set(now);
            over += usize::from(both.ask(&mut frozen, &mut numbers, now));
            calls += 1;
        }
    }
    let enough = over > calls / 10 && over < calls * 9 / 10;
    assert_telling(enough, format!("{over} of {calls} over a limit"));
}
