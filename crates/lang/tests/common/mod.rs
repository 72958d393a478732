//! What fuzz tests share.

use plimsoll_ir::random::Draw;

/// Numbers that look random and are the same in every run.
pub struct Random(Draw);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(Draw::new(seed))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit.max(1) as u64) as usize
    }
}
