//! When the module may be unloaded: only by the command that loads it.
//!
//! A server that refuses the configuration of MODULE LOADEX unloads the module by itself, and must be able
//! to. Later, a client may still refer to one of the commands (a queued MULTI, a paused call, on Redis 8.2
//! even its last command), and servers crash when that command is gone.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use libc::c_void;
use redis_module::Status;
use redis_module::raw::{self, RedisModuleCtx, RedisModuleEvent};

use super::api::api;
use super::context::Context;
use super::effects::Effects;
use super::field_names;

/// The server's cached clock when the module was loaded. It stands still during a command.
static LOADED_AT: AtomicI64 = AtomicI64::new(0);

/// Whether a server without a cached clock has gone on since it loaded the module.
static TIME_HAS_PASSED: AtomicBool = AtomicBool::new(false);

/// Remembers the moment of loading, as the last thing that is done then: a subscription would outlive a
/// loading that fails.
pub(super) fn remember_loading(ctx: Context<'_>) {
    // SAFETY: the pointer, which 7.0 lacks, is only read; the clock is only read.
    if let Some(cached_microseconds) = unsafe { raw::RedisModule_CachedMicroseconds } {
        // SAFETY: as above.
        LOADED_AT.store(unsafe { cached_microseconds() }, Ordering::Relaxed);
        return;
    }
    TIME_HAS_PASSED.store(false, Ordering::Relaxed);
    let event = RedisModuleEvent {
        id: raw::REDISMODULE_EVENT_CRON_LOOP,
        dataver: 1,
    };
    // SAFETY: the context is that of loading, and the callback only stores a flag. The server drops the
    // subscription with the module.
    unsafe {
        api!(RedisModule_SubscribeToServerEvent(
            ctx.raw,
            event,
            Some(on_cron)
        ));
    }
}

unsafe extern "C" fn on_cron(
    _ctx: *mut RedisModuleCtx,
    _event: RedisModuleEvent,
    _subevent: u64,
    _data: *mut c_void,
) {
    TIME_HAS_PASSED.store(true, Ordering::Relaxed);
}

fn is_still_loading() -> bool {
    // SAFETY: the pointer, which 7.0 lacks, is only read; the clock is only read.
    unsafe {
        match raw::RedisModule_CachedMicroseconds {
            Some(cached_microseconds) => LOADED_AT.load(Ordering::Relaxed) == cached_microseconds(),
            None => !TIME_HAS_PASSED.load(Ordering::Relaxed),
        }
    }
}

/// Refuses to be unloaded, except by the command that loads the module; then it gives back what it keeps
/// outside keys.
pub fn unload(ctx: &redis_module::Context) -> Status {
    if is_still_loading() {
        field_names::forget();
        return Status::Ok;
    }
    let effects = Effects::default();
    // SAFETY: the context is that of unloading, which lasts until this function returns.
    let ctx = unsafe { Context::new(ctx.ctx, &effects) };
    ctx.log_warning(
        "slide stays loaded: a server can crash when a client still refers to its commands. \
         Restart the server, or fail over, to change or remove the module.",
    );
    Status::Err
}
