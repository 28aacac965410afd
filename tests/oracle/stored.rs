//! What the module stores, written from the rules alone: naive readers of a log's entries and of a
//! counter's fields.

use super::grammar::{LONGEST_WINDOW, MOST_BUCKETS, integer};

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

/// Reads a member and its score.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp // the same number exactly, or it is no time
)]
pub fn entry(member: &[u8], score: f64) -> Option<Entry> {
    let parts: Vec<&[u8]> = member.split(|&byte| byte == b':').collect();
    let [total, cost] = parts[..] else {
        return None;
    };
    let time = score as i64;
    let is_a_time = (0..=LATEST).contains(&time) && time as f64 == score;
    is_a_time.then_some(Entry {
        time,
        total: integer(total, 0, u64::MAX)?,
        cost: integer(cost, 1, MOST_USAGE)?,
    })
}

/// Reads a whole log, oldest entry first; `None` if its entries do not belong together.
pub fn log(members: &[(Vec<u8>, f64)]) -> Option<Vec<Entry>> {
    let entries: Vec<Entry> = members
        .iter()
        .map(|(member, score)| entry(member, *score))
        .collect::<Option<_>>()?;
    let follow = entries.windows(2).all(|pair| {
        pair[0].time < pair[1].time && pair[0].total.wrapping_add(pair[1].cost) == pair[1].total
    });
    let used: u128 = entries.iter().map(|entry| u128::from(entry.cost)).sum();
    (follow && used <= u128::from(MOST_USAGE)).then_some(entries)
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
