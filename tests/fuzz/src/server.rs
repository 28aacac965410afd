//! All of the boundary to the server that the pure parts know: its errors.

#[path = "../../../src/server/error.rs"]
mod error;

pub use error::{Error, Quoted};
