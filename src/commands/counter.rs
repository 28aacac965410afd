//! `SLIDE.COUNTER`: the approximate limiter.

use super::answer::carry_out;
use super::arguments::{self, Keyword};
use super::{COST, FORCE, HEADERS, KEY, TIERS};
use crate::limiter::Foreign;
use crate::limiter::counter::CounterCall;
use crate::server::{Args, Command, Context, CounterKey, Error, Key, KeyUse, Manual};
use crate::stats::STATS;

/// `SLIDE.COUNTER key limit window [limit window ...] [COST n] [FORCE] [HEADERS]`.
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
        arguments: &[KEY, TIERS, COST, FORCE, HEADERS],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let options = [Keyword::Cost, Keyword::Force, Keyword::Headers];
        let request = arguments::parse(args.from(2), &options)?;
        let name = args.key()?;
        let mut key = CounterKey::new(Key::open(ctx, name), args)?;
        let now = ctx.now();
        let foreign = Error::ForeignHash;
        let mut call = CounterCall::read(&mut key, now, &request.tiers, request.cost)
            .map_err(|Foreign| foreign.clone())?;
        let answer = carry_out(ctx, name, now, &request, &mut call, &STATS.counter, foreign)?;
        answer.reply(ctx);
        Ok(())
    }
}
