//! Random calls, releases and looks against the naive oracle, on the server's own clock.

use redis::{Cmd, Connection, cmd, pipe};

use super::lease;
use crate::support::oracle::{Lease, Take};
use crate::support::random::Numbers;
use crate::support::{Reply, Server, entries, timed_reply};

/// Ids of which many are taken and retaken.
const IDS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

#[derive(Debug)]
enum Step {
    Take(u64, u64, &'static str, bool),
    Peek(u64),
}

fn step(numbers: &mut Numbers) -> Step {
    let limit = numbers.below(7);
    if numbers.one_in(6) {
        return Step::Peek(limit);
    }
    let ttl = [1, 3, 10, 30, 100, 60_000][numbers.place(6)];
    let id = IDS[numbers.place(IDS.len())];
    Step::Take(limit, ttl, id, numbers.one_in(6))
}

fn command(step: &Step) -> Cmd {
    match step {
        Step::Peek(limit) => {
            let mut peek = cmd("SLIDE.PEEK");
            peek.arg("k").arg(limit).arg("60s");
            peek
        }
        Step::Take(limit, ttl, id, force) => {
            let options: &[&str] = if *force { &["FORCE"] } else { &[] };
            lease("k", *limit, &format!("{ttl}ms"), id, options)
        }
    }
}

/// What the oracle holds after a step at an instant, if it gives this reply and what it holds is stored.
fn after(
    leases: &Lease,
    now: i64,
    step: &Step,
    reply: Reply,
    stored: &[(String, i64)],
) -> Option<Lease> {
    let mut leases = leases.clone();
    let expected = match step {
        Step::Peek(limit) => leases.peek(now, *limit),
        Step::Take(limit, ttl, id, force) => leases.call(
            now,
            Take {
                limit: *limit,
                ttl: *ttl,
                id: id.as_bytes(),
                force: *force,
            },
        ),
    };
    let is_stored = leases.places().iter().all(|place| {
        let member = format!("@{}", String::from_utf8_lossy(&place.id));
        place.end <= now || stored.contains(&(member, place.end))
    });
    (expected == reply && is_stored).then_some(leases)
}

#[test]
fn every_reply_equals_the_oracles() {
    let server = Server::start();
    let mut con = server.connect();
    let mut numbers = Numbers::new(0x1ea5e);
    let mut leases = Lease::new();
    let mut limited = 0;
    for round in 0..6_000 {
        let step = step(&mut numbers);
        let timed = timed_reply(&mut con, command(&step));
        let stored = entries(&mut con, "k");
        // Ids that the oracle has and the server has not may have ended and been removed.
        let found = (timed.before..=timed.after)
            .find_map(|now| after(&leases, now, &step, timed.value, &stored));
        let Some(next) = found else {
            panic!("round {round}: {step:?}: {timed:?} and {stored:?}, of {leases:?}");
        };
        leases = next;
        limited += timed.value.limited;
        if numbers.one_in(4) {
            let ids = [IDS[numbers.place(7)], IDS[numbers.place(7)]];
            let names = ids.map(str::as_bytes);
            let (from, released, to) = timed_release(&mut con, &ids);
            let agrees = (from..=to).any(|now| leases.clone().release(now, &names) == released);
            assert!(
                agrees,
                "round {round}: {released} of {ids:?}, of {leases:?}"
            );
            leases.release(to, &names);
        }
    }
    assert!(
        (500..4_500).contains(&limited),
        "{limited} of 6,000 limited"
    );
}

/// How many leases a release ended, between two readings of the server's clock.
fn timed_release(con: &mut Connection, ids: &[&str]) -> (i64, u64, i64) {
    let mut release = cmd("SLIDE.RELEASE");
    release.arg("k").arg(ids);
    let mut transaction = pipe();
    let transaction = transaction.atomic().cmd("TIME").add_command(release);
    let (before, released, after): ([i64; 2], u64, [i64; 2]) =
        transaction.cmd("TIME").query(con).unwrap();
    let ms = |time: [i64; 2]| time[0] * 1000 + time[1] / 1000;
    (ms(before), released, ms(after))
}
