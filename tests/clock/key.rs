//! A key on the server, and what the naive oracle knows of it.

use redis::Cmd;

use crate::support::clock::{Frozen, START};
use crate::support::oracle::{CLASSIC, Call, Oracle, Shape};
use crate::support::random::{MOST, Numbers, Tiers};
use crate::support::{entries, run};

pub struct Key {
    pub name: String,
    pub tiers: Tiers,
    /// The numbers of buckets that its calls choose from.
    pub buckets: Vec<u64>,
    pub oracle: Oracle,
    /// What the oracle is when the key is missing.
    empty: Oracle,
    /// The latest time of a call since the key was new.
    latest: i64,
    refunded: bool,
    /// All that happened, for the message of a failure.
    pub trace: Vec<String>,
}

impl Key {
    pub fn new(name: String, tiers: Tiers, buckets: Vec<u64>, empty: &Oracle) -> Self {
        Key {
            name,
            tiers,
            buckets,
            oracle: empty.clone(),
            empty: empty.clone(),
            latest: START,
            refunded: false,
            trace: Vec::new(),
        }
    }

    pub fn is_counter(&self) -> bool {
        matches!(self.oracle, Oracle::Counter(_))
    }

    /// One of the shapes of the key's calls. A strict one is the same field seen otherwise.
    pub fn shape(&self, numbers: &mut Numbers) -> Shape {
        match self.buckets[..] {
            [1] => CLASSIC,
            _ => Shape {
                buckets: self.buckets[numbers.place(self.buckets.len())],
                strict: numbers.one_in(3),
            },
        }
    }

    /// Forgets the key if, after a step back, the oracle may know more than the server: what has
    /// expired would count again. The key has then to be deleted.
    pub fn forgets(&mut self, now: i64) -> bool {
        let stale = now < self.latest && self.may_forget(now);
        if stale {
            self.forget(now);
        }
        self.latest = self.latest.max(now);
        stale
    }

    fn forget(&mut self, now: i64) {
        self.oracle = self.empty.clone();
        self.latest = now;
        self.refunded = false;
        self.trace.push("DEL".to_owned());
    }

    pub fn may_forget(&self, now: i64) -> bool {
        self.oracle.may_forget(
            now,
            Call {
                tiers: &self.tiers,
                cost: 0,
                force: false,
            },
        )
    }

    /// Takes back some of what surely is on the server too: of a log, its live units, as the server
    /// may have trimmed the others. Says how many were asked for and how many there were.
    pub fn refund(&mut self, numbers: &mut Numbers, now: i64) -> Option<(u64, u64)> {
        if self.may_forget(now) {
            return None;
        }
        let (_, longest) = *self.tiers.iter().max_by_key(|tier| tier.1)?;
        let call = Call {
            tiers: &[(MOST, longest)],
            cost: 0,
            force: false,
        };
        let shape = Shape {
            buckets: self.buckets[0],
            strict: false,
        };
        let used = MOST - self.oracle.peek(now, call, shape).remaining.unsigned_abs();
        let bound = match self.oracle {
            Oracle::Log(_) => used,
            Oracle::Counter(_) => (used * 2).min(MOST),
        };
        if bound == 0 {
            return None;
        }
        let units = numbers.one_to(bound);
        let taken = self.oracle.refund(units);
        self.refunded = true;
        self.trace
            .push(format!("at {now}: REFUND {units}: {taken}"));
        Some((units, taken))
    }

    pub fn check_expiry(&self, frozen: &mut Frozen) {
        let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &[&self.name]);
        if expiry == -2 {
            return;
        }
        let trace = || self.trace.join("\n");
        if self.is_counter() {
            let fields: Vec<(String, String)> = run(&mut frozen.con, "HGETALL", &[&self.name]);
            let last = fields.iter().map(end_of_field).max().unwrap();
            assert_eq!(expiry, last, "{fields:?} after\n{}", trace());
        } else {
            let windows = self.tiers.iter().map(|tier| tier.1);
            let longest = i64::try_from(windows.max().unwrap()).unwrap();
            let newest = entries(&mut frozen.con, &self.name).pop().unwrap().1;
            // A refund may take back the entry that the expiry was set for.
            let latest = if self.refunded { self.latest } else { newest };
            assert!(
                (newest + longest..=latest + longest + longest / 4).contains(&expiry),
                "lives {} ms after\n{}",
                expiry - newest,
                trace()
            );
        }
    }
}

/// Puts the clock to an instant. A key that has expired before a step back, or may have, would come
/// back in the oracle, so it is deleted.
pub fn move_clock(frozen: &mut Frozen, keys: &mut [Key], now: i64, next: i64) {
    if next < now {
        delete_expired(frozen, keys, now);
    }
    frozen.set(next);
}

/// Deletes the keys that have expired, or may have, and empties their oracles.
pub fn delete_expired(frozen: &mut Frozen, keys: &mut [Key], now: i64) {
    for key in keys {
        if key.may_forget(now) {
            frozen.delete(&key.name);
            key.forget(now);
        }
    }
}

/// When the newest bucket of a stored field stops to matter: (i + n + 1) * w / n, rounded up.
fn end_of_field((field, value): &(String, String)) -> i64 {
    let number = |text: &str| text.parse::<i64>().unwrap();
    let (window, buckets) = field.split_once('/').unwrap_or((field, "1"));
    let (window, buckets) = (number(window), number(buckets));
    let index = number(value.split(':').next().unwrap());
    let ticks = (index + buckets + 1) * window;
    ticks.div_euclid(buckets) + i64::from(ticks % buckets > 0)
}

pub fn add_tiers(command: &mut Cmd, tiers: &[(u64, u64)]) {
    for &(limit, window) in tiers {
        command.arg(limit).arg(window);
    }
}

/// Adds the words for a shape, if they are needed.
pub fn add_shape(command: &mut Cmd, Shape { buckets, strict }: Shape) {
    if buckets != 1 {
        command.arg("BUCKETS").arg(buckets);
    }
    if strict {
        command.arg("STRICT");
    }
}

/// Adds the words for cost and FORCE, if they are needed.
pub fn add_options(command: &mut Cmd, call: Call) {
    if call.cost != 1 {
        command.arg("COST").arg(call.cost);
    }
    if call.force {
        command.arg("FORCE");
    }
}
