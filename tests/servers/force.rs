//! FORCE: what has happened is recorded, whatever the limit says.

use crate::support::{
    ALMOST_A_DECADE, DECADE, DECADE_FIELD, DECADE_MS, Server, bucket, entries, error_of, now, run,
    slide, slide_counter, slide_log, state,
};

#[test]
fn a_forced_call_is_recorded_over_the_limit() {
    let server = Server::start();
    let mut con = server.connect();
    for (name, window) in [("SLIDE.LOG", "1d"), ("SLIDE.COUNTER", DECADE)] {
        let mut call = |limit, options: &[&str]| {
            let tiers = [(limit, window)];
            match name {
                "SLIDE.LOG" => slide_log(&mut con, name, &tiers, options),
                _ => slide_counter(&mut con, name, &tiers, options),
            }
        };
        let fits = call(10, &["COST", "8", "FORCE"]);
        assert_eq!((fits.limited, fits.remaining), (0, 2), "{name}");
        let over = call(10, &["force", "cost", "8"]);
        assert_eq!((over.limited, over.remaining), (1, 0), "{name}");
        assert!(over.retry_after > 0, "{name}: {over:?}");
        let never = call(10, &["COST", "11", "FORCE"]);
        assert_eq!((never.limited, never.retry_after), (1, -1), "{name}");
        // 27 units are in it: whoever allows 30 has 3 left.
        assert_eq!(call(30, &["COST", "0"]).remaining, 3, "{name}");
        assert_eq!(call(30, &["COST", "0", "FORCE"]).remaining, 3, "{name}");
        // Over its limit even a call that costs nothing is.
        assert_eq!(call(10, &["COST", "0"]).limited, 1, "{name}");
    }
}

#[test]
fn a_forced_call_is_recorded_in_every_tier() {
    let server = Server::start();
    let mut con = server.connect();
    let tiers = [(1, DECADE), (10, ALMOST_A_DECADE)];
    let reply = slide_counter(&mut con, "k", &tiers, &["COST", "3", "FORCE"]);
    assert_eq!((reply.limited, reply.limit, reply.retry_after), (1, 1, -1));
    assert_eq!(
        slide_counter(&mut con, "k", &[tiers[1]], &["COST", "0"]).remaining,
        7
    );
    assert_eq!(
        slide_counter(&mut con, "k", &[(10, DECADE)], &["COST", "0"]).remaining,
        7
    );
}

#[test]
fn force_costs_nothing_with_cost_0() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "k", &[(0, "1d")], &["COST", "0", "FORCE"]);
    slide_counter(&mut con, "k", &[(0, DECADE)], &["COST", "0", "FORCE"]);
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0);
}

#[test]
fn a_log_saturates_at_2_to_the_63() {
    let server = Server::start();
    let mut con = server.connect();
    let old = now(&mut con) - 1000;
    let almost = (1_u64 << 63) - 8;
    run::<i64>(
        &mut con,
        "ZADD",
        &["k", &old.to_string(), &format!("{almost}:{almost}")],
    );
    let full = slide_log(&mut con, "k", &[(5, "1d")], &["COST", "100", "FORCE"]);
    assert_eq!((full.limited, full.remaining, full.retry_after), (1, 0, -1));
    assert_eq!(
        entries(&mut con, "k").pop().unwrap().0,
        format!("{}:8", 1_u64 << 63)
    );
    let before = state(&mut con);
    slide_log(&mut con, "k", &[(5, "1d")], &["COST", "1", "FORCE"]);
    assert_eq!(state(&mut con), before, "a log above 2^63");
    // In a shorter window there is room, and totals go on.
    let short = slide_log(&mut con, "k", &[(50, "900ms")], &["COST", "9", "FORCE"]);
    assert_eq!(short.limited, 0);
    assert!((33..=41).contains(&short.remaining), "{short:?}");
}

#[test]
fn a_bucket_saturates_at_2_to_the_57_less_1() {
    let server = Server::start();
    let mut con = server.connect();
    let index = bucket("k", DECADE_MS, 1, now(&mut con));
    let most = (1_u64 << 57) - 1;
    run::<i64>(
        &mut con,
        "HSET",
        &["k", DECADE_FIELD, &format!("{index}:{}:7", most - 5)],
    );
    for _ in 0..2 {
        let full = slide_counter(&mut con, "k", &[(5, DECADE)], &["COST", "100", "FORCE"]);
        assert_eq!((full.limited, full.remaining, full.retry_after), (1, 0, -1));
        let value: String = run(&mut con, "HGET", &["k", DECADE_FIELD]);
        assert_eq!(value, format!("{index}:{most}:7"));
    }
}

#[test]
fn force_is_given_once() {
    let server = Server::start();
    let mut con = server.connect();
    for name in ["SLIDE.LOG", "SLIDE.COUNTER"] {
        let call = slide(name, "k", &[(5, "1d")], &["FORCE", "COST", "1", "force"]);
        let error = error_of(&mut con, &call);
        assert!(error.starts_with("ERR syntax error: "), "{error}");
        assert!(error.to_uppercase().contains("FORCE"), "{error}");
    }
    assert_eq!(run::<i64>(&mut con, "DBSIZE", &[]), 0);
}
