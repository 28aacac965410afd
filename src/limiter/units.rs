//! What is counted, and when: each quantity has a type of its own.

use std::ops::{Add, Sub};

/// The largest limit or cost that a caller can name, 2^53 - 1: exact in every client language.
pub const MAX_UNITS: u64 = (1 << 53) - 1;

/// The longest window, 10 years, in milliseconds.
pub const MAX_WINDOW_MS: u64 = 315_576_000_000;

/// The longest life of a lease, 1 day, in milliseconds.
pub const MAX_TTL_MS: u64 = 86_400_000;

/// Units that a tier allows in its window, 0 to [`MAX_UNITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(u64);

impl Limit {
    /// `None` above [`MAX_UNITS`].
    pub fn new(units: u64) -> Option<Self> {
        (units <= MAX_UNITS).then_some(Self(units))
    }

    /// The number of units.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Units that one call takes, 0 to [`MAX_UNITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost(u64);

impl Cost {
    /// The cost of a call that names none.
    pub const ONE: Self = Self(1);

    /// `None` above [`MAX_UNITS`].
    pub fn new(units: u64) -> Option<Self> {
        (units <= MAX_UNITS).then_some(Self(units))
    }

    /// The number of units.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// A span of time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of this many milliseconds.
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// The number of milliseconds.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The length of a sliding window, 1 ms to [`MAX_WINDOW_MS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window(u64);

impl Window {
    /// `None` for 0 and above [`MAX_WINDOW_MS`].
    pub fn new(ms: u64) -> Option<Self> {
        (1..=MAX_WINDOW_MS).contains(&ms).then_some(Self(ms))
    }

    /// The number of milliseconds.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// How long ago units were recorded, 0 ms to [`MAX_WINDOW_MS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(u64);

impl Age {
    /// `None` above [`MAX_WINDOW_MS`].
    pub fn new(ms: u64) -> Option<Self> {
        (ms <= MAX_WINDOW_MS).then_some(Self(ms))
    }
}

impl From<Age> for Millis {
    fn from(age: Age) -> Self {
        Self(age.0)
    }
}

/// How long a lease lives, 1 ms to [`MAX_TTL_MS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(u64);

impl Ttl {
    /// The longest, 1 day.
    pub const MAX: Self = Self(MAX_TTL_MS);

    /// `None` for 0 and above [`MAX_TTL_MS`].
    pub fn new(ms: u64) -> Option<Self> {
        (1..=MAX_TTL_MS).contains(&ms).then_some(Self(ms))
    }
}

/// A point in time: milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The latest time that a sorted-set score holds exactly, 2^53 - 1.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// A score that is a whole number of milliseconds, not before the epoch.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::float_cmp,
        reason = "the range check leaves only integers that both types hold exactly"
    )]
    pub fn from_score(score: f64) -> Option<Self> {
        let in_range = (0.0..=Self::MAX.0 as f64).contains(&score);
        let ms = score as i64;
        (in_range && ms as f64 == score).then_some(Self(ms))
    }

    /// This time as a score. Times that are written are below 2^53 and therefore exact.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub fn as_score(self) -> f64 {
        self.0 as f64
    }

    /// The point `ms` after the epoch.
    pub fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; nothing if it is not later.
    pub fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0).try_into().unwrap_or(0))
    }

    /// The point that lies `part` of `whole` on the way from `first` to `last`; `last` where that is
    /// further, or where `whole` is 0.
    pub fn between(first: Self, last: Self, part: u64, whole: u64) -> Self {
        let span = u128::from(last.since(first).0);
        let way = (span * u128::from(part)).checked_div(whole.into());
        let way = way.map_or(span, |way| way.min(span));
        first + Millis(u64::try_from(way).unwrap_or(u64::MAX))
    }

    /// The start (excluded) of the window that ends here.
    pub fn before(self, window: Window) -> Self {
        Self(self.0.saturating_sub_unsigned(window.0))
    }
}

impl Add<Window> for Timestamp {
    type Output = Self;

    fn add(self, window: Window) -> Self {
        Self(self.0.saturating_add_unsigned(window.0))
    }
}

impl Add<Ttl> for Timestamp {
    type Output = Self;

    fn add(self, ttl: Ttl) -> Self {
        Self(self.0.saturating_add_unsigned(ttl.0))
    }
}

impl Sub<Millis> for Timestamp {
    type Output = Self;

    fn sub(self, span: Millis) -> Self {
        Self(self.0.saturating_sub_unsigned(span.0))
    }
}

impl Add<Millis> for Timestamp {
    type Output = Self;

    fn add(self, span: Millis) -> Self {
        Self(self.0.saturating_add_unsigned(span.0))
    }
}
