//! Many calls at once: however they arrive, exactly the limit is admitted.

use std::thread;

use redis::Value;

use crate::support::{DECADE, Server, admitted, repeated, run, slide};

const CALLS: [(&str, &str); 2] = [("SLIDE.LOG", "1d"), ("SLIDE.COUNTER", DECADE)];

#[test]
fn pipelined_calls() {
    let server = Server::start();
    let mut con = server.connect();
    for (name, window) in CALLS {
        let call = slide(name, name, &[(1000, window)], &[]);
        let replies: Vec<Vec<i64>> = repeated(&call, 2000).query(&mut con).unwrap();
        assert_eq!((replies.len(), admitted(&replies)), (2000, 1000), "{name}");
        // Nothing but the first 1,000, counting down.
        for (place, five) in replies.iter().enumerate() {
            let left = 999_i64.saturating_sub(i64::try_from(place).unwrap()).max(0);
            assert_eq!(five[2], left, "{name}, call {place}");
        }
    }
}

#[test]
fn one_transaction() {
    let server = Server::start();
    let mut con = server.connect();
    for (name, window) in CALLS {
        let call = slide(name, name, &[(1000, window)], &[]);
        let replies: Vec<Vec<i64>> = repeated(&call, 2000).atomic().query(&mut con).unwrap();
        assert_eq!((replies.len(), admitted(&replies)), (2000, 1000), "{name}");
    }
}

#[test]
fn one_script() {
    let server = Server::start();
    let mut con = server.connect();
    let script = "local admitted = 0
        for _ = 1, 2000 do
            local reply = redis.call(ARGV[1], KEYS[1], 1000, ARGV[2])
            if reply[1] == 0 then admitted = admitted + 1 end
        end
        return admitted";
    for (name, window) in CALLS {
        let admitted: i64 = run(&mut con, "EVAL", &[script, "1", name, name, window]);
        assert_eq!(admitted, 1000, "{name}");
    }
}

#[test]
fn sixteen_connections() {
    let server = Server::start();
    for (name, window) in CALLS {
        let call = slide(name, name, &[(1000, window)], &[]);
        let total: usize = thread::scope(|scope| {
            let clients: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| {
                        let mut con = server.connect();
                        let one = |_| call.query::<Vec<i64>>(&mut con).unwrap();
                        admitted(&(0..125).map(one).collect::<Vec<_>>())
                    })
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .sum()
        });
        assert_eq!(total, 1000, "{name}");
    }
}

#[test]
fn a_script_sees_errors_as_errors() {
    let server = Server::start();
    let mut con = server.connect();
    let script = "return redis.pcall('SLIDE.LOG', KEYS[1], '-1', '60s')";
    let error = redis::cmd("EVAL")
        .arg(&[script, "1", "k"])
        .query::<Value>(&mut con)
        .unwrap_err();
    assert!(
        error.to_string().contains("limit must be an integer"),
        "{error}"
    );
    assert_eq!(run::<i64>(&mut con, "EXISTS", &["k"]), 0);
}
