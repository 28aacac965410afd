//! The boundary to the server: the only place with `unsafe`.
//!
//! Everything above it works with typed keys that close themselves, byte slices that live as long
//! as the command, and errors that know their own words.

#[cfg(any(test, target_env = "musl"))]
mod aligned;
mod api;
mod args;
mod command;
mod context;
mod counter_key;
mod cursor;
mod effects;
mod error;
mod field_names;
mod key;
mod kind;
mod lease_key;
mod load;
mod log_key;
mod module_string;
mod reading;
mod register;
mod spec;
mod unload;
mod writes;

#[cfg(all(not(test), target_env = "musl"))]
pub use aligned::AlignedAlloc;
pub use args::Args;
pub use command::Command;
pub use context::Context;
pub use counter_key::CounterKey;
pub use error::{Error, Found};
pub use key::{Holds, Key};
pub use kind::kind_of;
pub use lease_key::LeaseKey;
pub use load::{Loading, load};
pub use log_key::LogKey;
pub use spec::{Argument, CommandSpec, KeyUse, Keys, Kind};
pub use unload::unload;
