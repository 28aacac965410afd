//! Slots move from primary to primary while clients call: no call is lost, none counts twice.

mod calls;
mod moves;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use redis::{Connection, Value, cmd};

use super::nodes::Cluster;
use crate::support::random::{Numbers, effort, seeds};
use crate::support::{
    DECADE, Server, Setup, eventually, now, reply, run, skip, slide, slide_counter, slide_log,
};
use crate::units::{FOUR_BUCKETS, units_of_counter, units_of_log};
use crate::wire::Stop;
use calls::{Keys, Tally, call_until};
use moves::{MoveSlot, Redirections, migrate, move_at_once, move_by_keys};

/// What the calls use up while they run.
const LIMIT: u64 = 300;

/// What they do not.
const ROOMY: u64 = 1_000_000_000;

/// Hash tags. Each has its own slot with one key of each kind.
const TAGS: [&str; 4] = ["{m0}", "{m1}", "{m2}", "{m3}"];

/// The slots of the tags, and who has each.
struct Owners(BTreeMap<&'static str, usize>);

impl Owners {
    fn of(cluster: &Cluster) -> Self {
        let owner = |tag: &&str| {
            let serves = |node: &Server| {
                let peek = slide("SLIDE.PEEK", tag, &[(1, "1s")], &[]);
                peek.query::<Value>(&mut node.connect()).is_ok()
            };
            let place = cluster.primaries.iter().position(serves);
            place.expect("some primary has the slot")
        };
        Owners(TAGS.iter().map(|tag| (*tag, owner(tag))).collect())
    }

    /// A tag, who has its slot, and who gets it next.
    fn next_move(&mut self, numbers: &mut Numbers) -> (&'static str, usize, usize) {
        let tag = TAGS[numbers.place(TAGS.len())];
        let from = self.0[tag];
        let to = (from + 1 + numbers.place(2)) % 3;
        self.0.insert(tag, to);
        (tag, from, to)
    }
}

/// What is stored of a tag is what was acknowledged, and no more than the limit.
fn assert_exact(con: &mut Connection, tag: &str, tally: &Tally) {
    let keys = Keys::of(tag);
    let stored = [
        (&keys.log, units_of_log(con, &keys.log)),
        (
            &keys.counter,
            units_of_counter(con, &keys.counter, FOUR_BUCKETS),
        ),
        (&keys.pool, units_of_log(con, &keys.pool)),
        (&keys.pair[0], units_of_log(con, &keys.pair[0])),
        (
            &keys.pair[1],
            units_of_counter(con, &keys.pair[1], FOUR_BUCKETS),
        ),
    ];
    for (key, units) in stored {
        assert_eq!(units, tally.recorded[key], "{key}");
        assert!(*key == keys.pool || units == LIMIT, "{key}: {units}");
    }
}

/// Moves slots under the load of three clients, and checks every total afterwards.
fn migrate_under_load(name: &str, moves: u64, move_slot: MoveSlot) -> Redirections {
    let cluster = Cluster::start();
    let seed = seeds(1)[0];
    println!("{name}, SLIDE_SEED={seed}");
    let mut client = cluster.connect(1000);
    // Every key is there before the first move.
    let mut tally = Tally::default();
    for keys in TAGS.map(Keys::of) {
        tally.single(&mut client, &keys.log, &keys.log_call());
        tally.single(&mut client, &keys.counter, &keys.counter_call());
        tally.pool(&mut client, &keys.pool, 5);
        tally.pair(&mut client, &keys);
    }

    let mut answers = Redirections::default();
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let (stop, cluster, done) = (&stop, &cluster, &done);
        let load = |client| scope.spawn(move || call_until(stop, cluster, seed * 3 + client, done));
        let load: Vec<_> = (0..3).map(load).collect();
        let stop = Stop(stop);
        let mut owners = Owners::of(cluster);
        let mut numbers = Numbers::new(seed);
        for _ in 0..moves {
            cluster.await_agreement();
            let before = done.load(Ordering::Relaxed);
            eventually("clients call between two moves", || {
                (done.load(Ordering::Relaxed) >= before + 50).then_some(())
            });
            let (tag, from, to) = owners.next_move(&mut numbers);
            move_slot(cluster, tag, from, to, &mut answers);
        }
        drop(stop);
        for client in load {
            tally.add(client.join().expect("no call failed"));
        }
    });

    tally.use_up(&mut client);
    for (tag, owner) in Owners::of(&cluster).0 {
        assert_exact(&mut cluster.primaries[owner].connect(), tag, &tally);
    }
    assert_eq!(
        cluster.count_keys(),
        tally.recorded.len(),
        "each key is in one place"
    );
    cluster.assert_replicas_agree();
    assert!(tally.limited > 0 && tally.refunded > 0);
    println!(
        "{name}: {moves} moves, {} calls, {} units, {answers:?}",
        done.into_inner(),
        tally.units()
    );
    answers
}

