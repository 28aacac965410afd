//! Shared libraries in C, compiled when a test needs them.

use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::{env, fs};

/// Compiles a source file, named as in the repository, beside the test's own program.
pub fn library(source: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let name = source.file_stem().expect("a file").to_string_lossy();
    let program = env::current_exe().expect("a running program");
    let library = program.with_file_name(format!("slide_{name}.so"));
    // Another process may be loading it just now.
    let new = library.with_extension(process::id().to_string());
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-shared", "-fPIC", "-O2", "-g"])
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .args([&new, &source])
        .status()
        .expect("cc is missing: `make setup` installs it");
    assert!(compiled.success(), "cc failed on {}", source.display());
    fs::rename(&new, &library).expect("the folder is writable");
    library
}
