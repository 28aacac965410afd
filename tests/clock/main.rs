//! The module under a clock that the test moves: support/clock.c answers the server in the place of
//! the system's clock. `SLIDE_SERVER` names the server.
//!
//! `SLIDE_EFFORT=short` does fewer of the random rounds.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../support/mod.rs"]
mod support;

mod adversary;
mod all;
mod buckets;
mod counter;
mod drift;
mod dry_run;
mod far;
mod healing;
mod histories;
mod key;
mod leases;
mod leases_in_all;
mod log;
mod moving;
mod promises;
mod reports;
mod steps;
