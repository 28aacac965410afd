//! `SLIDE.LOG`: the exact limiter.

use super::answer::judge_and_record;
use super::arguments;
use super::arguments::declared::{COST, FORCE, HEADERS, KEY, TIERS};
use crate::limiter::log::LogCall;
use crate::server::{Args, Command, CommandSpec, Context, Error, Key, KeyUse, Keys, LogKey};
use crate::stats::STATS;

/// `SLIDE.LOG key limit window [limit window ...] [COST n] [FORCE] [HEADERS]`.
#[derive(Debug)]
pub struct Log;

impl Command for Log {
    const SPEC: CommandSpec = CommandSpec {
        name: c"slide.log",
        summary: c"Admits or limits a call by an exact sliding window, and records it if admitted.",
        complexity: c"O(T*log(N)) with T tiers and N entries in the log, whatever the cost; a limited call adds O(log(W)*log(N)) with W the window in milliseconds.",
        since: c"0.1.0",
        flags: c"write fast",
        categories: c"slide write fast",
        arity: -4,
        keys: Keys::One(KeyUse::Update),
        arguments: &[KEY, TIERS, COST, FORCE, HEADERS],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        // By reference, here and below: `?` on the value itself would copy it, and a copy of what was just
        // written stalls the processor.
        let request = arguments::parse(args.from(2), Self::SPEC.arguments);
        let request = request.as_ref().map_err(Error::clone)?;
        let options = &request.options;
        let name = args.key()?;
        let answer = {
            let mut key = Key::open(ctx, name);
            let mut log = LogKey::new(&mut key)?;
            let now = ctx.now();
            let mut call = LogCall::read(&mut log, now, &request.tiers, options.cost());
            let call = call.as_mut().map_err(|foreign| *foreign)?;
            judge_and_record(ctx, now, options.force, options.headers, call, &STATS.log)
        };
        let answer = answer.as_ref().map_err(Error::clone)?;
        if answer.verdict.over {
            ctx.notify_limited(name);
        }
        answer.reply(ctx);
        Ok(())
    }
}
