//! The boundary to the server: the only place with `unsafe`.
//!
//! Everything above it works with typed keys that close themselves, byte slices that live as long
//! as the command, and errors that know their own words.

mod api;
mod args;
mod command;
mod context;
mod counter_key;
mod cursor;
mod error;
mod field_names;
mod key;
mod load;
mod log_key;
mod manual;
mod register;
mod text;

pub use args::{Args, Word};
pub use command::Command;
pub use context::Context;
pub use counter_key::CounterKey;
pub use error::{Error, Quoted};
pub use key::{Holds, Key};
pub use load::{Loading, load, unload};
pub use log_key::LogKey;
pub use manual::{Argument, KeyUse, Keys, Kind, Manual};
