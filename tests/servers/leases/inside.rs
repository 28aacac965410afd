//! Leases inside a server: clock faults, expiry, transactions, scripts, clusters, replicas, access, counts.

use redis::{Value, cmd, pipe};

use super::{lease, release, slide_lease, store};
use crate::info::{added, expected};
use crate::loading::command_info;
use crate::support::{
    Server, Setup, at_least, entries, error_of, eventually, line, now, run, slide_peek, timed_reply,
};

const DAY: i64 = 86_400_000;

#[test]
fn the_key_goes_when_its_last_lease_ends() {
    let server = Server::start();
    let mut con = server.connect();
    let expiry = |con: &mut _| run::<i64>(con, "PEXPIRETIME", &["k"]);
    let last = |con: &mut _| entries(con, "k").pop().unwrap().1;
    slide_lease(&mut con, "k", 5, "1h", "a", &[]);
    assert_eq!(expiry(&mut con), last(&mut con));
    let hour = expiry(&mut con);
    for (id, ttl) in [("b", "1s"), ("a", "2s")] {
        slide_lease(&mut con, "k", 5, ttl, id, &[]);
        assert_eq!(expiry(&mut con), hour, "it is never shortened");
    }
    release(&mut con, "k", "b");
    assert_eq!(expiry(&mut con), hour);
    slide_lease(&mut con, "k", 5, "2h", "c", &[]);
    assert_eq!(expiry(&mut con), last(&mut con));
    run::<i64>(&mut con, "PERSIST", &["k"]);
    slide_lease(&mut con, "k", 5, "1s", "b", &[]);
    assert_eq!(expiry(&mut con), last(&mut con), "it has one again");

    slide_lease(&mut con, "short", 5, "40ms", "a", &[]);
    eventually("the key is gone by itself", || {
        (run::<i64>(&mut con, "EXISTS", &["short"]) == 0).then_some(())
    });
}

#[test]
fn a_date_that_no_ttl_reaches_is_set_right() {
    let server = Server::start();
    let mut con = server.connect();
    let far = now(&mut con) + 3 * DAY;
    store(&mut con, "k", (0..70).map(|place| far + place));
    run::<i64>(&mut con, "PEXPIREAT", &["k", &(far + 70).to_string()]);
    // A look sees the first 64 end in a day, the others as they are.
    let mut peek = cmd("SLIDE.PEEK");
    peek.arg(&["k", "7", "1s"]);
    let seen = timed_reply(&mut con, peek);
    assert_eq!((seen.value.limited, seen.value.retry_after), (1, DAY));
    assert_eq!(entries(&mut con, "k")[0].1, far, "it changed nothing");

    // A limited call dates 64 anew, and takes no place.
    let call = timed_reply(&mut con, lease("k", 7, "60s", "x", &[]));
    assert_eq!((call.value.limited, call.value.retry_after), (1, 60_000));
    let leases = entries(&mut con, "k");
    assert_eq!(leases.len(), 70);
    let ends = call.before + 60_000..=call.after + 60_000;
    assert!(
        leases[..64].iter().all(|lease| ends.contains(&lease.1)),
        "{leases:?}"
    );
    assert!(leases[64..].iter().all(|lease| lease.1 > far));
    assert_eq!(run::<i64>(&mut con, "PEXPIRETIME", &["k"]), far + 69);
    // The next sets the rest right, and with it when the key goes.
    let call = timed_reply(&mut con, lease("k", 7, "90s", "x", &[]));
    let leases = entries(&mut con, "k");
    let ends = call.before + 90_000..=call.after + 90_000;
    assert!(
        leases[64..].iter().all(|lease| ends.contains(&lease.1)),
        "{leases:?}"
    );
    assert_eq!(run::<i64>(&mut con, "PEXPIRETIME", &["k"]), leases[69].1);
}

#[test]
fn transactions_and_scripts_take_places_too() {
    let server = Server::start();
    let mut con = server.connect();
    let mut transaction = pipe();
    transaction.atomic();
    for id in ["a", "b", "c"] {
        transaction.add_command(lease("k", 2, "60s", id, &[]));
    }
    let replies: Vec<Vec<i64>> = transaction.query(&mut con).unwrap();
    let limited: Vec<i64> = replies.iter().map(|reply| reply[0]).collect();
    assert_eq!(limited, [0, 0, 1]);
    let script = "redis.call('SLIDE.RELEASE', KEYS[1], 'a') \
                  return redis.call('SLIDE.LEASE', KEYS[1], 2, '60s', 'c')";
    let five: Vec<i64> = run(&mut con, "EVAL", &[script, "1", "k"]);
    assert_eq!(five[..3], [0, 2, 0]);
    // What a gateway does at the end of a request.
    let (refunded, released): (i64, i64) = pipe()
        .atomic()
        .cmd("SLIDE.REFUND")
        .arg(&["tokens", "5", "AGE", "1s"])
        .cmd("SLIDE.RELEASE")
        .arg(&["k", "c"])
        .query(&mut con)
        .unwrap();
    assert_eq!((refunded, released), (0, 1));
}

