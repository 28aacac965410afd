//! What the client sends: a call now and then, and bursts.

use std::time::Duration;

/// How often calls are sent and the bars move.
pub const TICK: Duration = Duration::from_millis(100);

/// How long the demonstration lasts: 24 s.
pub const TICKS: u32 = 240;

/// The most calls in a tick.
pub const MOST: u64 = 11;

/// How many ticks there are from one single call to the next. The window is no multiple of that, so
/// no call falls on the end of a fixed window, where chance would decide what passes.
const SINGLE: u32 = 3;

/// Two bursts 800 ms apart come round every 2.7 s, which is no multiple of the window either: so they
/// meet it at its beginning, in its middle and across its end.
const CYCLE: u32 = 27;
const FIRST_BURST: u32 = 6;
const SECOND_BURST: u32 = 14;
const BURST_TICKS: u32 = 3;

/// How many calls are sent in a tick.
pub fn calls(tick: u32) -> u64 {
    let phase = tick % CYCLE;
    let in_burst = [FIRST_BURST, SECOND_BURST]
        .iter()
        .any(|&begin| (begin..begin + BURST_TICKS).contains(&phase));
    let single = u64::from(tick.is_multiple_of(SINGLE));
    single + if in_burst { MOST - 1 } else { 0 }
}
