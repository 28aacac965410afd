//! Ways to move a slot from one primary to another, and what raw connections are told meanwhile.

use redis::{Cmd, Connection, Value, cmd};

use super::ROOMY;
use super::calls::{Keys, pair_call};
use crate::cluster::nodes::{Cluster, id, set_slot};
use crate::support::{Server, error_of, eventually, line, run, slide};

/// Answers on raw connections, which follow no redirection.
#[derive(Debug, Default)]
pub struct Redirections {
    pub ask: u64,
    pub moved: u64,
    pub tryagain: u64,
}

/// How to move a tag's slot from one primary to another.
pub type MoveSlot = fn(&Cluster, &str, usize, usize, &mut Redirections);

fn slot_of(con: &mut Connection, tag: &str) -> u16 {
    run(con, "CLUSTER", &["KEYSLOT", tag])
}

pub fn migrate(from: &mut Connection, to: &Server, keys: &[&str]) {
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
pub fn move_by_keys(
    cluster: &Cluster,
    tag: &str,
    from: usize,
    to: usize,
    answers: &mut Redirections,
) {
    let [source, target] = [&cluster.primaries[from], &cluster.primaries[to]];
    let [mut source_con, mut target_con] = [source.connect(), target.connect()];
    let slot = slot_of(&mut source_con, tag);
    let keys = Keys::of(tag);
    // No call with these arguments is ever made but here: nothing of it may be recorded.
    let single = slide("SLIDE.LOG", &keys.log, &[(ROOMY, "1d")], &["COST", "1000"]);
    let pair = keys.pair.join(" ");
    let pair = line(&format!("SLIDE.ALL 2 {pair} {}", pair_call(ROOMY, 1000)));

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

/// How this server moves a slot as a whole: Valkey 9 sends it, Redis 8.4 fetches it. Older ones cannot.
pub fn move_at_once(con: &mut Connection) -> Option<MoveSlot> {
    let help: Vec<String> = run(con, "CLUSTER", &["HELP"]);
    let knows = |words: &str| help.iter().any(|line| line.starts_with(words));
    if knows("MIGRATESLOTS ") {
        Some(send_at_once)
    } else if knows("MIGRATION IMPORT ") {
        Some(fetch_at_once)
    } else {
        None
    }
}

fn send_at_once(cluster: &Cluster, tag: &str, from: usize, to: usize, answers: &mut Redirections) {
    let [source, target] = [&cluster.primaries[from], &cluster.primaries[to]];
    let mut con = source.connect();
    let slot = slot_of(&mut con, tag).to_string();
    let target = id(target);
    let migrate = ["MIGRATESLOTS", "SLOTSRANGE", &slot, &slot, "NODE", &target];
    run::<()>(&mut con, "CLUSTER", &migrate);
    await_move(&mut con, tag, answers);
}

fn fetch_at_once(cluster: &Cluster, tag: &str, from: usize, to: usize, answers: &mut Redirections) {
    let [source, target] = [&cluster.primaries[from], &cluster.primaries[to]];
    let mut con = target.connect();
    let slot = slot_of(&mut con, tag).to_string();
    run::<String>(&mut con, "CLUSTER", &["MIGRATION", "IMPORT", &slot, &slot]);
    await_move(&mut source.connect(), tag, answers);
}

/// Waits until a node that has a slot has it no longer.
fn await_move(con: &mut Connection, tag: &str, answers: &mut Redirections) {
    let call = slide(
        "SLIDE.LOG",
        Keys::of(tag).log,
        &[(ROOMY, "1d")],
        &["COST", "0"],
    );
    eventually("the slot has moved", || {
        call.query::<Value>(con).is_err().then_some(())
    });
    assert_moved(con, &call, answers);
}
