//! What the log needs of the place that keeps it.

use super::entry::Entry;
use crate::limiter::Foreign;
use crate::limiter::units::Timestamp;

/// A log's entries in order of time, at most one a millisecond.
///
/// Every write is done and propagated at once; none can fail.
pub trait LogStore {
    /// The latest entry.
    ///
    /// # Errors
    /// [`Foreign`] when what stands there is no entry; so for every other read.
    fn newest(&mut self) -> Result<Option<Entry>, Foreign>;

    /// The earliest entry later than `time`.
    ///
    /// # Errors
    /// As for [`LogStore::newest`].
    fn first_after(&mut self, time: Timestamp) -> Result<Option<Entry>, Foreign>;

    /// Shows the entries later than `time` to `visit`, oldest first, while it asks for more.
    ///
    /// # Errors
    /// As for [`LogStore::newest`].
    fn oldest_first(
        &mut self,
        time: Timestamp,
        visit: impl FnMut(Entry) -> bool,
    ) -> Result<(), Foreign>;

    /// Shows the entries to `visit`, newest first, while it asks for more.
    ///
    /// # Errors
    /// As for [`LogStore::newest`].
    fn newest_first(&mut self, visit: impl FnMut(Entry) -> bool) -> Result<(), Foreign>;

    /// How many entries there are.
    fn len(&self) -> usize;

    /// Counts the entries not later than `time`, up to `most`.
    fn count_through(&mut self, time: Timestamp, most: usize) -> usize;

    /// Adds an entry later than all others.
    fn append(&mut self, entry: Entry);

    /// Puts `new`, oldest first, in the place of `old`: the newest entries, one or more, newest first.
    /// Each new entry has the time of an old one.
    fn replace(&mut self, old: &[Entry], new: &[Entry]);

    /// Removes the oldest `count` entries, which are not all.
    fn trim(&mut self, count: usize);

    /// Forgets all entries and begins again with this one.
    fn restart(&mut self, entry: Entry);

    /// When the log will be gone, if that is known.
    fn expiry(&self) -> Option<Timestamp>;

    /// Has the log gone at `time`.
    fn expire_at(&mut self, time: Timestamp);
}
