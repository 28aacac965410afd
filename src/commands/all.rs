//! `SLIDE.ALL`: several keys, recorded in all or in none.

use super::answer::{Answer, count, count_fault, is_recorded};
use super::arguments::{self, Clause, Limiter};
use super::{BUCKETS, COST, FORCE, STRICT, TIERS};
use crate::limiter::all::AllCall;
use crate::limiter::counter::{CounterCall, Shape};
use crate::limiter::log::LogCall;
use crate::limiter::tier::Tiers;
use crate::limiter::units::{Cost, Timestamp};
use crate::limiter::{Call, Foreign};
use crate::server::{
    Args, Argument, Command, Context, CounterKey, Error, Key, KeyUse, Keys, Kind, LogKey, Manual,
};
use crate::settings::limits_are_enforced;
use crate::stats::STATS;

/// `SLIDE.ALL numkeys key [key ...] <LOG|COUNTER> limit window [limit window ...] [BUCKETS n]
/// [STRICT] [<LOG|COUNTER> ...] [COST n] [FORCE]`.
#[derive(Debug)]
pub struct All;

const CLAUSE: Argument = Argument::required(
    c"clause",
    Kind::Block(&[
        Argument::required(
            c"limiter",
            Kind::OneOf(&[
                Argument::token(c"log", c"LOG"),
                Argument::token(c"counter", c"COUNTER"),
            ]),
        ),
        TIERS,
        BUCKETS,
        STRICT,
    ]),
)
.repeated();

impl Command for All {
    const MANUAL: Manual = Manual {
        name: c"slide.all",
        summary: c"Admits or limits a call by the limits of several keys, and records it in all of them or in none.",
        complexity: c"The sum of what SLIDE.LOG and SLIDE.COUNTER take for each key.",
        since: c"0.1.0",
        flags: c"write fast getkeys-api",
        categories: c"slide write fast",
        arity: -6,
        keys: Keys::Counted(KeyUse::Update),
        arguments: &[
            Argument::required(c"numkeys", Kind::Integer),
            Argument::required(c"key", Kind::Key).repeated(),
            CLAUSE,
            COST,
            FORCE,
        ],
    };

    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error> {
        let request = arguments::parse_all(args.from(1))?;
        let names = args.words(2, request.clauses.len());
        let (over, answers) = {
            let open = names.clone().map(|name| Key::open(ctx, name));
            let mut keys = open.collect::<Vec<_>>();
            let mut limiters = limiters(&mut keys, &request.clauses)?;
            let mut call = read(ctx.now(), &mut limiters, request.options.cost())?;
            let over = call.is_over();
            let record = is_recorded(ctx, over, &request.options)?;
            let answers = call.settle(record)?;
            call.commit();
            count(&STATS.all, over, &request.options);
            call.each().for_each(count_fault);
            (
                over,
                answers.into_iter().map(Answer::new).collect::<Vec<_>>(),
            )
        };
        for (name, answer) in names.zip(&answers) {
            answer.notify(ctx, name);
        }
        ctx.reply_array(1 + answers.len());
        ctx.reply_integer((over && limits_are_enforced()).into());
        for answer in &answers {
            answer.reply(ctx);
        }
        Ok(())
    }
}

/// An open key of either kind, with what a clause says of it.
enum Limited<'k, 'a> {
    Log(LogKey<'k, 'a>, &'k Tiers),
    Counter(CounterKey<'k, 'a>, &'k Tiers, Shape),
}

fn limiters<'k, 'a>(
    keys: &'k mut [Key<'a>],
    clauses: &'k [Clause],
) -> Result<Vec<Limited<'k, 'a>>, Error> {
    let limiters = keys.iter_mut().zip(clauses).map(|(key, clause)| {
        Ok(match clause.limiter {
            Limiter::Log => Limited::Log(LogKey::new(key)?, &clause.tiers),
            Limiter::Counter(shape) => {
                Limited::Counter(CounterKey::new(key)?, &clause.tiers, shape)
            }
        })
    });
    limiters.collect()
}

fn read<'a>(
    now: Timestamp,
    limiters: &'a mut [Limited<'_, '_>],
    cost: Cost,
) -> Result<AllCall<'a>, Foreign> {
    let calls = limiters.iter_mut().map(|limiter| {
        Ok(match limiter {
            Limited::Log(key, tiers) => {
                Box::new(LogCall::read(key, now, tiers, cost)?) as Box<dyn Call>
            }
            Limited::Counter(key, tiers, shape) => {
                Box::new(CounterCall::read(key, now, tiers, *shape, cost)?)
            }
        })
    });
    Ok(AllCall::new(calls.collect::<Result<_, Foreign>>()?))
}
