//! Which single members are packed, and into what.

use std::ops::Bound;

use super::entry::Entry;
use super::member::{Member, fitting, spell};
use super::set::{Cursor, ScoreRange, SortedSet};
use crate::limiter::units::Timestamp;

/// The most bytes of a member in a set that is to stay a listpack, by the server's default.
pub const SMALL_MEMBER: usize = 64;

/// The most bytes of a member in a larger set, which is better off as a skiplist.
pub const LARGE_MEMBER: usize = 256;

/// From so many packed members on a set is large. With the single ones it then has about 48.
const MANY_PACKED: usize = 20;

/// How many of the newest members are passed over unread: where the next is single, so are they,
/// and there are enough to pack.
const PASSED_OVER: usize = 16;

/// The same in a large set: fewer and longer members take less memory and fewer bytes on the wire.
const PASSED_OVER_LARGE: usize = 40;

/// How many members back the oldest single one is looked for; what lies further is searched.
const REACH: usize = 128;

/// The most members that are packed at once.
const MOST_PACKED: usize = 64;

/// The fewest that are packed where entries do not follow each other.
const ENOUGH: usize = 8;

/// What takes the place of single members.
pub struct Packed<T> {
    /// How many entries are in the new members and were not in packed ones.
    pub entries: usize,
    /// The new members.
    pub members: Vec<(Timestamp, T)>,
    /// Old members, to be removed by name.
    pub gone: Vec<T>,
    /// Old members that are all there is in a range.
    pub range: Option<(ScoreRange, Vec<T>)>,
}

/// Whether a member proves that the set is no listpack.
pub fn is_large(member: &[u8]) -> bool {
    member.len() > SMALL_MEMBER
}

/// Packs the oldest single members that have not expired, if there are enough; never the newest one.
pub fn find<S: SortedSet>(set: &mut S, expired: Timestamp, large: bool) -> Option<Packed<S::Text>> {
    let passed_over = if large {
        PASSED_OVER_LARGE
    } else {
        PASSED_OVER
    };
    let singles = Singles::find(set, expired, passed_over)?;
    let bytes = if large || singles.large {
        LARGE_MEMBER
    } else {
        SMALL_MEMBER
    };
    singles.pack(set, bytes)
}

/// The oldest single members, each of which follows the one before it.
struct Singles<T> {
    members: Vec<(Entry, T)>,
    before: Before<T>,
    /// Whether the set has so many packed members, or one so long, that it is to be a skiplist.
    large: bool,
}

/// What comes before the oldest single member.
struct Before<T> {
    score: f64,
    text: Option<T>,
}

impl<T: AsRef<[u8]>> Singles<T> {
    fn find<S: SortedSet<Text = T>>(
        set: &mut S,
        expired: Timestamp,
        passed_over: usize,
    ) -> Option<Self> {
        let length = set.len();
        let mut cursor = set.last()?;
        if !(0..passed_over).all(|_| cursor.retreat()) {
            return None;
        }
        let mut found = Self {
            members: Vec::new(),
            before: Before {
                score: f64::NEG_INFINITY,
                text: None,
            },
            large: false,
        };
        let mut singles = passed_over;
        loop {
            let (score, text) = cursor.element()?;
            if score <= expired.as_score() {
                found.before.score = score;
                break;
            }
            let Ok(member) = Member::read(score, text.as_ref()) else {
                found.before.score = score;
                break;
            };
            if !member.is_single() {
                found.large = is_large(text.as_ref());
                found.before = Before {
                    score,
                    text: Some(text),
                };
                break;
            }
            singles += 1;
            if singles > REACH {
                let time = member.newest.time;
                drop(cursor);
                return Self::search(set, expired, time);
            }
            if !cursor.retreat() {
                found.collect(cursor, singles - 1);
                return Some(found);
            }
        }
        if singles == passed_over {
            return None;
        }
        found.large |= length - singles >= MANY_PACKED;
        cursor.advance();
        found.collect(cursor, singles - 1);
        Some(found)
    }

