//! A command's description, as COMMAND INFO and COMMAND DOCS show it.

use std::ffi::CStr;

use libc::c_int;

/// Everything that the server is told of a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandSpec {
    /// `slide.` and a verb.
    pub name: &'static CStr,
    /// One sentence.
    pub summary: &'static CStr,
    /// In terms of entries, tiers and buckets.
    pub complexity: &'static CStr,
    /// The module's first version with it.
    pub since: &'static CStr,
    /// The server's flags, separated by spaces.
    pub flags: &'static CStr,
    /// ACL categories, separated by spaces, on servers that have them for modules.
    pub categories: &'static CStr,
    /// How many words there are, counting the command's name; negative: the fewest.
    pub arity: c_int,
    /// Where its keys stand, and what it does with them.
    pub keys: Keys,
    /// The words after the name.
    pub arguments: &'static [Argument],
}

/// Where a command's keys stand.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// Arg 1 is the only key.
    One(KeyUse),
    /// Arg 1 is the number of keys that follow it. Cluster nodes do not read this description when
    /// they route a command of a module: it also needs the flag `getkeys-api`.
    Counted(KeyUse),
}

/// What a command does with a key.
#[derive(Clone, Copy, Debug)]
pub enum KeyUse {
    /// Reads it.
    Read,
    /// Reads it and may write it.
    Update,
}

/// A word, or several that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// The name in the documentation.
    pub name: &'static CStr,
    /// What it is.
    pub kind: Kind,
    /// The literal word before it, or that it is.
    pub token: Option<&'static CStr>,
    /// Whether it can be left out.
    pub optional: bool,
    /// Whether it can be repeated.
    pub multiple: bool,
}

/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// The key.
    Key,
    /// An integer.
    Integer,
    /// Any text.
    Text,
    /// Nothing but its token.
    Token,
    /// Several arguments in a row.
    Block(&'static [Argument]),
    /// One of several.
    OneOf(&'static [Argument]),
}

impl Argument {
    /// An argument that stands exactly once.
    pub const fn required(name: &'static CStr, kind: Kind) -> Self {
        Self {
            name,
            kind,
            token: None,
            optional: false,
            multiple: false,
        }
    }

    /// An argument that can be left out, with a literal word before it.
    pub const fn option(name: &'static CStr, token: &'static CStr, kind: Kind) -> Self {
        Self {
            name,
            kind,
            token: Some(token),
            optional: true,
            multiple: false,
        }
    }

    /// A literal word.
    pub const fn token(name: &'static CStr, token: &'static CStr) -> Self {
        Self {
            optional: false,
            ..Self::flag(name, token)
        }
    }

    /// A literal word that can be left out.
    pub const fn flag(name: &'static CStr, token: &'static CStr) -> Self {
        Self::option(name, token, Kind::Token)
    }

    /// The same argument, once or more.
    pub const fn repeated(mut self) -> Self {
        self.multiple = true;
        self
    }
}
