//! What the module stores, written from the rules alone: naive readers of a log's members, of a
//! counter's fields and of leases.

use super::grammar::{LONGEST_ID, LONGEST_WINDOW, MOST_BUCKETS, integer};

/// The characters of the numbers in a packed member, by value.
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/// Up to here every whole number is a score of its own.
const LATEST: i64 = (1 << 53) - 1;

/// What a log records at most, and so what one entry can hold.
const MOST_USAGE: u64 = 1 << 63;

/// What one bucket can hold.
const MOST_COUNT: u64 = (1 << 57) - 1;

/// One entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub time: i64,
    pub total: u64,
    pub cost: u64,
}

/// One lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub id: Vec<u8>,
    pub end: i64,
}

/// One field of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub window: u64,
    pub buckets: u64,
    /// The newest bucket's.
    pub index: u64,
    /// Newest first.
    pub counts: Vec<u64>,
}

/// A score that is a time in ms.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp // the same number exactly, or it is no time
)]
fn time(score: f64) -> Option<i64> {
    let time = score as i64;
    ((0..=LATEST).contains(&time) && time as f64 == score).then_some(time)
}

/// Reads a single member and its score.
pub fn entry(member: &[u8], score: f64) -> Option<Entry> {
    match entries(member, score)?[..] {
        [entry] if !is_packed(member) => Some(entry),
        _ => None,
    }
}

/// Whether a member that can be read holds more than one entry.
fn is_packed(member: &[u8]) -> bool {
    member.split(|&byte| byte == b':').nth(2).is_some()
}

/// Reads all entries of a member, single or packed, oldest first.
pub fn entries(member: &[u8], score: f64) -> Option<Vec<Entry>> {
    let parts: Vec<&[u8]> = member.split(|&byte| byte == b':').collect();
    let (total, cost, earlier) = match parts[..] {
        [total, cost] => (total, cost, Vec::new()),
        [total, cost, earlier] if (1..=1024).contains(&earlier.len()) => {
            (total, cost, numbers(earlier)?)
        }
        _ => return None,
    };
    let mut entries = vec![Entry {
        time: time(score)?,
        total: integer(total, 0, u64::MAX)?,
        cost: integer(cost, 1, MOST_USAGE)?,
    }];
    for pair in earlier.chunks(2) {
        let &[gap, cost] = pair else {
            return None;
        };
        let next = entries[entries.len() - 1];
        let time = i128::from(next.time) - i128::try_from(gap).ok()?;
        if gap < 1 || time < 0 || !(1..=u128::from(MOST_USAGE)).contains(&cost) {
            return None;
        }
        entries.push(Entry {
            time: i64::try_from(time).ok()?,
            total: next.total.wrapping_sub(next.cost),
            cost: u64::try_from(cost).ok()?,
        });
    }
    entries.reverse();
    Some(entries)
}

/// Reads numbers of five bits a character, lowest first, one after the other.
fn numbers(text: &[u8]) -> Option<Vec<u128>> {
    let digits: Vec<u128> = text
        .iter()
        .map(|byte| DIGITS.iter().position(|digit| digit == byte))
        .map(|place| place.map(|place| place as u128))
        .collect::<Option<_>>()?;
    let mut numbers = Vec::new();
    for digits in digits.split_inclusive(|&digit| digit < 32) {
        let (top, lower) = digits.split_last()?;
        // More than 64 bits are no number, and a zero at the top is not the spelling of one.
        if *top >= 32 || digits.len() > 13 || (*top == 0 && !lower.is_empty()) {
            return None;
        }
        let place = |value: u128, digit: &u128| value * 32 + digit % 32;
        numbers.push(digits.iter().rev().fold(0, place));
    }
    Some(numbers)
}

/// Reads a whole log, oldest entry first; `None` if its entries do not belong together.
pub fn log(members: &[(Vec<u8>, f64)]) -> Option<Vec<Entry>> {
    let read: Vec<Vec<Entry>> = members
        .iter()
        .map(|(member, score)| entries(member, *score))
        .collect::<Option<_>>()?;
    let single_newest = members.last().is_none_or(|newest| !is_packed(&newest.0));
    let entries = read.concat();
    let follow = entries.windows(2).all(|pair| {
        pair[0].time < pair[1].time && pair[0].total.wrapping_add(pair[1].cost) == pair[1].total
    });
    let used: u128 = entries.iter().map(|entry| u128::from(entry.cost)).sum();
    (single_newest && follow && used <= u128::from(MOST_USAGE)).then_some(entries)
}

/// Reads a lease's member and its score.
pub fn place(member: &[u8], score: f64) -> Option<Place> {
    let id = member.strip_prefix(b"@")?;
    Some(Place {
        id: (1..=LONGEST_ID).contains(&id.len()).then(|| id.to_vec())?,
        end: time(score)?,
    })
}

/// Reads all leases of a key, the first to end first.
pub fn places(members: &[(Vec<u8>, f64)]) -> Option<Vec<Place>> {
    let members = members.iter();
    members
        .map(|(member, score)| place(member, *score))
        .collect()
}

/// Reads a field's name: the window and its number of buckets.
pub fn division(name: &[u8]) -> Option<(u64, u64)> {
    let parts: Vec<&[u8]> = name.split(|&byte| byte == b'/').collect();
    match parts[..] {
        [window] => Some((integer(window, 1, LONGEST_WINDOW)?, 1)),
        [window, buckets] => Some((
            integer(window, 1, LONGEST_WINDOW)?,
            integer(buckets, 2, MOST_BUCKETS)?,
        )),
        _ => None,
    }
}

/// Reads a field's name and its value.
pub fn field(name: &[u8], value: &[u8]) -> Option<Field> {
    let (window, buckets) = division(name)?;
    let parts: Vec<&[u8]> = value.split(|&byte| byte == b':').collect();
    let (index, counts) = parts.split_first()?;
    let counts: Vec<u64> = counts
        .iter()
        .map(|count| integer(count, 0, MOST_COUNT))
        .collect::<Option<_>>()?;
    (counts.len() as u64 == buckets + 1).then_some(Field {
        window,
        buckets,
        index: integer(index, 0, u64::MAX)?,
        counts,
    })
}
