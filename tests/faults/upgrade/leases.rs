//! Leases in the fixture. None lives longer than a day, so that those that last have ends that only a
//! wrong clock gives, beside one that had ended when the file was written.

use redis::{Connection, Value, cmd};

use super::{copy, signed, timed};
use crate::support::oracle::grammar::LONGEST_WINDOW;
use crate::support::oracle::stored::{self, Place};
use crate::support::oracle::{Lease, Take};
use crate::support::{line, now, reply, run};

const KEY: &str = "lease:misdated";

/// The ids that last: every byte is in one of them.
fn ids() -> [Vec<u8>; 3] {
    let half = |first: u8| (first..=first + 127).collect();
    [b"job-7".to_vec(), half(0), half(128)]
}

pub fn write(con: &mut Connection) {
    let ended = line(&format!("SLIDE.LEASE {KEY} 9 1s ended"));
    ended.query::<Value>(con).expect("a place");
    let far = now(con) + 2 * signed(LONGEST_WINDOW);
    for (place, id) in (0..).zip(ids()) {
        let mut add = cmd("ZADD");
        add.arg(KEY).arg(far + place).arg([b"@", &id[..]].concat());
        add.query::<()>(con).expect("a lease");
    }
    run::<()>(con, "PEXPIREAT", &[KEY, &(far + 2).to_string()]);
}

fn places(con: &mut Connection, key: &str) -> Vec<Place> {
    let members: Vec<(Vec<u8>, f64)> = run(con, "ZRANGE", &[key, "0", "-1", "WITHSCORES"]);
    stored::places(&members).expect("leases")
}

pub fn check(con: &mut Connection, key: &str) {
    let held = places(con, key);
    let (ended, lasting) = held.split_first().expect("the one that has ended");
    assert_eq!(ended.id, b"ended");
    assert_eq!(
        lasting
            .iter()
            .map(|place| place.id.clone())
            .collect::<Vec<_>>(),
        ids()
    );
    let leases = Lease::holding(&held);
    for limit in 0..6 {
        let peek = line(&format!("SLIDE.PEEK {key} {limit} 1s"));
        timed(con, |con| reply(con, &peek)).matches(|now| leases.peek(now, limit));
        for id in ids()
            .iter()
            .map(Vec::as_slice)
            .chain([&b"new"[..], b"ended"])
        {
            let copy = copy(con, key);
            let mut call = cmd("SLIDE.LEASE");
            call.arg(&copy).arg(limit).arg("5000ms").arg(id);
            timed(con, |con| reply(con, &call)).matches(|now| {
                let take = Take {
                    limit,
                    ttl: 5_000,
                    id,
                    force: false,
                };
                leases.clone().call(now, take)
            });
        }
    }
    let copy = copy(con, key);
    let mut release = cmd("SLIDE.RELEASE");
    release.arg(&copy).arg(&ids()).arg("ended");
    assert_eq!(release.query::<i64>(con).expect("a number"), 3);
    assert_eq!(run::<i64>(con, "EXISTS", &[&copy]), 0);
}
