//! `SLIDE.RELEASE`: giving places back.

use super::arguments;
use super::arguments::declared::{ID, KEY};
use crate::limiter::lease::release;
use crate::server::{Args, Command, CommandSpec, Context, Error, Key, KeyUse, Keys, LeaseKey};
use crate::stats::STATS;

/// `SLIDE.RELEASE key id [id ...]`.
#[derive(Debug)]
pub struct Release;

impl Command for Release {
    const SPEC: CommandSpec = CommandSpec {
        name: c"slide.release",
        summary:
            c"Gives back the places of one or more ids, and replies how many of these were live.",
        complexity: c"O(M*log(N)) with M ids of N leases.",
        since: c"0.2.0",
        flags: c"write fast",
        categories: c"slide write fast",
        arity: -3,
        keys: Keys::One(KeyUse::Update),
        arguments: &[KEY, ID.repeated()],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let ids = arguments::parse_ids(args.from(2))?;
        let mut key = Key::open(ctx, args.key()?);
        let mut leases = LeaseKey::new(&mut key)?;
        let released = release(&mut leases, ctx.now(), &ids)?;
        STATS.released.add(released.try_into().unwrap_or(u64::MAX));
        ctx.reply_integer(i64::try_from(released).unwrap_or(i64::MAX));
        Ok(())
    }
}
