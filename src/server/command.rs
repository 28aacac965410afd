//! What the server is told of a command, and the way into it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::c_int;
use redis_module::raw::{RedisModuleCtx, RedisModuleString};

use super::api::OK;
use super::args::Args;
use super::context::Context;
use super::effects::Effects;
use super::error::Error;
use super::spec::{CommandSpec, Keys};
use crate::limiter::decimal;
use crate::stats::STATS;

/// A command of the module.
pub trait Command {
    /// What the server is told of it.
    const SPEC: CommandSpec;

    /// Carries out a call and replies to it.
    ///
    /// # Errors
    /// What the caller is told instead of a reply; nothing was changed and nothing replied.
    fn run(ctx: Context<'_>, args: Args<'_>) -> Result<(), Error>;
}

/// The function that the server calls for `C`.
///
/// # Safety
/// Called by the server, with a command's context and arguments.
pub(super) unsafe extern "C" fn trampoline<C: Command>(
    ctx: *mut RedisModuleCtx,
    first: *mut *mut RedisModuleString,
    count: c_int,
) -> c_int {
    let effects = Effects::default();
    let raw = ctx;
    // SAFETY: the server's context and arguments last until this function returns, and nothing
    // made of them is kept.
    let (ctx, args) = unsafe { (Context::new(raw, &effects), Args::new(first, count)) };
    if matches!(C::SPEC.keys, Keys::Counted(_)) && ctx.wants_keys() {
        report_counted_keys(ctx, args);
        return OK;
    }
    let outcome = catching_panics(|| C::run(ctx, args));
    // SAFETY: the context is the running command's, the names are its arguments, and it has closed its
    // keys: those that a panic left open were closed while unwinding.
    unsafe { effects.tell(raw) };
    let error = match outcome {
        Ok(Ok(())) => return OK,
        Ok(Err(error)) => error,
        Err(panic) => {
            STATS.panics.increment();
            let name = C::SPEC.name.to_string_lossy();
            ctx.log_warning(&format!("{name}: {panic}"));
            Error::Panic
        }
    };
    STATS.errors.increment();
    ctx.reply_error(&error);
    OK
}

/// Reports key positions for a getkeys request; none if numkeys exceeds the arguments.
fn report_counted_keys(ctx: Context<'_>, args: Args<'_>) {
    let numkeys = args.from(1).next().and_then(decimal::parse);
    let numkeys = numkeys
        .and_then(|keys| usize::try_from(keys).ok())
        .unwrap_or(0);
    if numkeys <= args.count_from(2) {
        (2..)
            .take(numkeys)
            .for_each(|position| ctx.report_key(position));
    }
}

/// Runs `run`, which must not take the server down.
///
/// # Errors
/// What a panic in it said, as a sentence for the log.
pub(super) fn catching_panics<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|payload| format!("internal error of slide: {}", message(payload.as_ref())))
}

/// What a panic said.
fn message(payload: &(dyn Any + Send)) -> &str {
    match payload.downcast_ref::<&str>() {
        Some(message) => message,
        None => payload
            .downcast_ref::<String>()
            .map_or("unknown", String::as_str),
    }
}

#[cfg(test)]
mod tests {
    use super::catching_panics;

    #[test]
    fn a_panic_becomes_a_sentence() {
        assert_eq!(catching_panics(|| 5), Ok(5));
        let sentence = |why: &str| Err(format!("internal error of slide: {why}"));
        assert_eq!(
            catching_panics(|| panic!("literal")),
            sentence("literal") as Result<(), _>
        );
        let number = 7;
        let formatted = catching_panics(|| panic!("formatted {number}"));
        assert_eq!(formatted, sentence("formatted 7") as Result<(), _>);
        let other = catching_panics(|| std::panic::panic_any(7));
        assert_eq!(other, sentence("unknown") as Result<(), _>);
    }
}
