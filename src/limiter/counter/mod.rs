//! The approximate limiter: one count for each bucket of a window, in one packed field.
//!
//! A window `w` divided into `n` buckets is aligned to the epoch. In units of `w / n`-ths, that is
//! with `T = now * n`, bucket `T div w` began `e = T mod w` ago, and the usage is estimated as the
//! newest `n` buckets and that part of the one before them which the window still covers:
//!
//! ```text
//! estimate * w = c[i-n] * (w - e) + w * (c[i-n+1] + … + c[i])
//! ```
//!
//! Strict, the bucket that leaves counts whole:
//!
//! ```text
//! estimate = c[i-n] + c[i-n+1] + … + c[i]
//! ```
//!
//! What is compared are whole units, so that the estimate may be rounded up to whole units first.

mod buckets;
mod call;
mod estimate;
#[cfg(test)]
mod promises;
mod refund;
mod store;
#[cfg(test)]
mod tests;

pub use buckets::{BucketCount, Buckets, Division, MAX_BUCKETS};
pub use call::{CounterCall, Shape};
pub use refund::refund;
pub use store::CounterStore;
