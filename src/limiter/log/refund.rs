//! Giving back what was recorded last.

use std::num::NonZeroU64;

use super::entry::Entry;
use super::store::LogStore;
use crate::limiter::Foreign;

/// The most entries that one refund takes from.
const MOST_ENTRIES: usize = 1000;

/// Takes back up to `units`, newest entry first, and says how many there were to take.
///
/// # Errors
/// [`Foreign`] when an entry it comes to was not written by a log; nothing is changed.
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
        store.replace(&taken, remainder);
    }
    Ok(units.get() - wanted)
}
