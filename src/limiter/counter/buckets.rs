//! One window's counts and their spelling as a hash field.

use smallvec::{SmallVec, smallvec};

use crate::limiter::decimal::{self, DecimalBuf};
use crate::limiter::units::Window;

/// The most buckets that a window can be divided into.
pub const MAX_BUCKETS: u64 = 64;

/// The most that one bucket records, 2^57 - 1; a forced call adds nothing beyond it.
pub const MAX_COUNT: u64 = (1 << 57) - 1;

/// Into how many buckets a window is divided, 1 to [`MAX_BUCKETS`]. One is the classic counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCount(u64);

impl BucketCount {
    /// The classic counter's.
    pub const ONE: Self = Self(1);

    /// `None` for 0 and above [`MAX_BUCKETS`].
    pub fn new(buckets: u64) -> Option<Self> {
        (1..=MAX_BUCKETS)
            .contains(&buckets)
            .then_some(Self(buckets))
    }

    /// The number of buckets.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// A window, and the buckets that it is divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLayout {
    window: Window,
    buckets: BucketCount,
}

impl BucketLayout {
    /// This window in so many buckets.
    pub fn new(window: Window, buckets: BucketCount) -> Self {
        Self { window, buckets }
    }

    /// The window's length.
    pub fn window(self) -> Window {
        self.window
    }

    /// The number of buckets in the window.
    pub fn buckets(self) -> u64 {
        self.buckets.get()
    }

    /// The field's name: `<window>`, or `<window>/<buckets>` where there is more than one.
    pub fn field(self) -> DecimalBuf {
        let mut name = DecimalBuf::new();
        decimal::push(&mut name, self.window.get());
        if self.buckets() > 1 {
            name.push(b'/');
            decimal::push(&mut name, self.buckets());
        }
        name
    }

    /// Reads a name that [`BucketLayout::field`] spelled.
    pub fn parse(field: &[u8]) -> Option<Self> {
        let mut parts = field.split(|byte| *byte == b'/');
        let window = Window::new(decimal::parse(parts.next()?)?)?;
        let buckets = match parts.next() {
            None => BucketCount::ONE,
            Some(buckets) => decimal::parse(buckets)
                .and_then(BucketCount::new)
                .filter(|buckets| *buckets != BucketCount::ONE)?,
        };
        parts.next().is_none().then_some(Self::new(window, buckets))
    }
}

/// The counts of the newest bucket and of all before it that still matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    /// Which bucket since the epoch the newest is.
    index: u64,
    /// One count more than there are buckets in the window, newest first.
    counts: Counts,
}

/// The classic counter's two counts need no allocation.
type Counts = SmallVec<[u64; 2]>;

impl Buckets {
    /// Nothing recorded up to bucket `index`.
    pub fn empty(layout: BucketLayout, index: u64) -> Self {
        Self {
            index,
            counts: smallvec![0; capacity(layout)],
        }
    }

    /// Reads a value that [`Buckets::value`] spelled for this layout.
    pub fn parse(value: &[u8], layout: BucketLayout) -> Option<Self> {
        let mut buckets = Self::empty(layout, 0);
        buckets.assign(value).then_some(buckets)
    }

    /// Parses `value` into `self`; `false`, with the counts unspecified, if it is malformed or has
    /// another number of counts.
    pub fn assign(&mut self, value: &[u8]) -> bool {
        self.take_from(value).is_some_and(<[u8]>::is_empty)
    }

