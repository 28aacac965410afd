//! `SLIDE.COUNTER`: the approximate limiter.

use super::arguments::{self, Keyword};
use super::{COST, KEY, TIERS, carry_out, reply};
use crate::limiter::Foreign;
use crate::limiter::counter::CounterCall;
use crate::server::{Args, Command, Context, CounterKey, Error, KeyUse, Manual};
use crate::stats::STATS;

/// `SLIDE.COUNTER key limit window [limit window ...] [COST n]`.
#[derive(Debug)]
pub struct Counter;

impl Command for Counter {
    const MANUAL: Manual = Manual {
        name: c"slide.counter",
        summary: c"Admits or limits a call by an approximate sliding window in constant memory, and records it if admitted.",
        complexity: c"O(T) with T tiers.",
        since: c"0.1.0",
        flags: c"write fast",
        categories: c"slide write fast",
        arity: -4,
        key: KeyUse::Update,
        arguments: &[KEY, TIERS, COST],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let request = arguments::parse(args.from(2), &[Keyword::Cost])?;
        let mut key = CounterKey::open(ctx, args.key()?)?;
        let mut call = CounterCall::read(&mut key, ctx.now(), &request.tiers, request.cost)
            .map_err(|Foreign| Error::ForeignHash)?;
        let verdict = carry_out(
            ctx,
            &mut call,
            request.cost,
            &STATS.counter,
            Error::ForeignHash,
        )?;
        reply(ctx, &verdict);
        Ok(())
    }
}
