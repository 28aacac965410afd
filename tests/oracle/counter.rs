//! The approximate counter: every bucket ever counted, weighed one by one.

use super::headers::{Standing, Tier};
use super::{Call, Judged, Reply, Span, report, reported, stored};

/// What one bucket can hold; only FORCE and healing get there.
const SATURATED: i128 = (1 << 57) - 1;

/// The buckets of one window: what the server keeps in one hash field.
#[derive(Debug, Clone)]
struct Field {
    window: i128,
    buckets: i128,
    /// How much earlier than the epoch's the key's windows begin, in ms.
    shift: i128,
    /// (index, cost), oldest first. The last index is where time stands still, also at cost 0.
    counts: Vec<(i128, i128)>,
}

#[derive(Debug, Clone)]
pub struct Counter {
    key: Vec<u8>,
    fields: Vec<Field>,
    /// Whether a recorded call has left more fields than it had tiers, so that the server may have
    /// removed those that do not matter any more.
    crowded: bool,
}

/// 64-bit FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// How much earlier than the epoch's the windows of a key begin, in ms.
pub fn shift(key: &[u8], window: u64) -> u64 {
    hash(key) % window
}

impl Field {
    fn newest(&self) -> Option<i128> {
        self.counts.last().map(|count| count.0)
    }

    /// The bucket that the clock is in, whatever the newest one is.
    fn index(&self, at: i128) -> i128 {
        ((at + self.shift) * self.buckets).div_euclid(self.window)
    }

    /// Bucket index and what has passed of it, in 1/n ms, never before the newest bucket's start.
    fn position(&self, now: i128) -> (i128, i128) {
        let clock = (now + self.shift) * self.buckets;
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
        let ahead =
            |newest: i128| newest * self.window > (now + self.shift + self.window) * self.buckets;
        if self.newest().is_some_and(ahead) {
            let moved = self.stored().min(SATURATED);
            let current = self.index(now);
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

    /// Whether its last bucket has not ended yet.
    fn matters(&self, now: i128) -> bool {
        let last = |newest: i128| (newest + self.buckets + 1) * self.window;
        self.newest()
            .is_some_and(|newest| last(newest) > (now + self.shift) * self.buckets)
    }

    /// The stored buckets that are taken from without AGE, in that order.
    fn newest_first(&self) -> Vec<i128> {
        let newest = self.newest().unwrap_or(0);
        (newest - self.buckets..=newest).rev().collect()
    }

    /// The stored buckets that overlap the span of an aged refund: from the middle of the span on,
    /// then from there back.
    fn around(&self, span: &Span) -> Vec<i128> {
        let begins = |index: i128| index * self.window;
        let tick = |at: i128| (at + self.shift) * self.buckets;
        let overlaps = |index: &i128| {
            begins(*index) <= tick(span.last) && begins(*index + 1) > tick(span.first)
        };
        let middle = self.index(span.middle);
        let mut stored = self.newest_first();
        stored.retain(overlaps);
        let (mut from_there, before): (Vec<i128>, Vec<i128>) =
            stored.into_iter().partition(|index| *index >= middle);
        from_there.reverse();
        from_there.extend(before);
        from_there
    }

    fn refund(&mut self, indices: &[i128], units: u64) -> u64 {
        let mut left = i128::from(units);
        for index in indices {
            for count in self.counts.iter_mut().filter(|count| count.0 == *index) {
                let taken = left.min(count.1);
                count.1 -= taken;
                left -= taken;
            }
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
        let lag = self.newest().map_or(0, |newest| {
            newest * self.window / self.buckets + 1 - self.shift - now
        });
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
    /// The counter of a key, whose windows begin at moments of its own.
    pub fn new(key: &[u8]) -> Self {
        Counter {
            key: key.to_vec(),
            fields: Vec::new(),
            crowded: false,
        }
    }

    /// A counter with these stored fields.
    pub fn holding(key: &[u8], fields: &[stored::Field]) -> Self {
        let mut counter = Counter::new(key);
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

    /// Takes back the newest units in every field that still matters, and says the most that any
    /// field gave. The server drops buckets with the key's expiry, so this is exact only while the
    /// key lives.
    pub fn refund(&mut self, now: i64, units: u64) -> u64 {
        self.refund_buckets(now, units, Field::newest_first)
    }

    /// Takes back units that were recorded `age` ms ago, give or take [`super::AGE_SLACK`].
    pub fn refund_aged(&mut self, now: i64, units: u64, age: u64) -> u64 {
        self.refund_buckets(now, units, |field| field.around(&Span::new(now, age)))
    }

    fn refund_buckets(&mut self, now: i64, units: u64, order: impl Fn(&Field) -> Vec<i128>) -> u64 {
        self.fields
            .iter_mut()
            .filter(|field| field.matters(i128::from(now)))
            .map(|field| field.refund(&order(field), units))
            .max()
            .unwrap_or(0)
    }

    /// Whether the server may have removed the key, or a field, because it does not matter any more.
    /// An earlier time would not count it again; here it would. Nothing else depends on such a field:
    /// while time goes on, it counts nothing and gives nothing back.
    pub fn may_forget(&self, now: i64) -> bool {
        let matters = |field: &&Field| field.matters(i128::from(now));
        let stored = || self.fields.iter().filter(|field| field.newest().is_some());
        let dead = stored().count() - stored().filter(matters).count();
        dead == stored().count() || (self.crowded && dead > 0)
    }

    /// The tiers after a call that was given this reply.
    pub fn standing(
        &self,
        now: i64,
        call: Call,
        (buckets, strict): (u64, bool),
        reply: Reply,
    ) -> Standing {
        let now = i128::from(now);
        let mut healed = self.clone();
        let (mut judged, mut tiers) = (Vec::new(), Vec::new());
        for &(limit, window) in call.tiers {
            let field = healed.field(window, buckets);
            field.heal(now);
            let after = field.judge(now, limit, call.cost, strict);
            let remaining = u64::try_from(after.remaining).expect("at most the limit");
            let fits = |at| field.fits(at, limit, remaining + 1, strict);
            let used = field.estimate(now, strict) > 0;
            let t = (used && limit > 0).then(|| field.delay(now, fits));
            tiers.push(Tier {
                limit,
                window,
                remaining,
                t: t.map(|t| u64::try_from(t).expect("a delay")),
            });
            judged.push(after);
        }
        Standing {
            reply,
            reported: reported(reply.retry_after != 0, &judged),
            tiers,
        }
    }

    fn field(&mut self, window: u64, buckets: u64) -> &mut Field {
        let shift = i128::from(shift(&self.key, window));
        let (window, buckets) = (i128::from(window), i128::from(buckets));
        let same = |field: &Field| field.window == window && field.buckets == buckets;
        let place = self.fields.iter().position(same).unwrap_or_else(|| {
            self.fields.push(Field {
                window,
                buckets,
                shift,
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
        let stored = self.fields.iter().filter(|field| field.newest().is_some());
        self.crowded |= records && stored.count() > tiers.len();
        report(!admitted, &judged)
    }
}
