//! How many states each level has; where there are many levels, neighbours are counted together, so that a curve can be drawn
//! of any search and takes next to nothing.

use serde::{Deserialize, Serialize};

/// As many numbers at most, a power of two.
const MOST: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelSizes {
    /// Levels that are counted together.
    pub levels_each: u32,
    /// The states of the first so many levels, of the next, and so on.
    pub states: Vec<u64>,
}

impl Default for LevelSizes {
    fn default() -> LevelSizes {
        LevelSizes { levels_each: 1, states: Vec::new() }
    }
}

impl LevelSizes {
    pub(crate) fn add(&mut self, level: u32, states: u64) {
        if states == 0 {
            return;
        }
        while level / self.levels_each >= MOST as u32 {
            self.states = self.states.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.levels_each *= 2;
        }
        let place = (level / self.levels_each) as usize;
        self.states.resize(self.states.len().max(place + 1), 0);
        self.states[place] += states;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_levels_are_counted_together() {
        let mut sizes = LevelSizes::default();
        (0..200).for_each(|level| sizes.add(level, level.into()));
        assert_eq!((sizes.levels_each, sizes.states.len(), sizes.states[7]), (1, 200, 7));
        (200..1025).for_each(|level| sizes.add(level, level.into()));
        assert_eq!((sizes.levels_each, sizes.states.len(), sizes.states[1]), (8, 129, (8..16).sum()));
        assert_eq!(sizes.states.iter().sum::<u64>(), (0..1025).sum::<u64>());
        sizes.add(u32::MAX, 1);
        assert!(sizes.states.len() <= MOST);
    }
}
