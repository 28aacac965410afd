//! The module on a cluster's node.

use redis::Connection;

use crate::all::slide_all;
use crate::support::{
    Server, Setup, error_of, eventually, line, run, slide_counter, slide_log, slide_peek,
};

/// A cluster of one node that has all slots.
fn start() -> (Server, Connection) {
    let server = Setup::new().cluster().start();
    let mut con = server.connect();
    run::<()>(&mut con, "CLUSTER", &["ADDSLOTSRANGE", "0", "16383"]);
    eventually("the cluster is up", || {
        let info: String = run(&mut con, "CLUSTER", &["INFO"]);
        info.contains("cluster_state:ok").then_some(())
    });
    (server, con)
}

#[test]
fn keys_of_one_call_share_a_slot() {
    let (_server, mut con) = start();
    let call = "LOG 5 1d COUNTER 5 3652d BUCKETS 2";
    for keys in ["user:1 endpoint:1", "{1}:user {2}:user"] {
        let error = error_of(&mut con, &line(&format!("SLIDE.ALL 2 {keys} {call}")));
        assert!(error.starts_with("CROSSSLOT "), "{error}");
    }
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0);
    let tagged = format!("2 {{1}}:user {{1}}:endpoint {call}");
    for left in (0..5).rev() {
        let (limited, replies) = slide_all(&mut con, &tagged);
        assert_eq!(limited, 0);
        assert_eq!([replies[0].remaining, replies[1].remaining], [left; 2]);
    }
    assert_eq!(slide_all(&mut con, &tagged).0, 1);
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 2);
}

#[test]
fn commands_of_one_key_work_on_any_slot() {
    let (_server, mut con) = start();
    for key in ["a", "b", "c", "{d}e"] {
        let log = format!("log:{key}");
        assert_eq!(slide_log(&mut con, &log, &[(5, "1d")], &[]).remaining, 4);
        assert_eq!(slide_peek(&mut con, &log, &[(5, "1d")], &[]).remaining, 4);
        assert_eq!(run::<i64>(&mut con, "SLIDE.REFUND", &[&log, "9"]), 1);
        let counter = format!("counter:{key}");
        let tier = [(5, "3652d")];
        assert_eq!(slide_counter(&mut con, &counter, &tier, &[]).remaining, 4);
        assert_eq!(
            slide_all(&mut con, &format!("1 {counter} COUNTER 5 3652d")).0,
            0
        );
        assert_eq!(slide_peek(&mut con, &counter, &tier, &[]).remaining, 3);
    }
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 4);
}

/// A slot that the node does not have is somebody else's: the client is sent there.
#[test]
fn a_key_of_a_foreign_slot_is_redirected() {
    let (_server, mut con) = start();
    let slot: u16 = run(&mut con, "CLUSTER", &["KEYSLOT", "{1}"]);
    run::<()>(&mut con, "CLUSTER", &["DELSLOTS", &slot.to_string()]);
    for call in [
        "SLIDE.LOG {1}:a 5 1d",
        "SLIDE.COUNTER {1}:a 5 1d",
        "SLIDE.ALL 2 {1}:a {1}:b LOG 5 1d LOG 5 1d",
    ] {
        let error = error_of(&mut con, &line(call));
        assert!(error.starts_with("CLUSTERDOWN "), "{call}: {error}");
    }
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0);
}
