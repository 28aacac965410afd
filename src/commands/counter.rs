//! `SLIDE.COUNTER`: the approximate limiter.

use super::answer::judge_and_record;
use super::arguments;
use super::arguments::declared::{BUCKETS, COST, FORCE, HEADERS, KEY, STRICT, TIERS};
use crate::limiter::counter::CounterCall;
use crate::server::{Args, Command, CommandSpec, Context, CounterKey, Error, Key, KeyUse, Keys};
use crate::stats::STATS;

/// `SLIDE.COUNTER key limit window [limit window ...] [COST n] [FORCE] [HEADERS] [BUCKETS n]
/// [STRICT]`.
#[derive(Debug)]
pub struct Counter;

impl Command for Counter {
    const SPEC: CommandSpec = CommandSpec {
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
        // By reference, here and below, for the reason given in `Log::run`.
        let request = arguments::parse(args.from(2), Self::SPEC.arguments);
        let request = request.as_ref().map_err(Error::clone)?;
        let options = &request.options;
        let name = args.key()?;
        let answer = {
            let mut key = Key::open(ctx, name);
            let mut counter = CounterKey::new(&mut key)?;
            let now = ctx.now();
            let mut call = CounterCall::read(
                &mut counter,
                now,
                &request.tiers,
                options.shape(),
                options.cost(),
            );
            let call = call.as_mut().map_err(|foreign| *foreign)?;
            judge_and_record(
                ctx,
                now,
                options.force,
                options.headers,
                call,
                &STATS.counter,
            )
        };
        let answer = answer.as_ref().map_err(Error::clone)?;
        if answer.verdict.over {
            ctx.notify_limited(name);
        }
        answer.reply(ctx);
        Ok(())
    }
}
