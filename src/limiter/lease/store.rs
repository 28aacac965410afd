//! What leases need of the place that keeps them.

use super::lease_id::LeaseId;
use crate::limiter::Foreign;
use crate::limiter::units::Timestamp;

/// One holder's place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    /// When it ends by itself: the member's score, in milliseconds.
    pub end: Timestamp,
    /// Whose it is.
    pub id: LeaseId,
}

impl Lease {
    /// Reads a score and a member; `None` for anything that `SLIDE.LEASE` did not write.
    pub fn parse(score: f64, member: &[u8]) -> Option<Self> {
        Some(Self {
            end: Timestamp::from_score(score)?,
            id: LeaseId::parse(member)?,
        })
    }
}

/// Leases in the order of their ends, each id once.
///
/// Every write is done and propagated at once; none can fail.
pub trait LeaseStore {
    /// Shows all leases, or those that end after `time`, the first to end first, until `visit` returns
    /// false.
    ///
    /// # Errors
    /// [`Foreign`] when what stands there was not written as a lease.
    fn earliest_first(
        &mut self,
        time: Option<Timestamp>,
        visit: impl FnMut(Lease) -> bool,
    ) -> Result<(), Foreign>;

    /// Shows all leases, the last to end first, until `visit` returns false.
    ///
    /// # Errors
    /// As for [`LeaseStore::earliest_first`].
    fn latest_first(&mut self, visit: impl FnMut(Lease) -> bool) -> Result<(), Foreign>;

    /// When the lease of `id` ends, or ended; `None` if there is none.
    ///
    /// # Errors
    /// As for [`LeaseStore::earliest_first`].
    fn end_of(&mut self, id: &LeaseId) -> Result<Option<Timestamp>, Foreign>;

    /// How many leases there are, ended ones too.
    fn len(&self) -> usize;

    /// How many leases end after `after`, and not after `through`, however many there are.
    fn count(&mut self, after: Timestamp, through: Timestamp) -> usize;

    /// Has these ids, one or more, all different, hold leases that end at `end`.
    fn put(&mut self, ids: &[&LeaseId], end: Timestamp);

    /// Removes the leases of these ids, one or more, all of which are there.
    fn remove(&mut self, ids: &[&LeaseId]);

    /// Removes up to `most` of the leases that have ended by `now`, the earliest first. At least one has
    /// ended, and at least one has not.
    fn remove_ended(&mut self, now: Timestamp, most: usize);

    /// When the leases will be gone, if that is known.
    fn expiry(&self) -> Option<Timestamp>;

    /// Has the leases gone at `time`.
    fn expire_at(&mut self, time: Timestamp);
}
