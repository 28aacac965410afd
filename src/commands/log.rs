//! `SLIDE.LOG`: the exact limiter.

use super::arguments::{self, Keyword};
use super::{COST, KEY, TIERS, carry_out, reply};
use crate::limiter::Foreign;
use crate::limiter::log::LogCall;
use crate::server::{Args, Command, Context, Error, KeyUse, LogKey, Manual};
use crate::stats::STATS;

/// `SLIDE.LOG key limit window [limit window ...] [COST n]`.
#[derive(Debug)]
pub struct Log;

impl Command for Log {
    const MANUAL: Manual = Manual {
        name: c"slide.log",
        summary: c"Admits or limits a call by an exact sliding window, and records it if admitted.",
        complexity: c"O(T*log(N)) with T tiers and N entries in the log, whatever the cost; a search for a wait adds O(log(W)*log(N)) with W the window in milliseconds.",
        since: c"0.1.0",
        flags: c"write fast",
        categories: c"slide write fast",
        arity: -4,
        key: KeyUse::Update,
        arguments: &[KEY, TIERS, COST],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let request = arguments::parse(args.from(2), &[Keyword::Cost])?;
        let mut key = LogKey::open(ctx, args.key()?)?;
        let mut call = LogCall::read(&mut key, ctx.now(), &request.tiers, request.cost)
            .map_err(|Foreign| Error::ForeignSortedSet)?;
        let verdict = carry_out(
            ctx,
            &mut call,
            request.cost,
            &STATS.log,
            Error::ForeignSortedSet,
        )?;
        reply(ctx, &verdict);
        Ok(())
    }
}
