//! What the counter needs of the place that keeps it.

use super::buckets::{Buckets, Division};
use crate::limiter::Foreign;
use crate::limiter::units::Timestamp;

/// A counter's windows, each with its buckets.
///
/// Every write is done and propagated at once; none can fail.
pub trait CounterStore {
    /// Reads what is recorded of `division` into `buckets`, which were made for it; `false`, and
    /// nothing read, where nothing is.
    ///
    /// # Errors
    /// [`Foreign`] when what stands there, or beside it, was not written by a counter.
    fn read(&mut self, division: Division, buckets: &mut Buckets) -> Result<bool, Foreign>;

    /// All windows, however divided.
    ///
    /// # Errors
    /// As for [`CounterStore::read`].
    fn read_all(&mut self) -> Result<Vec<(Division, Buckets)>, Foreign>;

    /// Records these buckets of a window divided so.
    fn write(&mut self, division: Division, buckets: &Buckets);

    /// When the counter will be gone, if that is known.
    fn expiry(&self) -> Option<Timestamp>;

    /// Has the counter gone at `time`.
    fn expire_at(&mut self, time: Timestamp);
}
