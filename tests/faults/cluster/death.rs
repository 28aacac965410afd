//! A primary dies under load, and its replica takes over.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use redis::{Cmd, Connection, ErrorKind, RedisError};

use super::nodes::{Cluster, Clustered};
use crate::support::random::effort;
use crate::support::{DECADE, Server, eventually, info, now, run, slide};
use crate::units::{FOUR_BUCKETS, stored_log, units_of_counter, units_of_log};
use crate::wire::{Stop, assert_agree};

/// More than the clients use before the death.
const LIMIT: u64 = 20_000;

const LOG: &str = "{d}:log";

/// Only called together, by `SLIDE.ALL`.
const PAIR: [&str; 2] = ["{d}:a", "{d}:b"];

/// Each call to it waits until a replica has it.
const WAITED: &str = "{d}:waited";

const CLIENTS: u64 = 3;

/// Acknowledged calls that the replica can not have, because its link was cut before.
const UNREPLICATED: u64 = 100;

fn log_call(cost: u64) -> Cmd {
    let cost = cost.to_string();
    slide("SLIDE.LOG", LOG, &[(LIMIT, "1d")], &["COST", &cost])
}

fn pair_call(cost: u64) -> String {
    format!("LOG {LIMIT} 1d COST {cost} COUNTER {LIMIT} {DECADE} BUCKETS 4 COST {cost}")
}

/// Units of the log that were acknowledged, by the primary that died and by its heir.
#[derive(Debug, Default)]
struct Acknowledged {
    before: AtomicU64,
    after: AtomicU64,
    stop: AtomicBool,
}

/// Whether the call was lost with its connection. Other errors are answers.
fn is_cut_off(error: &RedisError) -> bool {
    !matches!(error.kind(), ErrorKind::Server(_))
}

/// Calls without pause, through the death. A client notices it by its broken connection: what is
/// acknowledged later, the heir has recorded.
fn call_until_stopped(mut client: Clustered, units: &Acknowledged) {
    let mut died = false;
    while !units.stop.load(Ordering::Relaxed) {
        let log = client.query::<Vec<i64>>(&log_call(1));
        died |= log.as_ref().is_err_and(is_cut_off);
        if log.is_ok_and(|five| five[0] == 0) {
            let counted = if died { &units.after } else { &units.before };
            counted.fetch_add(1, Ordering::Relaxed);
        }
        let pair = client.all(PAIR, &pair_call(1));
        if pair.is_err_and(|error| is_cut_off(&error)) {
            died = true;
            sleep(Duration::from_millis(20));
            client.reconnect();
        }
    }
}

