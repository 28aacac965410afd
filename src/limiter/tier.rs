//! A limit over a window, and the set of them that one call is judged by.

use super::units::{Limit, Window};

/// The most tiers that one call can name.
pub const MAX_TIERS: usize = 16;

/// At most `limit` units in any window of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Units allowed in the window.
    pub limit: Limit,
    /// The window's length.
    pub window: Window,
}

/// One value for each tier of a call, in the caller's order, never empty.
///
/// The first stands apart: nearly every call has one tier, and then nothing is allocated. What every
/// call does with it is written out below: a chained iterator, or a `collect` of results, takes longer.
#[derive(Clone, Debug)]
pub struct PerTier<T> {
    /// The first tier's value.
    pub first: T,
    /// The values of the other tiers.
    pub rest: Vec<T>,
}

impl<T> PerTier<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        1 + self.rest.len()
    }

    /// All values in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Whether it holds of any.
    pub fn any(&self, holds: impl Fn(&T) -> bool) -> bool {
        holds(&self.first) || self.rest.iter().any(holds)
    }

    /// All values in order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        std::iter::once(&mut self.first).chain(&mut self.rest)
    }

    /// Makes one value of each.
    pub fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> PerTier<U> {
        PerTier {
            first: make(&self.first),
            rest: self.rest.iter().map(make).collect(),
        }
    }

    /// Makes one value of each; stops at the first error.
    ///
    /// # Errors
    /// The first error of `make`.
    #[inline(always)]
    pub fn try_map<U, E>(&self, mut make: impl FnMut(&T) -> Result<U, E>) -> Result<PerTier<U>, E> {
        let first = make(&self.first)?;
        let mut rest = Vec::with_capacity(self.rest.len());
        for value in &self.rest {
            rest.push(make(value)?);
        }
        Ok(PerTier { first, rest })
    }
}

/// Why a tier cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierError {
    /// There are [`MAX_TIERS`] already.
    TooMany,
    /// Another tier has the same window.
    SameWindow,
}

/// One to [`MAX_TIERS`] tiers, their windows all different, in the caller's order.
#[derive(Clone, Debug)]
pub struct Tiers {
    tiers: PerTier<Tier>,
    longest: Window,
}

impl Tiers {
    /// A set of one.
    pub fn new(first: Tier) -> Self {
        Self {
            tiers: PerTier {
                first,
                rest: Vec::new(),
            },
            longest: first.window,
        }
    }

    /// Adds one more.
    ///
    /// # Errors
    /// When the set is full or already has a tier with this window.
    pub fn push(&mut self, tier: Tier) -> Result<(), TierError> {
        if self.tiers.rest.len() + 1 == MAX_TIERS {
            return Err(TierError::TooMany);
        }
        if self.tiers.iter().any(|other| other.window == tier.window) {
            return Err(TierError::SameWindow);
        }
        self.tiers.rest.push(tier);
        self.longest = self.longest.max(tier.window);
        Ok(())
    }

    /// The tiers in the caller's order.
    pub fn each(&self) -> &PerTier<Tier> {
        &self.tiers
    }

    /// The longest window: what is older can be forgotten.
    pub fn longest(&self) -> Window {
        self.longest
    }
}
