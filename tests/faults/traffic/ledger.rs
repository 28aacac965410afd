//! What calls recorded, as the replies said, and whether that explains what is stored.

use redis::{Value, from_redis_value_ref};

use super::{Call, KEYS, Kind};

/// The recorded usage by key, as the replies said, and how many calls there were of each sort.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    pub usage: [i64; KEYS.len()],
    admitted: usize,
    limited: usize,
    forced: usize,
    peeked: usize,
    refunds: usize,
    aged_refunds: usize,
    several_admitted: usize,
    several_limited: usize,
}

impl Ledger {
    /// Enters a call that was answered.
    pub fn enter(&mut self, call: &Call, reply: &Value) {
        match &call.kind {
            Kind::Peek => self.peeked += 1,
            Kind::Refund { key, aged, .. } => {
                let taken: i64 = from_redis_value_ref(reply).expect("an integer");
                self.usage[*key] -= taken;
                let count = if *aged {
                    &mut self.aged_refunds
                } else {
                    &mut self.refunds
                };
                *count += usize::from(taken > 0);
            }
            Kind::Record { costs, force } => {
                let limited = is_limited(reply);
                if !limited || *force {
                    for (key, cost) in costs {
                        self.usage[*key] += i64::from(*cost);
                    }
                }
                self.count(limited, *force, costs.len() > 1);
            }
        }
    }

    fn count(&mut self, limited: bool, force: bool, several: bool) {
        self.admitted += usize::from(!limited);
        self.limited += usize::from(limited);
        self.forced += usize::from(limited && force);
        self.several_admitted += usize::from(several && !limited);
        self.several_limited += usize::from(several && limited);
    }

    pub fn add(&mut self, other: &Ledger) {
        for (sum, more) in self.usage.iter_mut().zip(other.usage) {
            *sum += more;
        }
        self.admitted += other.admitted;
        self.limited += other.limited;
        self.forced += other.forced;
        self.peeked += other.peeked;
        self.refunds += other.refunds;
        self.aged_refunds += other.aged_refunds;
        self.several_admitted += other.several_admitted;
        self.several_limited += other.several_limited;
    }

    /// Fails a test whose traffic would prove little.
    pub fn assert_mixed(&self) {
        let sorts = [
            self.admitted,
            self.limited,
            self.forced,
            self.peeked,
            self.refunds,
            self.aged_refunds,
            self.several_admitted,
            self.several_limited,
        ];
        assert!(
            sorts.iter().all(|&sort| sort > 0),
            "not a mixture: {self:?}"
        );
    }
}

fn is_limited(reply: &Value) -> bool {
    let Value::Array(parts) = reply else {
        panic!("no array but {reply:?}");
    };
    matches!(parts.first(), Some(Value::Int(1)))
}

/// Whether the stored usage of the lasting keys is what was answered, and beyond it the work of
/// some of the unanswered calls, each carried out wholly or not at all.
pub fn is_explained(stored: &[i64; KEYS.len()], ledger: &Ledger, unanswered: &[Call]) -> bool {
    let lasting = || (0..KEYS.len()).filter(|&place| KEYS[place].lasting);
    let explains = |carried_out: u32| {
        lasting().all(|place| {
            let (mut least, mut most) = (ledger.usage[place], ledger.usage[place]);
            for (number, call) in unanswered.iter().enumerate() {
                if carried_out & (1 << number) != 0 {
                    let change = call.change(place);
                    least += change.start();
                    most += change.end();
                }
            }
            (least..=most).contains(&stored[place])
        })
    };
    (0..1 << unanswered.len()).any(explains)
}
