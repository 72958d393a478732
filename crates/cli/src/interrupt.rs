//! Ctrl-C: during a search the first one ends the search, and the report follows; otherwise, and the second
//! time, it ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
static HEARD: AtomicBool = AtomicBool::new(false);
static SEARCHING: AtomicBool = AtomicBool::new(false);
/// What shells expect of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Set once the search must end.
pub fn flag() -> &'static AtomicBool {
    &STOP
}

/// A child was interrupted, so all of us are, though the signal may not have been heard here yet.
pub fn stop() {
    STOP.store(true, Ordering::SeqCst);
}

/// Does something that looks at [`flag`] often.
pub fn while_searching<T>(search: impl FnOnce() -> T) -> T {
    SEARCHING.store(true, Ordering::SeqCst);
    let result = search();
    SEARCHING.store(false, Ordering::SeqCst);
    result
}

/// Listens for signals; without them the program works all the same.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if HEARD.swap(true, Ordering::SeqCst) || !SEARCHING.load(Ordering::SeqCst) {
            std::process::exit(INTERRUPTED);
        }
        stop();
    });
}
