//! The view where there is no terminal: a line for each tick in which something was sent.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Instant;

use crate::View;
use crate::race::{LIMIT, Race, WINDOW};
use crate::traffic::TICK;

/// How wide a column is.
const COLUMN: usize = 30;

#[derive(Debug)]
pub struct Lines;

impl Lines {
    pub fn begin() -> Self {
        let seconds = WINDOW.as_secs();
        println!(
            "At most {LIMIT} calls in {seconds} s. One # is one call that was sent, or that passed.\n"
        );
        println!(
            "{:>7}   {:<13}{:<COLUMN$}SLIDE.LOG",
            "time", "sent", "fixed window (INCR, PEXPIRE)"
        );
        Self
    }
}

impl View for Lines {
    fn show(&mut self, race: &Race) -> io::Result<()> {
        let Some((&sent @ 1.., earlier)) = race.sent.split_last() else {
            return Ok(());
        };
        let time = TICK.as_secs_f64() * f64::from(u32::try_from(earlier.len()).unwrap_or(u32::MAX));
        let [fixed, log] = [&race.fixed, &race.log].map(|limiter| {
            let passed = limiter.passed.last().map_or(0, |&passed| passed);
            match limiter.in_window.last() {
                Some(&calls) if calls > LIMIT => {
                    format!("{}  {calls} in {} s!", bar(passed), WINDOW.as_secs())
                }
                _ => bar(passed),
            }
        });
        let line = format!("{time:>5.1} s   {:<13}{fixed:<COLUMN$}{log}", bar(sent));
        writeln!(io::stdout(), "{}", line.trim_end())
    }

    fn wait_until(&mut self, instant: Instant) -> io::Result<bool> {
        sleep(instant.saturating_duration_since(Instant::now()));
        Ok(true)
    }
}

fn bar(calls: u64) -> String {
    "#".repeat(usize::try_from(calls).unwrap_or(0))
}
