//! The commands: each parses, opens its key, lets the limiter decide, writes and replies.

mod all;
mod answer;
mod arguments;
mod counter;
mod headers;
mod log;
mod peek;
mod refund;

pub use all::All;
pub use counter::Counter;
pub use log::Log;
pub use peek::Peek;
pub use refund::Refund;

use crate::server::{Argument, Kind};

/// The words that the commands have in common.
const KEY: Argument = Argument::required(c"key", Kind::Key);
const TIERS: Argument = Argument::required(
    c"tier",
    Kind::Block(&[
        Argument::required(c"limit", Kind::Integer),
        Argument::required(c"window", Kind::Text),
    ]),
)
.repeated();
const COST: Argument = Argument::option(c"cost", c"COST", Kind::Integer);
const FORCE: Argument = Argument::flag(c"force", c"FORCE");
const HEADERS: Argument = Argument::flag(c"headers", c"HEADERS");
const BUCKETS: Argument = Argument::option(c"buckets", c"BUCKETS", Kind::Integer);
const STRICT: Argument = Argument::flag(c"strict", c"STRICT");
