//! Calls to the server's functions, which it hands over as pointers when it loads the module.

/// Calls a function that every supported server has. Loading is refused where one is missing, so
/// the panic, which the command boundary catches, says that a name was never checked.
macro_rules! api {
    ($name:ident($($argument:expr),* $(,)?)) => {
        match redis_module::raw::$name {
            Some(function) => function($($argument),*),
            None => panic!(concat!("the server has no ", stringify!($name))),
        }
    };
}

pub(super) use api;

/// The status that the server's functions return on success.
pub const OK: libc::c_int = 0;
