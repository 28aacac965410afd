//! What has to hold, and what is said, before the first command is registered.

use std::ffi::CStr;
use std::iter;
use std::sync::atomic::AtomicBool;

use libc::c_int;
use redis_module::configuration::{ConfigurationFlags, register_bool_configuration};
use redis_module::raw::{self, ModuleOptions};
use redis_module::{RedisString, Status};

use super::api::{OK, api};
use super::command::{Command, catching_panics};
use super::context::Context;
use super::effects::{Effects, NEEDED};
use super::error::Found;
use super::module_string::ModuleString;
use super::register;
use super::unload;

/// The oldest server that has all that the module calls, as the server numbers its versions.
const OLDEST_SERVER: c_int = 0x0007_0000;

/// Module options of Valkey, which the bindings have no names for. Other servers may give these bits
/// another meaning.
mod valkey_options {
    use libc::c_int;

    /// Spares each propagated command a look-up. The module checks its commands when it is loaded.
    pub const SKIP_COMMAND_VALIDATION: c_int = 1 << 4;

    /// Lets Valkey 9 move whole slots (`CLUSTER MIGRATESLOTS`) while the module is loaded.
    pub const HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;
}

/// The module while the server loads it.
#[derive(Clone, Copy, Debug)]
pub struct Loading<'a> {
    ctx: Context<'a>,
}

/// Loads the module by `register`, if the server will do; if not, its log says why.
pub fn load(
    ctx: &redis_module::Context,
    args: &[RedisString],
    register: fn(Loading<'_>) -> Result<(), String>,
) -> Status {
    let effects = Effects::default();
    // SAFETY: the context is that of loading, which lasts until this function returns.
    let ctx = unsafe { Context::new(ctx.ctx, &effects) };
    let outcome = catching_panics(|| {
        if let Some(first) = args.first() {
            return Err(format!(
                "loadmodule takes nothing after the path, got {}",
                Found::new(Some(first.as_slice()))
            ));
        }
        register(Loading::begin(ctx)?)?;
        unload::remember_loading(ctx);
        Ok(())
    });
    match outcome.unwrap_or_else(Err) {
        Ok(()) => Status::Ok,
        Err(reason) => {
            ctx.log_warning(&format!("slide is not loaded: {reason}"));
            Status::Err
        }
    }
}

impl<'a> Loading<'a> {
    /// Checks the server, and sets how it treats the module.
    fn begin(ctx: Context<'a>) -> Result<Self, String> {
        let loading = Self { ctx };
        check_version()?;
        loading.check_commands()?;
        let options =
            ModuleOptions::NO_IMPLICIT_SIGNAL_MODIFIED | ModuleOptions::HANDLE_REPL_ASYNC_LOAD;
        let mut options = options.bits();
        if loading.is_valkey() {
            options |= valkey_options::SKIP_COMMAND_VALIDATION
                | valkey_options::HANDLE_ATOMIC_SLOT_MIGRATION;
        }
        // SAFETY: the context is that of loading. Keys are signalled as changed by the module, and
        // it keeps nothing outside keys that a replica's loading could invalidate, or that could
        // name a slot's keys before they have all arrived: it opens those of the caller, and no
        // others.
        unsafe { api!(RedisModule_SetModuleOptions(ctx.raw, options)) };
        Ok(loading)
    }

    /// Makes an ACL category, where the server has them for modules.
    ///
    /// One that is there already is left from an earlier loading: servers keep them. Where it is
    /// missing for any other reason, the server refuses the commands that name it.
    pub fn category(self, name: &CStr) {
        // SAFETY: the pointer, which 7.0 lacks, is only read; the server copies the name.
        unsafe {
            raw::RedisModule_AddACLCategory.map(|add| add(self.ctx.raw, name.as_ptr()));
        }
    }

    /// Registers a command.
    ///
    /// # Errors
    /// The sentence for the log if the server refuses it.
    pub fn command<C: Command>(self) -> Result<(), String> {
        register::register::<C>(self.ctx.raw)
    }

    /// Registers the setting `name`, yes unless the server's configuration says no.
    ///
    /// # Errors
    /// The sentence for the log if the configuration says something else.
    pub fn switch(self, name: &str, value: &'static AtomicBool) -> Result<(), String> {
        let ctx = redis_module::Context::new(self.ctx.raw);
        register_bool_configuration(&ctx, name, value, true, ConfigurationFlags::DEFAULT, None);
        // SAFETY: the context is that of loading, and the only setting is registered.
        let status = unsafe { api!(RedisModule_LoadConfigs(self.ctx.raw)) };
        if status == OK {
            Ok(())
        } else {
            Err(format!("the server's configuration of {name} is wrong"))
        }
    }

    /// Whether the server calls itself Valkey.
    fn is_valkey(self) -> bool {
        // SAFETY: the context is that of loading; the field's text lives as long as the information, which
        // is ours to free.
        unsafe {
            let info = api!(RedisModule_GetServerInfo(self.ctx.raw, c"server".as_ptr()));
            let name = api!(RedisModule_ServerInfoGetFieldC(
                info,
                c"server_name".as_ptr()
            ));
            let is_valkey = !name.is_null() && CStr::from_ptr(name) == c"valkey";
            api!(RedisModule_FreeServerInfo(self.ctx.raw, info));
            is_valkey
        }
    }

    /// Checks that the server still has the commands that the module propagates and calls, under their
    /// own names.
    fn check_commands(self) -> Result<(), String> {
        for command in NEEDED {
            let texts = iter::once(command.name).chain(command.sample.iter().copied());
            let texts = texts.map(|text| ModuleString::new(self.ctx, text.to_bytes()));
            let texts = texts.collect::<Vec<_>>();
            let mut handles = texts.iter().map(ModuleString::raw).collect::<Vec<_>>();
            let count = c_int::try_from(handles.len()).unwrap_or(0);
            let mut keys = 0;
            // SAFETY: the words live until after the call, and the result is ours to free.
            let found = unsafe {
                let positions = api!(RedisModule_GetCommandKeys(
                    self.ctx.raw,
                    handles.as_mut_ptr(),
                    count,
                    &raw mut keys
                ));
                let found = !positions.is_null();
                api!(RedisModule_Free(positions.cast()));
                found
            };
            if !found {
                return Err(format!(
                    "the command {} is renamed away, and the module needs it",
                    command.name.to_string_lossy()
                ));
            }
        }
        Ok(())
    }
}

fn check_version() -> Result<(), String> {
    // SAFETY: the pointer, which servers before 6.2 lack, is only read.
    let version = unsafe { raw::RedisModule_GetServerVersion.map_or(0, |version| version()) };
    if version >= OLDEST_SERVER {
        Ok(())
    } else {
        Err("the server is older than 7.0".to_owned())
    }
}
