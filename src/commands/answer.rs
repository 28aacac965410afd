//! From a call that has been read to its reply: what all limiting commands share.

use super::arguments::{Options, Request};
use super::headers::{Header, headers};
use crate::limiter::units::{Cost, Millis, Timestamp};
use crate::limiter::verdict::{Verdict, Wait};
use crate::limiter::{Call, Foreign};
use crate::server::{Context, Error, Word};
use crate::settings::limits_are_enforced;
use crate::stats::{Calls, STATS};

/// What the caller is told.
#[derive(Debug)]
pub struct Answer {
    /// Whether the call was over a limit.
    limited: bool,
    /// Whether the caller is to turn the call away.
    refused: bool,
    limit: u64,
    remaining: u64,
    retry_after: Wait,
    reset_after: Millis,
    headers: Option<Vec<Header>>,
}

/// Decides a call, writes what follows from it and counts it.
///
/// # Errors
/// [`Error::OutOfMemory`] if it would record and there is none, and [`Error::Foreign`]; nothing is
/// changed.
#[inline(always)]
pub fn carry_out(
    ctx: Context<'_>,
    now: Timestamp,
    request: &Request,
    call: &mut impl Call,
    calls: &Calls,
) -> Result<Answer, Error> {
    let over = call.is_over();
    let record = is_recorded(ctx, over, &request.options)?;
    let answer = settle(now, request, call, record);
    if answer.is_ok() {
        call.commit();
        count(calls, over, &request.options);
        count_fault(call);
    }
    answer
}

/// Whether a call is recorded that is over a limit or not.
///
/// # Errors
/// [`Error::OutOfMemory`] if there is none to record it.
pub fn is_recorded(ctx: Context<'_>, over: bool, options: &Options) -> Result<bool, Error> {
    let record = !over || options.force || !limits_are_enforced();
    if record && options.cost().get() > 0 {
        ctx.ensure_memory()?;
    }
    Ok(record)
}

/// Counts a call that was over a limit or not.
pub fn count(calls: &Calls, over: bool, options: &Options) {
    if over {
        calls.limited.increment();
    } else {
        calls.admitted.increment();
    }
    if over && options.force && options.cost().get() > 0 {
        STATS.forced.increment();
    }
}

/// Counts the clock fault that one key had, if any.
pub fn count_fault(call: &dyn Call) {
    if call.is_healed() {
        STATS.clock_faults.increment();
    }
}

/// Answers a call without writing, as if it had been recorded if `record`.
///
/// # Errors
/// [`Error::Foreign`] when the key holds what the limiter did not write.
#[inline(always)]
pub fn settle(
    now: Timestamp,
    request: &Request,
    call: &mut impl Call,
    record: bool,
) -> Result<Answer, Error> {
    let verdict = call.settle(record)?;
    let mut answer = Answer::new(verdict);
    if request.options.headers {
        let next_unit = next_unit(call, verdict)?;
        let headers = headers(verdict, answer.refused, &request.tiers, now, next_unit);
        answer.headers = Some(headers);
    }
    Ok(answer)
}

/// Until one unit more than remains would fit the reported tier, where something is used of it.
fn next_unit(call: &mut impl Call, verdict: Verdict) -> Result<Option<Millis>, Foreign> {
    let reported = verdict.reported;
    let Some(cost) = Cost::new(reported.remaining + 1) else {
        return Ok(None);
    };
    if reported.reset == Millis::ZERO {
        return Ok(None);
    }
    Ok(match call.wait_for(reported.tier, cost)? {
        Wait::For(wait) => Some(wait),
        Wait::Never => None,
    })
}

impl Answer {
    /// What a caller is told of this verdict, without headers.
    pub fn new(verdict: Verdict) -> Self {
        Self {
            limited: verdict.limited,
            refused: verdict.limited && limits_are_enforced(),
            limit: verdict.reported.tier.limit.get(),
            remaining: verdict.reported.remaining,
            retry_after: verdict.retry_after,
            reset_after: verdict.reported.reset,
            headers: None,
        }
    }

    /// Tells subscribers if the call on the key `name`, which is closed, was over a limit.
    pub fn notify(&self, ctx: Context<'_>, name: Word<'_>) {
        if self.limited {
            ctx.notify_limited(name);
        }
    }

    /// Replies the five integers: limited, limit, remaining, retry after and reset after; and the
    /// headers, if they were asked for.
    #[inline(always)]
    pub fn reply(&self, ctx: Context<'_>) {
        let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        ctx.reply_array(if self.headers.is_some() { 6 } else { 5 });
        ctx.reply_integer(self.refused.into());
        ctx.reply_integer(integer(self.limit));
        ctx.reply_integer(integer(self.remaining));
        ctx.reply_integer(match self.retry_after {
            Wait::For(span) => integer(span.get()),
            Wait::Never => -1,
        });
        ctx.reply_integer(integer(self.reset_after.get()));
        if let Some(headers) = &self.headers {
            ctx.reply_map(headers.len());
            for (name, value) in headers {
                ctx.reply_text(name);
                ctx.reply_text(value);
            }
        }
    }
}