#[test]
fn slots_migrate_key_by_key() {
    let moves = effort(6, 120);
    let answers = migrate_under_load("slots_migrate_key_by_key", moves, move_by_keys);
    assert!(answers.ask >= moves && answers.moved >= moves && answers.tryagain >= moves);
}

/// A slot moves as a snapshot and the writes that come meanwhile, which are the module's effects.
#[test]
fn slots_migrate_at_once() {
    let node = Setup::new().cluster().start();
    let Some(move_slot) = move_at_once(&mut node.connect()) else {
        skip("slots do not migrate at once: this server has no command for it");
        return;
    };
    drop(node);
    let moves = effort(6, 120);
    let answers = migrate_under_load("slots_migrate_at_once", moves, move_slot);
    assert_eq!(answers.moved, moves);
}

/// What restores a key elsewhere at the same absolute time keeps the expiry to the ms; MIGRATE, which
/// sends what is left of it, never shortens it.
#[test]
fn moved_keys_keep_their_expiry() {
    let (here, there) = (Server::start(), Server::start());
    let (mut con, mut other) = (here.connect(), there.connect());
    slide_log(&mut con, "log", &[(5, "1m"), (5, "1d")], &["COST", "4"]);
    slide_counter(
        &mut con,
        "counter",
        &[(5, DECADE)],
        &["BUCKETS", "4", "COST", "4"],
    );
    for key in ["log", "counter"] {
        let expiry: i64 = run(&mut con, "PEXPIRETIME", &[key]);
        assert!(expiry > now(&mut con), "{key} expires");
        let dump: Vec<u8> = run(&mut con, "DUMP", &[key]);
        let mut restore = cmd("RESTORE");
        restore.arg(format!("{key}:restored")).arg(expiry).arg(dump);
        restore
            .arg("ABSTTL")
            .query::<()>(&mut other)
            .expect("RESTORE");
        let restored = format!("{key}:restored");
        assert_eq!(run::<i64>(&mut other, "PEXPIRETIME", &[&restored]), expiry);

        let before = now(&mut con);
        migrate(&mut con, &there, &[key]);
        let took = now(&mut con) - before;
        let migrated: i64 = run(&mut other, "PEXPIRETIME", &[key]);
        assert!(
            (expiry..=expiry + took).contains(&migrated),
            "{key}: {migrated} for {expiry}"
        );
        assert_eq!(run::<i64>(&mut con, "EXISTS", &[key]), 0);
        for key in [key, &restored] {
            let (name, tier, options) = match key.split(':').next() {
                Some("log") => ("SLIDE.LOG", [(5, "1d")], &[][..]),
                _ => ("SLIDE.COUNTER", [(5, DECADE)], &["BUCKETS", "4"][..]),
            };
            let call = slide(name, key, &tier, options);
            assert_eq!(reply(&mut other, &call).remaining, 0, "{key}");
            assert_eq!(reply(&mut other, &call).limited, 1, "{key}");
        }
    }
}
