//! Recording an entry, and now and then tidying up: expired members go, single ones are packed.

use super::entry::Entry;
use super::packing::{self, Packed};
use super::set::{Cursor, ScoreRange, SortedSet};
use crate::limiter::units::Timestamp;

use std::ops::Bound;

/// Every so many entries a call tidies up.
const TIDY_EVERY: usize = 8;

/// So many expired members are worth a removal of their own.
const WORTH_TRIMMING: usize = 8;

/// The most expired members that one call removes.
const MOST_TRIMMED: usize = 64;

/// Up to so many expired members are named one by one, which takes fewer bytes than their range.
const MOST_NAMED: usize = 2;

/// Adds an entry that is not earlier than any other, in the place of `merged` if that is given: the
/// newest entry so far, of the same time. Entries up to the time `expired` are no longer needed.
#[inline]
pub fn record<S: SortedSet>(
    set: &mut S,
    entry: Entry,
    merged: Option<Entry>,
    recorded: u64,
    expired: Timestamp,
) {
    // How many calls there were, if all cost the same.
    let calls = entry.total / recorded.max(1);
    let tidies = match merged {
        Some(_) => calls.is_multiple_of(TIDY_EVERY as u64),
        None => {
            (set.len() + 1).is_multiple_of(TIDY_EVERY)
                || calls.is_multiple_of(2 * TIDY_EVERY as u64)
                // A refund after each call keeps both where they are, but not the time.
                || is_drawn(entry.time)
        }
    };
    let text = set.text(&entry.member());
    if tidies
        && let Some(tidying) = Tidying::find(set, expired)
        && !tidying.removes(&text)
    {
        tidying.carry_out(set, (entry.time, text), merged);
        return;
    }
    set.add(&[(entry.time, text)]);
    if let Some(merged) = merged {
        let text = set.text(&merged.member());
        set.remove(&[text]);
    }
}

/// Whether the time is one of those that are drawn at random, one in 128.
fn is_drawn(time: Timestamp) -> bool {
    let mixed = time
        .as_millis()
        .cast_unsigned()
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed >> 57 == 0
}

/// What is to be tidied up.
struct Tidying<T> {
    packed: Option<Packed<T>>,
    expired: Expired<T>,
}

impl<T: AsRef<[u8]>> Tidying<T> {
    #[cold]
    #[inline(never)]
    fn find<S: SortedSet<Text = T>>(set: &mut S, expired: Timestamp) -> Option<Self> {
        let expired = Expired::find(set, expired);
        let packed = packing::find(set, expired.through, expired.large);
        let worth = packed.is_some() || expired.members.len() >= WORTH_TRIMMING;
        worth.then_some(Self { packed, expired })
    }

    /// Whether one of the members that go equals the one that is to be added, or a packed one: in a set
    /// that no log wrote.
    fn removes(&self, added: &T) -> bool {
        let packed = self.packed.iter();
        let members = packed.clone().flat_map(|packed| &packed.members);
        let mut added = members.map(|(_, text)| text).chain([added]);
        let gone = packed.clone().flat_map(|packed| &packed.gone);
        let range = packed.flat_map(|packed| &packed.range);
        let gone = gone.chain(range.flat_map(|(_, texts)| texts));
        let gone = gone.chain(&self.expired.members);
        added.any(|added| gone.clone().any(|gone| gone.as_ref() == added.as_ref()))
    }

    /// Writes everything: first what is new, then what goes.
    fn carry_out<S: SortedSet<Text = T>>(
        self,
        set: &mut S,
        new: (Timestamp, T),
        merged: Option<Entry>,
    ) {
        let mut added = vec![new];
        let mut removed = Vec::new();
        removed.extend(merged.map(|merged| set.text(&merged.member())));
        let mut range = None;
        let mut packed_entries = 0;
        if let Some(packed) = self.packed {
            packed_entries = packed.entries;
            added.extend(packed.members);
            removed.extend(packed.gone);
            range = packed.range;
        }
        let trimmed = self.expired.members.len();
        let mut expired = None;
        if trimmed > MOST_NAMED {
            expired = Some((self.expired.range, self.expired.members));
        } else {
            removed.extend(self.expired.members);
        }
        set.add(&added);
        if !removed.is_empty() {
            set.remove(&removed);
        }
        for (range, members) in range.into_iter().chain(expired) {
            set.remove_range(range, &members);
        }
        set.tidied(packed_entries, trimmed);
    }
}

/// The oldest members, as far as they have expired.
struct Expired<T> {
    /// What has a time up to this has expired.
    through: Timestamp,
    members: Vec<T>,
    range: ScoreRange,
    /// Whether the first live member proves that the set is no listpack.
    large: bool,
}

impl<T: AsRef<[u8]>> Expired<T> {
    fn find<S: SortedSet<Text = T>>(set: &mut S, through: Timestamp) -> Self {
        let mut found = Self {
            through,
            members: Vec::new(),
            range: (Bound::Unbounded, Bound::Unbounded),
            large: false,
        };
        let limit = through.as_score();
        let Some(mut cursor) = set.first() else {
            return found;
        };
        let mut ends = Vec::new();
        while let Some((score, text)) = cursor.element() {
            let full = found.members.len() == MOST_TRIMMED;
            if score > limit || full {
                // A range does not part members of the same score, which no log writes.
                while full && ends.last() == Some(&score) {
                    ends.pop();
                    found.members.pop();
                }
                found.large = packing::is_large(text.as_ref());
                break;
            }
            ends.push(score);
            found.members.push(text);
            if !cursor.advance() {
                break;
            }
        }
        if let Some(end) = ends.last() {
            found.range.1 = Bound::Included(*end);
        }
        found
    }
}
