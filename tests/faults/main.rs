//! The module under faults: crashes, partitions, failovers, hostile input, exhausted resources.
//! Real servers throughout, of the kind that `SLIDE_SERVER` names.
//!
//! Each random test prints the seed of each round. `SLIDE_SEED` runs that one alone, and
//! `SLIDE_EFFORT=short` fewer of them.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../support/mod.rs"]
mod support;

mod allocation;
mod cluster;
mod durability;
mod failover;
mod hostile;
mod leases;
mod mutation;
mod replication;
mod situations;
mod soak;
mod subscribers;
mod traffic;
mod units;
mod unloading;
mod upgrade;
mod valgrind;
mod wire;
