//! Sliding-window rate limiting as native Redis and Valkey commands.
//!
//! `SLIDE.LOG` is exact and keeps a log in a sorted set; `SLIDE.COUNTER` is approximate and keeps a
//! few numbers in a hash; `SLIDE.LEASE` limits how many work at once. This file tells the server what the module has, and nothing else:
//!
//! - [`commands`]: one file a command, each parses, opens, decides, writes and replies;
//! - [`limiter`]: the algorithms, pure;
//! - [`server`]: the boundary to the server, the only place with `unsafe`.

mod commands;
mod limiter;
mod server;
mod settings;
mod stats;

use redis_module::{Context, InfoContext, RedisResult, RedisString, Status};
use redis_module_macros::info_command_handler;

use server::{Loading, unload};
use settings::ENFORCE;
use stats::STATS;

/// The version that MODULE LIST shows: major * 10000 + minor * 100 + patch.
const VERSION: i32 = number(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
    + number(env!("CARGO_PKG_VERSION_MINOR")) * 100
    + number(env!("CARGO_PKG_VERSION_PATCH"));

const fn number(digits: &str) -> i32 {
    match i32::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version is three numbers"),
    }
}

/// The server's allocator, so that the module's memory counts as the server's.
#[cfg(all(not(test), not(target_env = "musl")))]
type Allocator = redis_module::alloc::RedisAlloc;
#[cfg(all(not(test), not(target_env = "musl")))]
const ALLOCATOR: Allocator = redis_module::alloc::RedisAlloc;
/// The same, aligned: servers built against musl may align by 8.
#[cfg(all(not(test), target_env = "musl"))]
type Allocator = server::AlignedAlloc;
#[cfg(all(not(test), target_env = "musl"))]
const ALLOCATOR: Allocator = server::AlignedAlloc;
/// Outside a server there is no allocator of the server's.
#[cfg(test)]
type Allocator = std::alloc::System;
#[cfg(test)]
const ALLOCATOR: Allocator = std::alloc::System;

// The macro writes entry points without documentation, as functions that only the server sees.
mod entry_points {
    use super::{ALLOCATOR, Allocator, VERSION, init, unload};

    redis_module::redis_module! {
        name: "slide",
        version: VERSION,
        allocator: (Allocator, ALLOCATOR),
        data_types: [],
        init: init,
        deinit: unload,
    }
}

fn init(ctx: &Context, args: &[RedisString]) -> Status {
    server::load(ctx, args, register)
}

fn register(loading: Loading<'_>) -> Result<(), String> {
    loading.category(c"slide");
    loading.command::<commands::Log>()?;
    loading.command::<commands::Counter>()?;
    loading.command::<commands::Lease>()?;
    loading.command::<commands::Peek>()?;
    loading.command::<commands::Refund>()?;
    loading.command::<commands::Release>()?;
    loading.command::<commands::All>()?;
    #[cfg(feature = "test-panic")]
    loading.command::<commands::Panic>()?;
    loading.switch("enforce", &ENFORCE)
}

#[info_command_handler]
fn info(ctx: &InfoContext, _for_crash_report: bool) -> RedisResult<()> {
    let mut section = ctx.builder().add_section("stats");
    for (name, count) in STATS.named() {
        section = section.field(&name, count.to_string())?;
    }
    section.build_section()?.build_info()?;
    Ok(())
}
