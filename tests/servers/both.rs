//! What `SLIDE.LOG` and `SLIDE.COUNTER` have in common: verdicts, and what leaves no trace.

use redis::Connection;

use crate::support::{
    ALMOST_A_DECADE, DECADE, Reply, Server, info_number, repeated, reply, run, slide, state,
};

/// One of the two, on a server of its own.
struct Limiter {
    name: &'static str,
    con: Connection,
    _server: Server,
}

fn each_limiter() -> impl Iterator<Item = Limiter> {
    ["SLIDE.LOG", "SLIDE.COUNTER"].into_iter().map(|name| {
        println!("{name}");
        let server = Server::start();
        Limiter {
            name,
            con: server.connect(),
            _server: server,
        }
    })
}

impl Limiter {
    #[track_caller]
    fn call(&mut self, tiers: &[(u64, &str)], cost: &str) -> Reply {
        let command = slide(self.name, "k", tiers, &["COST", cost]);
        reply(&mut self.con, &command)
    }

    /// All that a call may change.
    fn trace(&mut self) -> impl PartialEq + std::fmt::Debug + use<> {
        let changes = "rdb_changes_since_last_save";
        (
            state(&mut self.con),
            info_number(&mut self.con, "persistence", changes),
        )
    }

    fn assert_no_key(&mut self) {
        assert_eq!(run::<i64>(&mut self.con, "EXISTS", &["k"]), 0);
    }
}

#[test]
fn a_refusal_changes_nothing() {
    for mut limiter in each_limiter() {
        let tiers = [(10, DECADE)];
        let verdicts = ["6", "6", "4"].map(|cost| limiter.call(&tiers, cost).limited);
        assert_eq!(verdicts, [0, 1, 0]);

        let before = limiter.trace();
        for _ in 0..100 {
            assert_eq!(limiter.call(&tiers, "1").limited, 1);
        }
        // Over one tier's limit is recorded in none, and makes no field of a counter.
        let limited = limiter.call(&[(99, "1d"), (10, DECADE)], "1");
        assert_eq!(limited.limited, 1);
        assert_eq!(limiter.trace(), before);
    }
}

#[test]
fn a_cost_above_the_limit_never_fits_and_takes_nothing() {
    for mut limiter in each_limiter() {
        let tiers = [(300, DECADE)];
        assert_eq!(
            limiter.call(&tiers, "301"),
            Reply {
                limited: 1,
                limit: 300,
                remaining: 300,
                retry_after: -1,
                reset_after: 0
            }
        );
        limiter.assert_no_key();
        assert_eq!(limiter.call(&tiers, "1").remaining, 299);
    }
}

#[test]
fn cost_0_reports_and_records_nothing() {
    for mut limiter in each_limiter() {
        let tiers = [(10, DECADE)];
        assert_eq!(
            limiter.call(&tiers, "0"),
            Reply {
                limited: 0,
                limit: 10,
                remaining: 10,
                retry_after: 0,
                reset_after: 0
            }
        );
        limiter.assert_no_key();
        limiter.call(&tiers, "10");
        let before = limiter.trace();
        let full = limiter.call(&tiers, "0");
        assert_eq!((full.limited, full.remaining, full.retry_after), (0, 0, 0));
        assert_eq!(limiter.trace(), before);
    }
}

#[test]
fn a_limit_can_change_while_the_key_is_full() {
    for mut limiter in each_limiter() {
        repeated(&slide(limiter.name, "k", &[(10, DECADE)], &[]), 10)
            .query::<()>(&mut limiter.con)
            .unwrap();
        for (limit, expected) in [(10, (1, 10, 0)), (20, (0, 20, 9)), (5, (1, 5, 0))] {
            let Reply {
                limited,
                limit,
                remaining,
                ..
            } = limiter.call(&[(limit, DECADE)], "1");
            assert_eq!((limited, limit, remaining), expected);
        }
    }
}

/// Of several, the first given tier is reported with the fewest units left, or, where the call is
/// limited, with the longest wait.
#[test]
fn every_tier_must_pass() {
    for mut limiter in each_limiter() {
        let tiers = [(10, "3652d"), (3, ALMOST_A_DECADE), (3, DECADE)];
        let fewest = limiter.call(&tiers, "3");
        assert_eq!((fewest.limited, fewest.limit, fewest.remaining), (0, 3, 0));
        let before = limiter.trace();
        for (cost, limit, remaining, waits) in
            [("1", 3, 0, true), ("4", 3, 0, false), ("11", 10, 7, false)]
        {
            let reply = limiter.call(&tiers, cost);
            assert_eq!(
                (reply.limited, reply.limit, reply.remaining),
                (1, limit, remaining)
            );
            assert_eq!(reply.retry_after != -1, waits, "{reply:?}");
        }
        assert_eq!(limiter.trace(), before);
    }
}
