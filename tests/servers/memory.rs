//! Out of memory: what would grow is refused by the server's own error, everything else works.

use redis::{Connection, pipe};

use crate::support::{
    DECADE, Server, entries, error_of, info_number, now, run, slide, slide_counter, slide_log,
    state,
};

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
fn set_maxmemory(con: &mut Connection, bytes: i64) {
    run::<()>(con, "CONFIG", &["SET", "maxmemory", &bytes.to_string()]);
}

#[test]
fn only_recording_needs_memory() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(10, "1d")], &["COST", "10"]);
    slide_counter(&mut con, "counter", &[(10, DECADE)], &["COST", "10"]);
    let future = (now(&mut con) + 3_600_000).to_string();
    run::<i64>(&mut con, "ZADD", &["healed", &future, "5:5"]);
    set_maxmemory(&mut con, 1);
    let before = state(&mut con);

    for key in ["log", "new"] {
        let call = slide("SLIDE.LOG", key, &[(20, "1d")], &[]);
        assert_eq!(error_of(&mut con, &call), OOM);
    }
    for key in ["counter", "new"] {
        let call = slide("SLIDE.COUNTER", key, &[(20, DECADE)], &[]);
        assert_eq!(error_of(&mut con, &call), OOM);
    }
    // An attack is still answered.
    assert_eq!(slide_log(&mut con, "log", &[(10, "1d")], &[]).limited, 1);
    assert_eq!(
        slide_counter(&mut con, "counter", &[(10, DECADE)], &[]).limited,
        1
    );
    assert_eq!(
        slide_log(&mut con, "log", &[(10, "1d")], &["COST", "0"]).remaining,
        0
    );
    assert_eq!(
        slide_counter(&mut con, "new", &[(10, DECADE)], &["COST", "0"]).remaining,
        10
    );
    assert_eq!(state(&mut con), before, "half of something was written");
    // Healing still works: it makes the log smaller.
    assert_eq!(slide_log(&mut con, "healed", &[(5, "60s")], &[]).limited, 1);
    assert!(entries(&mut con, "healed")[0].1 <= now(&mut con));

    set_maxmemory(&mut con, 0);
    assert_eq!(slide_log(&mut con, "log", &[(20, "1d")], &[]).remaining, 9);
    assert_eq!(
        slide_counter(&mut con, "counter", &[(20, DECADE)], &[]).remaining,
        9
    );
}

#[test]
fn a_script_can_tell_that_memory_is_full() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "k", &[(1, "1d")], &[]);
    set_maxmemory(&mut con, 1);
    let before = state(&mut con);
    let script = "#!lua flags=allow-oom\nreturn redis.pcall('SLIDE.LOG', KEYS[1], ARGV[1], '1d')";
    let limited: Vec<i64> = run(&mut con, "EVAL", &[script, "1", "k", "1"]);
    assert_eq!(limited[0], 1);
    let mut recording = redis::cmd("EVAL");
    recording.arg(&[script, "1", "k", "2"]);
    let error = error_of(&mut con, &recording);
    assert!(error.starts_with("OOM "), "{error}");
    assert_eq!(state(&mut con), before);
}

#[test]
fn with_an_eviction_policy_calls_record() {
    let server = Server::start();
    let mut con = server.connect();
    run::<()>(
        &mut con,
        "CONFIG",
        &["SET", "maxmemory-policy", "allkeys-lru"],
    );
    let value = "x".repeat(10_000);
    let mut fill = pipe();
    for key in 0..1000 {
        fill.cmd("SET")
            .arg(format!("cache:{key}"))
            .arg(&value)
            .ignore();
    }
    fill.query::<()>(&mut con).unwrap();
    let limit = info_number(&mut con, "memory", "used_memory") - 2_000_000;
    set_maxmemory(&mut con, limit);
    for call in 0..500 {
        let log = slide_log(&mut con, format!("log:{call}"), &[(10, "1d")], &[]);
        assert_eq!((log.limited, log.remaining), (0, 9));
        let key = format!("counter:{call}");
        assert_eq!(
            slide_counter(&mut con, key, &[(10, DECADE)], &[]).limited,
            0
        );
    }
    assert!(info_number(&mut con, "stats", "evicted_keys") > 0);
}
