//! Slots move from primary to primary while clients call: no call is lost, none counts twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use redis::{Cmd, Connection, Value, cmd};

use super::nodes::{Cluster, Clustered, id, set_slot};
use crate::support::random::{Numbers, effort, seeds};
use crate::support::{
    Server, Setup, error_of, eventually, line, now, reply, run, skip, slide, slide_counter,
    slide_log,
};
use crate::units::{DECADE, FOUR_BUCKETS, units_of_counter, units_of_log};
use crate::wire::Stop;

/// What the calls use up while they run.
const LIMIT: u64 = 300;

/// What they do not.
const ROOMY: u64 = 1_000_000_000;

/// Hash tags. Each has its own slot with one key of each kind.
const TAGS: [&str; 4] = ["{m0}", "{m1}", "{m2}", "{m3}"];

/// What is called of one tag, all of it in one slot.
struct Keys {
    log: String,
    counter: String,
    /// With costs of up to 5 and refunds.
    pool: String,
    /// Only called together, by `SLIDE.ALL`.
    pair: [String; 2],
}

impl Keys {
    fn of(tag: &str) -> Self {
        Keys {
            log: format!("{tag}:log"),
            counter: format!("{tag}:counter"),
            pool: format!("{tag}:pool"),
            pair: [format!("{tag}:a"), format!("{tag}:b")],
        }
    }

    fn pair(&self) -> [&str; 2] {
        [&self.pair[0], &self.pair[1]]
    }

    fn log_call(&self) -> Cmd {
        slide("SLIDE.LOG", &self.log, &[(LIMIT, "1d")], &[])
    }

    fn counter_call(&self) -> Cmd {
        let options = ["BUCKETS", "4"];
        slide("SLIDE.COUNTER", &self.counter, &[(LIMIT, DECADE)], &options)
    }
}

fn pair_call(limit: u64) -> String {
    format!("LOG {limit} 1d COUNTER {limit} {DECADE} BUCKETS 4")
}

/// The units of each key that the server said it has recorded, refunds taken off.
#[derive(Default)]
struct Tally {
    recorded: BTreeMap<String, u64>,
    limited: u64,
    refunded: u64,
}

impl Tally {
    fn count(&mut self, key: &str, limited: i64, cost: u64) {
        if limited == 0 {
            *self.recorded.entry(key.to_owned()).or_default() += cost;
        } else {
            self.limited += 1;
        }
    }

    fn add(&mut self, other: Tally) {
        for (key, units) in other.recorded {
            *self.recorded.entry(key).or_default() += units;
        }
        self.limited += other.limited;
        self.refunded += other.refunded;
    }

    /// One call of some kind to some key.
    fn call(&mut self, client: &mut Clustered, numbers: &mut Numbers) {
        let keys = Keys::of(TAGS[numbers.place(TAGS.len())]);
        match numbers.below(6) {
            0 => self.single(client, &keys.log, &keys.log_call()),
            1 => self.single(client, &keys.counter, &keys.counter_call()),
            2 => self.refund(client, &keys.pool, numbers.one_to(5)),
            3 => self.pair(client, &keys),
            _ => self.pool(client, &keys.pool, numbers.one_to(5)),
        }
    }

    fn single(&mut self, client: &mut Clustered, key: &str, call: &Cmd) {
        let five: Vec<i64> = client.query(call).expect("the call gets through");
        self.count(key, five[0], 1);
    }

    fn pool(&mut self, client: &mut Clustered, key: &str, cost: u64) {
        let call = slide(
            "SLIDE.LOG",
            key,
            &[(ROOMY, "1d")],
            &["COST", &cost.to_string()],
        );
        let five: Vec<i64> = client.query(&call).expect("the call gets through");
        assert_eq!(five[0], 0, "{key} is roomy");
        self.count(key, 0, cost);
    }

    /// Takes back less than what this thread has recorded, so that the key never empties.
    fn refund(&mut self, client: &mut Clustered, key: &str, units: u64) {
        let own = self.recorded.entry(key.to_owned()).or_default();
        if *own <= units {
            return;
        }
        let refund = cmd("SLIDE.REFUND").arg(key).arg(units).to_owned();
        let taken: u64 = client.query(&refund).expect("the refund gets through");
        assert_eq!(taken, units, "{key} has more than that");
        *own -= units;
        self.refunded += units;
    }

    /// Calls every key that has a limit to reach until it is reached.
    fn use_up(&mut self, client: &mut Clustered) {
        for keys in TAGS.map(Keys::of) {
            for kind in 0..3 {
                let limited = self.limited;
                while self.limited == limited {
                    match kind {
                        0 => self.single(client, &keys.log, &keys.log_call()),
                        1 => self.single(client, &keys.counter, &keys.counter_call()),
                        _ => self.pair(client, &keys),
                    }
                }
            }
        }
    }

    fn units(&self) -> u64 {
        self.recorded.values().sum()
    }

    fn pair(&mut self, client: &mut Clustered, keys: &Keys) {
        let (limited, _) = client
            .all(keys.pair(), &pair_call(LIMIT))
            .expect("the call gets through");
        for key in &keys.pair {
            self.count(key, limited, 1);
        }
    }
}

/// Calls until told to stop, and says what was recorded.
fn call_until(stop: &AtomicBool, cluster: &Cluster, seed: u64, done: &AtomicU64) -> Tally {
    let mut client = cluster.connect(1000);
    let mut numbers = Numbers::new(seed);
    let mut tally = Tally::default();
    while !stop.load(Ordering::Relaxed) {
        tally.call(&mut client, &mut numbers);
        done.fetch_add(1, Ordering::Relaxed);
    }
    tally
}

