//! The exact log: all entries ever recorded, counted one by one.

use super::headers::{Standing, Tier};
use super::{Call, Judged, Reply, Span, report, reported, stored};

/// What all entries of the longest window together can hold; only FORCE gets there.
const SATURATED: i128 = 1 << 63;

/// Entries that one refund looks at.
const REFUND_ENTRIES: usize = 1000;

#[derive(Debug, Clone)]
pub struct Log {
    /// (time, cost), oldest first, at most one a ms. Nothing is ever trimmed.
    entries: Vec<(i128, i128)>,
    /// The time of the last recording, which a refund leaves behind.
    recorded: Option<i128>,
}

impl Log {
    pub fn new() -> Self {
        Log {
            entries: Vec::new(),
            recorded: None,
        }
    }

    /// A log with these stored entries, oldest first.
    pub fn holding(entries: &[stored::Entry]) -> Self {
        let wide = |entry: &stored::Entry| (i128::from(entry.time), i128::from(entry.cost));
        let entries: Vec<(i128, i128)> = entries.iter().map(wide).collect();
        let recorded = entries.last().map(|newest| newest.0);
        Log { entries, recorded }
    }

    pub fn call(&mut self, now: i64, call: Call) -> Reply {
        let now = i128::from(now);
        self.heal(now, call);
        let limited = !self.fits(now, call);
        if !limited || call.force {
            self.record(now, call);
        }
        self.reply(now, call, limited)
    }

    /// The call's verdict without recording. FORCE means nothing here.
    pub fn peek(&self, now: i64, call: Call) -> Reply {
        self.clone().call_without_recording(i128::from(now), call)
    }

    /// Takes back the newest units and says how many there were.
    ///
    /// Entries that are expired but not yet trimmed can be refunded, and when a server trims is its
    /// own affair: this is exact only while nothing was trimmed, or while the refund stays within
    /// the live entries.
    pub fn refund(&mut self, units: u64) -> u64 {
        let mut left = i128::from(units);
        for _ in 0..REFUND_ENTRIES {
            let Some(newest) = self.entries.last_mut() else {
                break;
            };
            let taken = left.min(newest.1);
            left -= taken;
            newest.1 -= taken;
            if newest.1 == 0 {
                self.entries.pop();
            }
        }
        units - u64::try_from(left).expect("no more is taken than asked for")
    }

    /// Takes back units that were recorded `age` ms ago, give or take [`super::AGE_SLACK`]: from then
    /// on, then from there back; of the newest entries only. Exact as far as [`Log::refund`] is.
    pub fn refund_aged(&mut self, now: i64, units: u64, age: u64) -> u64 {
        let span = Span::new(now, age);
        let mut places: Vec<usize> = (0..self.entries.len())
            .rev()
            .take(REFUND_ENTRIES)
            .filter(|&place| (span.first..=span.last).contains(&self.entries[place].0))
            .collect();
        let from_there = |place: &usize| self.entries[*place].0 >= span.middle;
        let later = places.iter().take_while(|place| from_there(place)).count();
        places[..later].reverse();
        let mut left = i128::from(units);
        for place in places {
            let taken = left.min(self.entries[place].1);
            left -= taken;
            self.entries[place].1 -= taken;
        }
        self.entries.retain(|entry| entry.1 > 0);
        units - u64::try_from(left).expect("no more is taken than asked for")
    }

    /// All entries, (time, cost), oldest first.
    pub fn entries(&self) -> &[(i128, i128)] {
        &self.entries
    }

    /// Whether the key would be missing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a key may have lost entries that an earlier time would count again: all have expired,
    /// so the key may be gone, or a refund took back the entry that let older ones be trimmed.
    pub fn may_forget(&self, now: i64, call: Call) -> bool {
        let newest = self.entries.last().map(|newest| newest.0);
        self.used(i128::from(now), call.longest()) == 0 || newest < self.recorded
    }

    /// The call's verdict when it is not recorded for another key's sake: healing stays.
    pub fn refuse(&mut self, now: i64, call: Call) -> Reply {
        self.call_without_recording(i128::from(now), call)
    }

