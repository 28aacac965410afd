//! For tests that call while something goes wrong: commands and answers apart, when to stop, and a
//! server with its replica.

use std::sync::atomic::{AtomicBool, Ordering};

use redis::{Cmd, Connection, Value, from_redis_value_ref};

use crate::support::{Reply, Server, Setup, info, line, reply_of, run, state};

/// Tells clients to stop when a test is through, also if it panicked: they must end.
pub struct Stop<'a>(pub &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Both servers hold the same.
#[track_caller]
pub fn assert_agree(primary: &Server, replica: &Server) {
    primary.wait_for(replica);
    let (here, there) = (&mut primary.connect(), &mut replica.connect());
    if info(here, "cluster", "cluster_enabled").as_deref() == Some("1") {
        // A cluster's replica would send whoever looks at a key to its primary.
        run::<()>(there, "READONLY", &[]);
    }
    let (here, there) = (state(here), state(there));
    let differs = |(key, expiry): &(&Vec<u8>, &i64)| there.1.get(*key) != Some(*expiry);
    let missing: Vec<_> = here.1.iter().filter(differs).take(3).collect();
    assert!(
        here == there,
        "the replica has {} keys of {}, and not {missing:?}",
        there.1.len(),
        here.1.len()
    );
}

/// A server and a replica that follows it.
#[track_caller]
pub fn start_pair() -> (Server, Server) {
    let primary = Server::start();
    let replica = Setup::new().replica_of(&primary).start();
    primary.wait_for(&replica);
    (primary, replica)
}

/// Sends a command, whose answer comes later or never.
pub fn send(con: &mut Connection, command: &Cmd) {
    con.send_packed_command(&command.get_packed_command())
        .expect("the server takes it");
}

/// An error in an answer, as the server sent it.
fn value_or_error(value: Value) -> Result<Value, String> {
    match value {
        Value::ServerError(error) => Err(format!(
            "{} {}",
            error.code(),
            error.details().unwrap_or_default()
        )),
        value => Ok(value),
    }
}

/// The next answer, or error as the server sent it.
#[track_caller]
pub fn receive(con: &mut Connection) -> Result<Value, String> {
    value_or_error(con.recv_response().expect("an answer"))
}

/// The answers of a transaction's commands.
#[track_caller]
pub fn exec(con: &mut Connection) -> Vec<Result<Value, String>> {
    send(con, &line("EXEC"));
    match receive(con) {
        Ok(Value::Array(values)) => values.into_iter().map(value_or_error).collect(),
        other => panic!("no answers but {other:?}"),
    }
}

/// The five integers of an answer.
#[track_caller]
pub fn five(value: &Value) -> Reply {
    reply_of(&from_redis_value_ref::<Vec<i64>>(value).expect("integers"))
}
