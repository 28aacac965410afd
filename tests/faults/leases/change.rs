//! Leases as calls leave them, and as nobody should.

use redis::Pipeline;

use crate::support::random::Numbers;

const DAY: i64 = 86_400_000;

/// A sorted set: members and scores, in any order, each member once.
#[derive(Debug, Clone, PartialEq)]
pub struct Content(pub Vec<(Vec<u8>, f64)>);

impl Content {
    /// Some that have ended, some that are live, and now and then some that a wrong clock dated.
    #[allow(clippy::cast_precision_loss)] // times are far below 2^53
    pub fn random(now: i64, numbers: &mut Numbers) -> Self {
        let mut leases = Vec::new();
        let counts = [0, 1, 5, 12, 100];
        let spans = [(-DAY, -1), (5_000, DAY / 2), (2 * DAY, 900 * DAY)];
        for (kind, (first, last)) in spans.into_iter().enumerate() {
            let most = if kind == 2 { 3 } else { 5 };
            if kind == 2 && !numbers.one_in(4) {
                continue;
            }
            for _ in 0..counts[numbers.place(most)] {
                let span = numbers.below((last - first).unsigned_abs());
                let end = now + first + i64::try_from(span).unwrap();
                leases.push((format!("@{}", leases.len()).into_bytes(), end as f64));
            }
        }
        if leases.is_empty() {
            leases.push((b"@0".to_vec(), (now + 60_000) as f64));
        }
        Content(leases)
    }

    /// Changed in one to three places.
    pub fn changed(&self, numbers: &mut Numbers) -> Self {
        let mut content = self.clone();
        for _ in 0..numbers.one_to(3) {
            content.change(numbers);
        }
        let mut seen = std::collections::BTreeSet::new();
        content.0.retain(|(member, _)| seen.insert(member.clone()));
        content
    }

    fn change(&mut self, numbers: &mut Numbers) {
        let place = numbers.place(self.0.len());
        let (member, score) = &mut self.0[place];
        match numbers.below(8) {
            0 if !member.is_empty() => {
                let byte = numbers.place(member.len());
                member[byte] ^= 1 << numbers.below(8);
            }
            1 => member.truncate(numbers.place(member.len() + 1)),
            2 => member.resize([127, 128, 129, 130, 500][numbers.place(5)], b'x'),
            3 => *member = [&b"7:7"[..], b"alice", b"@", b"", b"1:1:11"][numbers.place(5)].to_vec(),
            4 => {
                let flipped = f64::from_bits(score.to_bits() ^ (1 << numbers.below(64)));
                if !flipped.is_nan() {
                    *score = flipped;
                }
            }
            5 => {
                let odd = [
                    0.0,
                    -1.0,
                    0.5,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    9_007_199_254_740_992.0,
                ];
                *score = odd[numbers.place(odd.len())];
            }
            6 => *score += 0.25,
            _ => {
                let other = (format!("other {}", numbers.below(9)).into_bytes(), *score);
                self.0.push(other);
            }
        }
    }

    /// Writes it in the place of what the key holds.
    pub fn write(&self, pipeline: &mut Pipeline, key: &str, expiry: i64) {
        pipeline.cmd("DEL").arg(key).ignore();
        let add = pipeline.cmd("ZADD").arg(key);
        for (member, score) in &self.0 {
            add.arg(format!("{score:?}")).arg(member);
        }
        add.ignore();
        pipeline.cmd("PEXPIREAT").arg(key).arg(expiry).ignore();
    }

    /// In the order of a sorted set.
    pub fn sorted(&self) -> Vec<(Vec<u8>, f64)> {
        let mut members = self.0.clone();
        let order = |one: &(Vec<u8>, f64), other: &(Vec<u8>, f64)| {
            let scores = one.1.partial_cmp(&other.1).expect("no NaN");
            scores.then_with(|| one.0.cmp(&other.0))
        };
        members.sort_by(order);
        members
    }
}
