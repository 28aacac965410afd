//! `SLIDE.LEASE` and `SLIDE.RELEASE`: places that are taken, kept, given back and timed out.

mod all;
mod crowd;
mod effects;
mod ended;
mod errors;
mod histories;
mod inside;
mod replies;

use redis::{Cmd, Connection, ToRedisArgs, cmd};

use crate::support::{Reply, reply};

/// The command line of a call for a place.
pub fn lease(key: &str, limit: u64, ttl: &str, id: impl ToRedisArgs, options: &[&str]) -> Cmd {
    let mut command = cmd("SLIDE.LEASE");
    command.arg(key).arg(limit).arg(ttl).arg(id).arg(options);
    command
}

#[track_caller]
pub fn slide_lease(
    con: &mut Connection,
    key: &str,
    limit: u64,
    ttl: &str,
    id: impl ToRedisArgs,
    options: &[&str],
) -> Reply {
    reply(con, &lease(key, limit, ttl, id, options))
}

#[track_caller]
pub fn release(con: &mut Connection, key: &str, ids: impl ToRedisArgs) -> i64 {
    let mut command = cmd("SLIDE.RELEASE");
    command.arg(key).arg(ids);
    command.query(con).unwrap_or_else(|error| panic!("{error}"))
}

/// Stores leases as calls would have left them: ids 0, 1, 2 … with these ends.
pub fn store(con: &mut Connection, key: &str, ends: impl IntoIterator<Item = i64>) {
    let leases: Vec<(usize, i64)> = ends.into_iter().enumerate().collect();
    for chunk in leases.chunks(10_000) {
        let mut add = cmd("ZADD");
        add.arg(key);
        for (id, end) in chunk {
            add.arg(end).arg(format!("@{id}"));
        }
        add.query::<i64>(con).unwrap();
    }
}
