//! A demonstration for the terminal: the same bursty traffic through a fixed window and through
//! `SLIDE.LOG`, at the same time and on a server of its own. `make demo` runs it.

mod lines;
mod race;
mod screen;
mod server;
mod traffic;

use std::error::Error;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Instant;

use lines::Lines;
use race::{LIMIT, Race, WINDOW};
use screen::Screen;
use server::Server;
use traffic::{TICK, TICKS};

/// How the race is shown.
trait View {
    /// Shows how it stands.
    fn show(&mut self, race: &Race) -> io::Result<()>;

    /// Waits; false says that the viewer wants no more.
    fn wait_until(&mut self, instant: Instant) -> io::Result<bool>;
}

fn main() -> ExitCode {
    match demonstrate() {
        Ok(race) => {
            sum_up(&race);
            if race.log.worst <= LIMIT {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn demonstrate() -> Result<Race, Box<dyn Error>> {
    let server = Server::start()?;
    let mut race = Race::new(server.connect()?);
    if io::stdout().is_terminal() {
        // Gone, and the terminal as it was, when this returns.
        run(&mut race, &mut Screen::open()?)?;
    } else {
        run(&mut race, &mut Lines::begin())?;
    }
    Ok(race)
}

fn run(race: &mut Race, view: &mut impl View) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    for tick in 0..TICKS {
        race.send(traffic::calls(tick))?;
        view.show(race)?;
        if !view.wait_until(begin + TICK * (tick + 1))? {
            break;
        }
    }
    Ok(())
}

fn sum_up(race: &Race) {
    let seconds = WINDOW.as_secs();
    let sent: u64 = race.sent.iter().sum();
    println!(
        "\n{sent} calls were sent. At most {LIMIT} in {seconds} s is the limit. What passed:\n"
    );
    for limiter in [&race.fixed, &race.log] {
        println!(
            "  {:<30} {:>4} calls, {:>3} in the worst {seconds} s{}",
            limiter.name,
            limiter.passed.iter().sum::<u64>(),
            limiter.worst,
            match limiter.worst.checked_sub(LIMIT) {
                None | Some(0) => String::new(),
                Some(excess) => format!(": {excess} too many"),
            }
        );
    }
    println!();
}
