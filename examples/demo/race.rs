//! Both limiters on the same calls, and a judge of what passed.

use std::collections::VecDeque;
use std::time::Duration;

use redis::{Connection, ErrorKind, RedisError, RedisResult, Value, from_redis_value, pipe};

/// Calls that a window may hold.
pub const LIMIT: usize = 20;

/// The window.
pub const WINDOW: Duration = Duration::from_secs(2);

/// When a call was answered, by the server's clock: between these two instants, in ms.
#[derive(Debug, Clone, Copy)]
struct Answered {
    earliest: u128,
    latest: u128,
}

/// One limiter, and what passed it.
#[derive(Debug)]
pub struct Limiter {
    pub name: &'static str,
    /// How many calls passed in each tick.
    pub passed: Vec<u64>,
    /// The most calls that passed in any window.
    pub worst: usize,
    /// How many calls had passed in the window before the end of each tick.
    pub in_window: Vec<usize>,
    recent: VecDeque<Answered>,
}

/// Two limiters, and the calls that were sent to both.
pub struct Race {
    pub fixed: Limiter,
    pub log: Limiter,
    /// How many calls were sent in each tick.
    pub sent: Vec<u64>,
    connection: Connection,
}

impl Limiter {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            passed: Vec::new(),
            worst: 0,
            in_window: Vec::new(),
            recent: VecDeque::new(),
        }
    }

    fn pass(&mut self, answered: Answered) {
        self.recent.push_back(answered);
        self.forget_before(answered.latest);
        self.worst = self.worst.max(self.recent.len());
    }

    /// Forgets the calls that may not be in the window that ends at an instant. Only calls that are in
    /// one window for certain are counted together.
    fn forget_before(&mut self, instant: u128) {
        let too_old = |call: &Answered| call.earliest + WINDOW.as_millis() <= instant;
        while self.recent.front().is_some_and(too_old) {
            self.recent.pop_front();
        }
    }
}

impl Race {
    pub fn new(connection: Connection) -> Self {
        Self {
            fixed: Limiter::new("fixed window (INCR, PEXPIRE)"),
            log: Limiter::new("SLIDE.LOG"),
            sent: Vec::new(),
            connection,
        }
    }

    /// Sends the calls of one tick to both limiters.
    pub fn send(&mut self, calls: u64) -> RedisResult<()> {
        self.sent.push(calls);
        for limiter in [&mut self.fixed, &mut self.log] {
            limiter.passed.push(0);
        }
        for _ in 0..calls {
            let (answered, by_fixed, by_log) = self.ask()?;
            for (limiter, admits) in [(&mut self.fixed, by_fixed), (&mut self.log, by_log)] {
                if admits {
                    limiter.pass(answered);
                    if let Some(passed) = limiter.passed.last_mut() {
                        *passed += 1;
                    }
                }
            }
        }
        let time = redis::cmd("TIME").query(&mut self.connection)?;
        for limiter in [&mut self.fixed, &mut self.log] {
            limiter.forget_before(millis(time));
            limiter.in_window.push(limiter.recent.len());
        }
        Ok(())
    }

    /// Asks both limiters about one call: when they answered, and whether each admits it.
    fn ask(&mut self) -> RedisResult<(Answered, bool, bool)> {
        let window = WINDOW.as_millis().to_string();
        let mut transaction = pipe();
        transaction.atomic().cmd("TIME");
        transaction.cmd("INCR").arg("fixed");
        // Begins the window with its first call.
        let expire = transaction.cmd("PEXPIRE").arg("fixed").arg(&window);
        expire.arg("NX").ignore();
        transaction
            .cmd("SLIDE.LOG")
            .arg("log")
            .arg(LIMIT)
            .arg(format!("{window}ms"));
        transaction.cmd("TIME");
        let replies: (_, usize, Vec<Value>, _) = transaction.query(&mut self.connection)?;
        let (before, count, log, after) = replies;
        let limited = log
            .into_iter()
            .next()
            .ok_or_else(|| RedisError::from((ErrorKind::UnexpectedReturnType, "an empty reply")))?;
        let answered = Answered {
            earliest: millis(before),
            latest: millis(after),
        };
        Ok((
            answered,
            count <= LIMIT,
            from_redis_value::<u8>(limited)? == 0,
        ))
    }
}

/// The reply to TIME in ms.
fn millis((seconds, micros): (u64, u32)) -> u128 {
    (Duration::from_secs(seconds) + Duration::from_micros(micros.into())).as_millis()
}
