//! One line on the terminal that says how far the search has come. Silent where there is no terminal.

use crate::estimate;
use crate::health::signs;
use crate::size::{show_bytes, show_count};
use plimsoll_search::Stats;
use plimsoll_store::Budget;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const BETWEEN_LINES: Duration = Duration::from_millis(200);
/// Short runs show nothing.
const BEFORE_FIRST: Duration = Duration::from_millis(400);
const BAR_CELLS: u64 = 20;
/// Nobody waits longer.
const MOST_SECONDS: f64 = 1e8;
/// Where the terminal does not tell its width.
const UNKNOWN_COLUMNS: usize = 80;

/// Can a line of the terminal be written again?
fn can_rewrite() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// Says what is done before the search, until something else is said.
pub fn stage(wanted: bool, what: &str) {
    if wanted && can_rewrite() {
        let _ = write!(io::stderr(), "\r\x1b[2K{what} ...\r");
    }
}

/// Removes what [`stage`] said.
pub fn end_stage(wanted: bool) {
    if wanted && can_rewrite() {
        let _ = write!(io::stderr(), "\r\x1b[2K");
    }
}

/// The line, rewritten in place.
pub struct Progress {
    shown: bool,
    start: Instant,
    next: Instant,
    last: (Instant, u64),
    /// States when it began: there are some if it was resumed.
    first: Option<u64>,
    budget: Budget,
    time_limit: Option<Duration>,
    dirty: bool,
}

impl Progress {
    pub fn new(wanted: bool, budget: Budget, time_limit: Option<Duration>) -> Progress {
        let now = Instant::now();
        let shown = wanted && can_rewrite();
        let (next, last) = (now + BEFORE_FIRST, (now, 0));
        Progress { shown, start: now, next, last, first: None, budget, time_limit, dirty: false }
    }

    /// Called now and then by the search.
    pub fn watch(&mut self, stats: &Stats) {
        if !self.shown {
            return;
        }
        let first = *self.first.get_or_insert(stats.states);
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + BETWEEN_LINES;
        let rate = stats.states.saturating_sub(self.last.1) as f64 / (now - self.last.0).as_secs_f64().max(1e-3);
        self.last = (now, stats.states);
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
        let columns = if columns == 0 { UNKNOWN_COLUMNS } else { columns.max(20).into() };
        let so_far = stats.states.saturating_sub(first) as f64 / (now - self.start).as_secs_f64().max(1e-3);
        let left = estimate::states(stats).map(|estimate| estimate.seconds_left(stats.states, so_far));
        let line = self.line(stats, rate as u64, left, now - self.start, columns - 1);
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
        self.dirty = true;
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.dirty {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }

    /// What matters most comes first; what does not fit is left out, part by part.
    fn line(&self, stats: &Stats, rate: u64, left: Option<[f64; 2]>, elapsed: Duration, columns: usize) -> String {
        let (used, total) = (self.budget.used_bytes(), self.budget.total_bytes().max(1));
        let cells = (used * BAR_CELLS).div_ceil(total).min(BAR_CELLS) as usize;
        let place = if stats.levels > 0 { format!("level {}", stats.levels) } else { format!("depth {}", stats.depth) };
        let time = match self.time_limit {
            Some(limit) => format!("{} of {}", clock(elapsed), clock(limit)),
            None => clock(elapsed),
        };
        let parts = [
            format!("{} states", show_count(stats.states)),
            format!(" {}% of {}", used.saturating_mul(100) / total, show_bytes(total)),
            format!(" {time}"),
            left.map_or(String::new(), |seconds| {
                let [from, to] = seconds.map(|seconds| clock(Duration::from_secs_f64(seconds.min(MOST_SECONDS))));
                format!(" (left: {from} to {to})")
            }),
            format!(" {}/s", short(rate)),
            format!(" {} waiting", short(stats.frontier)),
            format!(" {place}"),
            signs(stats),
            format!(" [{}{}]", "#".repeat(cells), ".".repeat(BAR_CELLS as usize - cells)),
        ];
        let mut line = String::new();
        for part in parts {
            if line.chars().count() + part.chars().count() <= columns {
                line.push_str(&part);
            }
        }
        line
    }
}

/// A count in few letters.
fn short(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{}k", count / 1_000),
        10_000_000..10_000_000_000 => format!("{}M", count / 1_000_000),
        _ => format!("{}G", count / 1_000_000_000),
    }
}

/// A time as clocks show it.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..3_600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_fits_eighty_columns() {
        let limit = Some(Duration::from_secs(100 * 3_600));
        let progress = Progress::new(false, Budget::new(700 << 30), limit);
        let stats = Stats { states: 99_999_999_999, frontier: 9_999_999_999, levels: 1_234_567, ..Stats::default() };
        let elapsed = Duration::from_secs(99 * 3_600 + 61);
        let line = progress.line(&stats, 123_456_789, None, elapsed, 79);
        for part in ["99,999,999,999 states", "0% of 700 GiB", "99:01:01 of 100:00:00", "123M/s", "9999M waiting"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(line.len() <= 79, "{line}");
        let left = progress.line(&stats, 123_456_789, Some([61.4, 1e30]), elapsed, 150);
        assert!(left.contains("of 100:00:00 (left: 1:01 to 27777:46:40) 123M/s"), "{left}");
        let narrow = progress.line(&stats, 0, None, elapsed, 40);
        assert!(narrow.starts_with("99,999,999,999 states 0% of") && narrow.len() <= 40, "{narrow}");
        assert!(progress.line(&Stats::default(), 5, None, Duration::ZERO, 150).ends_with(']'));
    }
}
