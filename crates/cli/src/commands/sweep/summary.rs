//! The results of a sweep as tables for people, in Markdown.

use super::cells::{Base, Cell, USUAL_STORE};
use super::figures::{Figures, Memory, correlation, median, time_ratio, visit_ratio};
use super::{levels, stores};
use crate::size::show_count;
use std::fmt::Write;

/// The sections of the summary.
pub fn text(figures: &Figures) -> String {
    let mut out = String::new();
    let limit = figures.limit;
    let (count, states) = (figures.models.len(), figures.models.iter().map(|base| base.states).sum::<u64>());
    let _ = writeln!(
        out,
        "{count} models, {} states in all. A run succeeds if it visits every state with at most {limit} visits per state; \
         times are processor times\nrelative to the search in the same order that holds every state (below 10 ms counts as \
         10 ms). Cache sizes are shares of the states of a model.\n",
        show_count(states)
    );
    let begin = out.len();
    if count > 0 && !figures.sizes.is_empty() {
        successes(figures, &mut out);
        prices(figures, &mut out);
        wins(figures, &mut out);
        memory(figures, &mut out);
        correlations(figures, &mut out);
        models(figures, &mut out);
    }
    levels::text(figures, &mut out);
    stores::text(figures, &mut out);
    if out.len() == begin {
        out.push_str("Nothing was measured.\n");
    }
    out
}

/// The head of a table.
pub fn head<S: AsRef<str>>(out: &mut String, columns: &[S]) {
    let columns: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
    let rule: Vec<&str> =
        columns.iter().enumerate().map(|(index, _)| if index == 0 { "---" } else { "---:" }).collect();
    let _ = writeln!(out, "| {} |\n|{}|", columns.join(" | "), rule.join("|"));
}

