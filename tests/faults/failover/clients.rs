//! Clients that call whatever server is the primary, until the limit is reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use redis::{Client, Cmd, Connection, RedisError, RedisResult, cmd};

use super::{COSTS, KEYS, LIMIT, limit};
use crate::support::{DECADE, eventually, reply_of, slide};

/// Every so many calls a client asks whether a replica has what it recorded.
const BETWEEN_WAITS: u32 = 8;

/// What one client was told: units admitted for it by the first primary and by the others, and how
/// many of the first's a replica had confirmed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    pub first: i64,
    pub later: i64,
    pub confirmed: i64,
    /// Replies that the server takes no writes.
    pub refused: u64,
}

/// How a client finds the server that it should call.
pub type Finder = Arc<dyn Fn() -> Option<u16> + Send + Sync>;

/// What the clients of a key share.
#[derive(Default)]
struct Shared {
    /// Units admitted so far.
    admitted: AtomicI64,
    /// Whether the failovers are over and the limit may be reached.
    may_finish: AtomicBool,
}

impl Shared {
    /// Slows calls down when half the limit is used and failovers are still to come.
    fn keep_pace(&self) {
        let half = self.admitted.load(Ordering::SeqCst) > limit() / 2;
        if half && !self.may_finish.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(20));
        }
    }
}

pub struct Clients {
    threads: Vec<(usize, JoinHandle<Account>)>,
    shared: [Arc<Shared>; KEYS.len()],
}

pub fn connect(port: u16) -> RedisResult<Connection> {
    Client::open(format!("redis://127.0.0.1:{port}/"))?.get_connection()
}

/// What clients meet while one primary has gone and the next has not come.
fn passes(error: &RedisError) -> bool {
    error.is_io_error() || error.code() == Some("READONLY")
}

/// Calls until a call is limited, at whatever server is the primary, the same call again after an
/// error.
fn call_until_limited(command: &Cmd, cost: i64, find: &Finder, shared: &Shared) -> Account {
    let mut account = Account::default();
    let mut connection: Option<(u16, Connection)> = None;
    let mut first = None;
    let mut calls = 0;
    loop {
        let five = eventually("a primary answers", || {
            let (port, mut con) = connection.take().or_else(|| {
                let port = find()?;
                Some((port, connect(port).ok()?))
            })?;
            match command.query::<Vec<i64>>(&mut con) {
                Ok(five) => {
                    connection = Some((port, con));
                    Some(five)
                }
                Err(error) => {
                    assert!(passes(&error), "{error}");
                    account.refused += u64::from(!error.is_io_error());
                    None
                }
            }
        });
        if reply_of(&five).limited == 1 {
            return account;
        }
        shared.admitted.fetch_add(cost, Ordering::SeqCst);
        shared.keep_pace();
        let Some((port, con)) = &mut connection else {
            unreachable!("it has just answered");
        };
        if *first.get_or_insert(*port) != *port {
            account.later += cost;
            continue;
        }
        account.first += cost;
        calls += 1;
        if calls % BETWEEN_WAITS == 0 && is_replicated(con) {
            account.confirmed = account.first;
        }
    }
}

/// Whether a replica has all that this connection has written.
fn is_replicated(con: &mut Connection) -> bool {
    let replicas = cmd("WAIT").arg(1).arg(20).query::<i64>(con);
    replicas.is_ok_and(|replicas| replicas > 0)
}

impl Clients {
    pub fn start(find: &Finder) -> Self {
        let shared: [Arc<Shared>; KEYS.len()] = [Arc::default(), Arc::default()];
        let mut threads = Vec::new();
        for (place, (name, key)) in KEYS.into_iter().enumerate() {
            for cost in COSTS {
                let command = slide(name, key, &[(LIMIT, DECADE)], &["COST", &cost.to_string()]);
                let (find, shared) = (Arc::clone(find), Arc::clone(&shared[place]));
                let thread = spawn(move || call_until_limited(&command, cost, &find, &shared));
                threads.push((place, thread));
            }
        }
        Clients { threads, shared }
    }

    /// Waits until so many units more were admitted on each key.
    pub fn go_on_for(&self, units: u64) {
        for shared in &self.shared {
            let admitted = &shared.admitted;
            let goal = admitted.load(Ordering::SeqCst) + i64::try_from(units).unwrap();
            eventually("calls are admitted", || {
                (admitted.load(Ordering::SeqCst) >= goal).then_some(())
            });
        }
    }

    pub fn assert_below_the_limit(&self) {
        for shared in &self.shared {
            let units = shared.admitted.load(Ordering::SeqCst);
            assert!(units < limit(), "the limit was reached too soon");
        }
    }

    /// Waits until all are limited: the sums of their accounts, by key.
    pub fn join(self) -> [Account; KEYS.len()] {
        for shared in &self.shared {
            shared.may_finish.store(true, Ordering::SeqCst);
        }
        let mut sums = [Account::default(); KEYS.len()];
        for (place, thread) in self.threads {
            let account = thread.join().expect("a client that meets no other error");
            let sum = &mut sums[place];
            sum.first += account.first;
            sum.later += account.later;
            sum.confirmed += account.confirmed;
            sum.refused += account.refused;
        }
        sums
    }
}
