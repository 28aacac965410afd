//! Writing the newest members of a log anew, because costs of their entries have changed.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::entry::Entry;
use super::member::{fitting, spell};
use super::packing::{LARGE_MEMBER, SMALL_MEMBER, is_large};
use super::read::{Unpacked, unpack_before};
use super::set::SortedSet;
use crate::limiter::Foreign;
use crate::limiter::units::Timestamp;

/// More of the newest members than this are removed by a range, which takes fewer bytes.
const MOST_NAMED: usize = 16;

/// Gives the entries of the newest members, given newest first, other costs: `costs` has all of
/// these entries, the oldest first, each with its new cost. Those that cost nothing go.
///
/// # Errors
/// [`Foreign`] when the newest member would be one that no log wrote; nothing is changed.
pub fn rewrite<S: SortedSet>(
    set: &mut S,
    members: Vec<Unpacked<S::Text>>,
    costs: &[(Entry, u64)],
) -> Result<(), Foreign> {
    let changed = costs.iter().position(|(entry, cost)| entry.cost != *cost);
    let Some(changed) = changed else {
        return Ok(());
    };
    let mut old = Vec::new();
    let mut groups = Vec::new();
    let mut rest = costs;
    let mut place = 0;
    let mut total = None;
    for member in members.into_iter().rev() {
        let (own, after) = rest.split_at(member.entries.len());
        rest = after;
        place += own.len();
        if place <= changed {
            continue;
        }
        let mut kept = Vec::with_capacity(own.len());
        for (entry, cost) in own {
            let sum = total.unwrap_or(entry.total_before()).wrapping_add(*cost);
            total = Some(sum);
            if *cost > 0 {
                kept.push(Entry {
                    total: sum,
                    cost: *cost,
                    ..*entry
                });
            }
        }
        groups.push(kept);
        old.push(Old::of(member));
    }
    groups.retain(|group| !group.is_empty());
    if groups.is_empty()
        && let Some(below) = unpack_before(set, old.len())?
    {
        // It becomes the newest member, which is never packed.
        if below.entries.len() > 1 {
            groups.push(below.entries.clone());
            old.insert(0, Old::of(below));
        }
    }
    if let Some(last) = groups.last_mut()
        && last.len() > 1
        && let Some(newest) = last.pop()
    {
        groups.push(vec![newest]);
    }
    let large = old.iter().any(|old| is_large(old.text.as_ref()));
    write(
        set,
        &groups,
        old,
        if large { LARGE_MEMBER } else { SMALL_MEMBER },
    );
    Ok(())
}

/// A member that goes.
struct Old<T> {
    time: Timestamp,
    text: T,
}

impl<T> Old<T> {
    fn of(member: Unpacked<T>) -> Self {
        let newest = member.entries.last();
        Self {
            time: newest.map_or(Timestamp::MAX, |newest| newest.time),
            text: member.text,
        }
    }
}

/// Adds members for the groups of entries, then removes the old ones, which are the newest. All are
/// given oldest first. A new member can equal an old one, and is then moved to its new score.
fn write<S: SortedSet>(
    set: &mut S,
    groups: &[Vec<Entry>],
    mut old: Vec<Old<S::Text>>,
    bytes: usize,
) {
    let mut new = Vec::<(Timestamp, S::Text)>::new();
    for group in groups {
        let mut rest = group.as_slice();
        while let Some((chosen, left)) = rest.split_at_checked(fitting(rest, bytes))
            && let (Some(newest), Some(text)) = (chosen.last(), spell(chosen))
        {
            new.push((newest.time, set.text(&text)));
            rest = left;
        }
    }
    let equal = new.iter().map(|(_, new)| new.as_ref());
    let equal = equal.collect::<BTreeSet<_>>();
    old.retain(|old| !equal.contains(old.text.as_ref()));
    let oldest = old.first().map(|oldest| oldest.time);
    let newest_kept = new.last().map(|new| new.0).or(oldest);
    let first_later = newest_kept.map_or(0, |kept| old.partition_point(|old| old.time <= kept));
    let mut later = old.split_off(first_later);
    if later.len() <= MOST_NAMED {
        old.append(&mut later);
    }
    let texts = |old: Vec<Old<S::Text>>| old.into_iter().map(|old| old.text).collect::<Vec<_>>();
    if !new.is_empty() {
        set.add(&new);
    }
    if !old.is_empty() {
        set.remove(&texts(old));
    }
    if let (Some(kept), false) = (newest_kept, later.is_empty()) {
        let range = (Bound::Excluded(kept.as_score()), Bound::Unbounded);
        set.remove_range(range, &texts(later));
    }
}
