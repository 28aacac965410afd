//! Giving back what was recorded.

use std::num::NonZeroU64;

use super::buckets::Buckets;
use super::store::CounterStore;
use super::timeline::Timeline;
use crate::limiter::Foreign;
use crate::limiter::refund::RecordedAt;
use crate::limiter::units::Timestamp;

/// Takes back up to `units` from every field that still counts at `now`, newest bucket first, and
/// returns the most that a field had to give.
///
/// # Errors
/// [`Foreign`] when a field was not written by a counter; nothing is changed.
pub fn refund<S: CounterStore>(
    store: &mut S,
    units: NonZeroU64,
    now: Timestamp,
) -> Result<u64, Foreign> {
    refund_each(store, now, |_, buckets| buckets.take_back(units.get()))
}

/// As [`refund`], but only from the buckets that overlap the time `recorded`: first from the bucket
/// of the moment that the caller named to the newest, then from the one before it to the oldest.
///
/// # Errors
/// As for [`refund`].
pub fn refund_aged<S: CounterStore>(
    store: &mut S,
    units: NonZeroU64,
    now: Timestamp,
    recorded: RecordedAt,
) -> Result<u64, Foreign> {
    refund_each(store, now, |timeline, buckets| {
        let Some(last) = timeline.bucket_at(recorded.last) else {
            return 0;
        };
        let first = timeline.bucket_at(recorded.first).unwrap_or(0);
        let told = timeline.bucket_at(recorded.told).unwrap_or(0);
        let kept = buckets.oldest_index()..=buckets.index();
        let forward = told.max(*kept.start())..=last.min(*kept.end());
        let back = first.max(*kept.start())..told.min(kept.end().saturating_add(1));
        let mut wanted = units.get();
        for index in forward.chain(back.rev()) {
            wanted -= buckets.take_back_from(index, wanted);
        }
        units.get() - wanted
    })
}

fn refund_each<S: CounterStore>(
    store: &mut S,
    now: Timestamp,
    take: impl Fn(Timeline, &mut Buckets) -> u64,
) -> Result<u64, Foreign> {
    let phase = store.phase();
    let mut most = 0;
    let mut fields = store.read_all()?;
    fields.retain_mut(|(layout, buckets)| {
        let timeline = Timeline::new(*layout, phase);
        if timeline.expires_at(buckets.index()) <= now {
            return false;
        }
        let taken = take(timeline, buckets);
        most = most.max(taken);
        taken > 0
    });
    for (layout, buckets) in &fields {
        store.write(*layout, buckets);
    }
    Ok(most)
}
