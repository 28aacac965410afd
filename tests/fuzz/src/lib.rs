//! The module's pure parts, for the fuzz targets, and the naive readings that they are held against.
//!
//! The module is a library for servers only, so its files are taken in by their path.

#![allow(dead_code)] // the module uses what no target does

pub mod commands;
#[path = "../../../src/limiter/mod.rs"]
pub mod limiter;
#[path = "../../oracle/mod.rs"]
pub mod oracle;
pub mod server;
