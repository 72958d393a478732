//! Ctrl-C and the time limit. During a search they end the search, and the report follows; while the model is loaded they
//! end the program, for there is nothing to report yet. A second Ctrl-C always does.

use crate::failure::exit;
use crate::machine;
use crate::output::say;
use crate::size::Size;
use nix::sys::signal::{SigSet, Signal};
use plimsoll_model::Patience;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);
static HEARD: AtomicBool = AtomicBool::new(false);
/// Whoever stops the search holds this, so that no search is stopped after it has ended.
static PHASE: Mutex<Phase> = Mutex::new(Phase::Loading);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Loading,
    Searching,
    Reporting,
}

/// What shells expect of a program that was interrupted.
const INTERRUPTED: i32 = 130;
/// Each worker may take this part of the budget to follow an atomic chain, and no more than so many bytes: there may be
/// many workers, and how far a chain is followed must not depend on their number.
const CHAIN_SHARE: u64 = 256;
const MOST_CHAIN_BYTES: u64 = 64 << 20;
/// The time limit is looked at again this often once it has passed: another phase may have begun.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
const WATCH_STACK_BYTES: usize = 256 << 10;

/// Set once the search must end.
pub fn flag() -> &'static AtomicBool {
    &STOP
}

/// How long and how far one step of a model is followed, within a budget of memory.
pub fn patience(memory: Option<Size>) -> Patience {
    let bytes = (machine::memory_budget(memory).bytes / CHAIN_SHARE).min(MOST_CHAIN_BYTES);
    Patience { stop: flag(), chain_bytes: bytes as usize }
}

/// A child was interrupted, so all of us are, though the signal may not have been heard here yet.
pub fn stop() {
    STOP.store(true, Ordering::SeqCst);
}

fn phase() -> MutexGuard<'static, Phase> {
    PHASE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a model is loaded.
pub fn load() {
    *phase() = Phase::Loading;
}

/// Does something that looks at [`flag`] often.
pub fn while_searching<T>(search: impl FnOnce() -> T) -> T {
    *phase() = Phase::Searching;
    if HEARD.load(Ordering::SeqCst) {
        stop();
    }
    let result = search();
    *phase() = Phase::Reporting;
    result
}

/// The search was told to end, and needs some time for what it leaves behind: nobody tells it again, but Ctrl-C ends the program.
pub fn give_time() {
    *phase() = Phase::Reporting;
    go_on();
}

/// Takes the flag down after a search, so that what it found can be followed.
pub fn go_on() {
    STOP.store(false, Ordering::SeqCst);
}

/// Stops the search at the deadline, even within a long step. If the model is not loaded by then, `unloaded` is called and
/// the program ends.
pub fn stop_at(deadline: Instant, unloaded: impl Fn() + Send + 'static) {
    // Without it the search looks at the clock itself, between steps.
    start(move || {
        thread::sleep(deadline.saturating_duration_since(Instant::now()));
        loop {
            time_is_up(&unloaded);
            thread::sleep(BETWEEN_LOOKS);
        }
    });
}

fn time_is_up(unloaded: impl Fn()) {
    let phase = phase();
    match *phase {
        Phase::Loading => {
            unloaded();
            std::process::exit(exit::UNKNOWN.into());
        }
        Phase::Searching => stop(),
        Phase::Reporting => {}
    }
}

fn start(watch: impl FnOnce() + Send + 'static) {
    let _ = thread::Builder::new().stack_size(WATCH_STACK_BYTES).spawn(watch);
}

/// Lets no limit of the system kill the program. Called before there are other threads. A file that becomes too large
/// (`ulimit -f`) is then an error of the write; where processor time is used up (`ulimit -t`), the search is stopped.
pub fn outlive_limits() {
    let mut limits = SigSet::empty();
    limits.add(Signal::SIGXFSZ);
    limits.add(Signal::SIGXCPU);
    if limits.thread_block().is_err() {
        return;
    }
    limits.remove(Signal::SIGXFSZ);
    start(move || {
        if limits.wait().is_ok() {
            say("the limit on processor time is reached (ulimit -t)");
            loop {
                time_is_up(|| ());
                thread::sleep(BETWEEN_LOOKS);
            }
        }
    });
}

/// Listens for signals; without them the program works all the same.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        let again = HEARD.swap(true, Ordering::SeqCst);
        let phase = phase();
        if *phase == Phase::Loading {
            say("interrupted before the search began");
        }
        if again || *phase != Phase::Searching {
            std::process::exit(INTERRUPTED);
        }
        stop();
    });
}
