//! What a promoted replica knows of the calls that its primary had acknowledged.
//!
//! The promise, in the README's words: the replica lacks what the failed primary acknowledged after
//! the last replicated write, and can admit that much once more; no window holds more than the limit
//! and that. A coordinated FAILOVER loses nothing, and the limit holds exactly. Of a counter the same
//! holds here, as the whole test takes place in one of its buckets.

mod clients;

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use redis::cmd;

use crate::support::random::{Numbers, effort, seeds};
use crate::support::{DECADE, Server, Setup, eventually, info, run, slide_peek, state};
use clients::{Account, Clients, Finder, connect};

/// The limit of both keys. One unit at a time fills it to the last.
const LIMIT: u64 = 20_000;
/// The commands, each with a key of its own.
const KEYS: [(&str, &str); 2] = [("SLIDE.LOG", "log"), ("SLIDE.COUNTER", "counter")];
/// What a call costs, one client of each key for each.
const COSTS: [i64; 3] = [1, 3, 7];

fn limit() -> i64 {
    i64::try_from(LIMIT).unwrap()
}

/// The usage of both keys, as the module answers it.
fn usage(server: &Server) -> [i64; KEYS.len()] {
    let mut con = server.connect();
    KEYS.map(|(_, key)| limit() - slide_peek(&mut con, key, &[(LIMIT, DECADE)], &[]).remaining)
}

/// The promise, and that the new primary was full in the end.
fn assert_promise(accounts: &[Account; KEYS.len()], primary: &Server) {
    assert_eq!(usage(primary), [limit(); KEYS.len()]);
    for account in accounts {
        assert!(account.first > 0 && account.later > 0, "{account:?}");
        let unreplicated = account.first - account.confirmed;
        assert!(
            account.first + account.later <= limit() + unreplicated,
            "{account:?}"
        );
    }
}

/// A finder that is told where the primary is.
fn told(server: &Server) -> (Arc<AtomicU16>, Finder) {
    let port = Arc::new(AtomicU16::new(server.port()));
    let told = Arc::clone(&port);
    (port, Arc::new(move || Some(told.load(Ordering::SeqCst))))
}

/// A primary and a replica that receives what is written.
fn pair() -> (Server, Server) {
    let primary = Server::start();
    let replica = Setup::new().replica_of(&primary).start();
    primary.wait_for(&replica);
    // The primary first sends when the replica has said that it loaded the snapshot.
    run::<()>(&mut primary.connect(), "SET", &["first", "write"]);
    primary.wait_for(&replica);
    (primary, replica)
}

/// The primary is killed under load, the replica promoted by hand, and the clients go on there. If
/// the replica was parted before, it lacks what was acknowledged since.
fn assert_promise_by_hand(seed: u64, parted: bool) {
    println!("failover, by hand, parted before: {parted}, SLIDE_SEED={seed}");
    let mut numbers = Numbers::new(seed);
    let (primary, replica) = pair();
    let (port, find) = told(&primary);
    let clients = Clients::start(&find);
    clients.go_on_for(numbers.one_to(2000));
    let mut con = replica.connect();
    if parted {
        // No server listens there.
        run::<()>(&mut con, "REPLICAOF", &["127.0.0.1", "1"]);
        clients.go_on_for(numbers.one_to(500));
    }
    clients.assert_below_the_limit();
    primary.crash();

    run::<()>(&mut con, "REPLICAOF", &["NO", "ONE"]);
    let replicated = usage(&replica);
    port.store(replica.port(), Ordering::SeqCst);
    let accounts = clients.join();

    assert_promise(&accounts, &replica);
    for (account, replicated) in accounts.iter().zip(replicated) {
        assert!(account.confirmed > 0, "nothing was replicated: {account:?}");
        assert!(
            account.confirmed <= replicated,
            "confirmed calls are missing: {account:?}, {replicated} replicated"
        );
        // What a client was not told of may have been replicated all the same.
        let untold: i64 = COSTS.iter().sum();
        assert!(replicated <= account.first + untold, "{account:?}");
        assert_eq!(account.later, limit() - replicated, "{account:?}");
        assert!(
            !parted || account.first > replicated,
            "nothing was lost: {account:?}, {replicated} replicated"
        );
    }
}

#[test]
fn a_replica_promoted_by_hand_admits_again_only_what_was_not_replicated() {
    for seed in seeds(effort(2, 10)) {
        assert_promise_by_hand(seed, false);
        assert_promise_by_hand(seed, true);
    }
}

