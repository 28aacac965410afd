//! What the counter needs of the place that keeps it.

use super::buckets::{BucketLayout, Buckets};
use super::timeline::Phase;
use crate::limiter::Foreign;
use crate::limiter::units::Timestamp;

/// A counter's windows, each with its buckets.
///
/// Every write is done and propagated at once; none can fail.
pub trait CounterStore {
    /// When the key's windows begin.
    fn phase(&self) -> Phase;

    /// Reads what is recorded of `layout` into `buckets`, which were made for it; `false`, and
    /// nothing read, where nothing is.
    ///
    /// # Errors
    /// [`Foreign`] when what stands there, or beside it, was not written by a counter.
    fn read(&mut self, layout: BucketLayout, buckets: &mut Buckets) -> Result<bool, Foreign>;

    /// All windows, however divided.
    ///
    /// # Errors
    /// As for [`CounterStore::read`].
    fn read_all(&mut self) -> Result<Vec<(BucketLayout, Buckets)>, Foreign>;

    /// Records these buckets.
    fn write(&mut self, layout: BucketLayout, buckets: &Buckets);

    /// How many fields there are.
    fn fields(&self) -> usize;

    /// Up to `most` fields, taken at random; any that a counter did not write are left out.
    fn sample(&mut self, most: usize) -> Vec<(BucketLayout, Buckets)>;

    /// Removes fields, one or more, but not all that there are.
    fn remove(&mut self, layouts: &[BucketLayout]);

    /// When the counter will be gone, if that is known.
    fn expiry(&self) -> Option<Timestamp>;

    /// Has the counter gone at `time`.
    fn expire_at(&mut self, time: Timestamp);
}
