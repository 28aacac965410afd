//! Logs in their steady state, in which with every call an entry expires: CPU time a call, pipelined.
//!
//! The servers' clocks are set. They go on by ticks, at each of which half of the keys, drawn by chance,
//! get a call. So every run plays the same traffic, however fast the machine is.

use crate::host::{ENDLESS, Expected, Host, Module, keys, scrambled};
use crate::results::Results;
use crate::row::Words;
use crate::support::clock::START;
use crate::support::command;
use crate::wire::Batch;

/// From one tick to the next.
const TICK_MS: u64 = 50;

/// Different sets of keys that a tick may call: halves, each with the other half.
const HALVES: u64 = 32;

/// Calls that one turn has, about.
const CALLS: usize = 20_000;

const KEYS: usize = 500;

/// Fewer keys for calls of cost 100 by Lua: one takes as long as a hundred others.
const LONG_KEYS: usize = 60;

/// Live calls of the logs.
pub const SIZES: [u64; 4] = [100, 400, 1_000, 10_000];

/// The size at which the rest is measured, and the smaller one of calls of cost 100.
pub const SIZE: u64 = 400;
pub const SIZE_COST_100: u64 = 100;

/// A call on a log.
pub struct Steady {
    /// What results and tables call it.
    pub name: &'static str,
    module: Module,
    /// The sizes at which it is measured.
    pub sizes: &'static [u64],
    keys: usize,
    /// The call on a key with a window of so many ms.
    call: fn(&Words, &str, u64) -> String,
}

/// Defines what is measured, and the list of all of it.
macro_rules! steady {
    ($all:ident: $($name:ident = $call:expr;)*) => {
        $(pub static $name: Steady = $call;)*
        pub static $all: &[&Steady] = &[$(&$name),*];
    };
}

steady! { ALL:
    LOG = Steady::new("SLIDE.LOG", &SIZES, |_, key, window| {
        format!("SLIDE.LOG {key} {ENDLESS} {window}ms")
    });
    RELEASED_LOG = Steady::new("SLIDE.LOG of 0.1.0", &SIZES, LOG.call).of(Module::Released);
    FLOOR_LOG = Steady::new("floor of SLIDE.LOG", &SIZES, |_, key, window| {
        format!("FLOOR.LOG {key} {ENDLESS} {window}ms")
    })
    .of(Module::Floor);
    LUA_LOG = Steady::new("log in Lua, EVALSHA", &[SIZE], |words, key, window| {
        format!("{} {key} {ENDLESS} {window} 1", words.scripts.log)
    });
    FUNCTION_LOG = Steady::new("log in Lua, FCALL", &[SIZE], |words, key, window| {
        format!("{} {key} {ENDLESS} {window} 1", words.scripts.log_function)
    });
    ALL_OF_BOTH = Steady::new("SLIDE.ALL of a log and a counter", &[SIZE], |_, key, window| {
        format!("SLIDE.ALL 2 {key} c{key} LOG {ENDLESS} {window}ms COUNTER {ENDLESS} 60s")
    });
    LOG_COST_100 = Steady::new("SLIDE.LOG COST 100", &[SIZE_COST_100], |_, key, window| {
        format!("SLIDE.LOG {key} {ENDLESS} {window}ms COST 100")
    });
    LUA_COST_100 = Steady::new("log in Lua, cost 100", &[SIZE_COST_100], |words, key, window| {
        format!("{} {key} {ENDLESS} {window} 100", words.scripts.log)
    })
    .on(LONG_KEYS);
    LUA_AT_ONCE = Steady::new("log in Lua, cost 100, one ZADD", &[SIZE_COST_100], |words, key, window| {
        format!("{} {key} {ENDLESS} {window} 100", words.scripts.log_at_once)
    })
    .on(LONG_KEYS);
}

impl Steady {
    const fn new(
        name: &'static str,
        sizes: &'static [u64],
        call: fn(&Words, &str, u64) -> String,
    ) -> Self {
        Self {
            name,
            module: Module::Slide,
            sizes,
            keys: KEYS,
            call,
        }
    }

    const fn of(mut self, module: Module) -> Self {
        self.module = module;
        self
    }

    const fn on(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// The name of its figure at a size.
    pub fn at(&self, size: u64) -> String {
        format!("{}, {size} live", self.name)
    }
}

/// A call on a running server of its own.
struct Turn<'a> {
    steady: &'a Steady,
    host: Host,
    halves: Vec<Batch>,
    tick: u64,
    least: f64,
}

impl<'a> Turn<'a> {
    fn start(steady: &'a Steady, size: u64) -> Self {
        let mut host = Host::with_clock(steady.module.setup());
        let words = Words::of(&mut host);
        let keys = keys("log", steady.keys);
        let window = 2 * size * TICK_MS;
        let half = |number: u64| {
            let chosen = keys.iter().zip(0_u64..).filter(move |(_, index)| {
                let chance = scrambled((number / 2) << 32 | index) % 2;
                chance == number % 2
            });
            chosen
                .map(|(key, _)| (steady.call)(&words, key, window))
                .collect()
        };
        let halves = (0..HALVES).map(half).collect();
        Self {
            steady,
            host,
            halves,
            tick: 0,
            least: f64::INFINITY,
        }
    }

    /// Plays so many ticks, and says how many calls that were.
    fn play(&mut self, ticks: u64) -> usize {
        let mut calls = 0;
        for _ in 0..ticks {
            self.tick += 1;
            let now = START + (self.tick * TICK_MS).cast_signed();
            self.host.clock().stop(now);
            let half = &self.halves[(scrambled(self.tick) % HALVES) as usize];
            self.host.run_expecting(half, Expected::Admitted);
            calls += half.len();
        }
        calls
    }

    /// CPU time a call of a turn.
    fn cost(&mut self) -> f64 {
        let ticks = (2 * CALLS / KEYS) as u64;
        let before = self.host.cpu();
        let calls = self.play(ticks);
        (self.host.cpu() - before) / calls as f64
    }

    /// Takes over the logs of another server, for commands that leave their form as it is.
    fn copy(&mut self, other: &mut Host) {
        for key in keys("log", self.steady.keys) {
            let value: Vec<u8> = command("DUMP", &[&key])
                .query(&mut other.con)
                .expect("DUMP of a log");
            let mut restore = command("RESTORE", &[&key, "0"]);
            restore.arg(value).arg("REPLACE");
            restore
                .query::<()>(&mut self.host.con)
                .expect("RESTORE of a log");
        }
    }
}

/// Measures everything that has this size, in so many rounds; keeps the least of each.
pub fn measure(size: u64, rounds: usize, results: &mut Results) {
    let measured = ALL.iter().filter(|steady| steady.sizes.contains(&size));
    let here = measured.filter(|steady| steady.module.is_there());
    let mut turns: Vec<Turn> = here.map(|steady| Turn::start(steady, size)).collect();
    // Once to be filled, and a half to be in the steady state for a while.
    let ticks = 3 * size;
    for place in 0..turns.len() {
        if turns[place].steady.module == Module::Floor {
            let (before, floor) = turns.split_at_mut(place);
            let log = before.iter_mut().find(|turn| turn.steady.name == LOG.name);
            floor[0].copy(&mut log.expect("the log comes first").host);
            floor[0].tick = ticks;
        } else {
            turns[place].play(ticks);
        }
    }
    for _ in 0..rounds {
        for turn in &mut turns {
            turn.least = turn.least.min(turn.cost());
        }
    }
    for turn in turns {
        results.set(turn.steady.at(size), turn.least);
    }
}