    /// Takes what `value` spells, and leaves the rest of it; `None` where it spells something else.
    fn take_from<'a>(&mut self, value: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = value;
        self.index = decimal::take(&mut rest)?;
        for count in &mut self.counts {
            rest = rest.strip_prefix(b":")?;
            *count = decimal::take(&mut rest).filter(|count| *count <= MAX_COUNT)?;
        }
        Some(rest)
    }

    /// The value `<index>:<count>:…`, newest count first.
    pub fn value(&self) -> DecimalBuf {
        let mut text = DecimalBuf::new();
        decimal::push(&mut text, self.index);
        for count in &self.counts {
            text.push(b':');
            decimal::push(&mut text, *count);
        }
        text
    }

    /// Which bucket since the epoch the newest is.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The counts, newest first.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The oldest count, whose bucket the window is leaving, and all newer ones.
    pub fn split_oldest(&self) -> (u64, &[u64]) {
        match self.counts.split_last() {
            Some((leaving, kept)) => (*leaving, kept),
            None => (0, &[]),
        }
    }

    /// Adds to the newest bucket, up to [`MAX_COUNT`].
    pub fn add(&mut self, units: u64) {
        if let Some(newest) = self.counts.first_mut() {
            *newest = newest.saturating_add(units).min(MAX_COUNT);
        }
    }

    /// Which bucket since the epoch the oldest is.
    pub fn oldest_index(&self) -> u64 {
        let older = self.counts.len().saturating_sub(1);
        self.index.saturating_sub(older.try_into().unwrap_or(0))
    }

    /// Takes up to `units` from one bucket, and returns how many it had to give.
    pub fn take_back_from(&mut self, index: u64, units: u64) -> u64 {
        let age = self.index.checked_sub(index);
        let place = age.and_then(|age| usize::try_from(age).ok());
        let count = place.and_then(|place| self.counts.get_mut(place));
        count.map_or(0, |count| {
            let taken = units.min(*count);
            *count -= taken;
            taken
        })
    }

    /// Takes up to `units`, newest bucket first, and returns how many there were to take.
    pub fn take_back(&mut self, units: u64) -> u64 {
        let mut wanted = units;
        for count in &mut self.counts {
            let taken = wanted.min(*count);
            *count -= taken;
            wanted -= taken;
        }
        units - wanted
    }

    /// Makes `index`, which is not earlier, the newest bucket.
    pub fn advance(&mut self, index: u64) {
        if index == self.index {
            return;
        }
        let length = self.counts.len();
        let steps = index.saturating_sub(self.index);
        let steps = usize::try_from(steps).map_or(length, |steps| steps.min(length));
        self.counts.truncate(length - steps);
        self.counts.insert_many(0, std::iter::repeat_n(0, steps));
        self.index = index;
    }

    /// Makes all that is recorded the count of bucket `index`.
    pub fn collapse_into(&mut self, index: u64) {
        let sum = self
            .counts
            .iter()
            .fold(0, |sum: u64, count| sum.saturating_add(*count));
        self.counts.fill(0);
        self.index = index;
        self.add(sum);
    }
}

/// How many counts a layout keeps.
fn capacity(layout: BucketLayout) -> usize {
    usize::try_from(layout.buckets()).map_or(0, |buckets| buckets + 1)
}

#[cfg(test)]
mod tests {
    use super::{BucketCount, BucketLayout, Buckets, Counts, MAX_BUCKETS, MAX_COUNT};
    use crate::limiter::units::{MAX_WINDOW_MS, Window};
    use proptest::prelude::*;

    fn layout(window: u64, buckets: u64) -> BucketLayout {
        BucketLayout::new(
            Window::new(window).unwrap(),
            BucketCount::new(buckets).unwrap(),
        )
    }

    #[test]
    fn refuses_what_it_did_not_write() {
        for field in [
            "",
            "0",
            "060",
            "60/",
            "60/1",
            "60/65",
            "60/2/2",
            "/2",
            "60s",
            "315576000001",
        ] {
            assert_eq!(BucketLayout::parse(field.as_bytes()), None, "{field:?}");
        }
        let classic = layout(60, 1);
        for value in [
            "",
            "1",
            "1:2",
            "1:2:3:4",
            "1:2:",
            "01:2:3",
            "1:-2:3",
            "1:2:144115188075855872",
        ] {
            assert_eq!(Buckets::parse(value.as_bytes(), classic), None, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(
            window in 1..=MAX_WINDOW_MS,
            buckets in 1..=MAX_BUCKETS,
            index: u64,
            seed in prop::collection::vec(0..=MAX_COUNT, 65),
        ) {
            let layout = layout(window, buckets);
            prop_assert_eq!(BucketLayout::parse(&layout.field()), Some(layout));
            let counts: Counts = seed.into_iter().take(super::capacity(layout)).collect();
            let written = Buckets { index, counts };
            prop_assert_eq!(Buckets::parse(&written.value(), layout), Some(written));
        }
    }
}
