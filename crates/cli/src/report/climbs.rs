//! How a search went on when memory was full, and the measurements that led to it.

use super::layers::LayersFacts;
use crate::size::{show_bytes, show_count};
use plimsoll_store::{Climb, Rung};
use serde::Serialize;
use std::fmt::Write;

#[derive(Clone, Debug, Serialize)]
pub struct ClimbFacts {
    /// What the search went on with.
    pub to: &'static str,
    /// Why, for people.
    pub reason: String,
    /// The level whose states were being found, and how many states were found by then.
    pub level: u32,
    pub states: u64,
    /// What the structures had of the memory that they share, and what was left.
    pub memory_bytes: u64,
    pub left_bytes: u64,
    pub store_bytes: u64,
    /// Bytes of the store for each state that it held.
    pub bytes_per_state: f64,
    /// What all structures took more than when the level before the last began.
    pub grown_bytes: u64,
    /// Share of successors that were known.
    pub matched_share: f64,
    /// The last complete level, divided by the one before.
    pub level_growth: f64,
    /// States that waited, and their bytes.
    pub waiting: u64,
    pub waiting_bytes: u64,
    /// How many levels back the farthest state was that was known, of those that are held by level.
    pub longest_way_back: u32,
}

impl ClimbFacts {
    /// What was done on `disk` is known afterwards.
    pub fn new(climb: &Climb, disk: Option<&LayersFacts>) -> ClimbFacts {
        let Climb { to, outlook, held, store_bytes, left_bytes, memory_bytes, longest_way_back } = *climb;
        let mut facts = ClimbFacts {
            to: match to {
                Rung::Layers => "layers on disk",
                Rung::Compact => "denser tables",
                Rung::Frozen => "frozen tables and levels",
                Rung::Levels => "levels",
                Rung::Filter => "a filter that may miss states",
            },
            reason: String::new(),
            level: outlook.level,
            states: outlook.states,
            memory_bytes,
            left_bytes,
            store_bytes,
            bytes_per_state: store_bytes as f64 / held.max(1) as f64,
            grown_bytes: (memory_bytes - left_bytes).saturating_sub(outlook.used_bytes[0]),
            matched_share: outlook.matched as f64 / (outlook.matched + outlook.states).max(1) as f64,
            level_growth: outlook.growth(),
            waiting: outlook.waiting,
            waiting_bytes: outlook.waiting_bytes,
            longest_way_back,
        };
        facts.reason = facts.reason(to, disk);
        facts
    }

    fn reason(&self, to: Rung, disk: Option<&LayersFacts>) -> String {
        let (left, memory, waiting) =
            (show_bytes(self.left_bytes), show_bytes(self.memory_bytes), show_count(self.waiting));
        let measured = format!(
            "{left} of {memory} were left after {} states of {:.1} B, and {} had been taken for the last two levels; {waiting} \
             states were waiting, levels growing {:.2} times, {:.0} % of successors known",
            show_count(self.states),
            self.bytes_per_state,
            show_bytes(self.grown_bytes),
            self.level_growth,
            self.matched_share * 100.0
        );
        match to {
            Rung::Layers => {
                let speed = disk.and_then(LayersFacts::bytes_per_second);
                let speed =
                    speed.map_or(String::new(), |speed| format!(", which moved {} a second", show_bytes(speed)));
                format!("{measured}; tables went to disk{speed}")
            }
            Rung::Compact => format!("{measured}; tables got denser, which takes longer"),
            Rung::Frozen => format!("{measured}; tables were frozen, and what came later was held by level"),
            Rung::Levels => format!(
                "{measured}; what was frozen was given up (the longest way back was {} levels)",
                self.longest_way_back
            ),
            Rung::Filter => format!(
                "{measured}; levels were given up for a filter behind what was frozen (the longest way back was {} levels)",
                self.longest_way_back
            ),
        }
    }

    /// Lines for people.
    pub fn show(&self, out: &mut String) {
        let _ = writeln!(out, "{:<18} {:>15}", "went on with", format!("{}, from level {}", self.to, self.level));
        let _ = writeln!(out, "  {}", self.reason);
    }
}
