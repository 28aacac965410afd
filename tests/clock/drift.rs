//! A replica whose clock differs from its primary's, and which is promoted: a step of all clocks at
//! once, with the primary's times in the data.

use crate::adversary::{Adversary, Steps, Tally};
use crate::histories::{Buckets, History, MIXED, ROUNDS, Traffic};
use crate::support::clock::{Frozen, START};
use crate::support::random::{Numbers, assert_telling, effort, seeds};
use crate::support::{
    Setup, bucket, entries, run, slide, slide_counter, slide_log, slide_peek, start_of_bucket,
    state,
};

/// A primary and its replica, each with a clock of its own.
struct Pair {
    primary: Frozen,
    replica: Frozen,
}

impl Pair {
    fn start() -> Self {
        // A link that seems silent for longer than this ends, and leaps make it seem so.
        let setup = || Setup::new().line("repl-timeout 2000000000");
        let primary = Frozen::start_with(setup());
        let replica = Frozen::start_with(setup().replica_of(&primary.server));
        primary.server.wait_for(&replica.server);
        let mut pair = Pair { primary, replica };
        // Histories take turns, each with times of its own: no key may end out of its turn.
        for frozen in [&mut pair.primary, &mut pair.replica] {
            run::<()>(&mut frozen.con, "DEBUG", &["SET-ACTIVE-EXPIRE", "0"]);
        }
        pair
    }

    fn replicate(&self) {
        self.primary.server.wait_for(&self.replica.server);
    }

    /// The primary is gone, and the replica takes over what it has received.
    fn promote(mut self) -> Frozen {
        self.replicate();
        run::<()>(&mut self.replica.con, "REPLICAOF", &["NO", "ONE"]);
        self.replica
    }
}

/// How far the replica's clock is ahead: with the seeds in turn, the sizes at which the rules change.
fn difference(seed: u64, window: i64) -> i64 {
    let sizes = [
        1,
        window / 2,
        2 * window,
        -1,
        -window / 2,
        -window,
        -window - 1,
        -2 * window,
        -10 * window,
    ];
    let turn = seed % sizes.len() as u64;
    sizes[usize::try_from(turn).unwrap()]
}

fn promoted_replica_replies_as_the_oracle_does(traffic: &Traffic) {
    let mut pair = Pair::start();
    let (mut limited, mut histories) = (0, Vec::new());
    for seed in seeds(effort(9, 90)) {
        println!("promoted, SLIDE_SEED={seed}");
        let mut history = History::new(traffic, seed);
        limited += history.run(&mut pair.primary, ROUNDS / 2);
        let step = difference(seed, history.longest_window());
        history.leap(&mut pair.primary, step);
        pair.replicate();
        history.peek_all(&mut pair.replica);
        // As if healed, but no fault was counted.
        assert_eq!(pair.replica.clock_faults(), 0);
        histories.push(history);
    }
    let mut promoted = pair.promote();
    for history in &mut histories {
        limited += history.run(&mut promoted, ROUNDS / 2);
    }
    assert_telling(limited > 0, "nothing was limited");
    assert_telling(promoted.clock_faults() > 0, "no clock fault");
}

#[test]
fn a_promoted_replica_limits_by_logs_as_the_oracle_does() {
    promoted_replica_replies_as_the_oracle_does(&Traffic::on_logs(MIXED, Numbers::later));
}

#[test]
fn a_promoted_replica_limits_by_counters_as_the_oracle_does() {
    let traffic = Traffic::on_counters(MIXED, Buckets::OneNumber, Numbers::later);
    promoted_replica_replies_as_the_oracle_does(&traffic);
}

#[test]
fn a_promoted_replica_keeps_the_promises() {
    let mut pair = Pair::start();
    let mut adversaries = Vec::new();
    let seeds = seeds(effort(9, 90));
    for &seed in &seeds {
        let mut adversary = Adversary::new(seed, Steps::Back);
        adversary.attack(&mut pair.primary);
        let usage = adversary.usage(&mut pair.primary);
        adversaries.push((adversary, usage));
    }
    let mut promoted = pair.promote();
    let mut tally = Tally::default();
    for ((adversary, usage), &seed) in adversaries.iter_mut().zip(&seeds) {
        let step = difference(seed, adversary.window());
        adversary.go_on(&mut promoted, step, usage);
        adversary.attack(&mut promoted);
        tally.add(&adversary.tally);
    }
    tally.assert_telling(seeds.len());
}

/// To the ms: a replica two windows behind sees what a log and a counter hold as recorded now. PEEK
/// says so before the promotion, without writing, and the first call heals.
#[test]
fn peek_on_a_replica_that_is_behind_answers_as_if_healed() {
    let mut pair = Pair::start();
    let tiers = [(5, "60s")];
    for cost in ["2", "3"] {
        slide_log(&mut pair.primary.con, "log", &tiers, &["COST", cost]);
        slide_counter(&mut pair.primary.con, "counter", &tiers, &["COST", cost]);
    }
    pair.replicate();
    let behind = START - 120_001;
    pair.replica.set(behind);
    let before = state(&mut pair.replica.con);
    let log = slide_peek(&mut pair.replica.con, "log", &tiers, &[]);
    assert_eq!(
        (log.limited, log.remaining, log.retry_after),
        (1, 0, 60_000)
    );
    let counter = slide_peek(&mut pair.replica.con, "counter", &tiers, &[]);
    // The fifth of five units has faded when a fifth of the next window has passed.
    let index = bucket("counter", 60_000, 1, behind) + 1;
    let next = start_of_bucket("counter", 60_000, 1, index) + 12_000;
    assert_eq!((counter.limited, counter.retry_after), (1, next - behind));
    assert_eq!(state(&mut pair.replica.con), before);
    assert_eq!(pair.replica.clock_faults(), 0);

    let mut promoted = pair.promote();
    assert_eq!(slide_log(&mut promoted.con, "log", &tiers, &[]), log);
    assert_eq!(
        slide_counter(&mut promoted.con, "counter", &tiers, &[]),
        counter
    );
    assert_eq!(promoted.clock_faults(), 2);
    assert_eq!(
        entries(&mut promoted.con, "log"),
        [("5:5".to_owned(), behind)]
    );
}

/// The replica's clock has no part in what it holds before it is promoted.
#[test]
fn a_replica_of_any_clock_holds_what_its_primary_holds() {
    let mut pair = Pair::start();
    for (seed, difference) in [(1, 1), (2, -1), (3, 86_400_000), (4, -86_400_000)] {
        pair.replica.set(START + difference);
        let mut numbers = Numbers::new(seed);
        let mut now = START;
        for call in 0..200 {
            now = numbers.later(now, 60_000);
            pair.primary.set(now);
            let cost = numbers.below(4).to_string();
            for name in ["SLIDE.LOG", "SLIDE.COUNTER"] {
                let key = format!("{name}:{seed}:{}", call % 3);
                slide(name, key, &[(5, "60s"), (9, "100s")], &["COST", &cost])
                    .query::<()>(&mut pair.primary.con)
                    .unwrap();
            }
        }
        pair.replicate();
        let digest = |frozen: &mut Frozen| run::<String>(&mut frozen.con, "DEBUG", &["DIGEST"]);
        assert_eq!(digest(&mut pair.primary), digest(&mut pair.replica));
        assert!(run::<i64>(&mut pair.replica.con, "DBSIZE", &[]) >= 6);
    }
}