/// A sentinel that watches the primary and fails over soon.
fn sentinel(primary: &Server) -> Server {
    Setup::sentinel()
        .line(&format!(
            "sentinel monitor slide 127.0.0.1 {} 2",
            primary.port()
        ))
        .line("sentinel down-after-milliseconds slide 1500")
        .line("sentinel failover-timeout slide 5000")
        .start()
}

/// A field of what a sentinel says of the primary.
fn watched(sentinel: &Server, field: &str) -> Option<String> {
    let fields: Vec<String> = run(&mut sentinel.connect(), "SENTINEL", &["MASTER", "slide"]);
    let mut fields = fields.into_iter();
    fields.find(|name| name == field)?;
    fields.next()
}

/// Where the sentinel at this port says that the primary is.
fn primary_by_sentinel(sentinel: u16) -> Option<u16> {
    let mut ask = cmd("SENTINEL");
    ask.arg("GET-MASTER-ADDR-BY-NAME").arg("slide");
    let (_, port): (String, u16) = ask.query(&mut connect(sentinel).ok()?).ok()?;
    Some(port)
}

fn assert_promise_by_sentinel(seed: u64) {
    println!("failover, by sentinel, SLIDE_SEED={seed}");
    let mut numbers = Numbers::new(seed);
    let (primary, replica) = pair();
    let sentinels = [(); 3].map(|()| sentinel(&primary));
    eventually("the sentinels know the replica and each other", || {
        let knows = |sentinel: &Server| {
            {
                watched(sentinel, "num-slaves")? == "1"
                    && watched(sentinel, "num-other-sentinels")? == "2"
            }
            .then_some(())
        };
        sentinels.iter().try_for_each(knows)
    });
    let asked = sentinels[0].port();
    let clients = Clients::start(&(Arc::new(move || primary_by_sentinel(asked)) as Finder));
    clients.go_on_for(numbers.one_to(2000));
    clients.assert_below_the_limit();
    primary.crash();

    let accounts = clients.join();
    assert_eq!(primary_by_sentinel(asked), Some(replica.port()));
    let role = info(&mut replica.connect(), "replication", "role");
    assert_eq!(role.as_deref(), Some("master"));
    assert_promise(&accounts, &replica);
    for account in accounts {
        assert!(account.confirmed > 0, "nothing was replicated: {account:?}");
    }
}

#[test]
fn a_replica_promoted_by_sentinel_admits_again_only_what_was_not_replicated() {
    for seed in seeds(effort(1, 5)) {
        assert_promise_by_sentinel(seed);
    }
}

/// The primary hands over to its replica.
fn hand_over(primary: &Server, replica: &Server) {
    eventually("the replica follows", || {
        let link = info(&mut replica.connect(), "replication", "master_link_status")?;
        (link == "up").then_some(())
    });
    run::<()>(&mut primary.connect(), "FAILOVER", &[]);
    eventually("the roles have changed", || {
        let role = |server: &Server| info(&mut server.connect(), "replication", "role");
        (role(primary)? == "slave" && role(replica)? == "master").then_some(())
    });
}

/// Primary and replica change roles under load, there and back.
fn assert_coordinated_failovers_lose_nothing(seed: u64) {
    println!("failover, coordinated, SLIDE_SEED={seed}");
    let mut numbers = Numbers::new(seed);
    let (mut primary, mut replica) = pair();
    let (port, find) = told(&primary);
    let clients = Clients::start(&find);
    for _ in 0..3 {
        clients.go_on_for(numbers.one_to(1000));
        hand_over(&primary, &replica);
        (primary, replica) = (replica, primary);
        port.store(primary.port(), Ordering::SeqCst);
    }
    clients.assert_below_the_limit();
    let accounts = clients.join();
    for account in accounts {
        assert!(account.first > 0 && account.later > 0, "{account:?}");
        assert!(account.refused > 0, "no call met a failover: {account:?}");
        assert_eq!(account.first + account.later, limit(), "{account:?}");
    }
    primary.wait_for(&replica);
    assert_eq!(usage(&primary), [limit(); KEYS.len()]);
    assert_eq!(usage(&replica), [limit(); KEYS.len()]);
    assert_eq!(state(&mut primary.connect()), state(&mut replica.connect()));
}

#[test]
fn a_coordinated_failover_loses_nothing_and_admits_no_more_than_the_limit() {
    for seed in seeds(effort(2, 10)) {
        assert_coordinated_failovers_lose_nothing(seed);
    }
}
