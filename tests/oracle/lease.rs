//! The leases of a key: every place ever taken, looked through one by one.

use super::{Judged, Reply, report, stored};

/// No lease is longer, so one that ends later came from a wrong date. In ms.
const LONGEST_TTL: i128 = 86_400_000;

/// How many wrong dates one call sets right.
const HEALED: usize = 64;

/// What a caller asks: one of `limit` places for `ttl` ms.
#[derive(Debug, Clone, Copy)]
pub struct Take<'a> {
    pub limit: u64,
    pub ttl: u64,
    pub id: &'a [u8],
    pub force: bool,
}

#[derive(Debug, Clone)]
pub struct Lease {
    /// (end, id), each id once. What has ended stays, as it may on a server.
    places: Vec<(i128, Vec<u8>)>,
}

impl Lease {
    pub fn new() -> Self {
        Lease { places: Vec::new() }
    }

    /// A key with these stored leases.
    pub fn holding(places: &[stored::Place]) -> Self {
        let places = places.iter();
        Lease {
            places: places
                .map(|place| (i128::from(place.end), place.id.clone()))
                .collect(),
        }
    }

    pub fn call(&mut self, now: i64, take: Take) -> Reply {
        let now = i128::from(now);
        self.heal(now, i128::from(take.ttl));
        let limited = self.is_full(now, take.limit) && !self.is_live(now, take.id);
        if !limited || take.force {
            self.end(&[take.id]);
            let end = now + i128::from(take.ttl);
            self.places.push((end, take.id.to_vec()));
        }
        self.reply(now, take.limit, limited)
    }

    /// The call's verdict when it is not recorded for another key's sake: healing stays.
    pub fn refuse(&mut self, now: i64, take: Take) -> Reply {
        let now = i128::from(now);
        self.heal(now, i128::from(take.ttl));
        let limited = self.is_full(now, take.limit) && !self.is_live(now, take.id);
        self.reply(now, take.limit, limited)
    }

    /// The verdict on a new id, without recording.
    pub fn peek(&self, now: i64, limit: u64) -> Reply {
        let now = i128::from(now);
        let mut healed = self.clone();
        healed.heal(now, LONGEST_TTL);
        healed.reply(now, limit, healed.is_full(now, limit))
    }

    /// Ends these leases and says how many of them were live.
    pub fn release(&mut self, now: i64, ids: &[&[u8]]) -> u64 {
        let mut live = 0;
        for id in ids {
            live += u64::from(self.is_live(i128::from(now), id));
            self.end(&[id]);
        }
        live
    }

    /// All leases that were never ended by a release, the first to end first.
    pub fn places(&self) -> Vec<stored::Place> {
        let mut places = self.places.clone();
        places.sort();
        let place = |(end, id)| stored::Place {
            id,
            end: i64::try_from(end).expect("a time"),
        };
        places.into_iter().map(place).collect()
    }

    /// The ids of the live leases.
    pub fn live(&self, now: i64) -> Vec<&[u8]> {
        let live = self.places.iter();
        live.filter(|place| place.0 > i128::from(now))
            .map(|place| place.1.as_slice())
            .collect()
    }

    /// Whether some lease has ended. The server may have removed it, and an earlier time would not
    /// find it live again; here it would.
    pub fn may_forget(&self, now: i64) -> bool {
        self.live(now).len() < self.places.len()
    }

    fn end(&mut self, ids: &[&[u8]]) {
        self.places
            .retain(|place| !ids.contains(&place.1.as_slice()));
    }

    fn is_live(&self, at: i128, id: &[u8]) -> bool {
        self.places
            .iter()
            .any(|place| place.0 > at && place.1 == id)
    }

    fn is_full(&self, at: i128, limit: u64) -> bool {
        self.count(at) >= i128::from(limit)
    }

    fn count(&self, at: i128) -> i128 {
        self.places
            .iter()
            .map(|place| i128::from(place.0 > at))
            .sum()
    }

    /// Dates the earliest of the wrongly dated leases anew.
    fn heal(&mut self, now: i128, ttl: i128) {
        self.places.sort();
        let wrong = self
            .places
            .iter_mut()
            .filter(|place| place.0 > now + LONGEST_TTL);
        for place in wrong.take(HEALED) {
            place.0 = now + ttl;
        }
    }

    /// The least delay after which the condition holds: either none, or until some lease ends.
    fn delay(&self, now: i128, holds: impl Fn(i128) -> bool) -> Option<i128> {
        let mut instants: Vec<i128> = self.places.iter().map(|place| place.0).collect();
        instants.push(now);
        instants.retain(|&at| at >= now && holds(at));
        instants.into_iter().min().map(|at| at - now)
    }

    fn reply(&self, now: i128, limit: u64, limited: bool) -> Reply {
        let judged = Judged {
            limit,
            remaining: (i128::from(limit) - self.count(now)).max(0),
            wait: self.delay(now, |at| !self.is_full(at, limit)),
            reset: self
                .delay(now, |at| self.count(at) == 0)
                .expect("all leases end"),
        };
        report(limited, &[judged])
    }
}
