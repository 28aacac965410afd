//! What a log says at one moment: usage, and how long until some of it expires.

use super::entry::{Entry, MAX_USAGE};
use super::read;
use super::search::Search;
use super::set::SortedSet;
use crate::limiter::Foreign;
use crate::limiter::tier::Tier;
use crate::limiter::units::{Cost, Millis, Timestamp, Window};
use crate::limiter::verdict::{Standing, Wait};

/// A tier and what is used of it before the call.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub tier: Tier,
    pub used: u64,
    /// The oldest live entry; `None` where nothing is used.
    oldest: Option<Entry>,
}

impl Usage {
    pub fn is_over(&self, cost: Cost) -> bool {
        // Without overflow: usage is at most 2^63 and a cost below 2^53.
        self.used + cost.get() > self.tier.limit.get()
    }

    /// Units left once `recorded` more are used.
    pub fn remaining(&self, recorded: u64) -> u64 {
        let used = self.used + recorded;
        self.tier.limit.get().saturating_sub(used)
    }
}

/// When a call takes place, and what came last before it.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Timestamp,
    /// When the call is recorded: now, but never before the newest entry.
    pub time: Timestamp,
    pub newest: Option<Entry>,
    /// Whether `newest` stands for a log whose dates lay too far in the future.
    pub healed: bool,
}

impl Moment {
    /// Finds the newest entry, and what stands for it after a clock fault.
    #[inline(always)]
    pub fn read<S: SortedSet>(
        set: &mut S,
        now: Timestamp,
        longest: Window,
    ) -> Result<Self, Foreign> {
        let newest = read::newest(set)?;
        let moment = Self {
            now,
            time: newest.map_or(now, |newest| newest.time.max(now)),
            newest,
            healed: false,
        };
        match newest {
            Some(newest) if newest.time > now + longest => {
                // One entry, dated now, of all that the newest one sees in the longest window.
                let (_, used) = moment.used_through(set, newest, longest)?;
                Ok(Self {
                    now,
                    time: now,
                    newest: Some(Entry {
                        time: now,
                        total: newest.total,
                        cost: used,
                    }),
                    healed: true,
                })
            }
            _ => Ok(moment),
        }
    }

    #[inline(always)]
    pub fn usage<S: SortedSet>(&self, set: &mut S, tier: Tier) -> Result<Usage, Foreign> {
        let since = self.time.before(tier.window);
        let (oldest, used) = match self.newest {
            Some(newest) if self.healed => (Some(newest), newest.cost),
            Some(newest) if newest.time > since => {
                let (oldest, used) = self.used_through(set, newest, tier.window)?;
                (Some(oldest), used)
            }
            _ => (None, 0),
        };
        Ok(Usage { tier, used, oldest })
    }

    /// The oldest live entry, and what it and all up to `newest`, which is live, use.
    fn used_through<S: SortedSet>(
        &self,
        set: &mut S,
        newest: Entry,
        window: Window,
    ) -> Result<(Entry, u64), Foreign> {
        let since = self.time.before(window);
        let oldest = read::first_after(set, since)?.unwrap_or(newest);
        let used = newest.total.wrapping_sub(oldest.total_before());
        // Totals that do not add up were not written by a log.
        if used < newest.cost || used > MAX_USAGE {
            return Err(Foreign::Log);
        }
        Ok((oldest, used))
    }

    /// A tier once `recorded` units more are used of it. `limited` is the cost of a call that was over
    /// a limit; an admitted call waits for nothing.
    #[inline(always)]
    pub fn standing<S: SortedSet>(
        &self,
        set: &mut S,
        usage: &Usage,
        limited: Option<Cost>,
        recorded: u64,
    ) -> Result<Standing, Foreign> {
        let Tier { limit, window } = usage.tier;
        let used = usage.used + recorded;
        let newest = if recorded > 0 {
            Some(self.time)
        } else {
            self.newest.map(|newest| newest.time)
        };
        Ok(Standing {
            limit,
            remaining: usage.remaining(recorded),
            wait: match limited {
                Some(cost) => self.wait(set, usage, cost, recorded)?,
                None => Wait::NONE,
            },
            reset: match newest {
                Some(newest) if used > 0 => (newest + window).since(self.now),
                _ => Millis::ZERO,
            },
        })
    }

    /// Until `cost` units fit a tier of which `recorded` more are used.
    pub fn wait<S: SortedSet>(
        &self,
        set: &mut S,
        usage: &Usage,
        cost: Cost,
        recorded: u64,
    ) -> Result<Wait, Foreign> {
        let Tier { limit, window } = usage.tier;
        if cost.get() > limit.get() {
            return Ok(Wait::Never);
        }
        let excess = (usage.used + recorded + cost.get()).saturating_sub(limit.get());
        if excess == 0 {
            return Ok(Wait::NONE);
        }
        let last_to_go = match usage.oldest {
            Some(oldest) if excess <= usage.used => {
                let newest = self.newest.map_or(oldest.time, |newest| newest.time);
                Search::new(oldest, newest, usage.used, excess).run(set)?
            }
            _ => self.time,
        };
        Ok(Wait::For((last_to_go + window).since(self.now)))
    }
}
