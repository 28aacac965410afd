//! What a killed server finds again: every admission that it had acknowledged.

mod files;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{JoinHandle, spawn};

use redis::{Connection, Value};

use crate::support::random::{Numbers, effort, seeds};
use crate::support::{Server, Setup, eventually, info, info_number, run};
use crate::traffic::{Call, KEYS, Ledger, is_explained, stored_usage};

/// Connections that call at the same time.
const CALLERS: usize = 6;

/// Microseconds for each key that a child writes, to see that calls go on meanwhile: the next where
/// the machine was too busy for that.
const SLOW: [&str; 4] = ["100000", "300000", "1000000", "2000000"];
/// So long that the child of five lasting keys outlasts all patience with the calls meanwhile.
const ENDLESS: &str = "10000000";

fn durable() -> Setup {
    Setup::new()
        .line("appendonly yes")
        .line("appendfsync always")
}

/// Connections that call, one call after the other, until the server is gone.
struct Callers {
    threads: Vec<JoinHandle<(Ledger, Call)>>,
    answered: Arc<AtomicUsize>,
}

impl Callers {
    fn start(server: &Server, numbers: &mut Numbers) -> Self {
        let answered = Arc::new(AtomicUsize::new(0));
        let caller = |_| {
            let (con, answered) = (server.connect(), Arc::clone(&answered));
            let own = Numbers::new(numbers.below(u64::MAX));
            spawn(move || call_until_killed(con, own, &answered))
        };
        let threads = (0..CALLERS).map(caller).collect();
        Callers { threads, answered }
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }

    /// Waits until so many more calls were answered.
    fn go_on_for(&self, calls: usize) {
        let goal = self.answered() + calls;
        eventually("calls are answered", || {
            (self.answered() >= goal).then_some(())
        });
    }

    /// What all of them were answered, and the call of each that was not.
    fn join(self) -> (Ledger, Vec<Call>) {
        let mut sum = Ledger::default();
        let mut unanswered = Vec::new();
        for thread in self.threads {
            let (ledger, call) = thread.join().expect("a caller that meets no error");
            sum.add(&ledger);
            unanswered.push(call);
        }
        (sum, unanswered)
    }
}

fn call_until_killed(
    mut con: Connection,
    mut numbers: Numbers,
    answered: &AtomicUsize,
) -> (Ledger, Call) {
    let mut ledger = Ledger::default();
    loop {
        let call = Call::random(&mut numbers);
        match call.command.query::<Value>(&mut con) {
            Ok(reply) => ledger.enter(&call, &reply),
            Err(error) if error.is_io_error() => return (ledger, call),
            Err(error) => panic!("{error}"),
        }
        answered.fetch_add(1, Ordering::SeqCst);
    }
}

/// What the server's child may be writing.
#[derive(Debug, Clone, Copy)]
enum Background {
    Rewrite,
    Snapshot,
}

impl Background {
    fn begin(self, con: &mut Connection, delay: &str) {
        run::<()>(con, "CONFIG", &["SET", "rdb-key-save-delay", delay]);
        let command = match self {
            Background::Rewrite => "BGREWRITEAOF",
            Background::Snapshot => "BGSAVE",
        };
        run::<String>(con, command, &[]);
    }

    fn is_running(self, con: &mut Connection) -> bool {
        let field = match self {
            Background::Rewrite => "aof_rewrite_in_progress",
            Background::Snapshot => "rdb_bgsave_in_progress",
        };
        info_number(con, "persistence", field) == 1
    }

    /// How many have been begun since the start.
    fn begun(self, con: &mut Connection) -> i64 {
        let field = match self {
            Background::Rewrite => "aof_rewrites",
            Background::Snapshot => "rdb_saves",
        };
        info_number(con, "persistence", field)
    }

    /// Whether the last child that is done was successful.
    fn succeeded(self, con: &mut Connection) -> bool {
        let field = match self {
            Background::Rewrite => "aof_last_bgrewrite_status",
            Background::Snapshot => "rdb_last_bgsave_status",
        };
        info(con, "persistence", field).as_deref() == Some("ok")
    }

