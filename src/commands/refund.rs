//! `SLIDE.REFUND`: giving back what was recorded last.

use super::{KEY, arguments};
use crate::limiter::{counter, log};
use crate::server::{
    Args, Argument, Command, Context, CounterKey, Error, Holds, Key, KeyUse, Keys, Kind, LogKey,
    Manual,
};
use crate::stats::STATS;

/// `SLIDE.REFUND key units`.
#[derive(Debug)]
pub struct Refund;

impl Command for Refund {
    const MANUAL: Manual = Manual {
        name: c"slide.refund",
        summary: c"Gives back the most recently recorded units, and replies how many they were.",
        complexity: c"O(M*log(N)) with M the entries taken from, at most 1000, of N in a log; O(F) with F the windows of a counter.",
        since: c"0.1.0",
        flags: c"write",
        categories: c"slide write slow",
        arity: 3,
        keys: Keys::One(KeyUse::Update),
        arguments: &[KEY, Argument::required(c"units", Kind::Integer)],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let units = arguments::parse_units(args.from(2).next())?;
        let mut key = Key::open(ctx, args.key()?);
        let refunded = if key.holds() == Holds::Hash {
            counter::refund(&mut CounterKey::new(&mut key)?, units)?
        } else {
            log::refund(&mut LogKey::new(&mut key)?, units)?
        };
        STATS.refunded_units.add(refunded);
        ctx.reply_integer(i64::try_from(refunded).unwrap_or(i64::MAX));
        Ok(())
    }
}
