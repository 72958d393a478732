//! How the levels of a breadth-first search grow: what an estimate of its size is made from.
//!
//! There may be millions of levels, so only so many points are kept, at equal distances: when there are too many, every second one goes.

use serde::{Deserialize, Serialize};

/// Points that are kept at most.
const MOST_POINTS: usize = 256;

/// How many states and transitions were found when a level was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// States up to this level, those of the level included.
    pub states: u64,
    /// Steps out of the levels before it.
    pub transitions: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Growth {
    /// Levels from one point to the next; the first is of the last level before that distance.
    pub every: u32,
    pub points: Vec<Point>,
    /// Levels that were complete.
    levels: u32,
}

impl Default for Growth {
    fn default() -> Growth {
        Growth { every: 1, points: Vec::new(), levels: 0 }
    }
}

impl Growth {
    /// Takes note that a level is complete. A search that goes on may say so again.
    pub fn note(&mut self, level: u32, states: u64, transitions: u64) {
        if level != self.levels {
            return;
        }
        self.levels += 1;
        if !self.levels.is_multiple_of(self.every) {
            return;
        }
        self.points.push(Point { states, transitions });
        if self.points.len() == MOST_POINTS {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.every *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stay_few_and_at_equal_distances() {
        let mut growth = Growth::default();
        for level in 0..10_000 {
            growth.note(level, u64::from(level) + 1, 2 * u64::from(level));
            growth.note(level, 0, 0);
            assert!(growth.points.len() < MOST_POINTS);
        }
        assert_eq!(growth.every, 64);
        assert_eq!(growth.points.len(), 10_000 / 64);
        let expected = (1..).map(|number| 64 * number).zip(&growth.points);
        assert!(
            expected.into_iter().all(|(levels, point)| point.states == levels && point.transitions == 2 * (levels - 1))
        );
    }
}
