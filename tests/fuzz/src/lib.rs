//! The fuzz targets, and what they need: the module's pure parts, and the naive readings that these
//! are held against.
//!
//! The module is a library for servers only, so its files are taken in by their path.

#![allow(dead_code, unused_imports)] // the module uses what no target does

mod commands;
#[path = "../../../src/limiter/mod.rs"]
mod limiter;
#[path = "../../oracle/mod.rs"]
mod oracle;
mod server;
pub mod targets;
