//! Where a key's buckets begin and end.

use std::hash::Hasher;

use fnv::FnvHasher;

use super::buckets::BucketLayout;
use crate::limiter::units::{Timestamp, Window};

/// When the windows of one key begin, so that those of different keys begin at different moments and
/// clients that are full are not all admitted again at the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase(u64);

impl Phase {
    /// The phase of a key: the 64-bit FNV-1a hash of its bytes.
    pub fn of(key: &[u8]) -> Self {
        let mut hasher = FnvHasher::default();
        hasher.write(key);
        Self(hasher.finish())
    }

    /// How far windows of this length are moved, in milliseconds.
    fn offset(self, window: Window) -> u64 {
        self.0 % window.get()
    }
}

/// A clock that ticks `buckets` times a millisecond, so that each bucket is `window` ticks long.
///
/// Until the year 9000000 no tick overflows; a stored bucket that lies later than that counts as
/// the last tick, far in the future.
pub type Ticks = u64;

/// The buckets of one window of one key, in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    layout: BucketLayout,
    /// How far the key's windows are moved, in milliseconds.
    offset: u64,
}

impl Timeline {
    /// The timeline of a key with this phase.
    pub fn new(layout: BucketLayout, phase: Phase) -> Self {
        Self {
            layout,
            offset: phase.offset(layout.window()),
        }
    }

    /// The window and its number of buckets.
    pub fn layout(self) -> BucketLayout {
        self.layout
    }

    /// How long a bucket is.
    pub fn ticks_per_bucket(self) -> Ticks {
        self.layout.window().get()
    }

    /// The tick at which `now` begins.
    pub fn ticks(self, now: Timestamp) -> Ticks {
        let ms = u64::try_from(now.as_millis()).unwrap_or(0);
        ms.saturating_add(self.offset)
            .saturating_mul(self.layout.buckets())
    }

    /// The bucket that holds this tick.
    pub fn bucket(self, ticks: Ticks) -> u64 {
        ticks / self.ticks_per_bucket()
    }

    /// The bucket that holds this time; `None` before the first.
    pub fn bucket_at(self, time: Timestamp) -> Option<u64> {
        let moved = time.as_millis().saturating_add_unsigned(self.offset);
        let moved = u64::try_from(moved).ok()?;
        Some(self.bucket(moved.saturating_mul(self.layout.buckets())))
    }

    /// The tick at which a bucket begins.
    pub fn start(self, bucket: u64) -> Ticks {
        bucket.saturating_mul(self.ticks_per_bucket())
    }

    /// The first millisecond that begins at this tick or later.
    pub fn ceil_time(self, ticks: Ticks) -> Timestamp {
        let moved = ticks.div_ceil(self.layout.buckets());
        let ms = i64::try_from(moved).unwrap_or(i64::MAX);
        Timestamp::from_millis(ms.saturating_sub_unsigned(self.offset))
    }

    /// When the last of the buckets up to this one no longer counts in any window.
    pub fn expires_at(self, newest: u64) -> Timestamp {
        let buckets = self.layout.buckets() + 1;
        self.ceil_time(self.start(newest.saturating_add(buckets)))
    }
}

#[cfg(test)]
mod tests {
    use super::Phase;

    #[test]
    fn a_phase_is_the_published_fnv_1a_hash() {
        // Test vectors of draft-eastlake-fnv.
        for (key, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(Phase::of(key.as_bytes()), Phase(hash), "{key:?}");
        }
    }
}
