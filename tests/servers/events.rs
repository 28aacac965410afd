//! Keyspace events: of the effects as they happen, and `slide.limited`.

use redis::Connection;

use crate::support::{
    DECADE, Server, now, run, slide, slide_counter, slide_log, slide_peek, timed_replies,
};

/// The events of some classes that calls cause, each with its key, in order.
pub fn events(
    server: &Server,
    classes: &str,
    calls: impl FnOnce(&mut Connection),
) -> Vec<(String, String)> {
    let mut con = server.connect();
    // Strings' events tell that the calls are over.
    let classes = format!("E{classes}$");
    run::<()>(
        &mut con,
        "CONFIG",
        &["SET", "notify-keyspace-events", &classes],
    );
    let mut listening = server.connect();
    let mut listener = listening.as_pubsub();
    listener.psubscribe("__keyevent@0__:*").unwrap();
    calls(&mut con);
    run::<()>(&mut con, "SET", &["over", "1"]);
    let next = || {
        let message = listener.get_message().unwrap();
        let event = message
            .get_channel_name()
            .rsplit(':')
            .next()
            .unwrap()
            .to_owned();
        (event, message.get_payload::<String>().unwrap())
    };
    std::iter::repeat_with(next)
        .take_while(|(event, _)| event != "set")
        .collect()
}

/// Of such events, those of one key.
pub fn of<'a>(events: &'a [(String, String)], key: &str) -> Vec<&'a str> {
    events
        .iter()
        .filter(|event| event.1 == key)
        .map(|event| event.0.as_str())
        .collect()
}

#[test]
fn effects_are_events() {
    let server = Server::start();
    let seen = events(&server, "zhgx", |con| {
        slide_log(con, "log", &[(2, "1d")], &[]);
        slide_counter(con, "counter", &[(2, DECADE)], &[]);
        slide_counter(con, "counter", &[(2, DECADE)], &[]);
        // Nothing happens, so nothing is told.
        slide_log(con, "log", &[(2, "1d")], &["COST", "0"]);
        slide_log(con, "log", &[(2, "1d")], &["COST", "2"]);
        slide_counter(con, "counter", &[(2, DECADE)], &[]);
        slide_peek(con, "log", &[(2, "1d")], &[]);
    });
    assert_eq!(of(&seen, "log"), ["zadd", "expire"]);
    assert_eq!(of(&seen, "counter"), ["hset", "expire", "hset"]);
}

#[test]
fn a_merge_and_a_refund_are_events() {
    let server = Server::start();
    let mut merged = false;
    for attempt in 0..1000 {
        let key = format!("k{attempt}");
        let seen = events(&server, "zhg", |con| {
            let call = slide("SLIDE.LOG", &key, &[(9, "1d")], &["COST", "3"]);
            let both = timed_replies(con, &[call.clone(), call]);
            merged = both.before == both.after;
            assert_eq!(run::<i64>(con, "SLIDE.REFUND", &[&key, "6"]), 6);
        });
        let seen = of(&seen, &key);
        assert_eq!(seen.last(), Some(&"del"), "the refund emptied it: {seen:?}");
        if merged {
            assert_eq!(seen[..4], ["zadd", "expire", "zadd", "zrem"], "{seen:?}");
            return;
        }
    }
    panic!("two calls never fit one ms");
}

/// Each effect has its event. The order is not promised: the module tells of its own when it is
/// done with the key, and the server of a range at once.
#[test]
fn a_refund_of_many_entries_is_few_events() {
    let server = Server::start();
    let start = now(&mut server.connect()) - 1000;
    for (units, expected) in [
        (199, &["zadd", "zrem", "zremrangebyscore"][..]),
        (198, &["zrem", "zremrangebyscore"]),
        (200, &["del", "zrem", "zremrangebyscore"]),
    ] {
        let mut con = server.connect();
        run::<i64>(&mut con, "DEL", &["log"]);
        for entry in 1..=100 {
            let member = format!("{}:2", entry * 2);
            run::<i64>(
                &mut con,
                "ZADD",
                &["log", &(start + entry).to_string(), &member],
            );
        }
        let seen = events(&server, "zhg", |con| {
            let taken: i64 = run(con, "SLIDE.REFUND", &["log", &units.to_string()]);
            assert_eq!(taken, units);
        });
        let mut seen = of(&seen, "log");
        seen.sort_unstable();
        assert_eq!(seen, expected, "a refund of {units}");
    }
}

#[test]
fn a_limited_call_is_an_event_of_the_modules_class() {
    let server = Server::start();
    let seen = events(&server, "d", |con| {
        for _ in 0..3 {
            slide_log(con, "log", &[(1, "1d")], &[]);
            slide_counter(con, "counter", &[(1, DECADE)], &[]);
        }
        slide_log(con, "never", &[(1, "1d")], &["COST", "2"]);
        slide_log(con, "forced", &[(1, "1d")], &["COST", "2", "FORCE"]);
        // Whoever only looks is not limited, and no event is told twice.
        slide_peek(con, "log", &[(1, "1d")], &[]);
        slide_peek(con, "counter", &[(1, DECADE)], &[]);
    });
    let limited = "slide.limited";
    assert_eq!(of(&seen, "log"), [limited; 2]);
    assert_eq!(of(&seen, "counter"), [limited; 2]);
    assert_eq!(of(&seen, "never"), [limited]);
    assert_eq!(of(&seen, "forced"), [limited]);
    assert_eq!(seen.len(), 6, "{seen:?}");
}

#[test]
fn healing_is_told_as_what_it_does() {
    let server = Server::start();
    let future = now(&mut server.connect()) + 3_600_000;
    let seen = events(&server, "zhgd", |con| {
        run::<i64>(con, "ZADD", &["log", &future.to_string(), "5:5"]);
        slide_log(con, "log", &[(5, "60s")], &[]);
    });
    assert_eq!(
        of(&seen, "log"),
        ["zadd", "del", "zadd", "expire", "slide.limited"]
    );
}
