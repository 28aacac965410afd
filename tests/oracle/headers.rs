//! The map that HEADERS asks for, put together word by word.

use super::Reply;

/// What a structured field can hold.
const MOST: u64 = 999_999_999_999_999;

/// One tier after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    pub limit: u64,
    /// In ms.
    pub window: u64,
    pub remaining: u64,
    /// In ms, until a call of one unit more than remain fits; none where nothing is used or the
    /// limit is 0.
    pub t: Option<u64>,
}

/// One key after the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Of which a wait says that the key was over its limit, and how long.
    pub reply: Reply,
    /// In the order given. Leases have none.
    pub tiers: Vec<Tier>,
    /// The place of the reported tier.
    pub reported: usize,
}

impl Standing {
    pub fn of_leases(reply: Reply) -> Self {
        Standing {
            reply,
            tiers: Vec::new(),
            reported: 0,
        }
    }

    fn is_over(&self) -> bool {
        self.reply.retry_after != 0
    }

    /// In ms; never is the longest.
    fn wait(&self) -> u64 {
        u64::try_from(self.reply.retry_after).unwrap_or(u64::MAX)
    }
}

/// The headers of a call at `now` on these keys, one for each limiter. `refused` says that the
/// caller is told to turn the call away: it was over a limit, and limits are enforced.
pub fn headers(now: i64, refused: bool, keys: &[Standing]) -> Vec<(String, String)> {
    let over = keys.iter().any(Standing::is_over);
    let longest = keys.iter().map(Standing::wait).max().expect("a key");
    let can_pass = longest < u64::MAX;
    let mut headers = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));

    let limiters = || keys.iter().filter(|key| !key.tiers.is_empty());
    let shown = if over {
        let longest = limiters().map(Standing::wait).max();
        limiters().find(|key| Some(key.wait()) == longest)
    } else {
        let left = |key: &Standing| key.tiers[key.reported].remaining;
        let fewest = limiters().map(left).min();
        limiters().find(|key| Some(left(key)) == fewest)
    };
    if let Some(key) = shown {
        let tier = key.tiers[key.reported];
        let delay = match tier.t {
            _ if over && can_pass => longest,
            t => t.unwrap_or(0),
        };
        let instant = u64::try_from(now).expect("a time after 1970") + delay;
        add("X-RateLimit-Limit", tier.limit.to_string());
        add("X-RateLimit-Remaining", tier.remaining.to_string());
        add("X-RateLimit-Reset", instant.div_ceil(1000).to_string());

        let mut names = Vec::new();
        let (mut policies, mut states) = (Vec::new(), Vec::new());
        for tier in limiters().flat_map(|key| &key.tiers) {
            let name = free_name(tier, &names);
            let (q, w) = (tier.limit.min(MOST), seconds(tier.window));
            policies.push(format!("\"{name}\";q={q};w={w}"));
            let t = tier.t.map(|t| format!(";t={}", seconds(t)));
            let r = tier.remaining.min(MOST);
            states.push(format!("\"{name}\";r={r}{}", t.unwrap_or_default()));
            names.push(name);
        }
        add("RateLimit-Policy", policies.join(", "));
        add("RateLimit", states.join(", "));
    }
    if refused && over && can_pass {
        add("Retry-After", longest.div_ceil(1000).max(1).to_string());
    }
    headers
}

/// The name of a tier's policy, with a number if it is taken.
fn free_name(tier: &Tier, taken: &[String]) -> String {
    let (limit, ms) = (tier.limit, tier.window);
    let first = match ms % 1000 {
        0 => format!("{limit}-per-{}s", ms / 1000),
        _ => format!("{limit}-per-{ms}ms"),
    };
    let mut name = first.clone();
    let mut count = 1;
    while taken.contains(&name) {
        count += 1;
        name = format!("{first}-{count}");
    }
    name
}

/// Whole seconds as a structured field holds them, rounded up, at least one.
fn seconds(ms: u64) -> u64 {
    ms.div_ceil(1000).clamp(1, MOST)
}
