//! `SLIDE.ALL`: several keys, recorded in all or in none.

use super::answer::{count, count_fault, is_recorded, limited, reply_headers, reply_integers};
use super::arguments::declared::{CLAUSES, FORCE, HEADERS};
use super::arguments::{self, AllRequest, Clause, Limits};
use super::headers::{KeyState, headers};
use crate::limiter::all::AllCall;
use crate::limiter::counter::{CounterCall, Shape};
use crate::limiter::lease::{LeaseCall, Take};
use crate::limiter::log::LogCall;
use crate::limiter::units::Timestamp;
use crate::limiter::{Call, Foreign};
use crate::server::{
    Args, Argument, Command, CommandSpec, Context, CounterKey, Error, Key, KeyUse, Keys, Kind,
    LeaseKey, LogKey,
};
use crate::stats::STATS;

/// `SLIDE.ALL numkeys key [key ...] clause [clause ...] [FORCE] [HEADERS]`.
#[derive(Debug)]
pub struct All;

impl Command for All {
    const SPEC: CommandSpec = CommandSpec {
        name: c"slide.all",
        summary: c"Admits or limits a call by the limits of several keys, and records it in all of them or in none.",
        complexity: c"The sum of what SLIDE.LOG, SLIDE.COUNTER and SLIDE.LEASE take for each key.",
        since: c"0.1.0",
        flags: c"write fast getkeys-api",
        categories: c"slide write fast",
        arity: -6,
        keys: Keys::Counted(KeyUse::Update),
        arguments: &[
            Argument::required(c"numkeys", Kind::Integer),
            Argument::required(c"key", Kind::Key).repeated(),
            CLAUSES,
            FORCE,
            HEADERS,
        ],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let request = arguments::parse_all(args.from(1), Self::SPEC.arguments)?;
        let AllRequest { clauses, options } = &request;
        let names = args.range(2, clauses.len());
        // A key that has expired is removed when it is opened, and subscribers are told at once: that
        // must not happen while another key is open.
        names.clone().for_each(|name| drop(Key::open(ctx, name)));
        let now = ctx.now();
        let (over, keys) = {
            let open = names.clone().map(|name| Key::open(ctx, name));
            let mut open = open.collect::<Vec<_>>();
            let mut limiters = limiters(&mut open, clauses)?;
            let mut call = read(now, &mut limiters)?;
            let over = call.is_over();
            let record = is_recorded(ctx, over, options.force, call.needs_memory())?;
            let verdicts = call.settle(record)?;
            let outlooks = if options.headers {
                call.outlooks()?
            } else {
                vec![Vec::new(); clauses.len()]
            };
            call.commit();
            count(&STATS.all, over, options.force && call.records());
            call.each().for_each(count_fault);
            let keys = verdicts.into_iter().zip(outlooks);
            let keys = keys.map(|(verdict, outlooks)| KeyState { verdict, outlooks });
            (over, keys.collect::<Vec<_>>())
        };
        for (name, key) in names.zip(&keys) {
            if key.verdict.over {
                ctx.notify_limited(name);
            }
        }
        ctx.reply_array(1 + keys.len() + usize::from(options.headers));
        ctx.reply_integer(limited(over));
        for key in &keys {
            ctx.reply_array(5);
            reply_integers(ctx, &key.verdict);
        }
        if options.headers {
            reply_headers(ctx, &headers(now, over, &keys));
        }
        Ok(())
    }
}

/// An open key with its clause.
enum Limited<'k, 'a> {
    Log(LogKey<'k, 'a>, &'k Limits),
    Counter(CounterKey<'k, 'a>, &'k Limits, Shape),
    Lease(LeaseKey<'k, 'a>, &'k Take),
}

fn limiters<'k, 'a>(
    keys: &'k mut [Key<'a>],
    clauses: &'k [Clause],
) -> Result<Vec<Limited<'k, 'a>>, Error> {
    let limiters = keys.iter_mut().zip(clauses).map(|(key, clause)| {
        Ok(match clause {
            Clause::Log(limits) => Limited::Log(LogKey::new(key)?, limits),
            Clause::Counter(limits, shape) => {
                Limited::Counter(CounterKey::new(key)?, limits, *shape)
            }
            Clause::Lease(take) => Limited::Lease(LeaseKey::new(key)?, take),
        })
    });
    limiters.collect()
}

fn read<'a>(now: Timestamp, limiters: &'a mut [Limited<'_, '_>]) -> Result<AllCall<'a>, Foreign> {
    let calls = limiters.iter_mut().map(|limiter| {
        Ok(match limiter {
            Limited::Log(key, Limits { tiers, cost }) => {
                Box::new(LogCall::read(key, now, tiers, *cost)?) as Box<dyn Call>
            }
            Limited::Counter(key, Limits { tiers, cost }, shape) => {
                Box::new(CounterCall::read(key, now, tiers, *shape, *cost)?)
            }
            Limited::Lease(key, take) => Box::new(LeaseCall::read(key, now, take)?),
        })
    });
    Ok(AllCall::new(calls.collect::<Result<_, Foreign>>()?))
}
