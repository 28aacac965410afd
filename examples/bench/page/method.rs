//! How everything was measured.

use super::grouped;
use crate::host::ENDLESS;
use crate::results::Results;
use crate::row::{CALLS, KEYS};

pub fn write(all: &[Results], shown: &Results) -> String {
    let rounds = all.first().map_or("", |results| results.text("rounds"));
    format!(
        "## How this was measured

- `make bench` installs what it needs, builds the module and its peers, starts each server with each of them, measures
  and writes this page and its pictures. `make bench SERVERS=redis-7.0` narrows it, `ROUNDS=20` makes it more
  thorough, `QUICK=1` less: that prints the table and leaves this page alone.
- CPU time is that of the server's main thread, from `INFO cpu`, divided by the calls: all the server
  does for them, reading and answering too. Commands are pipelined, 200 at a time. Each figure is the
  least of {rounds} rounds, in each of which every command has its turn, mostly {} calls on {KEYS} keys. An error
  reply ends the run, and so does a call that is limited where it should be admitted, or the reverse.
  Where calls are admitted the limit is {}.
- The peers: slide 0.1.0, built from its commit; redis-cell from its crate; the floor from examples/bench/peers/floor.c.
  Each runs on a server of its own, and gets its turns in the same rounds.
- Logs in their steady state have a server each, whose clock is set by the benchmark (tests/support/clock.c). It goes on by 50 ms
  at a time, and each time half of the {KEYS} keys, drawn by chance, get a call. A log is filled by the same traffic before
  it is measured, until as much expires as comes. The floor starts with a copy of the module's logs.
- Single logs and the slowest calls: servers whose clock is set too, so that each recorded call has a ms of its own. Times are
  the server's own (`INFO commandstats`, and the slow log, which then logs all calls). The slowest call is the
  least of 5 rounds' slowest, so that what else the machine does has less part in it.
- Memory and bytes sent of logs: the same calls for each log on servers whose clock is set, with gaps of the
  exponential distribution. Bytes are those that the append-only file grew by, memory is `used_memory`.
- The scripts are in examples/bench/scripts.rs. They do what is usually done: trim, count, add a member
  for each unit, expire; and the current and the previous window in a hash. They are called by `EVALSHA`, and as functions of
  a library by `FCALL`. With cost 100 the script gets the same calls on each key as `SLIDE.LOG` does, but on fewer keys.
- Latency counts from when a call was due, so that a slow one delays those behind it. Of `redis-benchmark` the best
  of 3 runs counts.
- The curves of cost, tiers, buckets and keys are those of {}.
",
        grouped(CALLS as u64),
        grouped(ENDLESS),
        shown.text("name"),
    )
}
