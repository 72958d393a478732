//! `plimsoll strategies`: the table of all strategies, as they are in [`crate::presets`].

use crate::output::Output;
use crate::presets::{PRESETS, Preset};
use plimsoll_store::Rule;
use std::fmt::Write;

/// Runs the command.
pub fn run(out: &mut Output) -> u8 {
    out.print(&table());
    0
}

fn table() -> String {
    let mut out = String::new();
    let head = ["strategy", "orders", "ends", "complete", "deterministic", "bounded", "aware"];
    let yes = |claim: bool| if claim { "yes" } else { "no" };
    let row = |preset: &Preset| {
        [
            preset.name,
            preset.orders,
            preset.ends,
            yes(preset.complete),
            yes(preset.deterministic),
            yes(preset.bounded),
            yes(preset.aware),
        ]
    };
    let rows: Vec<[&str; 7]> = std::iter::once(head).chain(PRESETS.iter().map(row)).collect();
    let widths: Vec<usize> = (0..7).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    let _ = writeln!(out, "\ntiers (admits, who leaves, capacity) and papers");
    for preset in &PRESETS {
        let paper = if preset.paper.is_empty() { String::new() } else { format!("   {}", preset.paper) };
        let _ = writeln!(out, "  {:<18} {}{paper}", preset.name, preset.tiers);
    }
    let _ = writeln!(out, "\nrules: who leaves a full cache first");
    for rule in Rule::ALL {
        let _ = writeln!(out, "  {:<5} {}", rule.name(), rule.meaning());
    }
    out.push_str(
        "\nends: by itself, on every finite model; otherwise a limit on redundancy gives `unknown`.\n\
         aware: takes a bound on states and makes use of it.\n",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_row_and_rule() {
        let table = table();
        assert!(PRESETS.iter().all(|preset| table.contains(preset.name) && table.contains(preset.paper)));
        assert!(Rule::ALL.iter().all(|rule| table.contains(rule.meaning())));
    }

    #[test]
    fn the_document_has_a_section_for_each() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/strategies.md");
        let document = std::fs::read_to_string(path).unwrap();
        for preset in &PRESETS {
            assert!(document.contains(&format!("\n## `{}`", preset.name)), "{}", preset.name);
        }
        assert!(Rule::ALL.iter().all(|rule| document.contains(&format!("`{rule}`"))));
    }
}
