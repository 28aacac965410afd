//! `SLIDE.COUNTER`: the approximate limiter.

use super::answer::carry_out;
use super::arguments::{self, Keyword};
use super::{BUCKETS, COST, FORCE, HEADERS, KEY, STRICT, TIERS};
use crate::limiter::counter::CounterCall;
use crate::server::{Args, Command, Context, CounterKey, Error, Key, KeyUse, Keys, Manual};
use crate::stats::STATS;

/// `SLIDE.COUNTER key limit window [limit window ...] [COST n] [FORCE] [HEADERS] [BUCKETS n]
/// [STRICT]`.
#[derive(Debug)]
pub struct Counter;

impl Command for Counter {
    const MANUAL: Manual = Manual {
        name: c"slide.counter",
        summary: c"Admits or limits a call by an approximate sliding window in constant memory, and records it if admitted.",
        complexity: c"O(T*B) with T tiers of B buckets.",
        since: c"0.1.0",
        flags: c"write fast",
        categories: c"slide write fast",
        arity: -4,
        keys: Keys::One(KeyUse::Update),
        arguments: &[KEY, TIERS, COST, FORCE, HEADERS, BUCKETS, STRICT],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let options = [
            Keyword::Cost,
            Keyword::Force,
            Keyword::Headers,
            Keyword::Buckets,
            Keyword::Strict,
        ];
        // By reference, here and below, for the reason that stands in `Log::run`.
        let request = arguments::parse(args.from(2), &options);
        let request = request.as_ref().map_err(Error::clone)?;
        let name = args.key()?;
        let answer = {
            let mut key = Key::open(ctx, name);
            let mut counter = CounterKey::new(&mut key)?;
            let now = ctx.now();
            let mut call = CounterCall::read(
                &mut counter,
                now,
                &request.tiers,
                request.options.shape(),
                request.options.cost(),
            );
            let call = call.as_mut().map_err(|foreign| *foreign)?;
            carry_out(ctx, now, request, call, &STATS.counter)
        };
        let answer = answer.as_ref().map_err(Error::clone)?;
        answer.notify(ctx, name);
        answer.reply(ctx);
        Ok(())
    }
}
