//! Memory, clients, scripts and pauses at their limits.
