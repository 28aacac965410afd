//! What reads the words of a command.

#[path = "../../../src/commands/arguments/mod.rs"]
pub mod arguments;
