//! `SLIDE.REFUND`: giving back what was recorded.

use super::arguments;
use super::arguments::declared::{AGE, KEY};
use crate::limiter::refund::RecordedAt;
use crate::limiter::{counter, log};
use crate::server::{
    Args, Argument, Command, CommandSpec, Context, CounterKey, Error, Holds, Key, KeyUse, Keys,
    Kind, LogKey,
};
use crate::stats::STATS;

/// `SLIDE.REFUND key units [AGE age]`.
#[derive(Debug)]
pub struct Refund;

impl Command for Refund {
    const SPEC: CommandSpec = CommandSpec {
        name: c"slide.refund",
        summary: c"Gives back recorded units, the most recent or those of a given age, and replies how many.",
        complexity: c"O(M*log(N)) with M the entries looked at, at most 1000, of N in a log; O(F) with F the windows of a counter.",
        since: c"0.1.0",
        flags: c"write",
        categories: c"slide write slow",
        arity: -3,
        keys: Keys::One(KeyUse::Update),
        arguments: &[KEY, Argument::required(c"units", Kind::Integer), AGE],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let (units, age) = arguments::parse_refund(args.from(2), Self::SPEC.arguments)?;
        let mut key = Key::open(ctx, args.key()?);
        let now = ctx.now();
        let recorded = age.map(|age| RecordedAt::ago(now, age));
        let refunded = if key.holds() == Holds::Hash {
            let counter = &mut CounterKey::new(&mut key)?;
            match recorded {
                None => counter::refund(counter, units, now)?,
                Some(recorded) => counter::refund_aged(counter, units, now, recorded)?,
            }
        } else {
            let log = &mut LogKey::new(&mut key)?;
            match recorded {
                None => log::refund(log, units)?,
                Some(recorded) => log::refund_aged(log, units, recorded)?,
            }
        };
        STATS.refunded_units.add(refunded);
        ctx.reply_integer(i64::try_from(refunded).unwrap_or(i64::MAX));
        Ok(())
    }
}
