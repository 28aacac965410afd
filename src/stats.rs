//! What the module has done since it was loaded, as INFO shows it.

use std::sync::atomic::{AtomicU64, Ordering};

/// One count. Only the server's main thread adds to it.
#[derive(Debug)]
pub struct Count(AtomicU64);

impl Count {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts one more.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts `more`.
    pub fn add(&self, more: u64) {
        // Cheaper than an atomic addition, which a single writer does not need.
        let count = self.0.load(Ordering::Relaxed).wrapping_add(more);
        self.0.store(count, Ordering::Relaxed);
    }

    fn add_to(&self, named: &mut Vec<(String, u64)>, name: &str) {
        named.push((name.to_owned(), self.0.load(Ordering::Relaxed)));
    }
}

/// How the calls of one command ended.
#[derive(Debug)]
pub struct Calls {
    /// Calls under every limit.
    pub admitted: Count,
    /// Calls over a limit, whether or not they were recorded all the same.
    pub limited: Count,
}

impl Calls {
    const fn new() -> Self {
        Self {
            admitted: Count::new(),
            limited: Count::new(),
        }
    }

    fn add_to(&self, named: &mut Vec<(String, u64)>, name: &str) {
        self.admitted.add_to(named, &format!("{name}_admitted"));
        self.limited.add_to(named, &format!("{name}_limited"));
    }
}

/// Declares the counts: a line each is all that a field of INFO takes.
macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// All counts.
        #[derive(Debug)]
        pub struct Stats {
            $($(#[$doc])* pub $name: $kind,)*
        }

        /// The counts of this server.
        pub static STATS: Stats = Stats {
            $($name: <$kind>::new(),)*
        };

        impl Stats {
            /// Every count under the name that INFO shows.
            pub fn named(&self) -> Vec<(String, u64)> {
                let mut named = Vec::new();
                $(self.$name.add_to(&mut named, stringify!($name));)*
                named
            }
        }
    };
}

stats! {
    /// `SLIDE.LOG`.
    log: Calls,
    /// `SLIDE.COUNTER`.
    counter: Calls,
    /// `SLIDE.LEASE`.
    lease: Calls,
    /// `SLIDE.ALL`.
    all: Calls,
    /// `SLIDE.PEEK`.
    peeked: Count,
    /// Calls that FORCE recorded although they were over a limit.
    forced: Count,
    /// Units that `SLIDE.REFUND` gave back.
    refunded_units: Count,
    /// Live leases that `SLIDE.RELEASE` ended.
    released: Count,
    /// Entries of logs that were packed with others into one member.
    packed_entries: Count,
    /// Error replies.
    errors: Count,
    /// Expired members removed from logs.
    trimmed_entries: Count,
    /// Keys whose dates lay too far in the future.
    clock_faults: Count,
    /// Panics caught at the command boundary.
    panics: Count,
}
