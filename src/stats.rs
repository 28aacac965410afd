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

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
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
}

/// All counts.
#[derive(Debug)]
pub struct Stats {
    /// `SLIDE.LOG`.
    pub log: Calls,
    /// `SLIDE.COUNTER`.
    pub counter: Calls,
    /// `SLIDE.LEASE`.
    pub lease: Calls,
    /// `SLIDE.ALL`.
    pub all: Calls,
    /// `SLIDE.PEEK`.
    pub peeked: Count,
    /// Calls recorded although they were over a limit.
    pub forced: Count,
    /// Units that `SLIDE.REFUND` gave back.
    pub refunded_units: Count,
    /// Live leases that `SLIDE.RELEASE` ended.
    pub released: Count,
    /// Error replies.
    pub errors: Count,
    /// Expired entries removed from logs.
    pub trimmed_entries: Count,
    /// Keys whose dates lay too far in the future.
    pub clock_faults: Count,
    /// Panics caught at the command boundary.
    pub panics: Count,
}

/// The counts of this server.
pub static STATS: Stats = Stats {
    log: Calls::new(),
    counter: Calls::new(),
    lease: Calls::new(),
    all: Calls::new(),
    peeked: Count::new(),
    forced: Count::new(),
    refunded_units: Count::new(),
    released: Count::new(),
    errors: Count::new(),
    trimmed_entries: Count::new(),
    clock_faults: Count::new(),
    panics: Count::new(),
};

impl Stats {
    /// Every count under the name that INFO shows.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("log_admitted", &self.log.admitted),
            ("log_limited", &self.log.limited),
            ("counter_admitted", &self.counter.admitted),
            ("counter_limited", &self.counter.limited),
            ("lease_admitted", &self.lease.admitted),
            ("lease_limited", &self.lease.limited),
            ("all_admitted", &self.all.admitted),
            ("all_limited", &self.all.limited),
            ("peeked", &self.peeked),
            ("forced", &self.forced),
            ("refunded_units", &self.refunded_units),
            ("released", &self.released),
            ("errors", &self.errors),
            ("trimmed_entries", &self.trimmed_entries),
            ("clock_faults", &self.clock_faults),
            ("panics", &self.panics),
        ]
        .into_iter()
        .map(|(name, count)| (name, count.get()))
    }
}
