//! Each input that fuzzing has found worth keeping is checked again, without the fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use slide_fuzz::targets::{arguments, counter_field, lease, log_entry};

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The files in a folder, or the folders in it.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    found.map(|entry| entry.unwrap().path()).collect()
}

fn replay(target: &str, check: fn(&[u8])) {
    let inputs = inside(&folder("corpus").join(target));
    assert!(!inputs.is_empty(), "there is no input for {target}");
    for path in inputs {
        let input = fs::read(&path).unwrap();
        let agreed = catch_unwind(|| check(&input)).is_ok();
        assert!(agreed, "{} fails", path.display());
    }
}

#[test]
fn the_words_of_commands_are_read_as_the_rules_say() {
    replay("arguments", arguments::check);
}

#[test]
fn fields_of_counters_are_read_as_the_rules_say() {
    replay("counter_field", counter_field::check);
}

#[test]
fn leases_are_read_as_the_rules_say() {
    replay("lease", lease::check);
}

#[test]
fn entries_of_logs_are_read_as_the_rules_say() {
    replay("log_entry", log_entry::check);
}

#[test]
fn each_target_has_a_corpus_that_is_replayed() {
    let names = |paths: Vec<PathBuf>| -> BTreeSet<String> {
        let stem = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        paths.iter().map(stem).collect()
    };
    let replayed = ["arguments", "counter_field", "lease", "log_entry"].map(str::to_owned);
    let replayed = BTreeSet::from(replayed);
    assert_eq!(names(inside(&folder("targets"))), replayed);
    assert_eq!(names(inside(&folder("corpus"))), replayed);
}
