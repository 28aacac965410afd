//! Giving places back.

use super::lease_id::LeaseId;
use super::store::LeaseStore;
use crate::limiter::Foreign;
use crate::limiter::units::Timestamp;

/// Ends the leases of these ids, and returns how many of them were live at `now`.
///
/// # Errors
/// [`Foreign`] when the store holds something that was not written as a lease; nothing is changed.
pub fn release<S: LeaseStore>(
    store: &mut S,
    now: Timestamp,
    ids: &[LeaseId],
) -> Result<usize, Foreign> {
    // Where no id is found, nothing else would say whose the key is.
    store.latest_first(|_| false)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        if let Some(end) = store.end_of(id)? {
            found.push((id, end));
        }
    }
    found.sort_unstable();
    found.dedup();
    if !found.is_empty() {
        let ids = found.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        store.remove(&ids);
    }
    Ok(found.iter().filter(|(_, end)| *end > now).count())
}
