//! WATCH, MULTI and client tracking: only a call that records is a change.

use redis::{Connection, Value, cmd};

use crate::support::{DECADE, Server, eventually, reply, run, slide};

const CALLS: [(&str, &str); 2] = [("SLIDE.LOG", "1d"), ("SLIDE.COUNTER", DECADE)];

/// Whether a transaction of a client that watched the key goes through after another's call.
fn goes_through(
    con: &mut Connection,
    other: &mut Connection,
    key: &str,
    call: &redis::Cmd,
) -> bool {
    run::<()>(con, "WATCH", &[key]);
    call.query::<Value>(other).unwrap();
    run::<()>(con, "MULTI", &[]);
    run::<()>(con, "INCR", &["done"]);
    cmd("EXEC")
        .query::<Option<Vec<i64>>>(con)
        .unwrap()
        .is_some()
}

#[test]
fn only_a_recorded_call_breaks_watch() {
    let server = Server::start();
    let (mut con, mut other) = (server.connect(), server.connect());
    for (name, window) in CALLS {
        let call = slide(name, name, &[(2, window)], &[]);
        let free = slide(name, name, &[(2, window)], &["COST", "0"]);
        assert!(
            goes_through(&mut con, &mut other, name, &free),
            "{name}: COST 0, missing key"
        );
        assert!(
            !goes_through(&mut con, &mut other, name, &call),
            "{name}: new key"
        );
        assert!(
            !goes_through(&mut con, &mut other, name, &call),
            "{name}: existing key"
        );
        assert!(
            goes_through(&mut con, &mut other, name, &call),
            "{name}: limited"
        );
        assert!(
            goes_through(&mut con, &mut other, name, &free),
            "{name}: COST 0"
        );
        let wrong = slide(name, name, &[(2, "60")], &[]);
        run::<()>(&mut con, "WATCH", &[name]);
        wrong.query::<Value>(&mut other).unwrap_err();
        run::<()>(&mut con, "MULTI", &[]);
        assert!(
            cmd("EXEC")
                .query::<Option<Vec<i64>>>(&mut con)
                .unwrap()
                .is_some()
        );
    }
}

#[test]
fn only_a_recorded_call_invalidates_what_clients_cached() {
    let server = Server::start();
    let mut other = server.connect();
    for (name, window) in CALLS {
        let (send, received) = std::sync::mpsc::channel();
        let mut con = server.connect_resp3();
        con.set_push_sender(send);
        run::<()>(&mut con, "CLIENT", &["TRACKING", "ON", "BCAST"]);
        let call = slide(name, name, &[(1, window)], &[]);
        let mut invalidated = |what: &str, call: &redis::Cmd| {
            call.query::<Value>(&mut other).unwrap();
            // What came before this call's own invalidation is all that the call caused.
            let marker = format!("{name}:{what}");
            run::<()>(&mut other, "SET", &[&marker, "1"]);
            let mut keys = Vec::new();
            eventually("the marker is invalidated", || {
                run::<String>(&mut con, "PING", &[]);
                for push in received.try_iter() {
                    keys.extend(invalidated_keys(&push.data));
                }
                keys.contains(&marker).then_some(())
            });
            keys.contains(&name.to_owned())
        };
        assert!(invalidated("recorded", &call), "{name}");
        assert!(!invalidated("limited", &call), "{name}");
    }
}

fn invalidated_keys(data: &[Value]) -> Vec<String> {
    let Some(Value::Array(keys)) = data.first() else {
        return Vec::new();
    };
    keys.iter()
        .map(|key| redis::from_redis_value_ref(key).unwrap())
        .collect()
}

#[test]
fn a_discarded_call_records_nothing() {
    let server = Server::start();
    let mut con = server.connect();
    for (name, window) in CALLS {
        let call = slide(name, name, &[(5, window)], &[]);
        run::<()>(&mut con, "MULTI", &[]);
        assert_eq!(call.query::<String>(&mut con).unwrap(), "QUEUED");
        run::<()>(&mut con, "DISCARD", &[]);
        assert_eq!(run::<i64>(&mut con, "EXISTS", &[name]), 0);
        assert_eq!(reply(&mut con, &call).remaining, 4);
    }
}
