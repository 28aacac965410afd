//! A server whose wall clock the test sets.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use redis::{Connection, cmd};

use super::compiled::library;
use super::{Server, Setup, info_number, now};

/// 2026-01-02 03:04:05 UTC, where each clock starts.
pub const START: i64 = 1_767_323_045_000;

/// How many motions the file has room for, after a first field that says which one counts.
const MOTIONS: usize = 256;
const MOTION_BYTES: usize = 24;
const FIRST_MOTION: usize = 8;

/// What a server with the clock of clock.c preloaded takes for the time: a file that it has mapped.
#[derive(Debug, Clone)]
pub struct Clock {
    page: Arc<Mutex<Page>>,
}

#[derive(Debug)]
struct Page {
    file: File,
    current: u8,
}

/// Redis 8.10 counts to some 2^31, and answers nothing meanwhile, when its clock steps back by 9 to 17
/// years. By less at a time it does not.
const LONGEST_STEP_BACK: i64 = 250_000_000_000;

/// A server, its clock, and a connection.
pub struct Frozen {
    pub con: Connection,
    pub clock: Clock,
    pub server: Server,
    set_to: i64,
}

/// The library to preload, built once in each process.
fn clock_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| library("tests/support/clock.c"))
}

fn micros_since_1970() -> i64 {
    let passed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(passed.expect("a date after 1970").as_micros())
        .expect("a date before the year 292,000")
}

impl Page {
    fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        file.set_len((FIRST_MOTION + MOTIONS * MOTION_BYTES) as u64)?;
        Ok(Page { file, current: 0 })
    }

    /// The server never reads a motion that is half written: the new one is complete before the one
    /// byte that names it changes.
    fn write(&mut self, shown: i64, since: i64, rate: f64) -> io::Result<()> {
        self.current = self.current.wrapping_add(1);
        let place = FIRST_MOTION + usize::from(self.current) * MOTION_BYTES;
        let motion = [shown.to_ne_bytes(), since.to_ne_bytes(), rate.to_ne_bytes()].concat();
        self.file.write_all_at(&motion, place as u64)?;
        self.file.write_all_at(&[self.current], 0)
    }
}

impl Clock {
    fn create(path: &Path) -> Self {
        let page = Page::create(path).expect("the folder is writable");
        let clock = Clock {
            page: Arc::new(Mutex::new(page)),
        };
        clock.stop(START);
        clock
    }

    /// Stops the clock at an instant.
    pub fn stop(&self, ms: i64) {
        self.run(ms, 0.0);
    }

    /// Lets the clock run on from an instant, this many times as fast as it should; backwards if that
    /// is negative.
    pub fn run(&self, ms: i64, rate: f64) {
        assert!(ms >= 0, "no server's clock is before 1970: {ms}");
        let mut page = self.page.lock().expect("no writer panicked");
        page.write(ms * 1000, micros_since_1970(), rate)
            .expect("the file is writable");
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
        let file = setup.dir().join("clock");
        let clock = Clock::create(&file);
        let server = setup
            .environment("TZ", "UTC")
            .environment("LD_PRELOAD", clock_library())
            .environment("SLIDE_CLOCK", file)
            .start();
        let mut con = server.connect();
        assert_eq!(now(&mut con), START, "the server ignores its clock");
        Frozen {
            con,
            clock,
            server,
            set_to: START,
        }
    }

    /// Sets the clock to an instant: the server's next command sees it.
    #[track_caller]
    pub fn set(&mut self, ms: i64) {
        while self.set_to - ms > LONGEST_STEP_BACK {
            self.set_to -= LONGEST_STEP_BACK;
            self.clock.stop(self.set_to);
            cmd("PING").exec(&mut self.con).expect("PING");
        }
        self.set_to = ms;
        self.clock.stop(ms);
    }

    /// How many clock faults the server has counted.
    pub fn clock_faults(&mut self) -> i64 {
        info_number(&mut self.con, "slide", "slide_clock_faults")
    }

    pub fn delete(&mut self, key: &str) {
        cmd("DEL").arg(key).query::<()>(&mut self.con).expect("DEL");
    }
}
