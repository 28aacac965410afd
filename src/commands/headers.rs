//! HTTP headers for a reply, ready to send.
//!
//! The `X-` headers are the ones in common use; the others are those of
//! draft-ietf-httpapi-ratelimit-headers-10, in structured fields (RFC 9651). Seconds are rounded up, so
//! that a client that waits for so long is not early.

use std::collections::HashMap;

use crate::limiter::tier::Tier;
use crate::limiter::units::{Millis, Timestamp};
use crate::limiter::verdict::{Outlook, Verdict, Wait};
use crate::settings::limits_are_enforced;

/// A header's name and its value.
pub type Header = (&'static str, String);

/// The largest integer of a structured field (RFC 9651, section 3.3.1).
const MAX_FIELD_INTEGER: u64 = 999_999_999_999_999;

/// One key after a call.
#[derive(Debug)]
pub struct KeyState {
    /// Its five integers.
    pub verdict: Verdict,
    /// Its tiers in order; none for a key whose limit has no window.
    pub outlooks: Vec<Outlook>,
}

impl KeyState {
    fn reported(&self) -> Option<&Outlook> {
        self.outlooks.get(self.verdict.reported_tier)
    }
}

/// The headers of a call at `now` that was decided by these keys, one or more. `over` says whether any
/// of them was over a limit.
pub fn headers(now: Timestamp, over: bool, keys: &[KeyState]) -> Vec<Header> {
    let mut headers = Vec::new();
    let waits = keys.iter().map(|key| key.verdict.retry_after);
    let retry_after = match waits.max() {
        Some(Wait::For(wait)) if over => Some(wait),
        _ => None,
    };
    if let Some(key) = reported_key(over, keys)
        && let Some(reported) = key.reported()
    {
        let reset = now + retry_after.or(reported.next_unit).unwrap_or(Millis::ZERO);
        headers.extend([
            ("X-RateLimit-Limit", reported.tier.limit.get().to_string()),
            ("X-RateLimit-Remaining", reported.remaining.to_string()),
            ("X-RateLimit-Reset", epoch_seconds(reset).to_string()),
        ]);
        let outlooks = keys.iter().flat_map(|key| &key.outlooks);
        headers.extend(policies(&outlooks.collect::<Vec<_>>()));
    }
    if let Some(wait) = retry_after
        && limits_are_enforced()
    {
        headers.push(("Retry-After", seconds(wait).to_string()));
    }
    headers
}

/// The key that the `X-` headers describe: with the longest wait if the call was over a limit, else
/// with the fewest units left; the first of equals. A key without tiers is none.
fn reported_key(over: bool, keys: &[KeyState]) -> Option<&KeyState> {
    let with_tiers = keys.iter().filter(|key| !key.outlooks.is_empty());
    with_tiers.reduce(|first, key| {
        let (first_says, says) = (&first.verdict, &key.verdict);
        let says_more = if over {
            says.retry_after > first_says.retry_after
        } else {
            says.reported.remaining < first_says.reported.remaining
        };
        if says_more { key } else { first }
    })
}

/// `RateLimit-Policy` and `RateLimit`, which list every tier.
fn policies(outlooks: &[&Outlook]) -> [Header; 2] {
    let mut given: HashMap<String, u32> = HashMap::new();
    let mut quotas = Vec::new();
    let mut remainders = Vec::new();
    for outlook in outlooks {
        let base = policy_name(&outlook.tier);
        let place = given.entry(base.clone()).or_default();
        *place += 1;
        let name = match *place {
            1 => format!("\"{base}\""),
            place => format!("\"{base}-{place}\""),
        };
        let quota = field_integer(outlook.tier.limit.get());
        let window = seconds(Millis::new(outlook.tier.window.get()));
        quotas.push(format!("{name};q={quota};w={}", field_integer(window)));
        let remaining = field_integer(outlook.remaining);
        remainders.push(match outlook.next_unit {
            Some(wait) => format!("{name};r={remaining};t={}", field_integer(seconds(wait))),
            None => format!("{name};r={remaining}"),
        });
    }
    [
        ("RateLimit-Policy", quotas.join(", ")),
        ("RateLimit", remainders.join(", ")),
    ]
}

/// `<limit>-per-<window>`, the window in whole seconds where it is that.
fn policy_name(tier: &Tier) -> String {
    let limit = tier.limit.get();
    match tier.window.get() {
        ms if ms % 1000 == 0 => format!("{limit}-per-{}s", ms / 1000),
        ms => format!("{limit}-per-{ms}ms"),
    }
}

/// The number, or the largest that a structured field can hold.
fn field_integer(number: u64) -> u64 {
    number.min(MAX_FIELD_INTEGER)
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
mod tests;
