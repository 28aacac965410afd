//! All of the boundary to the server that the pure parts know: its errors, and how arguments are
//! declared.

#[path = "../../../src/server/error.rs"]
mod error;
#[path = "../../../src/server/spec.rs"]
mod spec;

pub use error::{Error, Found};
pub use spec::{Argument, Kind};
