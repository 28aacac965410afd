//! Giving back what was recorded last.

use std::num::NonZeroU64;

use super::store::CounterStore;
use crate::limiter::Foreign;

/// Takes back up to `units` from every window, newest bucket first, and says the most that a window
/// had to give.
///
/// # Errors
/// [`Foreign`] when a window was not written by a counter; nothing is changed.
pub fn refund<S: CounterStore>(store: &mut S, units: NonZeroU64) -> Result<u64, Foreign> {
    let mut most = 0;
    for (division, mut buckets) in store.read_all()? {
        let taken = buckets.take_back(units.get());
        if taken > 0 {
            store.write(division, &buckets);
        }
        most = most.max(taken);
    }
    Ok(most)
}
