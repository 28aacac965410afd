//! `SLIDE.LEASE`: how many at once.

use super::answer::judge_and_record;
use super::arguments;
use super::arguments::declared::{FORCE, ID, KEY, LIMIT, TTL};
use crate::limiter::lease::LeaseCall;
use crate::server::{Args, Command, CommandSpec, Context, Error, Key, KeyUse, Keys, LeaseKey};
use crate::stats::STATS;

/// `SLIDE.LEASE key limit ttl id [FORCE]`.
#[derive(Debug)]
pub struct Lease;

impl Command for Lease {
    const SPEC: CommandSpec = CommandSpec {
        name: c"slide.lease",
        summary: c"Takes one of a number of places, or keeps it, until it is released or its time is over.",
        complexity: c"O(log(N)) with N leases; a call that has to wait for many of them adds O(log(T)*log(N)) with T the longest time to live in milliseconds.",
        since: c"0.2.0",
        flags: c"write fast",
        categories: c"slide write fast",
        arity: -5,
        keys: Keys::One(KeyUse::Update),
        arguments: &[KEY, LIMIT, TTL, ID, FORCE],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let (take, options) = arguments::parse_lease(args.from(2), Self::SPEC.arguments)?;
        let name = args.key()?;
        let answer = {
            let mut key = Key::open(ctx, name);
            let mut leases = LeaseKey::new(&mut key)?;
            let now = ctx.now();
            let mut call = LeaseCall::read(&mut leases, now, &take)?;
            judge_and_record(ctx, now, options.force, false, &mut call, &STATS.lease)?
        };
        if answer.verdict.over {
            ctx.notify_limited(name);
        }
        answer.reply(ctx);
        Ok(())
    }
}
