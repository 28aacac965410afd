//! What one server has written, and another loads.

use std::fs;
use std::path::{Path, PathBuf};

use redis::Connection;

use super::{Background, assert_answers_what_is_stored, durable};
use crate::support::random::{Numbers, seeds};
use crate::support::{Setup, eventually, run, state};
use crate::traffic::{Call, KEYS, Ledger};

/// How data comes from one server to another.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Files {
    Snapshot,
    /// An append-only file that was rewritten, and so begins with a snapshot.
    SnapshotAndCommands,
    Commands,
}

impl Files {
    fn setup(self) -> Setup {
        match self {
            Files::Snapshot => Setup::new(),
            Files::SnapshotAndCommands => durable(),
            Files::Commands => durable().line("aof-use-rdb-preamble no"),
        }
    }

    /// A setup in whose folder lies a copy of what another server has written.
    fn copied_from(self, dir: &Path) -> Setup {
        let setup = self.setup();
        let copy = |folder: &str, name: &str| {
            let to = setup.dir().join(folder);
            fs::create_dir_all(&to).expect("a folder");
            fs::copy(dir.join(folder).join(name), to.join(name)).expect("a copy");
        };
        if self == Files::Snapshot {
            copy("", "dump.rdb");
        } else {
            for file in fs::read_dir(dir.join("appendonlydir")).expect("an append-only file") {
                let name = file.expect("a file").file_name();
                copy("appendonlydir", name.to_str().expect("a plain name"));
            }
        }
        setup
    }
}

/// The servers of the matrix that stand beside the one under test and load the module, and it too.
fn matrix() -> Vec<PathBuf> {
    let tested = PathBuf::from(Setup::server_file());
    let all = tested.parent().and_then(Path::parent).expect("a folder");
    let mut binaries = vec![tested.clone()];
    let table = include_str!("../../../scripts/servers.txt").lines();
    for row in table.filter(|row| !row.starts_with('#')) {
        let columns: Vec<&str> = row.split_whitespace().collect();
        let [name, _, "loads", ..] = columns[..] else {
            continue;
        };
        let (kind, _) = name.split_once('-').expect("a kind and a version");
        let binary = all.join(name).join(format!("{kind}-server"));
        if binary.exists() && binary != tested {
            binaries.push(binary);
        }
    }
    binaries
}

/// The format of a snapshot: the name it begins with, and a number.
fn format_of(dir: &Path) -> (String, u32) {
    let bytes = fs::read(dir.join("dump.rdb")).expect("a snapshot");
    let start = str::from_utf8(&bytes[..9]).expect("letters and digits");
    let (name, number) = start.split_at(start.find(char::is_numeric).expect("a number"));
    (name.to_owned(), number.parse().expect("a number"))
}

/// The format of the snapshots that a server writes.
fn own_format(binary: &Path) -> (String, u32) {
    let server = Setup::new().binary(binary).start();
    run::<()>(&mut server.connect(), "SAVE", &[]);
    format_of(server.dir())
}

/// Servers read their own earlier formats, and Valkey those of Redis before the two parted.
fn reads(reader: &(String, u32), format: &(String, u32)) -> bool {
    let parted = format.0 == "REDIS" && format.1 <= 11;
    (reader.0 == format.0 || parted) && format.1 <= reader.1
}

/// Fills a server with mixed calls and waits until all that expires soon is gone.
fn fill(con: &mut Connection, numbers: &mut Numbers) {
    let mut ledger = Ledger::default();
    for calls in 0..2000 {
        let call = Call::random(numbers);
        ledger.enter(&call, &call.command.query(con).expect("a good call"));
        if calls == 1000 {
            // So that an append-only file has a part that was rewritten and one that was not.
            Background::Rewrite.complete(con, "0", || 0);
        }
    }
    ledger.assert_mixed();
    let lasting = KEYS.iter().filter(|key| key.lasting).count();
    eventually("only lasting keys are left", || {
        (run::<usize>(con, "DBSIZE", &[]) == lasting).then_some(())
    });
}

/// Usage by key, as the module answers it.
fn answers(con: &mut Connection) -> Vec<i64> {
    let lasting = KEYS.iter().filter(|key| key.lasting);
    lasting.map(|key| key.answered(con)).collect()
}

/// Every server that can read these files answers the same usage from them, and each other one
/// says that it cannot.
fn assert_loads_elsewhere(files: Files) {
    let seed = seeds(1)[0];
    println!("durability, {files:?} on other servers, SLIDE_SEED={seed}");
    let server = files.setup().start();
    let mut con = server.connect();
    fill(&mut con, &mut Numbers::new(seed));
    run::<()>(&mut con, "SAVE", &[]);
    let format = format_of(server.dir());
    let expected = (answers(&mut con), state(&mut con));
    let dir = server.crash();

    for binary in matrix() {
        let setup = files.copied_from(dir.path()).binary(&binary);
        if files == Files::Commands || reads(&own_format(&binary), &format) {
            println!("{format:?}, {files:?}: loaded by {}", binary.display());
            let server = setup.start();
            let mut con = server.connect();
            let found = (answers(&mut con), state(&mut con));
            assert_eq!(found, expected, "{}", binary.display());
            assert_answers_what_is_stored(&mut con);
        } else {
            println!("{format:?}, {files:?}: refused by {}", binary.display());
            let log = setup.refuses();
            let says = [
                "Can't handle RDB format version",
                "Wrong signature",
                "Bad file format reading the append only file",
            ];
            assert!(says.iter().any(|words| log.contains(words)), "{log}");
        }
    }
}

#[test]
fn a_snapshot_loads_on_every_server_that_knows_its_format() {
    assert_loads_elsewhere(Files::Snapshot);
}

#[test]
fn an_append_only_file_that_begins_with_a_snapshot_loads_where_that_does() {
    assert_loads_elsewhere(Files::SnapshotAndCommands);
}

#[test]
fn an_append_only_file_of_commands_loads_on_every_server() {
    assert_loads_elsewhere(Files::Commands);
}
