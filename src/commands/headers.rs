//! HTTP headers that say what a reply says, ready to send.

use crate::limiter::tier::{Tier, Tiers};
use crate::limiter::units::{Millis, Timestamp};
use crate::limiter::verdict::{Verdict, Wait};

/// A header's name and its value.
pub type Header = (&'static str, String);

/// The headers of a reply given at `now`.
///
/// `refused` says that the caller is told to turn the call away. `next_unit` is the wait until one
/// unit more than remains would fit the reported tier, where that can be said.
///
/// The `X-` headers are the ones in common use, with the reset in seconds since the epoch; the
/// others are those of draft-ietf-httpapi-ratelimit-headers-10. Seconds are rounded up, so that
/// whoever waits them out is not early.
pub fn headers(
    verdict: Verdict,
    refused: bool,
    tiers: &Tiers,
    now: Timestamp,
    next_unit: Option<Millis>,
) -> Vec<Header> {
    let reported = &verdict.reported;
    let policies = tiers.each().iter().map(|tier| {
        let window = seconds(Millis::new(tier.window.get()));
        format!("{};q={};w={window}", policy_name(tier), tier.limit.get())
    });
    let until_next = next_unit.map_or(String::new(), |wait| format!(";t={}", seconds(wait)));
    let mut headers = vec![
        ("X-RateLimit-Limit", reported.tier.limit.get().to_string()),
        ("X-RateLimit-Remaining", reported.remaining.to_string()),
        (
            "X-RateLimit-Reset",
            epoch_seconds(now + reported.reset).to_string(),
        ),
        ("RateLimit-Policy", policies.collect::<Vec<_>>().join(", ")),
        (
            "RateLimit",
            format!(
                "{};r={}{until_next}",
                policy_name(&reported.tier),
                reported.remaining
            ),
        ),
    ];
    if let Wait::For(wait) = verdict.retry_after
        && refused
    {
        headers.push(("Retry-After", seconds(wait).to_string()));
    }
    headers
}

/// `"<limit>-per-<window>"`, the window in whole seconds where it is that.
fn policy_name(tier: &Tier) -> String {
    let limit = tier.limit.get();
    match tier.window.get() {
        ms if ms % 1000 == 0 => format!("\"{limit}-per-{}s\"", ms / 1000),
        ms => format!("\"{limit}-per-{ms}ms\""),
    }
}

/// Whole seconds, rounded up, at least one.
fn seconds(span: Millis) -> u64 {
    span.get().div_ceil(1000).max(1)
}

/// Whole seconds since the epoch, rounded up.
fn epoch_seconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(0).div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use super::{Header, headers};
    use crate::limiter::tier::{Tier, Tiers};
    use crate::limiter::units::{Limit, Millis, Timestamp, Window};
    use crate::limiter::verdict::{Standing, Verdict, Wait};

    fn tier(limit: u64, window: u64) -> Tier {
        Tier {
            limit: Limit::new(limit).unwrap(),
            window: Window::new(window).unwrap(),
        }
    }

    fn told(retry_after: Wait, refused: bool, next_unit: Option<u64>) -> Vec<Header> {
        let mut tiers = Tiers::new(tier(100, 60_000));
        tiers.push(tier(10, 500)).unwrap();
        let verdict = Verdict {
            limited: retry_after != Wait::NONE,
            reported: Standing {
                tier: tier(10, 500),
                remaining: 4,
                wait: retry_after,
                reset: Millis::new(1_001),
            },
            retry_after,
        };
        let now = Timestamp::from_millis(1_767_323_045_000);
        headers(verdict, refused, &tiers, now, next_unit.map(Millis::new))
    }

    #[test]
    fn all_headers_of_a_refused_call() {
        let told = told(Wait::For(Millis::new(2_001)), true, Some(1));
        assert_eq!(
            told,
            [
                ("X-RateLimit-Limit", "10".to_owned()),
                ("X-RateLimit-Remaining", "4".to_owned()),
                ("X-RateLimit-Reset", "1767323047".to_owned()),
                (
                    "RateLimit-Policy",
                    r#""100-per-60s";q=100;w=60, "10-per-500ms";q=10;w=1"#.to_owned()
                ),
                ("RateLimit", r#""10-per-500ms";r=4;t=1"#.to_owned()),
                ("Retry-After", "3".to_owned()),
            ]
        );
    }

    #[test]
    fn nothing_is_said_of_a_wait_that_there_is_not() {
        let has_retry_after = |told: &[Header]| told.iter().any(|(name, _)| *name == "Retry-After");
        assert!(has_retry_after(&told(
            Wait::For(Millis::new(1)),
            true,
            None
        )));
        assert!(!has_retry_after(&told(Wait::Never, true, None)));
        assert!(!has_retry_after(&told(
            Wait::For(Millis::new(1)),
            false,
            None
        )));
        assert_eq!(told(Wait::NONE, false, None)[4].1, r#""10-per-500ms";r=4"#);
    }
}
