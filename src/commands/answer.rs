//! From a call that has been read to its reply: what all limiting commands share.

use super::headers::{Header, KeyState, headers};
use crate::limiter::units::{Millis, Timestamp};
use crate::limiter::verdict::{Verdict, Wait};
use crate::limiter::{Call, Foreign};
use crate::server::{Context, Error};
use crate::settings::limits_are_enforced;
use crate::stats::{Calls, STATS};

/// What a limiting command replies.
#[derive(Debug)]
pub struct Answer {
    /// The five integers.
    pub verdict: Verdict,
    headers: Option<Vec<Header>>,
}

/// Decides a call, writes what follows from it and counts it. `force` records it even over a limit.
///
/// # Errors
/// [`Error::OutOfMemory`] if it would record and there is none, and [`Error::Foreign`]; nothing is
/// changed.
#[inline(always)]
pub fn judge_and_record(
    ctx: Context<'_>,
    now: Timestamp,
    force: bool,
    with_headers: bool,
    call: &mut impl Call,
    calls: &Calls,
) -> Result<Answer, Error> {
    let over = call.is_over();
    let record = is_recorded(ctx, over, force, call.needs_memory())?;
    let answer = settle(now, with_headers, call, record);
    // Asked, and passed on as it is: `?` here would copy it.
    if answer.is_ok() {
        call.commit();
        count(calls, over, force && call.records());
        count_fault(call);
    }
    Ok(answer?)
}

/// Whether a call is recorded. A dry run records what enforcing would.
///
/// # Errors
/// [`Error::OutOfMemory`] if recording it needs memory and there is none.
pub fn is_recorded(
    ctx: Context<'_>,
    over: bool,
    force: bool,
    needs_memory: bool,
) -> Result<bool, Error> {
    let record = !over || force;
    if record && needs_memory {
        ctx.ensure_memory()?;
    }
    Ok(record)
}

/// Counts a call; `forced` says whether it was recorded whatever the limits said.
pub fn count(calls: &Calls, over: bool, forced: bool) {
    if over {
        calls.limited.increment();
    } else {
        calls.admitted.increment();
    }
    if over && forced {
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
/// [`Foreign`] when the key holds what the limiter did not write.
#[inline(always)]
pub fn settle(
    now: Timestamp,
    with_headers: bool,
    call: &mut impl Call,
    record: bool,
) -> Result<Answer, Foreign> {
    let verdict = call.settle(record)?;
    let mut answer = Answer {
        verdict,
        headers: None,
    };
    if with_headers {
        let outlooks = call.outlooks()?;
        let key = KeyState { verdict, outlooks };
        answer.headers = Some(headers(now, verdict.over, &[key]));
    }
    Ok(answer)
}

impl Answer {
    /// Replies the five integers, and the headers, if they were asked for.
    #[inline(always)]
    pub fn reply(&self, ctx: Context<'_>) {
        ctx.reply_array(if self.headers.is_some() { 6 } else { 5 });
        reply_integers(ctx, &self.verdict);
        if let Some(headers) = &self.headers {
            reply_headers(ctx, headers);
        }
    }
}

/// The first integer of a reply: whether the caller is to turn the call away.
pub fn limited(over: bool) -> i64 {
    (over && limits_are_enforced()).into()
}

/// Replies the five integers: limited, limit, remaining, retry after and reset after.
#[inline(always)]
pub fn reply_integers(ctx: Context<'_>, verdict: &Verdict) {
    let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let ms = |span: Millis| integer(span.get());
    ctx.reply_integer(limited(verdict.over));
    ctx.reply_integer(integer(verdict.reported.limit.get()));
    ctx.reply_integer(integer(verdict.reported.remaining));
    ctx.reply_integer(match verdict.retry_after {
        Wait::For(span) => ms(span),
        Wait::Never => -1,
    });
    ctx.reply_integer(ms(verdict.reported.reset));
}

/// Replies headers as a map.
pub fn reply_headers(ctx: Context<'_>, headers: &[Header]) {
    ctx.reply_map(headers.len());
    for (name, value) in headers {
        ctx.reply_text(name);
        ctx.reply_text(value);
    }
}
