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
        let request = arguments::parse(args.from(2), &options)?;
        let name = args.key()?;
        let answer = {
            let mut key = CounterKey::new(Key::open(ctx, name))?;
            let now = ctx.now();
            let mut call = CounterCall::read(
                &mut key,
                now,
                &request.tiers,
                request.options.shape(),
                request.options.cost(),
            )?;
            carry_out(ctx, now, &request, &mut call, &STATS.counter)?
        };
        answer.notify(ctx, name);
        answer.reply(ctx);
        Ok(())
    }
}
