//! The commands: each parses, opens its key, lets the limiter decide, writes and replies.

#![forbid(unsafe_code)]

mod all;
mod answer;
mod arguments;
mod counter;
mod headers;
mod lease;
mod log;
#[cfg(feature = "test-panic")]
mod panic;
mod peek;
mod refund;
mod release;

pub use all::All;
pub use counter::Counter;
pub use lease::Lease;
pub use log::Log;
#[cfg(feature = "test-panic")]
pub use panic::Panic;
pub use peek::Peek;
pub use refund::Refund;
pub use release::Release;
