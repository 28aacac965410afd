//! What is fuzzed. Each target takes any bytes, and panics where the module and the naive reading
//! of them differ.

pub mod arguments;
pub mod counter_field;
pub mod lease;
pub mod log_entry;
