//! `slide.enforce no`: a dry run, in which callers are told that they are admitted and all else is as
//! if limits were enforced.

use redis::{Connection, Value};

use crate::support::{
    DECADE, Server, Setup, info_number, run, slide, slide_counter, slide_log, slide_peek,
};

fn set(con: &mut Connection, value: &str) {
    run::<()>(con, "CONFIG", &["SET", "slide.enforce", value]);
}

fn setting(con: &mut Connection) -> String {
    run::<Vec<String>>(con, "CONFIG", &["GET", "slide.enforce"]).remove(1)
}

#[test]
fn only_the_first_integer_says_otherwise() {
    let server = Server::start();
    let mut con = server.connect();
    assert_eq!(setting(&mut con), "yes");
    set(&mut con, "no");
    let log_limited = info_number(&mut con, "slide", "slide_log_limited");
    for (name, window) in [("SLIDE.LOG", "1d"), ("SLIDE.COUNTER", DECADE)] {
        let mut call = |limit, options: &[&str]| {
            let tiers = [(limit, window)];
            match name {
                "SLIDE.LOG" => slide_log(&mut con, name, &tiers, options),
                _ => slide_counter(&mut con, name, &tiers, options),
            }
        };
        assert_eq!(call(5, &["COST", "4"]).remaining, 1, "{name}");
        let over = call(5, &["COST", "4"]);
        assert_eq!(
            (over.limited, over.limit, over.remaining),
            (0, 5, 1),
            "{name}"
        );
        assert!(over.retry_after > 0, "{name}: waits are as they would be");
        let never = call(5, &["COST", "6"]);
        assert_eq!((never.limited, never.retry_after), (0, -1), "{name}");
        // Nothing but the first call is in it.
        assert_eq!(call(20, &["COST", "0"]).remaining, 16, "{name}");
        // FORCE records as ever.
        let forced = call(5, &["COST", "2", "FORCE"]);
        assert_eq!((forced.limited, forced.remaining), (0, 0), "{name}");
        assert!(forced.retry_after > 0, "{name}");
        let peek = slide_peek(&mut con, name, &[(5, window)], &[]);
        assert_eq!((peek.limited, peek.remaining), (0, 0), "{name}");
        assert!(peek.retry_after > 0, "{name}");
    }
    let limited = info_number(&mut con, "slide", "slide_log_limited");
    assert_eq!(limited - log_limited, 3, "INFO says what would have been");

    set(&mut con, "yes");
    assert_eq!(
        slide_log(&mut con, "SLIDE.LOG", &[(5, "1d")], &[]).limited,
        1
    );
    assert_eq!(
        slide_counter(&mut con, "SLIDE.COUNTER", &[(5, DECADE)], &[]).limited,
        1
    );
    assert_eq!(
        slide_peek(&mut con, "SLIDE.LOG", &[(5, "1d")], &[]).limited,
        1
    );
}

#[test]
fn the_tier_that_would_limit_is_reported() {
    let server = Server::start();
    let mut con = server.connect();
    set(&mut con, "no");
    // Four units are left in the first tier and two in the second, which is the one to report.
    let tiers = [(7, "1h"), (5, "1d")];
    slide_log(&mut con, "k", &tiers, &["COST", "3"]);
    let over = slide_log(&mut con, "k", &tiers, &["COST", "3"]);
    assert_eq!((over.limited, over.limit, over.remaining), (0, 5, 2));
    assert!(over.retry_after > 0, "{over:?}");
}

#[test]
fn nobody_is_told_to_retry() {
    let server = Server::start();
    let mut con = server.connect();
    set(&mut con, "no");
    let call = slide("SLIDE.LOG", "k", &[(1, "1d")], &["HEADERS"]);
    for _ in 0..3 {
        let six: Vec<Value> = call.query(&mut con).unwrap();
        assert_eq!(six[0], Value::Int(0));
        let names: Vec<String> = six[5]
            .as_map_iter()
            .unwrap()
            .map(|(name, _)| redis::from_redis_value_ref(name).unwrap())
            .collect();
        assert!(!names.contains(&"Retry-After".to_owned()), "{names:?}");
    }
}

#[test]
fn the_setting_stands_in_the_configuration_file() {
    let server = Setup::new().line("slide.enforce no").start();
    let mut con = server.connect();
    assert_eq!(setting(&mut con), "no");
    assert_eq!(slide_log(&mut con, "k", &[(0, "1d")], &[]).limited, 0);
    set(&mut con, "yes");
    run::<()>(&mut con, "CONFIG", &["REWRITE"]);
    let file = std::fs::read_to_string(server.dir().join("server.conf")).unwrap();
    assert!(!file.contains("slide.enforce no"), "{file}");
    let error = redis::cmd("CONFIG")
        .arg(&["SET", "slide.enforce", "maybe"])
        .query::<Value>(&mut con)
        .unwrap_err();
    assert!(error.to_string().contains("yes"), "{error}");
}
