//! A member of the sorted set: one entry, or several that follow each other.

use super::entry::{Entry, MAX_USAGE};
use super::number;
use crate::limiter::Foreign;
use crate::limiter::decimal;
use crate::limiter::lease::Lease;
use crate::limiter::units::{Millis, Timestamp};

/// The longest list of earlier entries that is read, in bytes: several times what a log writes, and short
/// enough that no call is held up by what somebody else wrote.
const MOST_EARLIER: usize = 1024;

/// A member that has been read as far as its newest entry.
#[derive(Clone, Copy, Debug)]
pub struct Member<'m> {
    /// The latest entry, at the member's score.
    pub newest: Entry,
    /// The spelling of the entries before it, the newest first; empty if there are none.
    earlier: &'m [u8],
}

impl<'m> Member<'m> {
    /// Reads a score and a member: `<total>:<cost>`, or `<total>:<cost>:<earlier>`.
    ///
    /// # Errors
    /// [`Foreign`] if no log wrote it.
    #[inline]
    pub fn read(score: f64, member: &'m [u8]) -> Result<Self, Foreign> {
        Self::parse(score, member).ok_or_else(|| {
            if Lease::parse(score, member).is_some() {
                Foreign::LogOfLeases
            } else {
                Foreign::Log
            }
        })
    }

    #[inline]
    fn parse(score: f64, member: &'m [u8]) -> Option<Self> {
        let mut rest = member;
        let total = decimal::take(&mut rest)?;
        rest = rest.strip_prefix(b":")?;
        let cost = decimal::take(&mut rest)?;
        let earlier = match rest {
            [] => rest,
            [b':', earlier @ ..] if (1..=MOST_EARLIER).contains(&earlier.len()) => earlier,
            _ => return None,
        };
        (1..=MAX_USAGE).contains(&cost).then_some(Self {
            newest: Entry {
                time: Timestamp::from_score(score)?,
                total,
                cost,
            },
            earlier,
        })
    }

    /// The member of one or more entries, the oldest first, each of which follows the one before it.
    /// `None` if there are none.
    pub fn spell(entries: &[Entry]) -> Option<Vec<u8>> {
        let (newest, earlier) = entries.split_last()?;
        let mut text = newest.member().into_vec();
        let mut later = newest;
        for (place, entry) in earlier.iter().enumerate().rev() {
            if place + 1 == earlier.len() {
                text.push(b':');
            }
            number::push(&mut text, later.time.since(entry.time).get());
            number::push(&mut text, entry.cost);
            later = entry;
        }
        Some(text)
    }

    /// Whether it is one entry.
    pub fn is_single(&self) -> bool {
        self.earlier.is_empty()
    }

    /// The one entry that it is.
    ///
    /// # Errors
    /// [`Foreign`] if it is packed.
    pub fn single(&self) -> Result<Entry, Foreign> {
        if self.is_single() {
            Ok(self.newest)
        } else {
            Err(Foreign::Log)
        }
    }

    /// The earliest entry later than `time`, to which the newest one belongs.
    ///
    /// # Errors
    /// [`Foreign`] if no log wrote what is read on the way.
    #[inline]
    pub fn first_after(&self, time: Timestamp) -> Result<Entry, Foreign> {
        let mut earliest = self.newest;
        let mut earlier = self.earlier;
        while !earlier.is_empty() {
            let entry = take_before(&mut earlier, earliest).ok_or(Foreign::Log)?;
            if entry.time <= time {
                break;
            }
            earliest = entry;
        }
        Ok(earliest)
    }

    /// All entries, the newest first, each read only when it is asked for.
    pub fn entries(&self) -> Entries<'m> {
        Entries {
            later: None,
            newest: self.newest,
            earlier: self.earlier,
        }
    }
}

/// Takes the entry before `later` off the front of its spelling.
#[inline(always)]
fn take_before(earlier: &mut &[u8], later: Entry) -> Option<Entry> {
    let gap = number::take(earlier)?;
    let cost = number::take(earlier)?;
    let in_time = gap.wrapping_sub(1) < later.time.as_millis().cast_unsigned();
    let in_range = cost.wrapping_sub(1) < MAX_USAGE;
    (in_time && in_range).then(|| Entry {
        time: later.time - Millis::new(gap),
        total: later.total_before(),
        cost,
    })
}

/// The entries of a member, the newest first. Ends after an error.
#[derive(Clone, Debug)]
pub struct Entries<'m> {
    /// The entry that was read last.
    later: Option<Entry>,
    newest: Entry,
    earlier: &'m [u8],
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, Foreign>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = match self.later {
            None => Some(self.newest),
            Some(_) if self.earlier.is_empty() => return None,
            Some(later) => take_before(&mut self.earlier, later),
        };
        let Some(entry) = entry else {
            self.earlier = &[];
            return Some(Err(Foreign::Log));
        };
        self.later = Some(entry);
        Some(Ok(entry))
    }
}

