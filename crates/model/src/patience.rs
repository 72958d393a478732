//! What computing the successors of one state may take. One step may be arbitrarily long: a loop of a billion rounds, an
//! atomic chain of a million states. It can be given up, and then the list of successors says so.

use std::sync::atomic::{AtomicBool, Ordering};

/// Nobody sets this.
static NEVER: AtomicBool = AtomicBool::new(false);

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Set from outside when it is time.
    pub stop: &'static AtomicBool,
    /// Bytes that it may take to follow an atomic chain, and that its ends may take.
    pub chain_bytes: usize,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::USUAL
    }
}

impl Patience {
    pub const USUAL: Patience = Patience { stop: &NEVER, chain_bytes: 64 << 20 };

    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Why a list of successors is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// [`Patience::stop`] was set.
    Stopped,
    /// An atomic chain needs more memory than it may take.
    Memory,
}
