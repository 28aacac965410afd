//! A server that is too old for the module.

#![allow(missing_docs)]

use std::fs;
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
    let mut server = Command::new(server)
        .current_dir(dir.path())
        .args(["--port", "0", "--unixsocket", "socket", "--logfile", "log"])
        .arg("--loadmodule")
        .arg(module)
        .spawn()
        .expect("a server");
    let log = || fs::read_to_string(dir.path().join("log")).unwrap_or_default();

    // A server ends by itself if it cannot load a module that it is told to.
    let status = loop {
        if let Some(status) = server.try_wait().expect("the server's status") {
            break status;
        }
        if log().contains("eady to accept connections") {
            server.kill().expect("the server can be ended");
        }
        std::thread::yield_now();
    };
    let log = log();
    assert!(
        !status.success() && log.contains("server aborting"),
        "{log}"
    );
    assert!(
        log.contains("slide is not loaded: the server is older than 7.0"),
        "{log}"
    );
}
