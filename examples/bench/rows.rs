//! The calls whose CPU time is measured, one definition each.

use crate::host::{ENDLESS, Expected, Module, log_lines};
use crate::row::{Row, Words};

/// Live entries of the longer logs.
pub const LIVE: u64 = 400;

/// Defines rows, and the list of all of them.
macro_rules! rows {
    ($all:ident: $($name:ident = $row:expr;)*) => {
        $(pub static $name: Row = $row;)*
        pub static $all: &[&Row] = &[$(&$name),*];
    };
}

fn log_of_5(words: &Words, key: &str) -> Vec<String> {
    log_lines(key, 5, words.now, 1)
}

fn log_of_400(words: &Words, key: &str) -> Vec<String> {
    log_lines(key, LIVE, words.now, 1)
}

fn full_counter(_: &Words, key: &str) -> Vec<String> {
    vec![format!("SLIDE.COUNTER {key} 5 1d COST 5")]
}

/// A counter's field as the floor reads it.
fn field(_: &Words, key: &str) -> Vec<String> {
    vec![format!("HSET {key} 60000 29500000:1234:0")]
}

rows! { ALL:
    PING = Row::new("PING", "", |_, _| "PING".to_owned()).singly();
    INCR = Row::new("INCR", "int", |_, key| format!("INCR {key}"));
    HINCRBY = Row::new("HINCRBY", "map", |_, key| format!("HINCRBY {key} 60000 1"));
    COUNTER = Row::new("SLIDE.COUNTER", "cnt", |_, key| {
        format!("SLIDE.COUNTER {key} {ENDLESS} 60s")
    });
    FLOOR_COUNTER = Row::new("floor of SLIDE.COUNTER", "cnt", |_, key| {
        format!("FLOOR.COUNTER {key} {ENDLESS} 60s")
    })
    .of(Module::Floor)
    .filled(field);
    RELEASED_COUNTER = Row::new("SLIDE.COUNTER of 0.1.0", "cnt", |_, key| {
        format!("SLIDE.COUNTER {key} {ENDLESS} 60s")
    })
    .of(Module::Released);
    COUNTER_LIMITED = Row::new("SLIDE.COUNTER limited", "ctl", |_, key| {
        format!("SLIDE.COUNTER {key} 5 1d")
    })
    .filled(full_counter)
    .limited();
    FLOOR_COUNTER_LIMITED = Row::new("floor of SLIDE.COUNTER limited", "ctl", |_, key| {
        format!("FLOOR.COUNTERLIMITED {key} 5 1d")
    })
    .of(Module::Floor)
    .filled(field)
    .limited();
    LOG = Row::new("SLIDE.LOG", "log", |_, key| format!("SLIDE.LOG {key} {ENDLESS} 10s")).singly();
    LOG_LIMITED = Row::new("SLIDE.LOG limited", "few", |_, key| format!("SLIDE.LOG {key} 5 1d"))
        .filled(log_of_5)
        .limited();
    RELEASED_LOG_LIMITED = Row::new("SLIDE.LOG limited of 0.1.0", "few", |_, key| {
        format!("SLIDE.LOG {key} 5 1d")
    })
    .of(Module::Released)
    .filled(log_of_5)
    .limited();
    FLOOR_LOG_LIMITED = Row::new("floor of SLIDE.LOG limited", "few", |_, key| {
        format!("FLOOR.LOGLIMITED {key} 5 1d")
    })
    .of(Module::Floor)
    .filled(log_of_5)
    .limited();
    LOG_LIMITED_LONG = Row::new("SLIDE.LOG limited, 400 entries", "all", |_, key| {
        format!("SLIDE.LOG {key} {LIVE} 1d")
    })
    .filled(log_of_400)
    .limited();
    RELEASED_LOG_LIMITED_LONG = Row::new("SLIDE.LOG limited, 400 entries, of 0.1.0", "all", |_, key| {
        format!("SLIDE.LOG {key} {LIVE} 1d")
    })
    .of(Module::Released)
    .filled(log_of_400)
    .limited();
    LEASE = Row::new("SLIDE.LEASE and SLIDE.RELEASE", "lea", |_, key| {
        format!("SLIDE.LEASE {key} 100 1h a-lease\nSLIDE.RELEASE {key} a-lease")
    })
    .needing("SLIDE.LEASE")
    .expecting(Expected::Admitted);
    ZADD_ZREM = Row::new("ZADD and ZREM", "lez", |words, key| {
        format!("ZADD {key} {} @a-lease\nZREM {key} @a-lease", words.now)
    });
    COUNTER_BUCKETS = Row::new("SLIDE.COUNTER BUCKETS 10", "ctb", |_, key| {
        format!("SLIDE.COUNTER {key} {ENDLESS} 60s BUCKETS 10")
    });
    PEEK_COUNTER = Row::new("SLIDE.PEEK of a counter", "cnt", |_, key| {
        format!("SLIDE.PEEK {key} {ENDLESS} 60s")
    });
    PEEK_LOG = Row::new("SLIDE.PEEK of a log, 400 entries", "all", |_, key| {
        format!("SLIDE.PEEK {key} {ENDLESS} 1d")
    });
    COUNTER_HEADERS = Row::new("SLIDE.COUNTER with HEADERS", "cnt", |_, key| {
        format!("SLIDE.COUNTER {key} {ENDLESS} 60s HEADERS")
    })
    .long();
    FIXED_WINDOW = Row::new("fixed window: INCR and PEXPIRE NX", "fix", |_, key| {
        format!("INCR {key}\nPEXPIRE {key} 60000 NX")
    });
    INCREX = Row::new("fixed window: INCREX", "inx", |_, key| {
        format!("INCREX {key} BYINT 1 UBOUND {ENDLESS} PX 60000 ENX")
    })
    .needing("INCREX")
    .expecting(Expected::NoVerdict);
    THROTTLE = Row::new("GCRA: CL.THROTTLE", "cel", |_, key| {
        format!("CL.THROTTLE {key} {ENDLESS} {ENDLESS} 60 1")
    })
    .of(Module::Cell);
    LUA_COUNTER = Row::new("counter in Lua, EVALSHA", "luc", |words, key| {
        format!("{} {key} {ENDLESS} 60000 1", words.scripts.counter)
    })
    .long();
    FUNCTION_COUNTER = Row::new("counter in Lua, FCALL", "fuc", |words, key| {
        format!("{} {key} {ENDLESS} 60000 1", words.scripts.counter_function)
    })
    .long();
    LUA_COUNTER_LIMITED = Row::new("counter in Lua, EVALSHA, limited", "lcl", |words, key| {
        format!("{} {key} 5 86400000 1", words.scripts.counter)
    })
    .filled(|words, key| vec![format!("{} {key} 5 86400000 5", words.scripts.counter)])
    .long()
    .limited();
    LUA_LOG = Row::new("log in Lua, EVALSHA", "lua", |words, key| {
        format!("{} {key} {ENDLESS} 10000 1", words.scripts.log)
    })
    .singly();
    LUA_LOG_LIMITED = Row::new("log in Lua, EVALSHA, limited", "lul", |words, key| {
        format!("{} {key} 5 86400000 1", words.scripts.log)
    })
    .filled(|words, key| vec![format!("{} {key} 5 86400000 5", words.scripts.log)])
    .long()
    .limited();
}
