//! Giving back what was recorded.

use std::num::NonZeroU64;

use super::entry::Entry;
use super::read::{Unpacked, unpack_newest};
use super::rewrite::rewrite;
use super::set::SortedSet;
use crate::limiter::Foreign;
use crate::limiter::refund::RecordedAt;

/// The most entries that one refund looks at.
const MOST_ENTRIES: usize = 1000;

/// Takes back up to `units`, newest entry first, and returns how many there were to take.
///
/// # Errors
/// [`Foreign`] when an entry that it reads was not written by a log; nothing is changed.
pub fn refund<S: SortedSet>(set: &mut S, units: NonZeroU64) -> Result<u64, Foreign> {
    let mut units_seen = 0_u64;
    let mut entries_seen = 0;
    let members = unpack_newest(set, |member| {
        entries_seen += member.entries.len();
        let costs = member.entries.iter().map(|entry| entry.cost);
        units_seen = costs.fold(units_seen, u64::saturating_add);
        units_seen < units.get() && entries_seen < MOST_ENTRIES
    })?;
    let mut costs = costs(&members);
    let newest_first = costs.iter_mut().rev().take(MOST_ENTRIES);
    let taken = take(units.get(), newest_first.map(|(_, cost)| cost));
    rewrite(set, members, &costs)?;
    Ok(taken)
}

/// As [`refund`], but only from the entries of the time `recorded`: first from the moment that the
/// caller named forward, then from there back.
///
/// The entries after those it takes from are written anew, since their totals change.
///
/// # Errors
/// As for [`refund`].
pub fn refund_aged<S: SortedSet>(
    set: &mut S,
    units: NonZeroU64,
    recorded: RecordedAt,
) -> Result<u64, Foreign> {
    let mut entries_seen = 0;
    let members = unpack_newest(set, |member| {
        entries_seen += member.entries.len();
        let oldest = member.entries.first();
        oldest.is_some_and(|oldest| oldest.time > recorded.first) && entries_seen < MOST_ENTRIES
    })?;
    let mut costs = costs(&members);
    let beyond = costs.len().saturating_sub(MOST_ENTRIES);
    let in_reach = costs.split_at_mut(beyond).1;
    let split = in_reach.partition_point(|(entry, _)| entry.time < recorded.told);
    let (back, forward) = in_reach.split_at_mut(split);
    let forward = forward.iter_mut();
    let forward = forward.take_while(|(entry, _)| entry.time <= recorded.last);
    let back = back.iter_mut().rev();
    let back = back.take_while(|(entry, _)| entry.time >= recorded.first);
    let taken = take(units.get(), forward.chain(back).map(|(_, cost)| cost));
    rewrite(set, members, &costs)?;
    Ok(taken)
}

/// All entries with their costs, which can be changed, the oldest first.
fn costs<T>(newest_first: &[Unpacked<T>]) -> Vec<(Entry, u64)> {
    let members = newest_first.iter().rev();
    let entries = members.flat_map(|member| &member.entries);
    entries.map(|entry| (*entry, entry.cost)).collect()
}

/// Takes up to `units` off the costs, in their order, and returns how many there were to take.
fn take<'c>(units: u64, costs: impl Iterator<Item = &'c mut u64>) -> u64 {
    let mut wanted = units;
    for cost in costs {
        let taken = wanted.min(*cost);
        *cost -= taken;
        wanted -= taken;
    }
    units - wanted
}