/// Answers on raw connections, which follow no redirection.
#[derive(Debug, Default)]
struct Redirections {
    ask: u64,
    moved: u64,
    tryagain: u64,
}

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

fn slot_of(con: &mut Connection, tag: &str) -> u16 {
    run(con, "CLUSTER", &["KEYSLOT", tag])
}

fn migrate(from: &mut Connection, to: &Server, keys: &[&str]) {
    let mut migrate = cmd("MIGRATE");
    migrate
        .arg("127.0.0.1")
        .arg(to.port())
        .arg("")
        .arg(0)
        .arg(10_000);
    let moved: String = migrate.arg("KEYS").arg(keys).query(from).expect("MIGRATE");
    assert!(["OK", "NOKEY"].contains(&moved.as_str()), "{moved}");
}

/// The call at a node that has the slot but no longer, or not yet, the keys.
fn asking(con: &mut Connection, call: &Cmd) -> String {
    run::<()>(con, "ASKING", &[]);
    error_of(con, call)
}

/// Moves a slot key by key, and looks at what clients are told on the way.
fn move_by_keys(cluster: &Cluster, tag: &str, from: usize, to: usize, answers: &mut Redirections) {
    let [source, target] = [&cluster.primaries[from], &cluster.primaries[to]];
    let [mut source_con, mut target_con] = [source.connect(), target.connect()];
    let slot = slot_of(&mut source_con, tag);
    let keys = Keys::of(tag);
    // No call with these arguments is ever made but here: nothing of it may be recorded.
    let single = slide("SLIDE.LOG", &keys.log, &[(ROOMY, "1d")], &["COST", "1000"]);
    let pair = keys.pair.join(" ");
    let pair = line(&format!(
        "SLIDE.ALL 2 {pair} {} COST 1000",
        pair_call(ROOMY)
    ));

    let [source_id, target_id] = [id(source), id(target)];
    set_slot(&mut target_con, slot, &["IMPORTING", &source_id]);
    set_slot(&mut source_con, slot, &["MIGRATING", &target_id]);

    migrate(&mut source_con, target, &[&keys.log]);
    let error = error_of(&mut source_con, &single);
    assert!(error.starts_with("ASK "), "{error}");
    answers.ask += 1;
    let error = error_of(&mut target_con, &single);
    assert!(error.starts_with("MOVED "), "not asking: {error}");

    migrate(&mut source_con, target, &[&keys.pair[0]]);
    for error in [
        error_of(&mut source_con, &pair),
        asking(&mut target_con, &pair),
    ] {
        assert!(error.starts_with("TRYAGAIN "), "{error}");
        answers.tryagain += 1;
    }
    migrate(&mut source_con, target, &[&keys.pair[1]]);
    let error = error_of(&mut source_con, &pair);
    assert!(error.starts_with("ASK "), "{error}");
    answers.ask += 1;

    loop {
        let count = [&slot.to_string(), "100"];
        let left: Vec<String> = run(
            &mut source_con,
            "CLUSTER",
            &[&["GETKEYSINSLOT"][..], &count].concat(),
        );
        if left.is_empty() {
            break;
        }
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        migrate(&mut source_con, target, &left);
    }
    set_slot(&mut target_con, slot, &["NODE", &target_id]);
    set_slot(&mut source_con, slot, &["NODE", &target_id]);
    let other = &cluster.primaries[3 - from - to];
    set_slot(&mut other.connect(), slot, &["NODE", &target_id]);
    assert_moved(&mut source_con, &single, answers);
}

fn assert_moved(con: &mut Connection, call: &Cmd, answers: &mut Redirections) {
    let error = error_of(con, call);
    assert!(error.starts_with("MOVED "), "{error}");
    answers.moved += 1;
}

/// Moves a slot as a whole, as Valkey 9 can.
fn move_at_once(cluster: &Cluster, tag: &str, from: usize, to: usize, answers: &mut Redirections) {
    let [source, target] = [&cluster.primaries[from], &cluster.primaries[to]];
    let mut con = source.connect();
    let slot = slot_of(&mut con, tag).to_string();
    let migrate = [
        "MIGRATESLOTS",
        "SLOTSRANGE",
        &slot,
        &slot,
        "NODE",
        &id(target),
    ];
    run::<()>(&mut con, "CLUSTER", &migrate);
    let call = slide(
        "SLIDE.LOG",
        Keys::of(tag).log,
        &[(ROOMY, "1d")],
        &["COST", "0"],
    );
    eventually("the slot has moved", || {
        call.query::<Value>(&mut con).is_err().then_some(())
    });
    assert_moved(&mut con, &call, answers);
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

/// How to move a tag's slot from one primary to another.
type MoveSlot = fn(&Cluster, &str, usize, usize, &mut Redirections);

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

/// Valkey 9 sends a slot as a snapshot and the writes that come meanwhile, which are the module's
/// effects.
#[test]
fn slots_migrate_at_once() {
    let help: Vec<String> = {
        let node = Setup::new().cluster().start();
        run(&mut node.connect(), "CLUSTER", &["HELP"])
    };
    if !help.iter().any(|line| line.starts_with("MIGRATESLOTS")) {
        skip("slots do not migrate at once: this server has no CLUSTER MIGRATESLOTS");
        return;
    }
    let moves = effort(6, 120);
    let answers = migrate_under_load("slots_migrate_at_once", moves, move_at_once);
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
