//! All of the boundary to the server that the pure parts know: how arguments are declared, and errors.

#[path = "../../../src/server/error.rs"]
mod error;
#[path = "../../../src/server/spec.rs"]
mod spec;

pub use error::{Error, Found};
pub use spec::{Argument, Kind};
