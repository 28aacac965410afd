//! A server whose clock stands where the test puts it.

use std::fs;
use std::path::PathBuf;

use redis::{Connection, cmd};

use super::{Server, Setup, eventually, info_number, now};

/// 2026-01-02 03:04:05 UTC, where each clock starts.
pub const START: i64 = 1_767_323_045_000;

/// What a server under libfaketime takes for the time: a file that it reads with each look at its
/// clock.
#[derive(Debug, Clone)]
pub struct Clock {
    file: PathBuf,
}

/// A server, its clock, and a connection.
pub struct Frozen {
    pub con: Connection,
    pub clock: Clock,
    pub server: Server,
}

/// The variant for programs with threads: a server's background threads read the clock too, and
/// without a lock around its state the main one now and then sees another time.
fn library() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").expect("a /usr/lib");
    let mut candidates = folders
        .filter_map(Result::ok)
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    candidates
        .find(|path| path.exists())
        .expect("libfaketime is missing: install Debian's package faketime")
}

/// The date in the notation that libfaketime reads, in UTC, with half a ms more because it rounds
/// down.
fn date(ms: i64) -> String {
    assert!(ms >= 0, "libfaketime knows no date before 1970: {ms}");
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, millis) = (of_day / 1000 % 60, of_day % 1000);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{millis:03}500")
}

/// Year, month and day of a day after 1970-01-01, by counting.
fn civil(mut days: i64) -> (i64, i64, i64) {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + i64::from(leap(year)) {
        days -= 365 + i64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [
        31,
        28 + i64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

/// libfaketime opens shared memory for the children that a process may have. A server that is
/// killed would leave it behind, and it needs the names no more.
fn forget_shared_memory(process: u32) {
    for name in ["faketime_shm_", "sem.faketime_sem_"] {
        let file = format!("/dev/shm/{name}{process}");
        fs::remove_file(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}

impl Clock {
    /// Stops the clock at an instant.
    pub fn stop(&self, ms: i64) {
        self.write(&date(ms));
    }

    /// Lets the clock run from about this instant on, so many times as fast as it should. Backwards
    /// if that is negative.
    pub fn run(&self, ms: i64, rate: f64) {
        self.write(&format!("@{} x{rate}", date(ms)));
    }

    /// The file is replaced at once: the server never reads half a date.
    fn write(&self, text: &str) {
        let new = self.file.with_extension("new");
        fs::write(&new, text).expect("the folder is writable");
        fs::rename(&new, &self.file).expect("the folder is writable");
    }
}

impl Frozen {
    /// With the module and nothing else.
    #[track_caller]
    pub fn start() -> Self {
        Self::start_with(Setup::new())
    }

    #[track_caller]
    pub fn start_with(setup: Setup) -> Self {
        let clock = Clock {
            file: setup.dir().join("clock"),
        };
        clock.stop(START);
        let server = setup
            .environment("TZ", "UTC")
            .environment("LD_PRELOAD", library())
            .environment("FAKETIME_TIMESTAMP_FILE", &clock.file)
            .environment("FAKETIME_NO_CACHE", "1")
            .environment("DONT_FAKE_MONOTONIC", "1")
            .start();
        forget_shared_memory(server.process());
        let mut frozen = Frozen {
            con: server.connect(),
            clock,
            server,
        };
        frozen.set(START);
        frozen
    }

    /// Puts the clock to an instant, and sees that the server reads it.
    #[track_caller]
    pub fn set(&mut self, ms: i64) {
        self.clock.stop(ms);
        eventually(
            "the server's clock obeys libfaketime (Redis 8.2 does)",
            || (now(&mut self.con) == ms).then_some(()),
        );
    }

    /// How many clock faults the server has counted.
    pub fn clock_faults(&mut self) -> i64 {
        info_number(&mut self.con, "slide", "slide_clock_faults")
    }

    pub fn delete(&mut self, key: &str) {
        cmd("DEL").arg(key).query::<()>(&mut self.con).expect("DEL");
    }
}
