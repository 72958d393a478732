//! How states were held, where the first of them decided that.

use crate::size::show_count;
use plimsoll_store::{Choice, Form};
use serde::Serialize;
use std::fmt::Write;

#[derive(Clone, Debug, Serialize)]
pub struct ChoiceFacts {
    /// How states were held, in the end.
    pub store: &'static str,
    /// What was chosen, if it was given up.
    pub given_up: Option<&'static str>,
    /// States that were looked at.
    pub sampled: usize,
    /// Bytes that each of four million states was expected to take in tables: packed, where that was a question, in a tree with a root of two
    /// numbers, and in one with a root of three.
    pub packed_bytes: Option<f64>,
    pub tree_bytes: f64,
    pub wide_tree_bytes: Option<f64>,
}

const PACKED: &str = "packed";
const TREE: &str = "tree";
const WIDE: &str = "tree, root of three";

impl ChoiceFacts {
    /// Given what came instead of a tree, if one was given up.
    pub fn new(choice: Choice, instead: Option<&'static str>) -> ChoiceFacts {
        let Choice { form, sampled, packed_bytes, tree_bytes, wide_bytes } = choice;
        let chosen = match form {
            Form::Packed => PACKED,
            Form::Tree => TREE,
            Form::Wide => WIDE,
        };
        let (store, given_up) = (instead.unwrap_or(chosen), instead.map(|_| chosen));
        ChoiceFacts { store, given_up, sampled, packed_bytes, tree_bytes, wide_tree_bytes: wide_bytes }
    }

    /// Lines for people.
    pub fn show(&self, out: &mut String) {
        let _ = writeln!(out, "{:<18} {:>15}", "store", self.store);
        if let Some(given_up) = self.given_up {
            let _ = writeln!(out, "{:<18} {:>15}", "  given up", given_up);
        }
        let all = [(PACKED, self.packed_bytes), (TREE, Some(self.tree_bytes)), (WIDE, self.wide_tree_bytes)];
        let bytes = |(name, bytes): (&str, Option<f64>)| bytes.map(|bytes| format!("{name} {bytes:.1} B"));
        let all: Vec<String> = all.into_iter().filter_map(bytes).collect();
        let _ =
            writeln!(out, "  chosen after {} states; expected: {}", show_count(self.sampled as u64), all.join("; "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_is_not_said_to_hold() {
        let choice =
            || Choice { form: Form::Tree, sampled: 4096, packed_bytes: None, tree_bytes: 5.0, wide_bytes: None };
        let shown = |instead| {
            let mut out = String::new();
            ChoiceFacts::new(choice(), instead).show(&mut out);
            out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(shown(None)[0], "store tree");
        assert_eq!(shown(Some("packed"))[..2], ["store packed", "given up tree"]);
    }
}
