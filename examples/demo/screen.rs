//! The view on a terminal: bars that move.

use std::io;
use std::time::Instant;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Sparkline, SparklineBar};
use ratatui::{DefaultTerminal, Frame};

use crate::View;
use crate::race::{LIMIT, Limiter, Race, WINDOW};
use crate::traffic::{MOST, TICK, TICKS};

/// The terminal while the demonstration has it. Dropping it gives it back as it was.
#[derive(Debug)]
pub struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    pub fn open() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

impl View for Screen {
    fn show(&mut self, race: &Race) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, race)).map(|_| ())
    }

    fn wait_until(&mut self, instant: Instant) -> io::Result<bool> {
        while event::poll(instant.saturating_duration_since(Instant::now()))? {
            if let Event::Key(key) = event::read()? {
                let interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(false),
                    KeyCode::Char('c') if interrupt => return Ok(false),
                    _ => {}
                }
            }
        }
        Ok(true)
    }
}

fn draw(frame: &mut Frame, race: &Race) {
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(2),
        Constraint::Fill(3),
        Constraint::Fill(3),
        Constraint::Length(1),
    ]);
    let [head, sent, fixed, log, foot] = rows.areas(frame.area());
    let seconds = WINDOW.as_secs();
    let title = format!(" At most {LIMIT} calls in {seconds} s: the same calls, two limiters");
    frame.render_widget(Line::from(title).bold(), head);

    let bars = race.sent.iter().map(|&calls| bar(calls, Color::Gray));
    let block = Block::bordered().title(" calls sent, per 100 ms ");
    draw_bars(frame, sent, block, bars.collect());
    draw_limiter(frame, fixed, &race.fixed);
    draw_limiter(frame, log, &race.log);

    let ticks = u32::try_from(race.sent.len()).unwrap_or(TICKS);
    let left = (TICK * TICKS.saturating_sub(ticks)).as_secs();
    let help = format!(" red: more than {LIMIT} in the last {seconds} s · {left} s left · q quits");
    frame.render_widget(Line::from(help).dim(), foot);
}

fn draw_limiter(frame: &mut Frame, area: Rect, limiter: &Limiter) {
    let bars = limiter.passed.iter().zip(&limiter.in_window);
    let bars = bars.map(|(&passed, &calls)| bar(passed, color(calls)));
    let now = limiter.in_window.last().map_or(0, |&calls| calls);
    let seconds = WINDOW.as_secs();
    let standing = [
        format!(" last {seconds} s: {now:>2} ").fg(color(now)),
        format!("· worst {seconds} s: {:>2} ", limiter.worst).fg(color(limiter.worst)),
    ];
    let block = Block::bordered()
        .title(format!(" passed: {} ", limiter.name))
        .title(Line::from_iter(standing).right_aligned());
    draw_bars(frame, area, block, bars.collect());
}

/// The newest bars at the right, as many as there is room for.
fn draw_bars(frame: &mut Frame, area: Rect, block: Block, bars: Vec<SparklineBar>) {
    let room = usize::from(block.inner(area).width);
    let hidden = bars.len().saturating_sub(room);
    let shown = bars.into_iter().skip(hidden);
    frame.render_widget(
        Sparkline::default().block(block).data(shown).max(MOST),
        area,
    );
}

fn bar(calls: u64, color: Color) -> SparklineBar {
    SparklineBar::from(calls).style(Some(color.into()))
}

fn color(calls_in_window: usize) -> Color {
    if calls_in_window > LIMIT {
        Color::Red
    } else {
        Color::Green
    }
}
