//! Memory, clients, scripts and pauses at their limits.

mod clients;
mod data;
mod memory;
mod pauses;
mod refusals;
mod scripts;
mod transactions;

/// The calls that record, on a key of their own.
const RECORDING: [&str; 4] = [
    "SLIDE.LOG new 5 1d",
    "SLIDE.COUNTER new 5 315576000000",
    "SLIDE.LOG new 0 1d FORCE",
    "SLIDE.ALL 2 new newer LOG 5 1d COUNTER 5 315576000000",
];
