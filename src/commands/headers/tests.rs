//! Headers in their words; the naive oracle covers their numbers.

use super::{Header, KeyState, headers};
use crate::limiter::tier::Tier;
use crate::limiter::units::{Limit, Millis, Timestamp, Window};
use crate::limiter::verdict::{Outlook, Standing, Verdict, Wait};

fn tier(limit: u64, window: u64) -> Tier {
    Tier {
        limit: Limit::new(limit).unwrap(),
        window: Window::new(window).unwrap(),
    }
}

/// A key with these tiers (limit, window, remaining, t in ms), of which the last is reported.
fn key(tiers: &[(u64, u64, u64, Option<u64>)], retry_after: Wait) -> KeyState {
    let outlooks = tiers.iter().map(|&(limit, window, remaining, t)| Outlook {
        tier: tier(limit, window),
        remaining,
        next_unit: t.map(Millis::new),
    });
    let outlooks = outlooks.collect::<Vec<_>>();
    let over = retry_after != Wait::NONE;
    let standing = |outlook: &Outlook, wait| Standing {
        limit: outlook.tier.limit,
        remaining: outlook.remaining,
        wait,
        reset: Millis::new(1_001),
    };
    let mut verdict = Verdict::of(over, standing(&outlooks[0], Wait::NONE));
    for (place, outlook) in outlooks.iter().enumerate().skip(1) {
        let last = place + 1 == outlooks.len();
        let mut standing = standing(outlook, if last { retry_after } else { Wait::NONE });
        if last && !over {
            standing.remaining = 0;
        }
        verdict.add(standing);
    }
    verdict.retry_after = retry_after;
    KeyState { verdict, outlooks }
}

fn told(keys: &[KeyState]) -> Vec<Header> {
    let over = keys.iter().any(|key| key.verdict.over);
    headers(Timestamp::from_millis(1_767_323_045_000), over, keys)
}

fn value<'h>(headers: &'h [Header], name: &str) -> Option<&'h str> {
    let header = headers.iter().find(|header| header.0 == name);
    header.map(|(_, value)| value.as_str())
}

fn wait(ms: u64) -> Wait {
    Wait::For(Millis::new(ms))
}

#[test]
fn all_headers_of_a_limited_call() {
    let tiers = [(100, 60_000, 40, Some(30_000)), (10, 500, 4, Some(1))];
    assert_eq!(
        told(&[key(&tiers, wait(2_001))]),
        [
            ("X-RateLimit-Limit", "10".to_owned()),
            ("X-RateLimit-Remaining", "4".to_owned()),
            ("X-RateLimit-Reset", "1767323048".to_owned()),
            (
                "RateLimit-Policy",
                r#""100-per-60s";q=100;w=60, "10-per-500ms";q=10;w=1"#.to_owned()
            ),
            (
                "RateLimit",
                r#""100-per-60s";r=40;t=30, "10-per-500ms";r=4;t=1"#.to_owned()
            ),
            ("Retry-After", "3".to_owned()),
        ]
    );
}

#[test]
fn the_reset_is_when_a_client_that_waits_gets_in() {
    let reset = |headers: &[Header]| value(headers, "X-RateLimit-Reset").unwrap().to_owned();
    let one = |t, retry_after| told(&[key(&[(10, 500, 4, t)], retry_after)]);
    assert_eq!(reset(&one(Some(1_500), Wait::NONE)), "1767323047", "t");
    assert_eq!(reset(&one(None, Wait::NONE)), "1767323045", "nothing used");
    assert_eq!(reset(&one(Some(1_500), Wait::Never)), "1767323047", "t");
    assert_eq!(value(&one(Some(1_500), Wait::Never), "Retry-After"), None);
    assert_eq!(
        value(&one(None, Wait::NONE), "RateLimit"),
        Some(r#""10-per-500ms";r=4"#)
    );
}

#[test]
fn several_keys_have_one_map() {
    let keys = || {
        [
            key(&[(10, 1_000, 3, Some(10))], wait(5_000)),
            key(&[(10, 1_000, 2, Some(20))], wait(9_000)),
            key(&[(10, 1_000, 1, Some(30))], Wait::NONE),
        ]
    };
    let limited = told(&keys());
    assert_eq!(value(&limited, "X-RateLimit-Remaining"), Some("2"));
    assert_eq!(value(&limited, "Retry-After"), Some("9"));
    assert_eq!(
        value(&limited, "RateLimit-Policy"),
        Some(r#""10-per-1s";q=10;w=1, "10-per-1s-2";q=10;w=1, "10-per-1s-3";q=10;w=1"#)
    );
    let [first, _, third] = keys();
    let never = told(&[first, third, key(&[(1, 1_000, 1, None)], Wait::Never)]);
    assert_eq!(value(&never, "Retry-After"), None);
    assert_eq!(value(&never, "X-RateLimit-Limit"), Some("1"));
}

#[test]
fn a_key_without_tiers_has_only_its_wait() {
    let mut lease = key(&[(5, 1_000, 0, None)], wait(70_000));
    lease.outlooks.clear();
    assert_eq!(told(&[lease]), [("Retry-After", "70".to_owned())]);
}

#[test]
fn numbers_fit_a_structured_field() {
    let most = (1 << 53) - 1;
    let told = told(&[key(&[(most, 1_000, most, None)], Wait::NONE)]);
    assert_eq!(
        value(&told, "RateLimit-Policy"),
        Some(r#""9007199254740991-per-1s";q=999999999999999;w=1"#)
    );
    assert_eq!(
        value(&told, "RateLimit"),
        Some(r#""9007199254740991-per-1s";r=999999999999999"#)
    );
}
