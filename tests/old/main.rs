//! A server that is too old for the module.

#![allow(missing_docs)]

use std::path::Path;
use std::process::Command;

#[test]
fn a_server_older_than_7_0_says_why_it_does_not_load_the_module() {
    let server = std::env::var_os("SLIDE_SERVER")
        .expect("SLIDE_SERVER does not say which server to test with: run `make test`");
    let module = std::env::var_os("SLIDE_MODULE").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/release/libslide.so"),
        Into::into,
    );
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(server);
    command
        .current_dir(dir.path())
        .args(["--port", "0", "--save", ""]);
    // It ends by itself, as a server does that cannot load a module it is told to.
    let output = command
        .arg("--loadmodule")
        .arg(module)
        .output()
        .expect("a server");
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{log}");
    assert!(
        log.contains("slide is not loaded: the server is older than 7.0"),
        "{log}"
    );
}