    fn call_without_recording(&mut self, now: i128, call: Call) -> Reply {
        self.heal(now, call);
        let limited = !self.fits(now, call);
        self.reply(now, call, limited)
    }

    /// Time never runs back behind an entry: a clock that did so stands still at the newest one.
    fn time(&self, at: i128) -> i128 {
        self.entries.last().map_or(at, |newest| at.max(newest.0))
    }

    fn used(&self, at: i128, window: i128) -> i128 {
        let time = self.time(at);
        self.entries
            .iter()
            .filter(|entry| entry.0 > time - window)
            .map(|entry| entry.1)
            .sum()
    }

    /// A newest entry further ahead than the longest window came from a wrong date. All that it
    /// still counts is moved to now, so no usage is forgotten and no key stays locked.
    fn heal(&mut self, now: i128, call: Call) {
        if self.time(now) > now + call.longest() {
            let used = self.used(now, call.longest());
            self.entries = vec![(now, used)];
            self.recorded = Some(now);
        }
    }

    fn fits(&self, at: i128, call: Call) -> bool {
        call.tiers
            .iter()
            .all(|&tier| self.fits_tier(at, tier, call.cost))
    }

    fn fits_tier(&self, at: i128, (limit, window): (u64, u64), cost: u64) -> bool {
        self.used(at, i128::from(window)) + i128::from(cost) <= i128::from(limit)
    }

    fn record(&mut self, now: i128, call: Call) {
        let time = self.time(now);
        let cost = i128::from(call.cost).min(SATURATED - self.used(now, call.longest()));
        match self.entries.last_mut() {
            _ if cost == 0 => {}
            Some(newest) if newest.0 == time => newest.1 += cost,
            _ => self.entries.push((time, cost)),
        }
        self.recorded = self
            .recorded
            .max(self.entries.last().map(|newest| newest.0));
    }

    /// The least delay after which the condition holds: either none, or until some entry expires.
    fn delay(&self, now: i128, window: u64, holds: impl Fn(i128) -> bool) -> Option<i128> {
        let expiries = self
            .entries
            .iter()
            .map(|entry| entry.0 + i128::from(window));
        std::iter::once(now)
            .chain(expiries)
            .filter(|&at| at >= now)
            .find(|&at| holds(at))
            .map(|at| at - now)
    }

    fn reply(&self, now: i128, call: Call, limited: bool) -> Reply {
        report(limited, &self.judge(now, call))
    }

    fn judge(&self, now: i128, call: Call) -> Vec<Judged> {
        let judge = |&(limit, window): &(u64, u64)| Judged {
            limit,
            remaining: (i128::from(limit) - self.used(now, i128::from(window))).max(0),
            wait: self.delay(now, window, |at| {
                self.fits_tier(at, (limit, window), call.cost)
            }),
            reset: self
                .delay(now, window, |at| self.used(at, i128::from(window)) == 0)
                .expect("all entries expire"),
        };
        call.tiers.iter().map(judge).collect()
    }

    /// The tiers after a call that was given this reply.
    pub fn standing(&self, now: i64, call: Call, reply: Reply) -> Standing {
        let now = i128::from(now);
        let mut healed = self.clone();
        healed.heal(now, call);
        let judged = healed.judge(now, call);
        let tier = |(judged, &(limit, window)): (&Judged, &(u64, u64))| {
            let remaining = u64::try_from(judged.remaining).expect("at most the limit");
            let fits = |at| healed.fits_tier(at, (limit, window), remaining + 1);
            let used = healed.used(now, i128::from(window)) > 0;
            let t = (used && limit > 0).then(|| healed.delay(now, window, fits));
            Tier {
                limit,
                window,
                remaining,
                t: t.flatten().map(|t| u64::try_from(t).expect("a delay")),
            }
        };
        Standing {
            reply,
            tiers: judged.iter().zip(call.tiers).map(tier).collect(),
            reported: reported(reply.retry_after != 0, &judged),
        }
    }
}
