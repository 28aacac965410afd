//! Headers in their words; the naive oracle covers their numbers.

use proptest::prelude::*;
use sfv::{BareItem, List, ListEntry, Parser};

use super::{Header, KeyState, headers};
use crate::limiter::oracle::{self, Reply};
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

/// A key with random tiers, and the same in the oracle's words. Of a key without tiers only the wait
/// counts, as of leases.
fn any_key() -> impl Strategy<Value = (KeyState, oracle::headers::Standing)> {
    let limit = prop_oneof![0_u64..5, 0..1_u64 << 53];
    let window = prop_oneof![1_u64..3, 1_u64..5_000, Just(60_000), Just(315_576_000_000)];
    let used = prop_oneof![0_u64..5, 0..1_u64 << 53];
    let tiers = prop::collection::vec((limit, window, used, 1_u64..10_000_000), 0..4);
    let retry_after = prop_oneof![3 => Just(0_i64), 1 => Just(-1), 4 => 1_i64..100_000];
    (tiers, retry_after, any::<prop::sample::Index>()).prop_map(|(tiers, retry_after, index)| {
        let tiers = tiers
            .into_iter()
            .map(|(limit, window, used, t)| oracle::headers::Tier {
                limit,
                window,
                remaining: limit.saturating_sub(used),
                t: (used > 0 && limit > 0).then_some(t),
            });
        let tiers = tiers.collect::<Vec<_>>();
        let reported = if tiers.is_empty() {
            0
        } else {
            index.index(tiers.len())
        };
        let shown = tiers.get(reported);
        let (limit, remaining) = shown.map_or((7, 3), |shown| (shown.limit, shown.remaining));
        let wait = u64::try_from(retry_after).map_or(Wait::Never, wait);
        let outlooks = tiers.iter().map(|told| Outlook {
            tier: tier(told.limit, told.window),
            remaining: told.remaining,
            next_unit: told.t.map(Millis::new),
        });
        let mut verdict = Verdict::of(
            retry_after != 0,
            Standing {
                limit: Limit::new(limit).unwrap(),
                remaining,
                wait,
                reset: Millis::ZERO,
            },
        );
        verdict.reported_tier = reported;
        let key = KeyState {
            verdict,
            outlooks: outlooks.collect(),
        };
        let reply = Reply {
            limited: i64::from(retry_after != 0),
            limit: limit.try_into().unwrap(),
            remaining: remaining.try_into().unwrap(),
            retry_after,
            reset_after: 0,
        };
        (
            key,
            oracle::headers::Standing {
                reply,
                tiers,
                reported,
            },
        )
    })
}

/// The names of a structured field's members, each of which has these parameters, all integers.
fn members(field: &str, parameters: &[&str]) -> Vec<String> {
    let list: List = Parser::new(field).parse().unwrap();
    let members = list.iter().map(|member| {
        let ListEntry::Item(item) = member else {
            panic!("no item: {member:?}");
        };
        for (name, value) in &item.params {
            assert!(parameters.contains(&name.as_str()), "{name} in {field}");
            assert!(matches!(value, BareItem::Integer(_)), "{name} in {field}");
        }
        match &item.bare_item {
            BareItem::String(name) => name.as_str().to_owned(),
            other => panic!("no string: {other:?}"),
        }
    });
    members.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    /// By the rules of RFC 9651, and each policy with a name of its own.
    #[test]
    fn both_fields_are_structured_fields(keys in prop::collection::vec(any_key(), 1..5)) {
        let (keys, _): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let told = told(&keys);
        let Some(policies) = value(&told, "RateLimit-Policy") else {
            prop_assert!(keys.iter().all(|key| key.outlooks.is_empty()));
            return Ok(());
        };
        let policies = members(policies, &["q", "w"]);
        let remainders = members(value(&told, "RateLimit").unwrap(), &["r", "t"]);
        prop_assert_eq!(&policies, &remainders);
        let tiers = keys.iter().map(|key| key.outlooks.len()).sum::<usize>();
        prop_assert_eq!(policies.len(), tiers);
        let different = policies.iter().collect::<std::collections::HashSet<_>>();
        prop_assert_eq!(different.len(), tiers);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50_000))]
    #[test]
    fn equals_the_oracle(keys in prop::collection::vec(any_key(), 1..5), now in 0_i64..2_000_000_000_000) {
        let (keys, standings): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let over = keys.iter().any(|key| key.verdict.over);
        let told = headers(Timestamp::from_millis(now), over, &keys).into_iter();
        let told = told.map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>();
        prop_assert_eq!(told, oracle::headers::headers(now, over, &standings));
    }
}
