//! CPU time a call against the number of tiers, buckets and keys, and against the cost.

use crate::host::{ENDLESS, Expected, Host, Module, keys, log_lines, scrambled};
use crate::results::Results;
use crate::row::Words;
use crate::support::clock::START;
use crate::wire::Batch;

const KEYS: u64 = 250;
const CALLS: u64 = 10_000;

/// More where caches are to be missed: each on a key chosen anew.
const SCATTERED_CALLS: u64 = 50_000;
const DAY: u64 = 86_400_000;

/// Units that the Lua script records at each cost: it adds a member for each.
const LUA_UNITS: u64 = 20_000;

/// Entries of the logs.
const ENTRIES: u64 = 400;

/// CPU time a call at several places.
pub struct Curve {
    /// What tables and pictures call it.
    pub title: &'static str,
    /// Of what the places are numbers.
    pub what: &'static str,
    pub places: &'static [u64],
    prefix: &'static str,
    keys: fn(u64) -> u64,
    calls: fn(u64) -> u64,
    /// Whether each call is on a key chosen anew, of keys that all exist.
    scattered: bool,
    fill: fn(&Words, &str) -> Vec<String>,
    /// The call on a key at a place.
    call: fn(&Words, &str, u64) -> String,
}

const TIERS: &[u64] = &[1, 2, 4, 8, 16];
const BUCKETS: &[u64] = &[1, 2, 4, 8, 16, 32, 64];
const NUMBERS_OF_KEYS: &[u64] = &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
const COSTS: &[u64] = &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

fn tiers(count: u64) -> String {
    let tier = |tier| format!("{ENDLESS} {}ms", DAY - tier);
    (0..count).map(tier).collect::<Vec<_>>().join(" ")
}

const COUNTER: Curve = Curve {
    title: "SLIDE.COUNTER",
    what: "tiers",
    places: TIERS,
    prefix: "cnt",
    keys: |_| KEYS,
    calls: |_| CALLS,
    scattered: false,
    fill: |_, _| Vec::new(),
    call: |_, key, count| format!("SLIDE.COUNTER {key}:{count} {}", tiers(count)),
};
const LOG: Curve = Curve {
    title: "SLIDE.LOG",
    prefix: "log",
    fill: |words, key| log_lines(key, ENTRIES, words.now, 1),
    call: |_, key, count| format!("SLIDE.LOG {key} {}", tiers(count)),
    ..COUNTER
};

pub static TIERS_LOG: Curve = LOG;
pub static TIERS_COUNTER: Curve = COUNTER;
pub static BUCKETS_COUNTER: Curve = Curve {
    what: "buckets",
    places: BUCKETS,
    call: |_, key, count| format!("SLIDE.COUNTER {key}:{count} {ENDLESS} 10m BUCKETS {count}"),
    ..COUNTER
};
pub static COST_LOG: Curve = Curve {
    what: "cost",
    places: COSTS,
    call: |_, key, cost| format!("SLIDE.LOG {key} {ENDLESS} 1d COST {cost}"),
    ..LOG
};
pub static COST_COUNTER: Curve = Curve {
    what: "cost",
    places: COSTS,
    call: |_, key, cost| format!("SLIDE.COUNTER {key} {ENDLESS} 1d COST {cost}"),
    ..COUNTER
};
pub static COST_LUA: Curve = Curve {
    title: "log in Lua, a member a unit",
    what: "cost",
    places: COSTS,
    prefix: "lua",
    keys: |_| 50,
    calls: |cost| (LUA_UNITS / cost).max(1),
    call: |words, key, cost| format!("{} {key} {ENDLESS} 86400000 {cost}", words.scripts.log),
    ..COUNTER
};
pub static KEYS_COUNTER: Curve = Curve {
    what: "keys",
    places: NUMBERS_OF_KEYS,
    prefix: "ip",
    keys: |count| count,
    calls: |_| SCATTERED_CALLS,
    scattered: true,
    call: |_, key, _| format!("SLIDE.COUNTER {key} {ENDLESS} 60s"),
    ..COUNTER
};
pub static KEYS_HINCRBY: Curve = Curve {
    title: "HINCRBY",
    prefix: "map",
    call: |_, key, _| format!("HINCRBY {key} 60000 1"),
    ..KEYS_COUNTER
};

/// Those in a group are measured side by side.
static GROUPS: [&[&Curve]; 5] = [
    &[&TIERS_LOG, &TIERS_COUNTER],
    &[&BUCKETS_COUNTER],
    &[&COST_LOG, &COST_COUNTER],
    &[&COST_LUA],
    &[&KEYS_COUNTER, &KEYS_HINCRBY],
];

impl Curve {
    /// The name of its figures; at a place, the place follows.
    pub fn name(&self) -> String {
        format!("{} of {}", self.what, self.title)
    }

    /// Each batch has at most one call on a key, unless there are few keys.
    fn batches(&self, words: &Words, place: u64) -> Vec<Batch> {
        let (count, calls) = ((self.keys)(place), (self.calls)(place));
        let keys = keys(self.prefix, count as usize);
        let key = |call: u64| {
            let turn = if self.scattered {
                scrambled(call)
            } else {
                call
            };
            &keys[(turn % count) as usize]
        };
        let lines = (0..calls).map(|call| (self.call)(words, key(call), place));
        let lines: Vec<String> = lines.collect();
        let at_once = if self.scattered { calls } else { count };
        lines
            .chunks(at_once as usize)
            .map(|lines| lines.iter().collect())
            .collect()
    }

    fn prepare(&self, host: &mut Host, words: &Words) {
        let most = self.places.iter().map(|place| (self.keys)(*place)).max();
        let keys = keys(self.prefix, most.unwrap_or(0) as usize);
        let filled = keys.iter().flat_map(|key| (self.fill)(words, key));
        host.run(&filled.collect());
        if self.scattered {
            host.run(&keys.iter().map(|key| (self.call)(words, key, 1)).collect());
        }
    }
}

/// Measures all curves, group by group; keeps the least of the rounds of each figure.
pub fn measure(rounds: usize, results: &mut Results) {
    for group in GROUPS {
        let mut host = Host::with_clock(Module::Slide.setup());
        let words = Words::of(&mut host);
        let mut points = Vec::new();
        for curve in group {
            curve.prepare(&mut host, &words);
            for place in curve.places {
                let name = format!("{} {place}", curve.name());
                points.push((name, curve.batches(&words, *place), f64::INFINITY));
            }
        }
        let mut now = START;
        // The first round only warms up.
        for round in 0..=rounds {
            for (_, batches, least) in &mut points {
                let before = host.cpu();
                for batch in batches.iter() {
                    // Calls on a key do not fall into one ms.
                    now += 1;
                    host.clock().stop(now);
                    host.run_expecting(batch, Expected::Admitted);
                }
                let calls: usize = batches.iter().map(Batch::len).sum();
                let cost = (host.cpu() - before) / calls as f64;
                if round > 0 {
                    *least = least.min(cost);
                }
            }
        }
        for (name, _, least) in points {
            results.set(name, least);
        }
    }
}
