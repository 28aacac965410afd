//! Telling the server of a command.

use std::ptr::{null, null_mut};

use redis_module::raw::{
    self, RedisModuleCommandArg, RedisModuleCommandArgType, RedisModuleCommandHistoryEntry,
    RedisModuleCommandInfo, RedisModuleCommandInfoVersion, RedisModuleCommandKeySpec,
    RedisModuleCommandKeySpec__bindgen_ty_1 as BeginSearch,
    RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 as Index,
    RedisModuleCommandKeySpec__bindgen_ty_2 as FindKeys,
    RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 as Range,
    RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_2 as Keynum, RedisModuleCtx,
};

use super::api::{OK, api};
use super::command::{Command, trampoline};
use super::spec::{Argument, KeyUse, Keys, Kind};

static INFO_VERSION: RedisModuleCommandInfoVersion = RedisModuleCommandInfoVersion {
    version: 1,
    sizeof_historyentry: size_of::<RedisModuleCommandHistoryEntry>(),
    sizeof_keyspec: size_of::<RedisModuleCommandKeySpec>(),
    sizeof_arg: size_of::<RedisModuleCommandArg>(),
};

/// Tells the server of `C`.
///
/// # Errors
/// The sentence for the log if the server does not take it.
pub fn register<C: Command>(ctx: *mut RedisModuleCtx) -> Result<(), String> {
    let spec = C::SPEC;
    let taken = |status| {
        if status == OK {
            Ok(())
        } else {
            Err(format!(
                "the server refuses the command {}",
                spec.name.to_string_lossy()
            ))
        }
    };
    // SAFETY: `ctx` is the context of loading, and the texts are static. Where the keys are is said
    // below.
    taken(unsafe {
        api!(RedisModule_CreateCommand(
            ctx,
            spec.name.as_ptr(),
            Some(trampoline::<C>),
            spec.flags.as_ptr(),
            0,
            0,
            0
        ))
    })?;
    // SAFETY: as above; the command was made just now.
    let command = unsafe { api!(RedisModule_GetCommand(ctx, spec.name.as_ptr())) };

    let mut key_specs = [key_spec(spec.keys), END_OF_KEY_SPECS];
    let mut lists = Lists::default();
    let info = RedisModuleCommandInfo {
        version: &raw const INFO_VERSION,
        summary: spec.summary.as_ptr(),
        complexity: spec.complexity.as_ptr(),
        since: spec.since.as_ptr(),
        history: null_mut(),
        tips: null(),
        arity: spec.arity,
        key_specs: key_specs.as_mut_ptr(),
        args: lists.lower(spec.arguments),
    };
    // SAFETY: the server copies all that `info` points to, which lives until then; all lists end as
    // it expects.
    taken(unsafe { api!(RedisModule_SetCommandInfo(command, &raw const info)) })?;

    // SAFETY: the pointer, which 7.0 lacks, is only read; the command lives with the module, and
    // the server copies the text.
    taken(unsafe {
        raw::RedisModule_SetCommandACLCategories
            .map_or(OK, |set| set(command, spec.categories.as_ptr()))
    })
}

fn key_spec(keys: Keys) -> RedisModuleCommandKeySpec {
    let (key_use, find_keys_type, fk) = match keys {
        Keys::One(key_use) => (
            key_use,
            raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE,
            FindKeys {
                range: Range {
                    lastkey: 0,
                    keystep: 1,
                    limit: 0,
                },
            },
        ),
        Keys::Counted(key_use) => (
            key_use,
            raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_KEYNUM,
            FindKeys {
                keynum: Keynum {
                    keynumidx: 0,
                    firstkey: 1,
                    keystep: 1,
                },
            },
        ),
    };
    let flags = match key_use {
        KeyUse::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
        KeyUse::Update => {
            raw::REDISMODULE_CMD_KEY_RW
                | raw::REDISMODULE_CMD_KEY_ACCESS
                | raw::REDISMODULE_CMD_KEY_UPDATE
        }
    };
    RedisModuleCommandKeySpec {
        notes: null(),
        flags: flags.into(),
        begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX,
        bs: BeginSearch {
            index: Index { pos: 1 },
        },
        find_keys_type,
        fk,
    }
}

/// All zero: how the server finds the end.
const END_OF_KEY_SPECS: RedisModuleCommandKeySpec = RedisModuleCommandKeySpec {
    notes: null(),
    flags: 0,
    begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INVALID,
    bs: BeginSearch {
        index: Index { pos: 0 },
    },
    find_keys_type: raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_OMITTED,
    fk: FindKeys {
        range: Range {
            lastkey: 0,
            keystep: 0,
            limit: 0,
        },
    },
};

/// All zero: how the server finds the end.
const END_OF_ARGUMENTS: RedisModuleCommandArg = RedisModuleCommandArg {
    name: null(),
    type_: 0,
    key_spec_index: 0,
    token: null(),
    summary: null(),
    since: null(),
    flags: 0,
    deprecated_since: null(),
    subargs: null_mut(),
    display_text: null(),
};

/// The lists of arguments, outer and inner, in the server's form.
#[derive(Debug, Default)]
struct Lists(Vec<Box<[RedisModuleCommandArg]>>);

impl Lists {
    /// The list's start, valid as long as `self`.
    fn lower(&mut self, arguments: &[Argument]) -> *mut RedisModuleCommandArg {
        let mut list = arguments
            .iter()
            .map(|argument| self.argument(argument))
            .chain([END_OF_ARGUMENTS])
            .collect::<Vec<_>>()
            .into_boxed_slice();
        let start = list.as_mut_ptr();
        self.0.push(list);
        start
    }

    fn argument(&mut self, argument: &Argument) -> RedisModuleCommandArg {
        let mut flags = raw::REDISMODULE_CMD_ARG_NONE;
        if argument.optional {
            flags |= raw::REDISMODULE_CMD_ARG_OPTIONAL;
        }
        if argument.multiple {
            flags |= raw::REDISMODULE_CMD_ARG_MULTIPLE;
        }
        RedisModuleCommandArg {
            name: argument.name.as_ptr(),
            type_: kind(argument.kind),
            key_spec_index: match argument.kind {
                Kind::Key => 0,
                _ => -1,
            },
            token: argument.token.map_or(null(), std::ffi::CStr::as_ptr),
            flags: flags.try_into().unwrap_or(0),
            subargs: match argument.kind {
                Kind::Block(inner) | Kind::OneOf(inner) => self.lower(inner),
                _ => null_mut(),
            },
            ..END_OF_ARGUMENTS
        }
    }
}

fn kind(kind: Kind) -> RedisModuleCommandArgType {
    match kind {
        Kind::Key => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
        Kind::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
        Kind::Text => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
        Kind::Token => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
        Kind::OneOf(_) => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
        Kind::Block(_) => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK,
    }
}
