//! `SLIDE.PANIC`: panics in the middle of a call, so that tests see what a panic does. It exists only
//! with the feature `test-panic`, which no release has.

use super::answer::judge_and_record;
use super::arguments;
use super::arguments::declared::{COST, KEY, TIERS};
use crate::limiter::log::LogCall;
use crate::server::{Args, Command, CommandSpec, Context, Error, Key, KeyUse, Keys, LogKey};
use crate::stats::STATS;

/// `SLIDE.PANIC key limit window [limit window ...] [COST n]`.
#[derive(Debug)]
pub struct Panic;

impl Command for Panic {
    const SPEC: CommandSpec = CommandSpec {
        name: c"slide.panic",
        summary: c"Does what SLIDE.LOG does and panics before it has closed the key and replied.",
        complexity: c"That of SLIDE.LOG.",
        since: c"0.2.0",
        flags: c"write",
        categories: c"slide write",
        arity: -4,
        keys: Keys::One(KeyUse::Update),
        arguments: &[KEY, TIERS, COST],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let request = arguments::parse(args.from(2), Self::SPEC.arguments)?;
        let mut key = Key::open(ctx, args.key()?);
        let mut log = LogKey::new(&mut key)?;
        let now = ctx.now();
        let mut call = LogCall::read(&mut log, now, &request.tiers, request.options.cost())?;
        judge_and_record(ctx, now, false, false, &mut call, &STATS.log)?;
        panic!("SLIDE.PANIC was called");
    }
}