#[test]
fn a_cluster_routes_leases() {
    let server = Setup::new().cluster().start();
    let mut con = server.connect();
    run::<()>(&mut con, "CLUSTER", &["ADDSLOTSRANGE", "0", "16383"]);
    eventually("the cluster is up", || {
        let info: String = run(&mut con, "CLUSTER", &["INFO"]);
        info.contains("cluster_state:ok").then_some(())
    });
    let time = now(&mut con);
    for key in ["a", "b", "{c}d"] {
        // Many have ended, so that the server is asked to count.
        store(&mut con, key, (0..20).map(|place| time - 100 + place));
        assert_eq!(slide_lease(&mut con, key, 2, "60s", "x", &[]).remaining, 1);
        assert_eq!(slide_peek(&mut con, key, &[(2, "1s")], &[]).remaining, 1);
        assert_eq!(release(&mut con, key, "x"), 1);
    }
    let apart = line("SLIDE.ALL 2 a b LEASE 2 60s x LEASE 2 60s x");
    assert!(error_of(&mut con, &apart).starts_with("CROSSSLOT "));
    let slot: u16 = run(&mut con, "CLUSTER", &["KEYSLOT", "{1}"]);
    run::<()>(&mut con, "CLUSTER", &["DELSLOTS", &slot.to_string()]);
    for call in ["SLIDE.LEASE {1}a 5 60s x", "SLIDE.RELEASE {1}a x"] {
        let error = error_of(&mut con, &line(call));
        assert!(error.starts_with("CLUSTERDOWN "), "{error}");
    }
}

#[test]
fn a_replica_answers_a_peek() {
    let primary = Server::start();
    let replica = Setup::new().replica_of(&primary).start();
    let mut con = primary.connect();
    let time = now(&mut con);
    store(&mut con, "k", (0..20).map(|place| time - 100 + place));
    run::<i64>(
        &mut con,
        "ZADD",
        &["k", &(time + 60_000).to_string(), "@live"],
    );
    primary.wait_for(&replica);
    let mut copy = replica.connect();
    let seen = slide_peek(&mut copy, "k", &[(2, "1s")], &[]);
    assert_eq!((seen.limited, seen.remaining), (0, 1));
    let mut gone = cmd("SLIDE.RELEASE");
    gone.arg(&["k", "live"]);
    for call in [lease("k", 2, "60s", "x", &[]), gone] {
        assert!(error_of(&mut copy, &call).starts_with("READONLY "));
    }
}

#[test]
fn what_happens_is_counted() {
    let server = Server::start();
    let mut con = server.connect();
    let counts = added(&mut con, |con| {
        for id in ["a", "b", "a", "c"] {
            slide_lease(con, "k", 2, "60s", id, &[]);
        }
        slide_lease(con, "k", 2, "60s", "c", &["FORCE"]);
        slide_peek(con, "k", &[(2, "1s")], &[]);
        release(con, "k", &["a", "b", "x"]);
        error_of(con, &line("SLIDE.LEASE k 5 60 a"));
        let far = (now(con) + 3 * DAY).to_string();
        run::<i64>(con, "ZADD", &["k", &far, "@far"]);
        slide_lease(con, "k", 1, "60s", "d", &[]);
    });
    assert_eq!(
        counts,
        expected([
            ("lease_admitted", 3),
            ("lease_limited", 3),
            ("forced", 1),
            ("peeked", 1),
            ("released", 2),
            ("errors", 1),
            ("clock_faults", 1),
        ])
    );
}

#[test]
fn the_server_knows_the_commands() {
    let server = Server::start();
    let mut con = server.connect();
    for (name, arity, call) in [
        ("SLIDE.LEASE", -5, "the-key 5 60s id"),
        ("SLIDE.RELEASE", -3, "the-key id other"),
    ] {
        let (found, flags) = command_info(&mut con, name);
        assert_eq!(found, arity, "{name}");
        for flag in ["write", "fast"] {
            assert!(flags.contains(&flag.to_owned()), "{name}: {flags:?}");
        }
        assert!(!flags.contains(&"denyoom".to_owned()), "{name}: {flags:?}");
        let keys: Vec<String> = line(&format!("COMMAND GETKEYS {name} {call}"))
            .query(&mut con)
            .unwrap();
        assert_eq!(keys, ["the-key"]);
        if at_least(&mut con, 7, 2) {
            let commands: Vec<String> = run(&mut con, "ACL", &["CAT", "slide"]);
            let known = commands.iter().any(|c| c.eq_ignore_ascii_case(name));
            assert!(known, "{commands:?}");
        }
        let docs: Value = run(&mut con, "COMMAND", &["DOCS", name]);
        assert!(format!("{docs:?}").contains("0.2.0"), "{docs:?}");
    }
    let keys: Vec<String> = line("COMMAND GETKEYS SLIDE.ALL 2 a b LEASE 5 60s x LOG 5 60s")
        .query(&mut con)
        .unwrap();
    assert_eq!(keys, ["a", "b"]);
}
