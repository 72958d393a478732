//! `plimsoll strategies`: the table of all strategies, computed from [`crate::presets`].

use crate::options::{Order, STORES, Store, StoreName, name_of};
use crate::output::Output;
use crate::presets::{PRESETS, Preset};
use plimsoll_store::row::KEEP;
use plimsoll_store::{Codec, Rule};
use std::fmt::Write;

const COLUMNS: usize = 7;
const STORE_COLUMNS: usize = 5;

/// Runs the command.
pub fn run(out: &mut Output) -> u8 {
    out.print(&table());
    0
}

fn yes(claim: bool) -> String {
    if claim { "yes" } else { "no" }.into()
}

fn row(preset: &Preset) -> [String; COLUMNS] {
    let strategy = preset.strategy();
    let mut orders: Vec<Order> = [Order::Bfs, Order::Dfs].into_iter().filter(|&order| strategy.allows(order)).collect();
    orders.sort_by_key(|&order| order != strategy.order);
    let names = |orders: &[Order]| orders.iter().map(|&order| name_of(order)).collect::<Vec<_>>().join(" ");
    let (ending, others): (Vec<Order>, Vec<Order>) = orders.iter().partition(|&&order| strategy.ends_in(order));
    let ends = if strategy.hunt.is_some() {
        if strategy.ends() { "yes".into() } else { "by limit".into() }
    } else if others.is_empty() {
        "yes".into()
    } else {
        let some = if ending.is_empty() { String::new() } else { format!("{}; ", names(&ending)) };
        format!("{some}{} by limit", names(&others))
    };
    [
        preset.name.into(),
        if strategy.hunt.is_some() { "own".into() } else { names(&orders) },
        ends,
        yes(strategy.is_complete()),
        yes(strategy.is_deterministic()),
        yes(strategy.is_bounded()),
        yes(strategy.is_aware()),
    ]
}

/// What a store makes of the strategy that holds every state.
fn store_row(store: &Store) -> [String; STORE_COLUMNS] {
    let codec = store.example.parse::<StoreName>().ok().and_then(StoreName::codec);
    // `auto` chooses among those that are exact.
    let is_exact = codec.is_none_or(Codec::is_injective);
    let fills = codec.is_some_and(Codec::fills_grant);
    [store.name.into(), yes(is_exact), yes(fills), yes(fills), store.meaning.into()]
}

fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]], out: &mut String) {
    let widths: Vec<usize> =
        (0..COLUMNS).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
}

fn table() -> String {
    let mut out = String::new();
    let head = ["strategy", "orders", "ends", "complete", "deterministic", "bounded", "aware"].map(String::from);
    aligned(&std::iter::once(head).chain(PRESETS.iter().map(row)).collect::<Vec<_>>(), &mut out);
    out.push('\n');
    let head = ["--store", "complete", "bounded", "aware", "how states are held"].map(String::from);
    aligned(&std::iter::once(head).chain(STORES.iter().map(store_row)).collect::<Vec<_>>(), &mut out);
    let _ = writeln!(out, "\nfor example, with its tiers (admits, unit, who leaves, room, medium) and papers");
    for preset in &PRESETS {
        let strategy = preset.strategy();
        let tiers = strategy.row.tiers().iter().filter(|_| strategy.hunt.is_none());
        let tiers: String = tiers.map(|tier| tier.to_string()).collect();
        let paper = if preset.paper.is_empty() { String::new() } else { format!("   {}", preset.paper) };
        let _ = writeln!(out, "  {:<22} {tiers}{paper}", preset.example);
    }
    let _ = writeln!(out, "\nrules: who leaves a full cache first");
    for (name, meaning) in Rule::ALL.iter().map(|rule| (rule.name(), rule.meaning())).chain([KEEP]) {
        let _ = writeln!(out, "  {name:<5} {meaning}");
    }
    out.push_str(
        "\nends: by itself, on every finite model; otherwise a limit (on redundancy; of a walk, on visits) gives `unknown`.\n\
         bounded: the memory for states is, whatever the model. aware: makes use of the memory it is given.\n\
         A store that is not complete may take a state for another: then a model holds unless there was a collision, exit code 21.\n\
         room: what the budget leaves, states (600), bytes (64M) or a share of the memory for states (20%).\n",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/strategies.md");
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn the_table_says_what_is_known() {
        let of = |name: &str| row(PRESETS.iter().find(|preset| preset.name == name).unwrap());
        assert_eq!(of("full"), ["full", "bfs dfs", "yes", "yes", "yes", "no", "no"]);
        assert_eq!(of("cache:RULES"), ["cache:RULES", "dfs bfs", "dfs; bfs by limit", "yes", "yes", "yes", "yes"]);
        assert_eq!(of("cover:RULE"), ["cover:RULE", "bfs dfs", "yes", "yes", "yes", "yes", "yes"]);
        let of_store = |name: &str| store_row(STORES.iter().find(|store| store.name == name).unwrap());
        assert_eq!(of_store("tree")[1..4], ["yes", "no", "no"]);
        assert_eq!(of_store("digest:BITS")[1..4], ["no", "no", "no"]);
        assert_eq!(of_store("bitstate:K")[1..4], ["no", "yes", "yes"]);
        assert_eq!(of("sleep-1992"), ["sleep-1992", "dfs", "yes", "no", "yes", "no", "no"]);
    }

    #[test]
    fn examples_are_of_their_family() {
        let table = table();
        for preset in &PRESETS {
            assert_eq!(preset.strategy().name(), preset.example);
            let stands_for_something = |letter: char| letter.is_ascii_uppercase();
            let family = preset.name.split(stands_for_something).next().expect("it has a name");
            assert!(preset.example.starts_with(family) && table.contains(preset.paper), "{}", preset.name);
        }
        assert!(Rule::ALL.iter().all(|rule| table.contains(rule.meaning())));
    }

    #[test]
    fn the_document_has_the_table_and_a_section_for_each() {
        let document = document();
        let table = table();
        for table in table.split("\n\n").take(2) {
            assert!(document.contains(table), "docs/strategies.md should have\n{table}");
        }
        for preset in &PRESETS {
            assert!(document.contains(&format!("\n## `{}`", preset.name)), "{}", preset.name);
        }
        let names = Rule::ALL.map(Rule::name).into_iter().chain([KEEP.0]);
        assert!(names.into_iter().all(|name| document.contains(&format!("`{name}`"))));
    }
}
