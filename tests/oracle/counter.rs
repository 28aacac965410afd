//! The approximate counter: every bucket ever counted, weighed one by one.

use super::{Call, Judged, Reply, report, stored};

/// What one bucket can hold; only FORCE and healing get there.
const SATURATED: i128 = (1 << 57) - 1;

/// The buckets of one window: what the server keeps in one hash field.
#[derive(Debug, Clone)]
struct Field {
    window: i128,
    buckets: i128,
    /// (index, cost), oldest first. The last index is where time stands still, also at cost 0.
    counts: Vec<(i128, i128)>,
}

#[derive(Debug, Clone)]
pub struct Counter {
    fields: Vec<Field>,
}

impl Field {
    fn newest(&self) -> Option<i128> {
        self.counts.last().map(|count| count.0)
    }

    /// Bucket index and what has passed of it, in 1/n ms, never before the newest bucket's start.
    fn position(&self, now: i128) -> (i128, i128) {
        let clock = now * self.buckets;
        let time = self
            .newest()
            .map_or(clock, |newest| clock.max(newest * self.window));
        (time.div_euclid(self.window), time.rem_euclid(self.window))
    }

    /// The usage times the window's length.
    fn estimate(&self, now: i128, strict: bool) -> i128 {
        let (index, passed) = self.position(now);
        let weight = |age: i128| match age {
            age if age == self.buckets && !strict => self.window - passed,
            age if age <= self.buckets => self.window,
            _ => 0,
        };
        self.counts
            .iter()
            .map(|count| count.1 * weight(index - count.0))
            .sum()
    }

    fn stored(&self) -> i128 {
        let newest = self.newest().unwrap_or(0);
        let kept = self
            .counts
            .iter()
            .filter(|count| count.0 >= newest - self.buckets);
        kept.map(|count| count.1).sum()
    }

    /// A newest bucket that starts more than a window from now came from a wrong date. All that the
    /// field holds is moved to the current bucket.
    fn heal(&mut self, now: i128) {
        let ahead = |newest: i128| newest * self.window > (now + self.window) * self.buckets;
        if self.newest().is_some_and(ahead) {
            let moved = self.stored().min(SATURATED);
            let current = (now * self.buckets).div_euclid(self.window);
            self.counts = vec![(current, moved)];
        }
    }

    fn record(&mut self, now: i128, cost: u64) {
        let index = self.position(now).0;
        if self.newest() != Some(index) {
            self.counts.push((index, 0));
        }
        let current = self.counts.last_mut().expect("just made");
        current.1 = (current.1 + i128::from(cost)).min(SATURATED);
    }

    fn refund(&mut self, units: u64) -> u64 {
        let mut left = i128::from(units);
        let oldest = self.newest().unwrap_or(0) - self.buckets;
        for count in self
            .counts
            .iter_mut()
            .rev()
            .filter(|count| count.0 >= oldest)
        {
            let taken = left.min(count.1);
            count.1 -= taken;
            left -= taken;
        }
        units - u64::try_from(left).expect("no more is taken than asked for")
    }

    fn fits(&self, now: i128, limit: u64, cost: u64, strict: bool) -> bool {
        let more = i128::from(cost) * self.window;
        self.estimate(now, strict) + more <= i128::from(limit) * self.window
    }

    /// The least delay after which the condition holds, by bisection: usage only falls with time,
    /// and is 0 two windows after the newest bucket began.
    fn delay(&self, now: i128, holds: impl Fn(i128) -> bool) -> i128 {
        let lag = self
            .newest()
            .map_or(0, |newest| newest * self.window / self.buckets + 1 - now);
        let (mut low, mut high) = (0, lag.max(0) + 2 * self.window + 1);
        while low < high {
            let middle = i128::midpoint(low, high);
            if holds(now + middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    fn judge(&self, now: i128, limit: u64, cost: u64, strict: bool) -> Judged {
        let left = i128::from(limit) * self.window - self.estimate(now, strict);
        Judged {
            limit,
            remaining: left.div_euclid(self.window).max(0),
            wait: (cost <= limit).then(|| self.delay(now, |at| self.fits(at, limit, cost, strict))),
            reset: self.delay(now, |at| self.estimate(at, strict) == 0),
        }
    }
}

impl Counter {
    pub fn new() -> Self {
        Counter { fields: Vec::new() }
    }

    /// A counter with these stored fields.
    pub fn holding(fields: &[stored::Field]) -> Self {
        let mut counter = Counter::new();
        for field in fields {
            let oldest = i128::from(field.index) - i128::from(field.buckets);
            let counts = field.counts.iter().rev().zip(oldest..);
            let counts = counts.map(|(&count, index)| (index, i128::from(count)));
            counter.field(field.window, field.buckets).counts = counts.collect();
        }
        counter
    }

    pub fn call(&mut self, now: i64, call: Call, buckets: u64, strict: bool) -> Reply {
        self.decide(now, call, buckets, strict, true)
    }

    /// The call's verdict without recording. FORCE means nothing here.
    pub fn peek(&self, now: i64, call: Call, buckets: u64, strict: bool) -> Reply {
        self.clone().decide(now, call, buckets, strict, false)
    }

    /// The call's verdict when it is not recorded for another key's sake: healing stays.
    pub fn refuse(&mut self, now: i64, call: Call, buckets: u64, strict: bool) -> Reply {
        self.decide(now, call, buckets, strict, false)
    }

    /// Takes back the newest units in every field and says the most that any field gave. The server
    /// drops buckets with the key's expiry, so this is exact only while the key lives.
    pub fn refund(&mut self, units: u64) -> u64 {
        self.fields
            .iter_mut()
            .map(|field| field.refund(units))
            .max()
            .unwrap_or(0)
    }

    /// Whether no field counts anything any more, so that the key may be gone and an earlier time
    /// would not count it again.
    pub fn may_forget(&self, now: i64) -> bool {
        self.fields
            .iter()
            .all(|field| field.estimate(i128::from(now), true) == 0)
    }

    fn field(&mut self, window: u64, buckets: u64) -> &mut Field {
        let (window, buckets) = (i128::from(window), i128::from(buckets));
        let same = |field: &Field| field.window == window && field.buckets == buckets;
        let place = self.fields.iter().position(same).unwrap_or_else(|| {
            self.fields.push(Field {
                window,
                buckets,
                counts: Vec::new(),
            });
            self.fields.len() - 1
        });
        &mut self.fields[place]
    }

    fn decide(&mut self, now: i64, call: Call, buckets: u64, strict: bool, record: bool) -> Reply {
        let now = i128::from(now);
        let Call { tiers, cost, force } = call;
        let mut admitted = true;
        for &(limit, window) in tiers {
            let field = self.field(window, buckets);
            field.heal(now);
            admitted &= field.fits(now, limit, cost, strict);
        }
        let records = record && cost > 0 && (admitted || force);
        let mut judged = Vec::new();
        for &(limit, window) in tiers {
            let field = self.field(window, buckets);
            if records {
                field.record(now, cost);
            }
            judged.push(field.judge(now, limit, cost, strict));
        }
        report(!admitted, &judged)
    }
}