/// Calls and waits each time for the replica, until the primary dies, and says how often the replica
/// had it.
fn call_and_wait(mut con: Connection, confirmed: &AtomicU64) {
    let call = slide("SLIDE.LOG", WAITED, &[(LIMIT, "1d")], &[]);
    while call.query::<Vec<i64>>(&mut con).is_ok() {
        let replicas = redis::cmd("WAIT").arg(1).arg(1000).query::<u64>(&mut con);
        if replicas.is_ok_and(|replicas| replicas > 0) {
            confirmed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn await_units(what: &str, units: &AtomicU64, least: u64) {
    eventually(what, || {
        (units.load(Ordering::Relaxed) >= least).then_some(())
    });
}

/// From here on the replica gets nothing: its link is closed, and it does not know the password.
fn cut_link(primary: &Server) {
    let mut con = primary.connect();
    run::<()>(&mut con, "CONFIG", &["SET", "requirepass", "cut"]);
    let killed: u64 = run(&mut con, "CLIENT", &["KILL", "TYPE", "replica"]);
    assert_eq!(killed, 1);
}

/// Calls, with ever smaller costs, until nothing more fits; says how many units of the log.
fn use_up(client: &mut Clustered) -> u64 {
    let mut units = 0;
    for cost in [1000, 50, 1] {
        while client
            .query::<Vec<i64>>(&log_call(cost))
            .expect("the heir serves")[0]
            == 0
        {
            units += cost;
        }
        while client
            .all(PAIR, &pair_call(cost))
            .expect("the heir serves")
            .0
            == 0
        {}
    }
    units
}

/// Takes the primary and the replica of the keys out of the cluster's lists.
fn owner(cluster: &mut Cluster) -> (Server, Server) {
    let peek = slide("SLIDE.PEEK", LOG, &[(1, "1s")], &[]);
    let serves = |node: &Server| peek.query::<Vec<i64>>(&mut node.connect()).is_ok();
    let place = cluster.primaries.iter().position(serves);
    let place = place.expect("some primary has the slot");
    let replica = cluster.replicas.remove(place);
    (cluster.primaries.remove(place), replica)
}

fn promotion(heir: &Server) {
    let mut con = heir.connect();
    run::<()>(
        &mut con,
        "CONFIG",
        &["SET", "cluster-replica-no-failover", "no"],
    );
    eventually("the replica is promoted", || {
        (info(&mut con, "replication", "role")? == "master").then_some(())
    });
}

/// What the heir has of the log: units from before the death, and from after it.
fn units_of_heir(con: &mut Connection, death: i64) -> (u64, u64) {
    let (mut before, mut after) = (0, 0);
    for entry in stored_log(con, LOG) {
        let units = if entry.time <= death {
            &mut before
        } else {
            &mut after
        };
        *units += entry.cost;
    }
    (before, after)
}

fn die_under_load() {
    let mut cluster = Cluster::start();
    cluster.configure("cluster-node-timeout", "2000");
    let (primary, heir) = owner(&mut cluster);
    let (units, confirmed) = (Acknowledged::default(), AtomicU64::new(0));
    let mut death = 0;
    let mut dir = None;
    thread::scope(|scope| {
        let stop = Stop(&units.stop);
        for _ in 0..CLIENTS {
            // An error of the dead primary must reach the caller, after one other attempt at most,
            // which nobody can serve before the replica is promoted.
            let client = cluster.connect(1);
            scope.spawn(|| call_until_stopped(client, &units));
        }
        let con = primary.connect();
        scope.spawn(|| call_and_wait(con, &confirmed));
        await_units("calls are replicated", &confirmed, 50);
        await_units("calls are acknowledged", &units.before, 200);
        cut_link(&primary);
        let acknowledged = units.before.load(Ordering::Relaxed);
        await_units("more calls are", &units.before, acknowledged + UNREPLICATED);
        dir = Some(primary.crash());
        death = now(&mut heir.connect());
        promotion(&heir);
        await_units("the heir acknowledges calls", &units.after, 200);
        drop(stop);
    });

    let after = units.after.into_inner() + use_up(&mut cluster.connect(100));
    let before = units.before.into_inner();
    let mut con = heir.connect();
    let (replicated, since) = units_of_heir(&mut con, death);
    let lost = before.saturating_sub(replicated);
    println!("  acknowledged {before}, of them lost {lost}; then acknowledged {after}");
    assert!(lost >= UNREPLICATED - CLIENTS, "no call was lost: {lost}");
    // A call in flight at the death may be recorded though nobody was told.
    assert!(replicated <= before + CLIENTS);
    assert_eq!(since, after, "the heir has what it acknowledged");
    assert_eq!(units_of_log(&mut con, LOG), LIMIT);
    assert!(before + after <= LIMIT + lost);
    // Both of a pair, or neither, has got through to the replica.
    assert_eq!(units_of_log(&mut con, PAIR[0]), LIMIT);
    assert_eq!(units_of_counter(&mut con, PAIR[1], FOUR_BUCKETS), LIMIT);
    let waited = units_of_log(&mut con, WAITED);
    assert!(waited >= confirmed.into_inner(), "a waited call was lost");

    let revived = Cluster::revive(dir.expect("it has died"));
    assert_agree(&heir, &revived);
}

#[test]
fn a_primary_dies_under_load() {
    for round in 0..effort(1, 8) {
        println!("a_primary_dies_under_load: round {round}");
        die_under_load();
    }
}
