//! What an operator can set while the server runs.

use std::sync::atomic::{AtomicBool, Ordering};

/// `slide.enforce`: with `no`, every call is decided, recorded and counted as with `yes`, but no reply says
/// that it is limited. The server sets it when it loads the module.
pub static ENFORCE: AtomicBool = AtomicBool::new(true);

/// Whether replies say that a call is limited.
pub fn limits_are_enforced() -> bool {
    ENFORCE.load(Ordering::Relaxed)
}
