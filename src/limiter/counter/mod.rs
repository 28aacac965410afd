//! The approximate limiter: one count for each bucket of a window, in one packed field.
//!
//! A window of `w` milliseconds is divided into `n` buckets. A key's windows begin at a moment of its
//! own, `o` before those of the epoch, where `o` is a hash of the key modulo `w`. With
//! `T = (now + o) * n`, bucket `T div w` began `e = T mod w` n-ths of a millisecond ago. The usage is
//! estimated as the newest `n` buckets and the part of the one before them that the window still
//! covers:
//!
//! ```text
//! estimate * w = c[i-n] * (w - e) + w * (c[i-n+1] + … + c[i])
//! ```
//!
//! With STRICT, the oldest bucket counts whole:
//!
//! ```text
//! estimate = c[i-n] + c[i-n+1] + … + c[i]
//! ```
//!
//! Limits and costs are whole units, so the estimate is rounded up to whole units before it is
//! compared with them.

mod buckets;
mod call;
mod estimate;
#[cfg(test)]
mod promises;
mod refund;
mod store;
#[cfg(test)]
mod tests;
mod timeline;

pub use buckets::{BucketCount, BucketLayout, Buckets, MAX_BUCKETS};
pub use call::{CounterCall, Shape};
pub use refund::{refund, refund_aged};
pub use store::CounterStore;
pub use timeline::Phase;
