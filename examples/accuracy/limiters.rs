//! The limiters that are compared, as models in memory. Those of this module are the oracles that
//! its tests use; the fixed window and GCRA are written here.

use redis::Cmd;

use crate::support::oracle::{Call, Counter, Log, shift};
use crate::support::{Reply, slide};

/// Calls that a window may hold.
pub const LIMIT: i64 = 100;

/// The window in ms.
pub const WINDOW: i64 = 60_000;

/// Into how many buckets the finer counters divide a window.
pub const BUCKETS: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    FixedWindow,
    Gcra,
    Classic,
    Buckets,
    Strict,
    Log,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::FixedWindow,
        Kind::Gcra,
        Kind::Classic,
        Kind::Buckets,
        Kind::Strict,
        Kind::Log,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::FixedWindow => "fixed window",
            Kind::Gcra => "GCRA",
            Kind::Classic => "COUNTER",
            Kind::Buckets => "COUNTER BUCKETS 10",
            Kind::Strict => "COUNTER BUCKETS 10 STRICT",
            Kind::Log => "LOG",
        }
    }

    /// Of one key, of which nothing is recorded yet.
    pub fn model(self, key: &str) -> Model {
        let counter = || Counter::new(key.as_bytes());
        match self {
            Kind::FixedWindow => Model::FixedWindow(FixedWindow::default()),
            Kind::Gcra => Model::Gcra(Gcra::default()),
            Kind::Classic => Model::Counter(counter(), 1, false),
            Kind::Buckets => Model::Counter(counter(), BUCKETS, false),
            Kind::Strict => Model::Counter(counter(), BUCKETS, true),
            Kind::Log => Model::Log(Log::new()),
        }
    }

    /// How much earlier than the clock's minutes the windows of a key begin, in ms.
    pub fn shift(self, key: &str) -> i64 {
        match self {
            Kind::FixedWindow | Kind::Gcra | Kind::Log => 0,
            Kind::Classic | Kind::Buckets | Kind::Strict => {
                shift(key.as_bytes(), WINDOW.unsigned_abs()).cast_signed()
            }
        }
    }

    /// The real command, where this module has it.
    pub fn command(self, key: &str) -> Option<Cmd> {
        let buckets = BUCKETS.to_string();
        let (name, options): (&str, &[&str]) = match self {
            Kind::FixedWindow | Kind::Gcra => return None,
            Kind::Classic => ("SLIDE.COUNTER", &[]),
            Kind::Buckets => ("SLIDE.COUNTER", &["BUCKETS", &buckets]),
            Kind::Strict => ("SLIDE.COUNTER", &["BUCKETS", &buckets, "STRICT"]),
            Kind::Log => ("SLIDE.LOG", &[]),
        };
        let window = format!("{WINDOW}ms");
        let tiers = [(LIMIT.unsigned_abs(), window.as_str())];
        Some(slide(name, key, &tiers, options))
    }
}

/// A limiter and what it has recorded for one key.
#[derive(Debug, Clone)]
pub enum Model {
    FixedWindow(FixedWindow),
    Gcra(Gcra),
    /// With its number of buckets, and whether it is strict.
    Counter(Counter, u64, bool),
    Log(Log),
}

impl Model {
    pub fn call(&mut self, now: i64) -> Reply {
        let call = Call {
            tiers: &[(LIMIT.unsigned_abs(), WINDOW.unsigned_abs())],
            cost: 1,
            force: false,
        };
        match self {
            Model::FixedWindow(window) => window.call(now),
            Model::Gcra(gcra) => gcra.call(now),
            Model::Counter(counter, buckets, strict) => counter.call(now, call, *buckets, *strict),
            Model::Log(log) => log.call(now, call),
        }
    }
}

/// A count for each window of the clock: "Pattern: Rate limiter 1" of Redis's page on INCR,
/// <https://redis.io/docs/latest/commands/incr/>.
#[derive(Debug, Clone, Default)]
pub struct FixedWindow {
    window: i64,
    count: i64,
}

impl FixedWindow {
    fn call(&mut self, now: i64) -> Reply {
        let window = now / WINDOW;
        if window != self.window {
            *self = FixedWindow { window, count: 0 };
        }
        let limited = self.count >= LIMIT;
        self.count += i64::from(!limited);
        let boundary = (window + 1) * WINDOW - now;
        Reply {
            limited: i64::from(limited),
            limit: LIMIT,
            remaining: LIMIT - self.count,
            retry_after: if self.count < LIMIT { 0 } else { boundary },
            reset_after: boundary,
        }
    }
}

/// The generic cell rate algorithm, with the limit as the burst too, as in
/// `CL.THROTTLE key <limit - 1> <limit> <window>`: each call takes a `limit`-th of the window, and the
/// theoretical arrival time (TAT) of the next call may run ahead of the clock by one window. The
/// formula is that of redis-cell, `RateLimiter::rate_limit` in
/// <https://github.com/brandur/redis-cell/blob/master/src/cell/mod.rs>.
#[derive(Debug, Clone, Default)]
pub struct Gcra {
    /// In `limit`-ths of a ms, so that nothing is rounded.
    tat: i64,
}

impl Gcra {
    fn call(&mut self, now: i64) -> Reply {
        const EMISSION_INTERVAL: i64 = WINDOW;
        const TOLERANCE: i64 = WINDOW * LIMIT;
        let ahead = |tat: i64| (tat - now * LIMIT).max(0);
        let limited = ahead(self.tat) + EMISSION_INTERVAL > TOLERANCE;
        if !limited {
            self.tat = now * LIMIT + ahead(self.tat) + EMISSION_INTERVAL;
        }
        let used = ahead(self.tat);
        let over = (used + EMISSION_INTERVAL - TOLERANCE).max(0);
        let round_up = |fine: i64| (fine + LIMIT - 1) / LIMIT;
        Reply {
            limited: i64::from(limited),
            limit: LIMIT,
            remaining: (TOLERANCE - used) / EMISSION_INTERVAL,
            retry_after: round_up(over),
            reset_after: round_up(used),
        }
    }
}