/// How many of the entries, the oldest first, make a member of at most `bytes` bytes; at least one.
pub fn fitting(entries: &[Entry], bytes: usize) -> usize {
    let mut earlier = 0;
    for (count, pair) in entries.windows(2).enumerate() {
        let [before, after] = pair else { break };
        let gap = after.time.since(before.time).get();
        earlier += number::length(gap) + number::length(before.cost);
        if after.length() + 1 + earlier > bytes {
            return count + 1;
        }
    }
    entries.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Member, fitting};
    use crate::limiter::Foreign;
    use crate::limiter::log::entry::{Entry, MAX_USAGE};
    use crate::limiter::oracle::stored;
    use crate::limiter::units::Timestamp;

    fn read(score: f64, text: &[u8]) -> Result<Vec<Entry>, Foreign> {
        let member = Member::read(score, text)?;
        let mut entries = member.entries().collect::<Result<Vec<_>, _>>()?;
        entries.reverse();
        Ok(entries)
    }

    fn naively(score: f64, text: &[u8]) -> Result<Vec<Entry>, Foreign> {
        let entries = stored::entries(text, score).ok_or(Foreign::Log)?;
        let entry = |entry: &stored::Entry| Entry {
            time: Timestamp::from_millis(entry.time),
            total: entry.total,
            cost: entry.cost,
        };
        Ok(entries.iter().map(entry).collect())
    }

    #[test]
    fn spells_the_newest_entry_and_then_back() {
        let entry = |time, total, cost| Entry {
            time: Timestamp::from_millis(time),
            total,
            cost,
        };
        let entries = [
            entry(1_000, 7, 7),
            entry(1_032, 8, 1),
            entry(1_035, 108, 100),
        ];
        assert_eq!(Member::spell(&entries[..1]).unwrap(), b"7:7");
        assert_eq!(Member::spell(&entries).unwrap(), b"108:100:31W17");
        assert_eq!(read(1_035.0, b"108:100:31W17"), Ok(entries.to_vec()));
        assert_eq!(Member::spell(&[]), None);
    }

    #[test]
    fn refuses_what_no_log_wrote() {
        for text in [
            "",
            ":",
            "1",
            "1:",
            ":1",
            "1:0",
            "01:1",
            "1:01",
            "a:1",
            "-1:1",
            "1:1:",
            "1:1:1",
            "1:1:01",
            "1:1:10",
            "1:1:111",
            "1:1:1W",
            "1:1:W01",
            "1:1:1W0",
            "1:1:11:",
            "1:1:11:11",
            "1:1:1+",
            "1:1: 11",
            "1:1:é1",
            "1:9223372036854775809",
            "1:1:1____________G",
            "1:1:1XWWWWWWWWWWW8",
        ] {
            assert_eq!(read(9.0, text.as_bytes()), Err(Foreign::Log), "{text:?}");
            assert_eq!(naively(9.0, text.as_bytes()), Err(Foreign::Log), "{text:?}");
        }
        for score in [f64::NAN, f64::INFINITY, -1.0, 0.5, 9_007_199_254_740_992.0] {
            assert_eq!(read(score, b"1:1"), Err(Foreign::Log), "{score}");
        }
        assert_eq!(read(9.0, b"9:1:A1"), Err(Foreign::Log), "before the epoch");
        assert_eq!(read(9.0, b"9:1:91").unwrap()[0].time.as_millis(), 0);
        assert_eq!(read(9.0, b"@id"), Err(Foreign::LogOfLeases));
    }

    fn chains() -> impl Strategy<Value = Vec<Entry>> {
        let cost = || prop_oneof![6 => 1_u64..40, 2 => 1_u64..1 << 20, 1 => 1..=MAX_USAGE];
        let gap = prop_oneof![6 => 1_i64..40, 2 => 1_i64..1 << 12, 1 => 1_i64..1 << 39];
        let entries = prop::collection::vec((gap, cost()), 1..120);
        (any::<u64>(), entries).prop_map(|(mut total, entries)| {
            let mut time = 0;
            let entry = |(gap, cost)| {
                time += gap;
                total = total.wrapping_add(cost);
                Entry {
                    time: Timestamp::from_millis(time),
                    total,
                    cost,
                }
            };
            entries.into_iter().map(entry).collect()
        })
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(entries in chains()) {
            let text = Member::spell(&entries).unwrap();
            let score = entries[entries.len() - 1].time.as_score();
            prop_assert_eq!(read(score, &text), Ok(entries.clone()));
            prop_assert_eq!(naively(score, &text), Ok(entries.clone()));
            let single = Member::read(score, &text).unwrap().single();
            prop_assert_eq!(single.is_ok(), entries.len() == 1);
        }

        #[test]
        fn reads_as_the_rules_say(
            score in prop_oneof![Just(0_u32), 0_u32..100, any::<u32>()],
            text in "[0-9]{1,3}:[1-9][0-9]?(:[0-9A-Za-z_-]{0,12})?|[0-9:W@]{0,9}",
        ) {
            let read = read(score.into(), text.as_bytes());
            if read != Err(Foreign::LogOfLeases) {
                prop_assert_eq!(read, naively(score.into(), text.as_bytes()));
            }
        }

        #[test]
        fn fills_members_up_to_their_size(entries in chains(), bytes in 64_usize..300) {
            let count = fitting(&entries, bytes);
            prop_assert!((1..=entries.len()).contains(&count));
            if count > 1 {
                prop_assert!(Member::spell(&entries[..count]).unwrap().len() <= bytes);
            }
            if count < entries.len() {
                prop_assert!(Member::spell(&entries[..=count]).unwrap().len() > bytes);
            }
        }
    }
}
