//! What an operator can set while the server runs.

use std::sync::atomic::{AtomicBool, Ordering};

/// `slide.enforce`: with `no`, every call is recorded and none is told that it is limited.
pub static ENFORCE: AtomicBool = AtomicBool::new(true);

/// Whether a call over a limit is turned away.
pub fn limits_are_enforced() -> bool {
    ENFORCE.load(Ordering::Relaxed)
}
