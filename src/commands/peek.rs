//! `SLIDE.PEEK`: what a call would be told, without recording it.

use super::answer::settle;
use super::arguments;
use super::arguments::declared::{BUCKETS, COST, HEADERS, KEY, STRICT, TIERS};
use crate::limiter;
use crate::limiter::counter::CounterCall;
use crate::limiter::lease::LeaseCall;
use crate::limiter::log::LogCall;
use crate::server::{
    Args, Command, CommandSpec, Context, CounterKey, Error, Holds, Key, KeyUse, Keys, LeaseKey,
    LogKey, kind_of,
};
use crate::stats::STATS;

/// `SLIDE.PEEK key limit window [limit window ...] [COST n] [HEADERS] [BUCKETS n] [STRICT]`.
#[derive(Debug)]
pub struct Peek;

impl Command for Peek {
    const SPEC: CommandSpec = CommandSpec {
        name: c"slide.peek",
        summary: c"Says what SLIDE.LOG, SLIDE.COUNTER or SLIDE.LEASE would answer, without recording anything.",
        complexity: c"As SLIDE.LOG, SLIDE.COUNTER or SLIDE.LEASE, by what the key holds.",
        since: c"0.1.0",
        flags: c"readonly fast",
        categories: c"slide read fast",
        arity: -4,
        keys: Keys::One(KeyUse::Read),
        arguments: &[KEY, TIERS, COST, HEADERS, BUCKETS, STRICT],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let request = arguments::parse(args.from(2), Self::SPEC.arguments)?;
        let options = &request.options;
        let mut key = Key::open_to_peek(ctx, args.key()?);
        let now = ctx.now();
        let answer = match key.holds() {
            Holds::SortedSet if kind_of(&mut key) == Some(limiter::Kind::Lease) => {
                // The tier's limit counts; its window has no meaning.
                if request.tiers.each().len() > 1 || options.are_given() {
                    return Err(Error::MoreThanOneLimit);
                }
                let mut key = LeaseKey::new(&mut key)?;
                let limit = request.tiers.each().first.limit;
                let mut call = LeaseCall::peek(&mut key, now, limit)?;
                settle(now, false, &mut call, false)?
            }
            Holds::SortedSet
                if options.name_a_shape() && kind_of(&mut key) == Some(limiter::Kind::Log) =>
            {
                return Err(Error::CounterOption);
            }
            Holds::Hash => {
                let mut key = CounterKey::new(&mut key)?;
                let mut call = CounterCall::read(
                    &mut key,
                    now,
                    &request.tiers,
                    options.shape(),
                    options.cost(),
                )?;
                settle(now, options.headers, &mut call, false)?
            }
            // A missing key answers the same as an empty log.
            Holds::SortedSet | Holds::Nothing | Holds::Other => {
                let mut key = LogKey::new(&mut key)?;
                let mut call = LogCall::read(&mut key, now, &request.tiers, options.cost())?;
                settle(now, options.headers, &mut call, false)?
            }
        };
        STATS.peeked.increment();
        answer.reply(ctx);
        Ok(())
    }
}
