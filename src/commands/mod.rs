//! The commands: each parses, opens its key, lets the limiter decide, writes and replies.

mod arguments;
mod counter;
mod log;

pub use counter::Counter;
pub use log::Log;

use crate::limiter::units::Cost;
use crate::limiter::verdict::{Verdict, Wait};
use crate::limiter::{Call, Foreign};
use crate::server::{Argument, Context, Error, Kind};
use crate::stats::{Calls, STATS};

/// The words that every limiting command begins with.
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

/// Decides a call that has been read, and writes what follows from it.
///
/// `foreign` is the error for data that the limiter did not write.
fn carry_out(
    ctx: Context<'_>,
    call: &mut impl Call,
    cost: Cost,
    calls: &Calls,
    foreign: Error,
) -> Result<Verdict, Error> {
    let record = !call.is_over();
    if record && cost.get() > 0 {
        ctx.ensure_memory()?;
    }
    let verdict = call.settle(record).map_err(|Foreign| foreign)?;
    call.commit();
    calls.count(verdict.limited);
    if call.is_healed() {
        STATS.clock_faults.increment();
    }
    Ok(verdict)
}

/// Replies the five integers: limited, limit, remaining, retry after and reset after.
fn reply(ctx: Context<'_>, verdict: &Verdict) {
    let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    ctx.reply_array(5);
    ctx.reply_integer(verdict.limited.into());
    ctx.reply_integer(integer(verdict.reported.tier.limit.get()));
    ctx.reply_integer(integer(verdict.reported.remaining));
    ctx.reply_integer(match verdict.retry_after {
        Wait::For(span) => integer(span.get()),
        Wait::Never => -1,
    });
    ctx.reply_integer(integer(verdict.reported.reset.get()));
}
