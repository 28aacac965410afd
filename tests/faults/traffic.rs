//! Random calls on a few logs and counters, and a ledger of what they recorded.

mod ledger;

use std::ops::RangeInclusive;

use redis::{Cmd, Connection, cmd};

use crate::support::random::{MOST, Numbers};
use crate::support::{ALMOST_A_DECADE, DECADE, slide, slide_peek};
use crate::units::{stored_counter, stored_log};

pub use ledger::{Ledger, is_explained};

type Tiers = &'static [(u64, &'static str)];

/// In ms. Refunds of this age look for what is older than some of the calls, and younger than others.
const OLDEST_REFUND: u64 = 3000;

/// A key and how all its callers limit it.
pub struct Limited {
    pub name: &'static str,
    tiers: Tiers,
    /// Into how many buckets a counter's windows are divided; a log has none.
    buckets: Option<&'static str>,
    /// Whether nothing expires while a test runs, so that all usage can be accounted for.
    pub lasting: bool,
}

const fn log(name: &'static str, tiers: Tiers, lasting: bool) -> Limited {
    Limited {
        name,
        tiers,
        buckets: None,
        lasting,
    }
}

const fn counter(
    name: &'static str,
    tiers: Tiers,
    buckets: &'static str,
    lasting: bool,
) -> Limited {
    Limited {
        name,
        tiers,
        buckets: Some(buckets),
        lasting,
    }
}

/// Lasting keys with limits that are never reached and ones that soon are, and keys whose windows
/// pass while the calls run, so that entries expire and are trimmed.
pub static KEYS: [Limited; 9] = [
    log("log:wide", &[(1_000_000, "1d")], true),
    log("log:narrow", &[(300, "1d"), (250, "2d")], true),
    counter("counter:wide", &[(1_000_000, DECADE)], "1", true),
    counter(
        "counter:narrow",
        &[(300, DECADE), (250, ALMOST_A_DECADE)],
        "1",
        true,
    ),
    counter("counter:buckets", &[(5000, DECADE)], "64", true),
    log("log:brief", &[(40, "40ms"), (200, "200ms")], false),
    log("log:second", &[(500, "1s")], false),
    counter("counter:brief", &[(40, "40ms"), (200, "200ms")], "1", false),
    counter("counter:second", &[(500, "1s")], "4", false),
];

impl Limited {
    fn command(&self) -> &'static str {
        match self.buckets {
            None => "SLIDE.LOG",
            Some(_) => "SLIDE.COUNTER",
        }
    }

    /// Options of a call that go with the key's kind. STRICT may change from call to call.
    fn options(&self, numbers: &mut Numbers) -> Vec<&'static str> {
        let mut options = Vec::new();
        if let Some(buckets) = self.buckets {
            options.extend(["BUCKETS", buckets]);
            if numbers.one_in(3) {
                options.push("STRICT");
            }
        }
        options
    }

    /// The usage that the stored data holds. A log must be whole, and a counter's windows agree.
    pub fn stored(&self, con: &mut Connection) -> i64 {
        if self.buckets.is_none() {
            let entries = stored_log(con, self.name);
            return signed(entries.iter().map(|entry| entry.cost).sum());
        }
        let fields = stored_counter(con, self.name);
        let mut sums = fields.iter().map(|field| field.counts.iter().sum());
        let first: u64 = sums.next().unwrap_or(0);
        assert!(sums.all(|sum| sum == first), "{}: {fields:?}", self.name);
        signed(first)
    }

    /// The usage that the module answers, the same in each window.
    pub fn answered(&self, con: &mut Connection) -> i64 {
        let options = self
            .buckets
            .map(|buckets| vec!["BUCKETS", buckets])
            .unwrap_or_default();
        let usage = |&(_, window): &(u64, &'static str)| {
            let peek = slide_peek(con, self.name, &[(MOST, window)], &options);
            peek.limit - peek.remaining
        };
        let answers: Vec<i64> = self.tiers.iter().map(usage).collect();
        assert!(
            answers.iter().all(|&answer| answer == answers[0]),
            "{}: {answers:?}",
            self.name
        );
        answers[0]
    }
}

fn signed(units: u64) -> i64 {
    i64::try_from(units).expect("as many as some calls record")
}

/// A call, and what it can change.
pub struct Call {
    pub command: Cmd,
    kind: Kind,
}

