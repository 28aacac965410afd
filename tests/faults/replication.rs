//! Primary and replicas agree after partitions.

use redis::{Connection, Value, pipe};

use crate::support::random::{Numbers, effort, seeds};
use crate::support::{Server, Setup, eventually, info_number, line, now, run, state, wait_until};
use crate::traffic::{Call, KEYS, Ledger};
use crate::wire::{receive, send};

/// Calls in one pipeline.
const BATCH: usize = 50;

/// How far back a replica that returns may ask the primary to begin.
const BACKLOG: i64 = 128 * 1024;

/// Ways to part a replica from its primary.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Partition {
    CutByPrimary,
    CutByReplica,
    /// The replica looks for its primary elsewhere, and soon comes back.
    Away,
    /// It comes back when the primary no longer has all that it missed.
    LongAway,
    /// It reads nothing.
    Asleep,
    /// It is a primary for a while, with writes of its own.
    Independent,
    /// It is killed, and starts again from a snapshot.
    Restarted,
    /// It is killed, and starts again with nothing.
    Emptied,
}

use Partition::{
    Asleep, Away, CutByPrimary, CutByReplica, Emptied, Independent, LongAway, Restarted,
};

const PARTITIONS: [Partition; 8] = [
    CutByPrimary,
    CutByReplica,
    Away,
    LongAway,
    Asleep,
    Independent,
    Restarted,
    Emptied,
];

/// How often replicas were given everything, and how often only what they had missed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Resyncs {
    full: i64,
    partial: i64,
}

struct Replica {
    server: Server,
    module: bool,
}

/// A primary and two replicas, one with the module and one without.
struct Servers {
    primary: Server,
    replicas: Vec<Replica>,
    con: Connection,
    ledger: Ledger,
}

fn replica_of(primary: &Server, module: bool) -> Setup {
    let setup = Setup::new().replica_of(primary);
    if module {
        setup
    } else {
        setup.without_module()
    }
}

impl Servers {
    fn start() -> Self {
        let primary = Setup::new()
            .line(&format!("repl-backlog-size {BACKLOG}"))
            .start();
        let replica = |module| Replica {
            server: replica_of(&primary, module).start(),
            module,
        };
        Servers {
            replicas: vec![replica(true), replica(false)],
            con: primary.connect(),
            ledger: Ledger::default(),
            primary,
        }
    }

    /// Random calls on the primary, with pauses in which windows pass.
    fn call(&mut self, numbers: &mut Numbers, calls: usize) {
        for _ in 0..calls.div_ceil(BATCH) {
            let batch: Vec<Call> = (0..BATCH).map(|_| Call::random(numbers)).collect();
            let mut pipeline = pipe();
            for call in &batch {
                pipeline.add_command(call.command.clone());
            }
            let replies: Vec<Value> = pipeline.query(&mut self.con).expect("good calls");
            for (call, reply) in batch.iter().zip(&replies) {
                self.ledger.enter(call, reply);
            }
            if numbers.one_in(8) {
                let until = now(&mut self.con) + i64::try_from(numbers.below(30)).unwrap();
                wait_until(&mut self.con, until);
            }
        }
    }

    fn offset(&mut self) -> i64 {
        info_number(&mut self.con, "replication", "master_repl_offset")
    }

    fn resyncs(&mut self) -> Resyncs {
        let mut read = |field| info_number(&mut self.con, "stats", field);
        Resyncs {
            full: read("sync_full"),
            partial: read("sync_partial_ok"),
        }
    }

    fn wait_for_replicas(&self) {
        for replica in &self.replicas {
            self.primary.wait_for(&replica.server);
        }
    }

    /// Parts a replica from its primary while calls go on, and has it back.
    fn part(&mut self, partition: Partition, place: usize, numbers: &mut Numbers) {
        self.wait_for_replicas();
        let before = self.resyncs();
        let mut replica = self.replicas[place].server.connect();
        match partition {
            CutByPrimary => {
                let cut: i64 = run(&mut self.con, "CLIENT", &["KILL", "TYPE", "replica"]);
                assert_eq!(cut, 2, "links cut");
                self.call(numbers, BATCH * 2);
            }
            CutByReplica => {
                let cut: i64 = run(&mut replica, "CLIENT", &["KILL", "TYPE", "master"]);
                assert_eq!(cut, 1, "links cut");
                self.call(numbers, BATCH * 2);
            }
            Away => self.with_replica_away(&mut replica, |servers| servers.call(numbers, BATCH)),
            LongAway => self.with_replica_away(&mut replica, |servers| {
                let beyond = servers.offset() + 3 * BACKLOG;
                while servers.offset() < beyond {
                    servers.call(numbers, BATCH);
                }
            }),
            Asleep => {
                send(&mut replica, &line("DEBUG SLEEP 0.3"));
                self.call(numbers, BATCH * 20);
                assert_eq!(receive(&mut replica), Ok(Value::Okay));
            }
            Independent => {
                run::<()>(&mut replica, "REPLICAOF", &["NO", "ONE"]);
                self.call(numbers, BATCH);
                self.write_to(place, &mut replica, numbers);
                self.follow_again(&mut replica);
            }
            Restarted | Emptied => self.restart(place, partition, numbers),
        }
        self.wait_for_replicas();
        let after = self.resyncs();
        let full = after.full - before.full;
        let partial = after.partial - before.partial;
        println!("{partition:?}, replica {place}: {full} full resyncs, {partial} partial");
        match partition {
            CutByPrimary => assert_eq!((full, partial), (0, 2), "{partition:?}"),
            CutByReplica | Away => assert_eq!((full, partial), (0, 1), "{partition:?}"),
            LongAway | Independent | Emptied => assert!(full > 0, "{partition:?}"),
            Restarted => assert!(full + partial > 0, "{partition:?}"),
            Asleep => {}
        }
    }

