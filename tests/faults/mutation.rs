//! Stored data changed bit by bit under the module.

mod change;
mod content;
mod payload;
mod step;

use redis::{Connection, cmd, pipe};

use crate::support::oracle::Shape;
use crate::support::random::{Numbers, assert_telling, effort, seeds};
use crate::support::{Server, add_tiers, bucket, info_number, now, run};
use change::{changed, flips};
pub use content::Kind;
use content::{Answer, Content};
pub use step::Tally;
use step::{BESIDE, Case, KEY, Limits, Step};

/// The longest windows of the calls. A key lives as long as its round at least.
const SCALES: [u64; 3] = [60_000, 86_400_000, 315_576_000_000];

/// Changes in a round beside the single bits.
const CHANGES: usize = 100;

/// A key of the module's, not yet changed, and what its calls ask.
struct Base {
    content: Content,
    limits: Limits,
}

impl Base {
    /// Some of it written long ago, the rest by calls now.
    fn random(con: &mut Connection, kind: Kind, key: &str, numbers: &mut Numbers) -> Self {
        let scale = SCALES[numbers.place(SCALES.len())];
        let limits = Limits {
            tiers: numbers.tiers(scale),
            shape: Shape {
                buckets: numbers.buckets(),
                strict: numbers.one_in(3),
            },
        };
        let time = now(con);
        let old = match kind {
            Kind::Log => old_log(time, scale, numbers),
            Kind::Counter => old_counter(key, time, &limits, numbers),
        };
        let mut pipeline = pipe();
        old.write(&mut pipeline, key, expiry(time));
        for _ in 0..numbers.one_to(3) {
            pipeline.add_command(recording(kind, key, &limits, numbers));
        }
        pipeline.add_command(Content::query(kind, key));
        let replies: Vec<redis::Value> = pipeline.query(con).expect("good data, and good calls");
        let content = Content::of(kind, replies.last().expect("the content"));
        let answer = content.answer(key, Some(&limits.windows()), limits.shape);
        assert!(
            matches!(answer, Answer::Of(_)),
            "the module wrote {}",
            content.show()
        );
        Base { content, limits }
    }
}

/// Later than any round ends.
fn expiry(time: i64) -> i64 {
    time + 3_600_000
}

/// Entries as earlier calls would have left them, most of them few.
fn old_log(time: i64, scale: u64, numbers: &mut Numbers) -> Content {
    let count = [0, 1, 3, 10, 200][numbers.place(5)];
    let mut times: Vec<u64> = (0..count).map(|_| numbers.one_to(scale * 3 / 2)).collect();
    times.sort_unstable();
    times.dedup();
    let most_cost = [1, 10, 1 << 53][numbers.place(3)];
    let mut total = [0, numbers.below(1 << 40), u64::MAX - 20][numbers.place(3)];
    let pairs = times.into_iter().rev().map(|ago| {
        let cost = numbers.one_to(most_cost);
        total = total.wrapping_add(cost);
        let member = format!("{total}:{cost}").into_bytes();
        let ago = i64::try_from(ago).expect("a few windows");
        (member, (time - ago).to_string().into_bytes())
    });
    Content {
        kind: Kind::Log,
        pairs: pairs.collect(),
    }
}

/// A field for some of the windows, its newest bucket now or a little before.
fn old_counter(key: &str, time: i64, limits: &Limits, numbers: &mut Numbers) -> Content {
    let buckets = limits.shape.buckets;
    let most_count = [1, 10, 1 << 57][numbers.place(3)];
    let mut pairs = Vec::new();
    for window in limits.windows() {
        if numbers.one_in(4) {
            continue;
        }
        let [length, count] = [window, buckets].map(|number| number.try_into().expect("small"));
        let current = bucket(key, length, count, time).unsigned_abs();
        let index = current - numbers.below(3);
        let mut value = vec![index];
        value.extend((0..=buckets).map(|_| numbers.below(most_count)));
        let value: Vec<String> = value.iter().map(u64::to_string).collect();
        let name = match buckets {
            1 => window.to_string(),
            _ => format!("{window}/{buckets}"),
        };
        pairs.push((name.into_bytes(), value.join(":").into_bytes()));
    }
    Content {
        kind: Kind::Counter,
        pairs,
    }
}

fn recording(kind: Kind, key: &str, limits: &Limits, numbers: &mut Numbers) -> redis::Cmd {
    let mut call = cmd(&format!("SLIDE.{}", kind.word()));
    call.arg(key);
    add_tiers(&mut call, &limits.tiers);
    call.arg("COST").arg(numbers.one_to(9)).arg("FORCE");
    if kind == Kind::Counter {
        call.arg("BUCKETS").arg(limits.shape.buckets);
    }
    call
}

/// A key of this kind in many changed forms, and each time another command on it.
pub fn round(con: &mut Connection, kind: Kind, seed: u64, tally: &mut Tally) {
    println!("changed {kind:?}s, SLIDE_SEED={seed}");
    let numbers = &mut Numbers::new(seed);
    let base = Base::random(con, kind, KEY, numbers);
    let kind_beside = [Kind::Log, Kind::Counter][numbers.place(2)];
    let beside = Base::random(con, kind_beside, BESIDE, numbers);
    let mut contents = flips(&base.content);
    // Of many flips some, of few all.
    while contents.len() > effort(200, 600) {
        contents.swap_remove(numbers.place(contents.len()));
    }
    contents.extend((0..CHANGES).map(|_| changed(&base.content, numbers)));
    let expiry = expiry(now(con));
    for content in &contents {
        let case = Case {
            content,
            limits: &base.limits,
            beside: &beside.content,
            beside_limits: &beside.limits,
            expiry,
        };
        let step = Step::random(&base.limits, numbers);
        let outcome = step.run(con, &case);
        step.check(&case, &outcome, tally);
    }
}

fn change_stored_data(kind: Kind) {
    let server = Server::start();
    let mut con = server.connect();
    let mut tally = Tally::default();
    let seeds = seeds(effort(25, 150));
    for &seed in &seeds {
        round(&mut con, kind, seed, &mut tally);
    }
    println!("changed {kind:?}s: {tally:?}");
    // A single round need not meet every kind.
    if seeds.len() > 1 {
        assert!(tally.least(kind) > 10, "{tally:?}");
    }
    if kind == Kind::Log {
        let packed = info_number(&mut con, "slide", "slide_packed_entries");
        assert_telling(packed > 0, "no log had packed members");
    }
    assert_eq!(info_number(&mut con, "slide", "slide_panics"), 0);
    run::<()>(&mut con, "FLUSHALL", &[]);
    server.assert_alive();
}

#[test]
fn a_changed_log_is_answered_by_the_rules_or_left_alone() {
    change_stored_data(Kind::Log);
}

#[test]
fn a_changed_counter_is_answered_by_the_rules_or_left_alone() {
    change_stored_data(Kind::Counter);
}
