//! Printing that survives a closed pipe.

use std::io::{self, Write};

/// Standard output. Once a write fails (a pipe that was closed), the rest is dropped: the exit code still tells.
pub struct Output {
    broken: bool,
}

impl Output {
    pub fn new() -> Output {
        Output { broken: false }
    }

    pub fn print(&mut self, text: &str) {
        if !self.broken {
            let mut out = io::stdout().lock();
            self.broken = out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err();
        }
    }

    /// Is nobody reading any more?
    pub fn is_broken(&self) -> bool {
        self.broken
    }
}

impl Default for Output {
    fn default() -> Output {
        Output::new()
    }
}

/// A message to the person at the terminal.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
