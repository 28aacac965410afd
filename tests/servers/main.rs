//! The module in a real server, the one that `SLIDE_SERVER` names.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../support/mod.rs"]
mod support;

mod all;
mod all_effects;
mod arguments;
mod both;
mod buckets;
mod clients;
mod cluster;
mod counter;
mod enforce;
mod events;
mod force;
mod foreign;
mod headers;
mod info;
mod large;
mod leases;
mod loading;
mod log;
mod memory;
mod packing;
mod peek;
mod persistence;
mod refund;
mod replication;
mod stories;
mod traffic;
mod transactions;
