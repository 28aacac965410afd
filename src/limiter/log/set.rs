//! What the log needs of the place that keeps it: a sorted set of members.

use std::ops::Bound;

use crate::limiter::units::Timestamp;

/// A sorted set as the server has it: each member once, ordered by score and then by its bytes.
///
/// Every write is done and propagated at once; none can fail.
pub trait SortedSet {
    /// A member that was read, or that is to be written.
    type Text: AsRef<[u8]>;

    /// A place in the set.
    type Cursor<'s>: Cursor<Text = Self::Text>
    where
        Self: 's;

    /// How many members there are.
    fn len(&self) -> usize;

    /// A cursor at the first member; `None` in an empty set.
    fn first(&mut self) -> Option<Self::Cursor<'_>>;

    /// A cursor at the first member with a score above `time`; it cannot go back to those before.
    fn first_after(&mut self, time: Timestamp) -> Option<Self::Cursor<'_>>;

    /// A cursor at the last member.
    fn last(&mut self) -> Option<Self::Cursor<'_>>;

    /// Makes a member to be written.
    fn text(&self, member: &[u8]) -> Self::Text;

    /// Adds members, one or more; one that is there already moves to its new score. One ZADD.
    fn add(&mut self, members: &[(Timestamp, Self::Text)]);

    /// Removes members, one or more, all of which are there. One ZREM.
    fn remove(&mut self, members: &[Self::Text]);

    /// Removes all members with a score in `range`; they are exactly `members`. One ZREMRANGEBYSCORE.
    fn remove_range(&mut self, range: ScoreRange, members: &[Self::Text]);

    /// Removes all members. One UNLINK.
    fn clear(&mut self);

    /// When the set will be gone, if that is known.
    fn expiry(&self) -> Option<Timestamp>;

    /// Has the set gone at `time`.
    fn expire_at(&mut self, time: Timestamp);

    /// Is told of each tidying: how many entries were packed and how many expired members removed.
    fn tidied(&mut self, packed: usize, trimmed: usize);
}

/// The first and the last score of a range.
pub type ScoreRange = (Bound<f64>, Bound<f64>);

/// A place in a sorted set.
pub trait Cursor {
    /// A member.
    type Text;

    /// The score and the member; `None` where there is none.
    fn element(&mut self) -> Option<(f64, Self::Text)>;

    /// Moves on; `false`, and no move, at the last member.
    fn advance(&mut self) -> bool;

    /// Moves back; `false`, and no move, at the first member.
    fn retreat(&mut self) -> bool;
}
