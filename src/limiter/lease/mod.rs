//! How many at once: places that are given back, or come back by themselves at their end.
//!
//! A lease is live while its end lies after now. Ended leases stay in the store until some call that
//! records removes them; they count nowhere.

mod call;
mod lease_id;
mod release;
mod store;
#[cfg(test)]
mod tests;

pub use call::{LeaseCall, Take};
pub use lease_id::{LeaseId, MAX_ID_BYTES};
pub use release::release;
pub use store::{Lease, LeaseStore};
