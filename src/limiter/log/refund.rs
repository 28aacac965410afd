//! Giving back what was recorded.

use std::num::NonZeroU64;

use super::entry::Entry;
use super::store::LogStore;
use crate::limiter::Foreign;
use crate::limiter::refund::RecordedAt;

/// The most entries that one refund looks at.
const MOST_ENTRIES: usize = 1000;

/// Takes back up to `units`, newest entry first, and returns how many there were to take.
///
/// # Errors
/// [`Foreign`] when an entry that it reads was not written by a log; nothing is changed.
pub fn refund<S: LogStore>(store: &mut S, units: NonZeroU64) -> Result<u64, Foreign> {
    let mut wanted = units.get();
    let mut taken = Vec::new();
    let mut remainder = None;
    store.newest_first(|entry| {
        taken.push(entry);
        if entry.cost > wanted {
            remainder = Some(Entry {
                time: entry.time,
                total: entry.total.wrapping_sub(wanted),
                cost: entry.cost - wanted,
            });
            wanted = 0;
        } else {
            wanted -= entry.cost;
        }
        wanted > 0 && taken.len() < MOST_ENTRIES
    })?;
    if !taken.is_empty() {
        store.replace(&taken, remainder.as_slice());
    }
    Ok(units.get() - wanted)
}

/// As [`refund`], but only from the entries of the time `recorded`: first from the moment that the
/// caller named forward, then from there back.
///
/// The entries after those it takes from are written anew, since their totals change.
///
/// # Errors
/// As for [`refund`].
pub fn refund_aged<S: LogStore>(
    store: &mut S,
    units: NonZeroU64,
    recorded: RecordedAt,
) -> Result<u64, Foreign> {
    let mut newest_first = Vec::new();
    store.newest_first(|entry| {
        let in_reach = entry.time >= recorded.first;
        if in_reach {
            newest_first.push(entry);
        }
        in_reach && newest_first.len() < MOST_ENTRIES
    })?;

    let mut kept = newest_first.iter().copied().rev().collect::<Vec<_>>();
    let split = kept.partition_point(|entry| entry.time < recorded.told);
    let (back, forward) = kept.split_at_mut(split);
    let forward = forward.iter_mut();
    let forward = forward.take_while(|entry| entry.time <= recorded.last);
    let mut wanted = units.get();
    for entry in forward.chain(back.iter_mut().rev()) {
        let taken = wanted.min(entry.cost);
        entry.cost -= taken;
        wanted -= taken;
    }

    let unchanged = newest_first.iter().rev().zip(&kept);
    let unchanged = unchanged.take_while(|(before, after)| before.cost == after.cost);
    let unchanged = unchanged.count();
    let mut old = newest_first;
    old.truncate(kept.len() - unchanged);
    if let Some(oldest) = old.last() {
        let mut total = oldest.total_before();
        let mut new = kept.split_off(unchanged);
        for entry in &mut new {
            total = total.wrapping_add(entry.cost);
            entry.total = total;
        }
        new.retain(|entry| entry.cost > 0);
        store.replace(&old, &new);
    }
    Ok(units.get() - wanted)
}
