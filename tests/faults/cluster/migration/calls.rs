//! What clients call while slots move, and what they were told that was recorded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redis::{Cmd, cmd};

use super::{LIMIT, ROOMY, TAGS};
use crate::cluster::nodes::{Cluster, Clustered};
use crate::support::random::Numbers;
use crate::support::{DECADE, slide};

/// What is called of one tag, all of it in one slot.
pub struct Keys {
    pub log: String,
    pub counter: String,
    /// With costs of up to 5 and refunds.
    pub pool: String,
    /// Only called together, by `SLIDE.ALL`.
    pub pair: [String; 2],
}

impl Keys {
    pub fn of(tag: &str) -> Self {
        Keys {
            log: format!("{tag}:log"),
            counter: format!("{tag}:counter"),
            pool: format!("{tag}:pool"),
            pair: [format!("{tag}:a"), format!("{tag}:b")],
        }
    }

    fn pair(&self) -> [&str; 2] {
        [&self.pair[0], &self.pair[1]]
    }

    pub fn log_call(&self) -> Cmd {
        slide("SLIDE.LOG", &self.log, &[(LIMIT, "1d")], &[])
    }

    pub fn counter_call(&self) -> Cmd {
        let options = ["BUCKETS", "4"];
        slide("SLIDE.COUNTER", &self.counter, &[(LIMIT, DECADE)], &options)
    }
}

pub fn pair_call(limit: u64, cost: u64) -> String {
    format!("LOG {limit} 1d COST {cost} COUNTER {limit} {DECADE} BUCKETS 4 COST {cost}")
}

/// The units of each key that the server said it has recorded, refunds taken off.
#[derive(Default)]
pub struct Tally {
    pub recorded: BTreeMap<String, u64>,
    pub limited: u64,
    pub refunded: u64,
}

impl Tally {
    fn count(&mut self, key: &str, limited: i64, cost: u64) {
        if limited == 0 {
            *self.recorded.entry(key.to_owned()).or_default() += cost;
        } else {
            self.limited += 1;
        }
    }

    pub fn add(&mut self, other: Tally) {
        for (key, units) in other.recorded {
            *self.recorded.entry(key).or_default() += units;
        }
        self.limited += other.limited;
        self.refunded += other.refunded;
    }

    /// One call of some kind to some key.
    fn call(&mut self, client: &mut Clustered, numbers: &mut Numbers) {
        let keys = Keys::of(TAGS[numbers.place(TAGS.len())]);
        match numbers.below(6) {
            0 => self.single(client, &keys.log, &keys.log_call()),
            1 => self.single(client, &keys.counter, &keys.counter_call()),
            2 => self.refund(client, &keys.pool, numbers.one_to(5)),
            3 => self.pair(client, &keys),
            _ => self.pool(client, &keys.pool, numbers.one_to(5)),
        }
    }

    pub fn single(&mut self, client: &mut Clustered, key: &str, call: &Cmd) {
        let five: Vec<i64> = client.query(call).expect("the call gets through");
        self.count(key, five[0], 1);
    }

    pub fn pool(&mut self, client: &mut Clustered, key: &str, cost: u64) {
        let call = slide(
            "SLIDE.LOG",
            key,
            &[(ROOMY, "1d")],
            &["COST", &cost.to_string()],
        );
        let five: Vec<i64> = client.query(&call).expect("the call gets through");
        assert_eq!(five[0], 0, "{key} is roomy");
        self.count(key, 0, cost);
    }

    /// Takes back less than what this thread has recorded, so that the key never empties.
    fn refund(&mut self, client: &mut Clustered, key: &str, units: u64) {
        let own = self.recorded.entry(key.to_owned()).or_default();
        if *own <= units {
            return;
        }
        let refund = cmd("SLIDE.REFUND").arg(key).arg(units).to_owned();
        let taken: u64 = client.query(&refund).expect("the refund gets through");
        assert_eq!(taken, units, "{key} has more than that");
        *own -= units;
        self.refunded += units;
    }

    /// Calls every key that has a limit to reach until it is reached.
    pub fn use_up(&mut self, client: &mut Clustered) {
        for keys in TAGS.map(Keys::of) {
            for kind in 0..3 {
                let limited = self.limited;
                while self.limited == limited {
                    match kind {
                        0 => self.single(client, &keys.log, &keys.log_call()),
                        1 => self.single(client, &keys.counter, &keys.counter_call()),
                        _ => self.pair(client, &keys),
                    }
                }
            }
        }
    }

    pub fn units(&self) -> u64 {
        self.recorded.values().sum()
    }

    pub fn pair(&mut self, client: &mut Clustered, keys: &Keys) {
        let (limited, _) = client
            .all(keys.pair(), &pair_call(LIMIT, 1))
            .expect("the call gets through");
        for key in &keys.pair {
            self.count(key, limited, 1);
        }
    }
}

/// Calls until told to stop, and says what was recorded.
pub fn call_until(stop: &AtomicBool, cluster: &Cluster, seed: u64, done: &AtomicU64) -> Tally {
    let mut client = cluster.connect(1000);
    let mut numbers = Numbers::new(seed);
    let mut tally = Tally::default();
    while !stop.load(Ordering::Relaxed) {
        tally.call(&mut client, &mut numbers);
        done.fetch_add(1, Ordering::Relaxed);
    }
    tally
}
