//! `SLIDE.PEEK`: what a call would be told, without recording it.

use super::answer::settle;
use super::arguments::{self, Keyword};
use super::{COST, HEADERS, KEY, TIERS};
use crate::limiter::Foreign;
use crate::limiter::counter::CounterCall;
use crate::limiter::log::LogCall;
use crate::server::{
    Args, Command, Context, CounterKey, Error, Holds, Key, KeyUse, LogKey, Manual,
};
use crate::stats::STATS;

/// `SLIDE.PEEK key limit window [limit window ...] [COST n] [HEADERS]`.
#[derive(Debug)]
pub struct Peek;

impl Command for Peek {
    const MANUAL: Manual = Manual {
        name: c"slide.peek",
        summary: c"Says what SLIDE.LOG or SLIDE.COUNTER would answer, without recording anything.",
        complexity: c"As SLIDE.LOG or SLIDE.COUNTER, by the key's type.",
        since: c"0.1.0",
        flags: c"readonly fast",
        categories: c"slide read fast",
        arity: -4,
        key: KeyUse::Read,
        arguments: &[KEY, TIERS, COST, HEADERS],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let options = [Keyword::Cost, Keyword::Headers];
        let request = arguments::parse(args.from(2), &options)?;
        let key = Key::open_to_peek(ctx, args.key()?);
        let now = ctx.now();
        let answer = if key.holds() == Holds::Hash {
            let mut key = CounterKey::new(key, args)?;
            CounterCall::read(&mut key, now, &request.tiers, request.cost)
                .and_then(|mut call| settle(now, &request, &mut call, false))
                .map_err(|Foreign| Error::ForeignHash)?
        } else {
            // A missing key answers the same as an empty log.
            let mut key = LogKey::new(key)?;
            LogCall::read(&mut key, now, &request.tiers, request.cost)
                .and_then(|mut call| settle(now, &request, &mut call, false))
                .map_err(|Foreign| Error::ForeignSortedSet)?
        };
        STATS.peeked.increment();
        answer.reply(ctx);
        Ok(())
    }
}