pub fn row(out: &mut String, cells: &[String]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn size_columns(figures: &Figures, first: &str) -> Vec<String> {
    std::iter::once(first.into()).chain(figures.sizes.iter().map(|size| format!("{size} %"))).collect()
}

/// Ways by their success, the best first.
pub fn ranked(figures: &Figures) -> Vec<String> {
    let mut ways = figures.ways.clone();
    let rank = |way: &String| -> Vec<std::cmp::Reverse<usize>> {
        figures.sizes.iter().map(|&size| std::cmp::Reverse(figures.successes(Some(way), size))).collect()
    };
    ways.sort_by_cached_key(rank);
    ways
}

fn successes(figures: &Figures, out: &mut String) {
    out.push_str("**Success**: per cent of the models for which a cache of this size or a smaller one suffices.\n\n");
    head(out, &size_columns(figures, "strategy"));
    let share = |count: usize| format!("{:.0}", count as f64 * 100.0 / figures.models.len() as f64);
    let mut line = |name: String, count: &dyn Fn(u32) -> usize| {
        let cells = figures.sizes.iter().map(|&size| share(count(size)));
        row(out, &std::iter::once(name).chain(cells).collect::<Vec<_>>());
    };
    line("**best**".into(), &|size| figures.successes(None, size));
    line("best, within the limit in time too".into(), &|size| figures.successes_in_time(size));
    for way in ranked(figures) {
        line(way.clone(), &|size| figures.successes(Some(&way), size));
    }
    out.push('\n');
}

fn prices(figures: &Figures, out: &mut String) {
    out.push_str("**Price**: median of visits per state, and in brackets of time; a dash where more than half of the models fail.\n\n");
    head(out, &size_columns(figures, "strategy"));
    for way in ranked(figures) {
        let price = |&size: &u32| match (figures.median_visits(&way, size), figures.median_time(&way, size)) {
            (Some(visits), Some(time)) => format!("{visits:.2} ({time:.1})"),
            _ => "–".into(),
        };
        let cells = std::iter::once(way.clone()).chain(figures.sizes.iter().map(price));
        row(out, &cells.collect::<Vec<_>>());
    }
    out.push('\n');
}

fn wins(figures: &Figures, out: &mut String) {
    let wins = figures.wins();
    let list: Vec<String> = wins.iter().map(|(way, count)| format!("{way} {count}")).collect();
    let _ = writeln!(
        out,
        "**Best strategy** (smallest sufficient cache, then fewest visits), number of models: {}.\n",
        if list.is_empty() { "none".into() } else { list.join(", ") }
    );
}

fn memory(figures: &Figures, out: &mut String) {
    out.push_str(
        "**Memory** of the visited states relative to the store of plain vectors (both with their tables), with the leanest \
         run of each model that succeeds; and relative to the vectors alone.\n\n",
    );
    head(out, &["", "median", "least", "most", "median, vectors alone"]);
    let memory = figures.memory();
    let mut line = |name: &str, of: fn(&Memory) -> f64| {
        let values: Vec<f64> = memory.iter().map(of).collect();
        let ends = [f64::min, f64::max].map(|pick| values.iter().copied().reduce(pick));
        let alone = median(memory.iter().map(|memory| of(memory) * memory.plain).collect());
        let shares = [median(values.clone()), ends[0], ends[1], alone];
        let cells = shares.map(|share| format!("{:.1} %", share.unwrap_or(0.0) * 100.0));
        row(out, &std::iter::once(name.to_string()).chain(cells).collect::<Vec<_>>());
    };
    line("plain vectors, every state held", |_| 1.0);
    line("compressed store, every state held", |memory| memory.tree);
    line("cache of plain vectors", |memory| memory.cache);
    line("cache of packed keys", |memory| memory.packed);
    let tried = |breadth_first: bool| figures.ways.iter().any(|way| way.starts_with("bfs ") == breadth_first);
    if tried(true) && tried(false) {
        line("the leanest such cache breadth first", |memory| memory.broad);
        line("the leanest such cache depth first", |memory| memory.deep);
    }
    line("cache in the compressed store", |memory| memory.both);
    line("the smallest of these caches", |memory| {
        [memory.packed, memory.broad, memory.deep, memory.both].into_iter().fold(memory.cache, f64::min)
    });
    out.push('\n');
}

fn correlations(figures: &Figures, out: &mut String) {
    let show = |points: Vec<(f64, f64)>| correlation(&points).map_or("–".into(), |value| format!("{value:.2}"));
    let _ = writeln!(
        out,
        "**Correlation** (Pearson) of the smallest sufficient cache with the average degree: {}; with the logarithm of the \
         breadth-first height: {}.\n",
        show(figures.against(Base::degree)),
        show(figures.against(log_height))
    );
}

/// The logarithm of the number of levels.
pub fn log_height(base: &Base) -> f64 {
    (base.height.max(1) as f64).ln()
}

fn models(figures: &Figures, out: &mut String) {
    let columns = [
        "model",
        "states",
        "degree",
        "height",
        "vector",
        "best strategy",
        "cache",
        "visits",
        "time",
        "least memory",
        "packed",
        "compressed",
    ];
    head(out, &columns);
    for base in &figures.models {
        let percent = |bytes: u64| format!("{:.1} %", bytes as f64 * 100.0 / base.plain_bytes.max(1) as f64);
        let best = figures.best(&base.model);
        let leanest = figures.leanest(&base.model, None);
        let share = |cell: Option<&Cell>| cell.map_or("–".into(), |cell| percent(cell.store_bytes));
        let show = |of: &dyn Fn(&Cell) -> String| best.map_or("–".into(), of);
        row(
            out,
            &[
                base.model.clone(),
                show_count(base.states),
                format!("{:.2}", base.degree()),
                base.height.to_string(),
                format!("{} B", base.vector),
                show(&|cell| cell.way()),
                show(&|cell| format!("{} %", cell.percent)),
                show(&|cell| format!("{:.2}", visit_ratio(base, cell))),
                show(&|cell| format!("{:.1}", time_ratio(base, cell))),
                share(leanest),
                share(leanest.and_then(|cell| figures.twin(cell, USUAL_STORE))),
                share(leanest.and_then(|cell| figures.twin(cell, "tree"))),
            ],
        );
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_every_section() {
        let (bases, cells) = super::super::figures::tests::sample();
        let text = text(&Figures::new(&bases, &cells, 6.0));
        for part in [
            "**best** | 67 | 100",
            "bfs b | 67 | 100",
            "bfs a | 33 | 67",
            "bfs b 3",
            "m3",
            "1.00 (4.0)",
            "bfs pebble",
            "Huffman",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(super::text(&Figures::new(&[], &[], 6.0)).contains("Nothing"));
    }
}
