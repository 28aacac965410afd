//! A key on the server, and what the naive oracle knows of it.

use redis::Cmd;

use crate::support::clock::{Frozen, START};
use crate::support::oracle::grammar::LONGEST_WINDOW;
use crate::support::oracle::{CLASSIC, Call, Oracle, Shape};
use crate::support::random::{MOST, Numbers, Tiers};
use crate::support::{end_of_bucket, entries, run};

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
    /// When the last few calls were.
    called: Vec<i64>,
    refunded: bool,
    /// All that happened, for the message of a failure.
    pub trace: Vec<String>,
}

impl Key {
    pub fn new(name: String, tiers: Tiers, buckets: Vec<u64>, empty: Oracle) -> Self {
        Key {
            name,
            tiers,
            buckets,
            oracle: empty.clone(),
            empty,
            latest: START,
            called: Vec::new(),
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
        self.called.insert(0, now);
        self.called.truncate(20);
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

    /// Takes back some of what surely is on the server too, with or without AGE: of a log, its live
    /// units, as the server may have trimmed the others. Gives the words after the key, and how many
    /// units there were.
    pub fn refund(&mut self, numbers: &mut Numbers, now: i64) -> Option<(String, u64)> {
        if !self.is_counter() && self.may_forget(now) {
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
        let bound = if self.is_counter() {
            (used * 2).clamp(1, MOST)
        } else {
            used
        };
        if bound == 0 {
            return None;
        }
        let units = numbers.one_to(bound);
        let (words, taken) = match self.age(numbers, now) {
            Some(age) if numbers.one_in(2) => {
                let words = format!("{units} AGE {age}ms");
                (words, self.oracle.refund_aged(now, units, age))
            }
            _ => (units.to_string(), self.oracle.refund(now, units)),
        };
        self.refunded = true;
        self.trace
            .push(format!("at {now}: REFUND {words}: {taken}"));
        Some((words, taken))
    }

    /// How long ago some call was, give or take a little more than a refund allows for. Of a log,
    /// only so long ago that all that is looked at still counts.
    fn age(&self, numbers: &mut Numbers, now: i64) -> Option<u64> {
        let called = *self.called.get(numbers.place(self.called.len().max(1)))?;
        let off = i64::try_from(numbers.below(2500)).ok()? - 1250;
        let off = if numbers.one_in(2) { off / 500 } else { off };
        let age = u64::try_from(now - called + off).ok()?;
        let longest = self.tiers.iter().map(|tier| tier.1).max()?;
        let is_live = age + 1000 + self.latest.abs_diff(now) < longest;
        let is_taken = self.is_counter() && age <= LONGEST_WINDOW;
        (is_taken || is_live).then_some(age)
    }

    /// When the newest bucket of a stored field stops to matter.
    fn end_of_field(&self, (field, value): &(String, String)) -> i64 {
        let number = |text: &str| text.parse::<i64>().unwrap();
        let (window, buckets) = field.split_once('/').unwrap_or((field, "1"));
        let index = number(value.split(':').next().unwrap());
        end_of_bucket(&self.name, number(window), number(buckets), index)
    }

    pub fn check_expiry(&self, frozen: &mut Frozen) {
        let expiry: i64 = run(&mut frozen.con, "PEXPIRETIME", &[&self.name]);
        if expiry == -2 {
            return;
        }
        let trace = || self.trace.join("\n");
        if self.is_counter() {
            let fields: Vec<(String, String)> = run(&mut frozen.con, "HGETALL", &[&self.name]);
            let ends = fields.iter().map(|field| self.end_of_field(field));
            let last = ends.max().unwrap();
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