enum Kind {
    /// Records these costs, each for its key, when the call is admitted or forced.
    Record {
        costs: Vec<(usize, u32)>,
        force: bool,
    },
    Refund {
        key: usize,
        units: u32,
        /// Whether it says how long ago they were recorded.
        aged: bool,
    },
    Peek,
}

impl Call {
    pub fn random(numbers: &mut Numbers) -> Self {
        match numbers.below(16) {
            0 => Call::refund(numbers),
            1 => Call::peek(numbers),
            2..5 => Call::all(numbers),
            _ => Call::single(numbers),
        }
    }

    fn refund(numbers: &mut Numbers) -> Self {
        let key = numbers.place(KEYS.len());
        let units = small(numbers.one_to(30));
        let mut command = cmd("SLIDE.REFUND");
        command.arg(KEYS[key].name).arg(units);
        let aged = numbers.one_in(2);
        if aged {
            let age = numbers.below(OLDEST_REFUND);
            command.arg("AGE").arg(format!("{age}ms"));
        }
        Call {
            command,
            kind: Kind::Refund { key, units, aged },
        }
    }

    fn peek(numbers: &mut Numbers) -> Self {
        let key = &KEYS[numbers.place(KEYS.len())];
        let mut command = slide("SLIDE.PEEK", key.name, key.tiers, &key.options(numbers));
        command.arg("COST").arg(numbers.below(9));
        Call {
            command,
            kind: Kind::Peek,
        }
    }

    fn single(numbers: &mut Numbers) -> Self {
        let place = numbers.place(KEYS.len());
        let key = &KEYS[place];
        let mut command = slide(key.command(), key.name, key.tiers, &key.options(numbers));
        let cost = add_cost(&mut command, numbers);
        Call::recording(numbers, command, vec![(place, cost)])
    }

    fn all(numbers: &mut Numbers) -> Self {
        let first = numbers.place(KEYS.len());
        let count = 1 + numbers.place(3);
        let keys: Vec<usize> = (first..first + count)
            .map(|place| place % KEYS.len())
            .collect();
        let mut command = cmd("SLIDE.ALL");
        command.arg(keys.len());
        for &key in &keys {
            command.arg(KEYS[key].name);
        }
        let mut costs = Vec::new();
        for &place in &keys {
            let key = &KEYS[place];
            command.arg(key.command().trim_start_matches("SLIDE."));
            for &(limit, window) in key.tiers {
                command.arg(limit).arg(window);
            }
            command.arg(key.options(numbers));
            costs.push((place, add_cost(&mut command, numbers)));
        }
        Call::recording(numbers, command, costs)
    }

    /// Adds the options that all calls that record have.
    fn recording(numbers: &mut Numbers, mut command: Cmd, costs: Vec<(usize, u32)>) -> Self {
        if numbers.one_in(4) {
            command.arg("HEADERS");
        }
        let force = numbers.one_in(25);
        if force {
            command.arg("FORCE");
        }
        Call {
            command,
            kind: Kind::Record { costs, force },
        }
    }

    /// What the call has changed of a key's usage if it was carried out: the least and the most.
    fn change(&self, place: usize) -> RangeInclusive<i64> {
        match &self.kind {
            Kind::Record { costs, .. } => {
                let of_key = costs.iter().find(|(key, _)| *key == place);
                let cost = of_key.map_or(0, |(_, cost)| i64::from(*cost));
                cost..=cost
            }
            Kind::Refund { key, units, .. } if *key == place => -i64::from(*units)..=0,
            Kind::Refund { .. } | Kind::Peek => 0..=0,
        }
    }
}

/// Adds a cost, which in a call on several keys is the clause's own.
fn add_cost(command: &mut Cmd, numbers: &mut Numbers) -> u32 {
    let cost = small(numbers.below(9));
    command.arg("COST").arg(cost);
    cost
}

fn small(number: u64) -> u32 {
    u32::try_from(number).expect("a small number")
}

/// The stored usage of each key.
pub fn stored_usage(con: &mut Connection) -> [i64; KEYS.len()] {
    std::array::from_fn(|place| {
        let key = &KEYS[place];
        match (key.lasting, key.buckets) {
            // Windows of different lengths forget at different times.
            (false, Some(_)) => 0,
            _ => key.stored(con),
        }
    })
}
