//! What the server is told of a command, and the way into it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::c_int;
use redis_module::raw::{RedisModuleCtx, RedisModuleString};

use super::api::OK;
use super::args::Args;
use super::context::Context;
use super::error::Error;
use super::manual::Manual;
use crate::stats::STATS;

/// A command of the module.
pub trait Command {
    /// What the server is told of it.
    const MANUAL: Manual;

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
pub(super) unsafe extern "C" fn enter<C: Command>(
    ctx: *mut RedisModuleCtx,
    words: *mut *mut RedisModuleString,
    count: c_int,
) -> c_int {
    // SAFETY: the server's context and arguments last until this function returns, and nothing
    // made of them is kept.
    let (ctx, args) = unsafe { (Context::new(ctx), Args::new(words, count)) };
    // A key that a panic leaves open is closed while unwinding.
    let outcome = catch_unwind(AssertUnwindSafe(|| C::run(ctx, args)));
    let error = match outcome {
        Ok(Ok(())) => return OK,
        Ok(Err(error)) => error,
        Err(payload) => {
            STATS.panics.increment();
            ctx.log_warning(&format!(
                "slide: internal error in {}: {}",
                C::MANUAL.name.to_string_lossy(),
                message(payload.as_ref())
            ));
            Error::Panic
        }
    };
    STATS.errors.increment();
    ctx.reply_error(&error);
    OK
}

/// What a panic said.
fn message(payload: &(dyn Any + Send)) -> &str {
    match payload.downcast_ref::<&str>() {
        Some(message) => message,
        None => payload.downcast_ref::<String>().map_or("", String::as_str),
    }
}