    /// Sends the replica where no server listens.
    fn with_replica_away(&mut self, replica: &mut Connection, calls: impl FnOnce(&mut Self)) {
        run::<()>(replica, "REPLICAOF", &["127.0.0.1", "1"]);
        calls(self);
        self.follow_again(replica);
    }

    fn follow_again(&self, replica: &mut Connection) {
        let port = self.primary.port().to_string();
        run::<()>(replica, "REPLICAOF", &["127.0.0.1", &port]);
    }

    /// Writes that the primary does not know, on keys that it has and on one that it has not.
    fn write_to(&self, place: usize, replica: &mut Connection, numbers: &mut Numbers) {
        run::<()>(replica, "SET", &["astray", "1"]);
        if self.replicas[place].module {
            for _ in 0..BATCH {
                let call = Call::random(numbers);
                call.command.query::<Value>(replica).expect("a good call");
            }
        } else {
            for key in &KEYS {
                run::<i64>(replica, "UNLINK", &[key.name]);
            }
        }
    }

    fn restart(&mut self, place: usize, partition: Partition, numbers: &mut Numbers) {
        let Replica { server, module } = self.replicas.remove(place);
        if partition == Restarted {
            run::<()>(&mut server.connect(), "SAVE", &[]);
        }
        let dir = server.crash();
        self.call(numbers, BATCH);
        let setup = replica_of(&self.primary, module);
        let server = match partition {
            Restarted => setup.in_dir(dir).start(),
            _ => setup.start(),
        };
        self.replicas.insert(place, Replica { server, module });
    }

    /// Waits until all hold the same data with the same expiry times, and answer the same.
    fn agree(&mut self) {
        let mut replicas: Vec<Connection> = self
            .replicas
            .iter()
            .map(|replica| replica.server.connect())
            .collect();
        // Keys whose time comes while we look are deleted on the primary first.
        eventually("primary and replicas agree", || {
            self.wait_for_replicas();
            let here = state(&mut self.con);
            replicas
                .iter_mut()
                .all(|replica| state(replica) == here)
                .then_some(())
        });
        let (_, keys) = state(&mut self.con);
        assert!(keys.values().all(|&expiry| expiry > 0), "{keys:?}");
        for (place, key) in KEYS.iter().enumerate().filter(|(_, key)| key.lasting) {
            assert!(keys.contains_key(key.name.as_bytes()), "{keys:?}");
            let usage = self.ledger.usage[place];
            assert_eq!(key.stored(&mut self.con), usage, "{}", key.name);
            for (replica, Replica { module, .. }) in replicas.iter_mut().zip(&self.replicas) {
                assert_eq!(key.stored(replica), usage, "{}", key.name);
                if *module {
                    assert_eq!(key.answered(replica), usage, "{}", key.name);
                }
            }
        }
    }
}

/// So many random calls, and meanwhile each kind of partition in some order.
fn assert_agreement_after_partitions(seed: u64, calls: usize) {
    println!("replication, partitions, SLIDE_SEED={seed}, {calls} calls");
    let mut numbers = Numbers::new(seed);
    let mut servers = Servers::start();
    let mut left = PARTITIONS.to_vec();
    while !left.is_empty() {
        servers.call(&mut numbers, calls / PARTITIONS.len());
        let partition = left.swap_remove(numbers.place(left.len()));
        let place = numbers.place(servers.replicas.len());
        servers.part(partition, place, &mut numbers);
    }
    servers.agree();
    servers.ledger.assert_mixed();
}

#[test]
fn primary_and_replicas_agree_after_partitions() {
    for seed in seeds(effort(2, 20)) {
        assert_agreement_after_partitions(seed, 10_000);
    }
}
