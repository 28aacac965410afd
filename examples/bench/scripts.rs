//! What teams run today: Lua scripts that take the same steps as the module's commands.

use redis::Connection;

use crate::support::run;

/// An exact log: trim, count, add a member for each unit, expire.
const LOG: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local used = redis.call('ZCARD', KEYS[1])
if used + cost > limit then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  local retry_after = oldest[2] and oldest[2] + window - now or -1
  return {1, limit, math.max(0, limit - used), retry_after}
end
for unit = 1, cost do
  redis.call('ZADD', KEYS[1], now, time[1] .. ':' .. time[2] .. ':' .. unit)
end
redis.call('PEXPIRE', KEYS[1], window)
return {0, limit, limit - used - cost, 0}
";

/// The same, with all members in one ZADD.
const LOG_AT_ONCE: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local used = redis.call('ZCARD', KEYS[1])
if used + cost > limit then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  local retry_after = oldest[2] and oldest[2] + window - now or -1
  return {1, limit, math.max(0, limit - used), retry_after}
end
local members = {}
for unit = 1, cost do
  members[2 * unit - 1] = now
  members[2 * unit] = time[1] .. ':' .. time[2] .. ':' .. unit
end
redis.call('ZADD', KEYS[1], unpack(members))
redis.call('PEXPIRE', KEYS[1], window)
return {0, limit, limit - used - cost, 0}
";

/// The classic counter: the current window and the weighted previous one, as two fields of a hash.
const COUNTER: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local index, elapsed = math.floor(now / window), now % window
local counts = redis.call('HMGET', KEYS[1], index, index - 1)
local used = tonumber(counts[1] or 0) + tonumber(counts[2] or 0) * (window - elapsed) / window
if used + cost > limit then
  return {1, limit, math.max(0, math.floor(limit - used)), window - elapsed}
end
redis.call('HINCRBY', KEYS[1], index, cost)
redis.call('HDEL', KEYS[1], index - 2)
redis.call('PEXPIRE', KEYS[1], 2 * window)
return {0, limit, math.floor(limit - used - cost), 0}
";

/// The scripts as a server knows them: each as the words of a call up to the key.
#[derive(Debug)]
pub struct Scripts {
    pub log: String,
    pub log_at_once: String,
    pub counter: String,
    /// The same as functions of a library.
    pub log_function: String,
    pub counter_function: String,
}

impl Scripts {
    pub fn load(con: &mut Connection) -> Self {
        let library = format!(
            "#!lua name=limits\n{}{}",
            function("log", LOG),
            function("counter", COUNTER)
        );
        run::<String>(con, "FUNCTION", &["LOAD", "REPLACE", &library]);
        let mut load = |script: &str| {
            let digest: String = run(con, "SCRIPT", &["LOAD", script]);
            format!("EVALSHA {digest} 1")
        };
        Self {
            log: load(LOG),
            log_at_once: load(LOG_AT_ONCE),
            counter: load(COUNTER),
            log_function: "FCALL log 1".to_owned(),
            counter_function: "FCALL counter 1".to_owned(),
        }
    }
}

/// A script as a function of a library.
fn function(name: &str, script: &str) -> String {
    format!("redis.register_function('{name}', function(KEYS, ARGV)\n{script}end)\n")
}