    /// Finds single members right after a packed one, or the oldest ones, in a set that has many:
    /// 0.1 left them. `single` is the time of a single one.
    fn search<S: SortedSet<Text = T>>(
        set: &mut S,
        expired: Timestamp,
        single: Timestamp,
    ) -> Option<Self> {
        let mut found = Self {
            members: Vec::new(),
            before: Before {
                score: expired.as_score(),
                text: None,
            },
            large: true,
        };
        let is_single_after = |set: &mut S, time| {
            let (score, text) = set.first_after(time)?.element()?;
            Some(Member::read(score, text.as_ref()).ok()?.is_single())
        };
        // What comes first after `start` is single, what comes first after `packed` is not.
        let mut start = expired;
        if !is_single_after(set, expired)? {
            let mut packed = expired;
            start = Timestamp::from_millis(single.as_millis() - 1);
            while start > packed {
                let middle = Timestamp::between(packed, start, 1, 2);
                if middle == packed {
                    break;
                }
                if is_single_after(set, middle)? {
                    start = middle;
                } else {
                    packed = middle;
                }
            }
            found.before.score = start.as_score();
        }
        found.collect(set.first_after(start)?, MOST_PACKED);
        Some(found)
    }

    /// Collects up to `most` single members from the cursor on.
    fn collect(&mut self, mut cursor: impl Cursor<Text = T>, most: usize) {
        for _ in 0..most.min(MOST_PACKED) {
            let Some((score, text)) = cursor.element() else {
                return;
            };
            let member = Member::read(score, text.as_ref());
            let Ok(entry) = member.and_then(|member| member.single()) else {
                return;
            };
            if let Some((last, _)) = self.members.last()
                && !entry.follows(last)
            {
                // No log wrote this. It goes on with what comes after.
                if self.members.len() >= ENOUGH {
                    return;
                }
                self.before = Before {
                    score: last.time.as_score(),
                    text: None,
                };
                self.members.clear();
            }
            self.members.push((entry, text));
            if !cursor.advance() {
                return;
            }
        }
    }

    /// Packs them into members of up to so many bytes: one, and then more as far as they are full.
    fn pack<S: SortedSet<Text = T>>(mut self, set: &S, bytes: usize) -> Option<Packed<T>> {
        let singles = self.members.iter().map(|(entry, _)| *entry);
        let mut entries = self.short_before(bytes);
        let mut repacked = entries.len();
        entries.extend(singles);
        if fitting(&entries, bytes) <= repacked {
            entries.drain(..repacked);
            repacked = 0;
        }
        let mut members = Vec::new();
        let mut rest = &*entries;
        loop {
            let count = fitting(rest, bytes);
            let (chosen, left) = rest.split_at_checked(count)?;
            if count < 2 || (left.is_empty() && !members.is_empty()) {
                break;
            }
            let end = chosen.last()?.time;
            members.push((end, set.text(&spell(chosen)?)));
            rest = left;
        }
        let packed = entries.len() - rest.len() - repacked;
        let first = self
            .members
            .first()
            .map(|(entry, _)| entry.time.as_score())?;
        let mut range = None;
        let mut gone = Vec::new();
        let mut singles = self.members.drain(..packed);
        if let [(end, _)] = &*members
            && self.before.score < first
        {
            let range_end = Bound::Excluded(end.as_score());
            let texts = singles.by_ref().take(packed - 1).map(|(_, text)| text);
            range = Some((
                (Bound::Included(first), range_end),
                texts.collect::<Vec<_>>(),
            ));
        }
        gone.extend(singles.map(|(_, text)| text));
        if repacked > 0 {
            gone.extend(self.before.text);
        }
        (!members.is_empty()).then_some(Packed {
            entries: packed,
            members,
            gone,
            range: range.filter(|(_, texts)| !texts.is_empty()),
        })
    }

    /// The entries of the packed member before, where it is short and they go on in the single ones:
    /// a refund left it.
    fn short_before(&self, bytes: usize) -> Vec<Entry> {
        let read = || {
            let text = self.before.text.as_ref()?.as_ref();
            let (first, _) = self.members.first()?;
            let member = Member::read(self.before.score, text).ok()?;
            if text.len() * 2 > bytes || !first.follows(&member.newest) {
                return None;
            }
            let mut entries = member.entries().collect::<Result<Vec<_>, _>>().ok()?;
            entries.reverse();
            Some(entries)
        };
        read().unwrap_or_default()
    }
}