    /// The child that is at work, by the name of the file that it has begun.
    fn child(self, dir: &Path) -> Option<u32> {
        let (start, end) = match self {
            Background::Rewrite => ("temp-rewriteaof-", ".aof"),
            Background::Snapshot => ("temp-", ".rdb"),
        };
        let files = fs::read_dir(dir).expect("the server's folder");
        files
            .filter_map(|file| file.ok()?.file_name().into_string().ok())
            .find_map(|name| name.strip_prefix(start)?.strip_suffix(end)?.parse().ok())
    }

    /// Lets a child do all its work, and says how many calls were answered meanwhile.
    fn complete(self, con: &mut Connection, delay: &str, answered: impl Fn() -> usize) -> usize {
        let before = self.begun(con);
        self.begin(con, delay);
        let first = answered();
        let mut last = first;
        eventually("the child is done", || {
            let so_far = answered();
            if self.is_running(con) {
                last = so_far;
                return None;
            }
            (self.begun(con) > before).then_some(())
        });
        assert!(self.succeeded(con), "{self:?} has failed");
        last - first
    }

    /// Lets a child do all its work while calls go on.
    fn complete_beside_calls(self, con: &mut Connection, callers: &Callers) {
        // Each caller may have been answered before the child began, and count it only now.
        let mut goes_on = |delay: &str| self.complete(con, delay, || callers.answered()) > CALLERS;
        assert!(
            SLOW.into_iter().any(&mut goes_on),
            "no call was answered during {self:?}"
        );
    }

    /// Kills the server while its child works, and then the child.
    fn kill_during(
        self,
        server: Server,
        con: &mut Connection,
        callers: &Callers,
        calls: usize,
    ) -> Arc<tempfile::TempDir> {
        self.begin(con, ENDLESS);
        let child = eventually("the child has begun its file", || self.child(server.dir()));
        callers.go_on_for(calls);
        let dir = server.crash();
        let status = Command::new("kill")
            .args(["-9", &child.to_string()])
            .status();
        assert!(status.expect("kill").success(), "{self:?} was over");
        assert_eq!(self.child(dir.path()), Some(child), "{self:?} was over");
        dir
    }
}

/// One server's life: mixed calls of several connections, a rewrite and a snapshot meanwhile, and
/// SIGKILL at a random moment, in two of three cases while a child writes.
fn assert_survives_a_kill(seed: u64) {
    println!("durability, all acknowledged calls, SLIDE_SEED={seed}");
    let mut numbers = Numbers::new(seed);
    let setup = durable();
    let server = setup.clone().start();
    let mut con = server.connect();
    let callers = Callers::start(&server, &mut numbers);
    callers.go_on_for(300 + numbers.place(500));
    Background::Rewrite.complete_beside_calls(&mut con, &callers);
    Background::Snapshot.complete_beside_calls(&mut con, &callers);

    let calls = 1 + numbers.place(300);
    let dir = match seed % 3 {
        0 => Background::Rewrite.kill_during(server, &mut con, &callers, calls),
        1 => Background::Snapshot.kill_during(server, &mut con, &callers, calls),
        _ => {
            callers.go_on_for(calls);
            server.crash()
        }
    };
    let (ledger, unanswered) = callers.join();
    ledger.assert_mixed();

    let server = setup.in_dir(dir).start();
    let mut con = server.connect();
    let stored = stored_usage(&mut con);
    assert!(
        is_explained(&stored, &ledger, &unanswered),
        "SLIDE_SEED={seed}: {stored:?} is stored, {ledger:?} was answered"
    );
    assert_answers_what_is_stored(&mut con);
}

fn assert_answers_what_is_stored(con: &mut Connection) {
    for key in KEYS.iter().filter(|key| key.lasting) {
        assert_eq!(key.answered(con), key.stored(con), "{}", key.name);
    }
}

#[test]
fn a_killed_server_has_every_acknowledged_call() {
    for seed in seeds(effort(3, 21)) {
        assert_survives_a_kill(seed);
    }
}
