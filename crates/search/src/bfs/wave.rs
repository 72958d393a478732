//! How levels are cut: into waves by what was found, into blocks for the processor's caches and for the workers at hand.

use super::ledger::Ledger;
use super::saved::Place;
use super::{Crew, Leader, read};
use crate::verdict::Why;
use plimsoll_model::Model;

/// A block never has fewer states than this but at the end of a wave (and where tests want tiny ones).
const LEAST_STATES: usize = 16;
/// Successors of a wave while the store learns.
const LEARNING_SUCCESSORS: usize = 1024;

/// Nobody is called before so many waves could have been shared.
const FIRST_WAVES: usize = 16;

/// Some states of a level, the first ones in the queue; or a part of them.
#[derive(Clone, Copy, Default)]
pub(super) struct Wave {
    pub level: u32,
    /// The number of its first state.
    pub first: u64,
    pub states: usize,
    /// States of a block, and how many blocks there are.
    pub block: usize,
    pub blocks: usize,
    /// Has it many successors?
    pub wide: bool,
}

impl Wave {
    /// The same without the first `states`.
    pub fn after(self, states: usize) -> Wave {
        let left = self.states - states;
        Wave { first: self.first + states as u64, states: left, blocks: left.div_ceil(self.block), ..self }
    }

    /// The first blocks of it.
    pub fn first_blocks(self, blocks: usize) -> Wave {
        let blocks = blocks.min(self.blocks);
        self.first_states(blocks * self.block)
    }

    /// The first states of it.
    pub fn first_states(self, states: usize) -> Wave {
        let states = states.min(self.states);
        Wave { states, blocks: states.div_ceil(self.block), ..self }
    }
}

impl<'a, M: Model + ?Sized> Leader<'_, 'a, '_, M> {
    /// The next wave, and whether it is worth sharing. How many states it has depends on what was found, and on nothing
    /// else: a search that ends early ends with a wave.
    pub(super) fn plan(&mut self, place: Place, ledger: &Ledger<'a, '_, M>) -> Result<(Wave, bool), Why> {
        let search = self.search;
        let Place { level, level_left, wave_left } = place;
        let Crew { workers, wave_successors, shared_successors, .. } = search.crew;
        let degree = ledger.degree().saturating_add(1);
        let samples = read(&search.tiers).samples();
        // While the store wants to learn it is given little at a time, and where states are limited no more than needed.
        let mut successors = if samples { LEARNING_SUCCESSORS } else { wave_successors };
        if let Some(limit) = ledger.control.limits.states {
            let missing = limit.saturating_sub(ledger.tally.stats.states);
            successors = successors.min(usize::try_from(missing).unwrap_or(usize::MAX));
        }
        let states = (successors / degree).max(LEAST_STATES.min(wave_successors)).min(level_left);
        // A wave that had begun ends where it would have ended.
        let states = if wave_left > 0 { wave_left } else { states };
        let wide = states.saturating_mul(degree) >= shared_successors;
        // Until threads run and have memory a small search is done.
        let is_small = self.followers == 0 && ledger.tally.stats.transitions < (shared_successors * FIRST_WAVES) as u64;
        let worth_it = workers > 1 && !samples && wide && !is_small;
        let shared = worth_it && self.has_shards();
        let block_successors = if shared {
            let [least, most] = search.crew.shared_block_successors;
            (states.saturating_mul(degree) / search.blocks.len()).clamp(least, most)
        } else {
            search.crew.block_successors
        };
        let block = (block_successors / degree).max(LEAST_STATES.min(block_successors));
        let blocks = states.div_ceil(block);
        let wave = Wave { level, first: ledger.expanded, states, block, blocks, wide };
        Ok((wave, shared && wave.blocks > 1))
    }
}
