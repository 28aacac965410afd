//! Two days in the life of an API.

use std::thread;

use crate::support::{Server, admitted, entries, now, repeated, slide, slide_log, wait_until};

/// Eight workers of one customer spend a daily quota of 10,000 units; a search costs 100 and a list
/// call 1. They spend all of it and not one unit more.
#[test]
fn a_daily_quota_is_spent_to_the_unit() {
    let server = Server::start();
    let quota = [(10_000, "1d")];
    let spent: i64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|worker| {
                let server = &server;
                scope.spawn(move || {
                    let mut con = server.connect();
                    let mut spent = 0;
                    for call in worker.. {
                        let cost = if call % 3 == 0 { 100 } else { 1 };
                        let reply = slide_log(&mut con, "k", &quota, &["COST", &cost.to_string()]);
                        match reply.limited {
                            0 => spent += cost,
                            _ if cost == 1 => break,
                            // A search no longer fits, list calls may.
                            _ => assert!(reply.remaining < 100),
                        }
                    }
                    spent
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    assert_eq!(spent, 10_000);
    let mut con = server.connect();
    assert_eq!(
        slide_log(&mut con, "k", &quota, &["COST", "0"]).remaining,
        0
    );
    assert!(
        entries(&mut con, "k")
            .last()
            .unwrap()
            .0
            .starts_with("10000:")
    );
}

/// A scraper fires 100 calls at the end of a calendar window and 100 at the start of the next. A
/// fixed window lets all pass; here no trailing window of that length has more than 100.
#[test]
fn a_burst_around_a_boundary_gets_one_limit() {
    let server = Server::start();
    let mut con = server.connect();
    let window = 2000;
    let boundary = ((now(&mut con) + 500) / window + 1) * window;
    let burst = repeated(&slide("SLIDE.LOG", "k", &[(100, "2s")], &[]), 100);
    let mut total = 0;
    for start in [
        boundary - 100,
        boundary + 1,
        boundary + window - 100,
        boundary + window + 1,
    ] {
        wait_until(&mut con, start);
        let replies: Vec<Vec<i64>> = burst.query(&mut con).unwrap();
        total += admitted(&replies);
    }
    // Two trailing windows pass at most, so at most two limits; a fixed window would give three.
    assert_eq!(total, 200, "the bursts took longer than planned");
    let costs: Vec<(i64, i64)> = entries(&mut con, "k")
        .iter()
        .map(|(member, time)| (*time, member.split(':').nth(1).unwrap().parse().unwrap()))
        .collect();
    for (end, _) in &costs {
        let inside = costs
            .iter()
            .filter(|(time, _)| (end - window + 1..=*end).contains(time));
        assert!(
            inside.map(|(_, cost)| cost).sum::<i64>() <= 100,
            "{costs:?}"
        );
    }
}
