//! Ctrl-C: the first ends the search and the report follows, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
/// What shells expect of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Set once the search must end.
pub fn flag() -> &'static AtomicBool {
    &STOP
}

/// Listens for signals; without them the program works all the same.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    });
}
