//! One line on the terminal that says how far the search has come. Silent where there is no terminal.

use crate::health::signs;
use crate::size::{show_bytes, show_count, show_seconds};
use plimsoll_search::Stats;
use plimsoll_store::Budget;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const BETWEEN_LINES: Duration = Duration::from_millis(200);
/// Short runs show nothing.
const BEFORE_FIRST: Duration = Duration::from_millis(400);
const BAR_CELLS: u64 = 20;
/// Where the terminal does not tell its width.
const UNKNOWN_COLUMNS: usize = 100;

/// The line, rewritten in place.
pub struct Progress {
    shown: bool,
    start: Instant,
    next: Instant,
    last: (Instant, u64),
    budget: Budget,
    time_limit: Option<Duration>,
    dirty: bool,
}

impl Progress {
    pub fn new(wanted: bool, budget: Budget, time_limit: Option<Duration>) -> Progress {
        let now = Instant::now();
        let shown = wanted && io::stderr().is_terminal();
        Progress { shown, start: now, next: now + BEFORE_FIRST, last: (now, 0), budget, time_limit, dirty: false }
    }

    /// Called now and then by the search.
    pub fn watch(&mut self, stats: &Stats) {
        if !self.shown {
            return;
        }
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + BETWEEN_LINES;
        let rate = stats.states.saturating_sub(self.last.1) as f64 / (now - self.last.0).as_secs_f64().max(1e-3);
        self.last = (now, stats.states);
        let line = self.line(stats, rate as u64, now - self.start);
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
        let columns = if columns == 0 { UNKNOWN_COLUMNS } else { columns.max(20).into() };
        let line: String = line.chars().take(columns - 1).collect();
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
        self.dirty = true;
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.dirty {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }

    fn line(&self, stats: &Stats, rate: u64, elapsed: Duration) -> String {
        let (used, total) = (self.budget.used_bytes(), self.budget.total_bytes().max(1));
        let cells = (used * BAR_CELLS).div_ceil(total).min(BAR_CELLS) as usize;
        let bar = format!("{}{}", "#".repeat(cells), ".".repeat(BAR_CELLS as usize - cells));
        let place = if stats.levels > 0 { format!("level {}", stats.levels) } else { format!("depth {}", stats.depth) };
        let left = match self.time_limit {
            Some(limit) => format!(", {} left", show_seconds(limit.saturating_sub(elapsed).as_secs_f64())),
            None => String::new(),
        };
        format!(
            "{} states, {}/s, {} waiting, {place}{} [{bar}] {} of {}{left}",
            show_count(stats.states),
            show_count(rate),
            show_count(stats.frontier),
            signs(stats),
            show_bytes(used),
            show_bytes(total),
        )
    }
}
