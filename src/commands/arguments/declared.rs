//! The arguments that commands share, declared once: the parser takes the options that a command's
//! description lists, and COMMAND DOCS shows the same.

use crate::server::{Argument, Kind};

/// The key of a command that has one.
pub const KEY: Argument = Argument::required(c"key", Kind::Key);

/// One tier or more.
pub const TIERS: Argument = Argument::required(
    c"tier",
    Kind::Block(&[LIMIT, Argument::required(c"window", Kind::Text)]),
)
.repeated();

/// The units that a call takes.
pub const COST: Argument = Argument::option(c"cost", c"COST", Kind::Integer);
/// Records a call even if it is over a limit.
pub const FORCE: Argument = Argument::flag(c"force", c"FORCE");
/// Adds HTTP headers to the reply.
pub const HEADERS: Argument = Argument::flag(c"headers", c"HEADERS");
/// The number of buckets that a counter's window is divided into.
pub const BUCKETS: Argument = Argument::option(c"buckets", c"BUCKETS", Kind::Integer);
/// Counts the bucket that leaves a counter's window whole.
pub const STRICT: Argument = Argument::flag(c"strict", c"STRICT");
/// How long ago the units of a refund were recorded.
pub const AGE: Argument = Argument::option(c"age", c"AGE", Kind::Text);

/// How many or how much.
pub const LIMIT: Argument = Argument::required(c"limit", Kind::Integer);
/// How long a lease lives.
pub const TTL: Argument = Argument::required(c"ttl", Kind::Text);
/// Whose a lease is.
pub const ID: Argument = Argument::required(c"id", Kind::Text);

/// The clause of `SLIDE.ALL` for a log.
pub const LOG_CLAUSE: &[Argument] = &[Argument::token(c"log", c"LOG"), TIERS, COST];
/// The clause of `SLIDE.ALL` for a counter.
pub const COUNTER_CLAUSE: &[Argument] = &[
    Argument::token(c"counter", c"COUNTER"),
    TIERS,
    COST,
    BUCKETS,
    STRICT,
];

/// The clause of `SLIDE.ALL` for a lease.
pub const LEASE_CLAUSE: &[Argument] = &[Argument::token(c"lease", c"LEASE"), LIMIT, TTL, ID];

/// One clause or more, each for one key.
pub const CLAUSES: Argument = Argument::required(
    c"clause",
    Kind::OneOf(&[
        Argument::required(c"log-clause", Kind::Block(LOG_CLAUSE)),
        Argument::required(c"counter-clause", Kind::Block(COUNTER_CLAUSE)),
        Argument::required(c"lease-clause", Kind::Block(LEASE_CLAUSE)),
    ]),
)
.repeated();
