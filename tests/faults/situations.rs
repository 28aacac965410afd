//! Memory, clients, scripts and pauses at their limits.

mod clients;
mod data;
mod memory;
mod pauses;
mod refusals;
mod scripts;
mod transactions;

/// Calls that record, each on keys of its own.
const RECORDING: [&str; 4] = [
    "SLIDE.LOG new:log 5 1d",
    "SLIDE.COUNTER new:counter 5 315576000000ms",
    "SLIDE.LOG new:forced 0 1d FORCE",
    "SLIDE.ALL 2 new:a new:b LOG 5 1d COUNTER 5 315576000000ms",
];
