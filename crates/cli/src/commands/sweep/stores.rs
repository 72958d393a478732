//! How states are held (Pelánek, Rosecký, Šeděnka 2008): Huffman codes against the size of states, how they are trained, and
//! caches of codes. All in per cent of bare vectors, without any table.

use super::cells::{Base, Cell, FULL, USUAL_STORE};
use super::chart::{Axis, Chart};
use super::figures::{Figures, LEAST_SECONDS, correlation, median, visit_ratio};
use super::plots::MODELS;
use super::summary::{head, row};
use crate::size::show_count;

/// Codes, and what they are called in tables. So many per cent are of the states of the model.
const CODES: [(&str, &str); 5] = [
    ("huffman:static", "static"),
    ("huffman:trained(bfs,2%)", "bfs 2 %"),
    (BEST_TRAINED, "bfs 15 %"),
    ("huffman:trained(dfs,2%)", "dfs 2 %"),
    ("huffman:trained(dfs,15%)", "dfs 15 %"),
];
/// The code that caches are tried with, as in the paper.
const BEST_TRAINED: &str = "huffman:trained(bfs,15%)";
/// A picture goes to so many per cent.
const MOST_SHARE: f64 = 150.0;

/// Stores to try with every state held, or in a cache.
pub fn tried(sized: bool) -> Vec<&'static str> {
    match sized {
        true => vec!["plain", USUAL_STORE, "tree", BEST_TRAINED],
        false => [USUAL_STORE, "plain", "tree"].into_iter().chain(CODES.map(|(store, _)| store)).collect(),
    }
}

/// The store as `check` understands it, for a model of so many states.
pub fn argument(store: &str, states: u64) -> String {
    let percent = store.strip_suffix("%)").and_then(|store| store.rsplit_once(','));
    match percent.and_then(|(kind, percent)| Some((kind, percent.parse::<u64>().ok()?))) {
        Some((kind, percent)) => format!("{kind},{})", (states * percent).div_ceil(100).max(1)),
        None => store.into(),
    }
}

/// Every state held, breadth first.
fn held<'a>(figures: &Figures<'a>, base: &Base, store: &str) -> Option<&'a Cell> {
    let mut cells = figures.of_model(&base.model).filter(|cell| cell.is_complete());
    cells.find(|cell| cell.store == store && cell.strategy == FULL && cell.order == "bfs")
}

/// The bytes of a code relative to the vector.
fn ratio(figures: &Figures, base: &Base, store: &str) -> Option<f64> {
    let cell = held(figures, base, store)?;
    (cell.code_bytes > 0.0).then(|| cell.code_bytes / base.vector.max(1) as f64)
}

/// Memory of the visited states, relative to bare vectors of all of them.
fn takes(base: &Base, cell: &Cell) -> f64 {
    cell.store_bytes as f64 / (base.states * base.vector).max(1) as f64
}

/// The smallest cache of this store that suffices, and of several the leanest.
fn smallest<'a>(figures: &Figures<'a>, base: &Base, store: &str) -> Option<&'a Cell> {
    let cells = figures.of_model(&base.model).filter(|cell| cell.is_sized() && cell.is_complete());
    cells.filter(|cell| cell.store == store).min_by_key(|cell| (cell.percent, cell.store_bytes))
}

/// Models that were searched with some code.
fn coded<'a>(figures: &Figures<'a>) -> Vec<&'a Base> {
    let has_code = |base: &&Base| CODES.iter().any(|(store, _)| ratio(figures, base, store).is_some());
    figures.models.iter().copied().filter(has_code).collect()
}

fn percent(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".into(), |value| format!("{:.digits$}", value * 100.0))
}

/// The section of the summary, if there is any such run.
pub fn text(figures: &Figures, out: &mut String) {
    let models = coded(figures);
    if models.is_empty() {
        return;
    }
    of_stores(figures, &models, out);
    out.push_str(
        "**Huffman codes**: bytes of a code in per cent of the vector, by a static code and by codes that were trained on 2 and 15 % of the \
         states, breadth and depth first; the smallest cache of codes (bfs 15 %) that suffices, and what it takes in per cent of bare \
         vectors of all states, keys and all, beside the same cache of vectors.\n\n",
    );
    let codes = CODES.map(|(_, name)| name);
    head(out, &[&["model", "states", "vector"], &codes[..], &["cache", "visits", "takes", "as vectors"]].concat());
    let (mut sums, mut caches) = (vec![Vec::new(); CODES.len()], [Vec::new(), Vec::new()]);
    for base in &models {
        let mut cells = vec![base.model.clone(), show_count(base.states), format!("{} B", base.vector)];
        for ((store, _), sum) in CODES.iter().zip(&mut sums) {
            let ratio = ratio(figures, base, store);
            sum.extend(ratio);
            cells.push(percent(ratio, 0));
        }
        let cell = smallest(figures, base, BEST_TRAINED);
        let both =
            [cell, cell.and_then(|cell| figures.twin(cell, "plain"))].map(|cell| cell.map(|cell| takes(base, cell)));
        cells.push(cell.map_or("–".into(), |cell| format!("{} %", cell.percent)));
        cells.push(cell.map_or("–".into(), |cell| format!("{:.2}", visit_ratio(base, cell))));
        for (share, sum) in both.into_iter().zip(&mut caches) {
            sum.extend(share);
            cells.push(percent(share, 1));
        }
        row(out, &cells);
    }
    let mut last = vec!["median".to_string(), String::new(), String::new()];
    last.extend(sums.into_iter().map(|sum| percent(median(sum), 0)));
    last.extend([String::new(), String::new()]);
    last.extend(caches.map(|sum| percent(median(sum), 1)));
    row(out, &last);
    of_caches(figures, &models, out);
    let points = sizes(figures, &models, BEST_TRAINED).into_iter().map(|(bytes, ratio)| (bytes.ln(), ratio));
    let found = correlation(&points.collect::<Vec<_>>()).map_or("–".into(), |found| format!("{found:.2}"));
    out.push_str(&format!(
        "\nCorrelation of the ratio (bfs 15 %) with the logarithm of the size of the vector: {found}.\n\n"
    ));
}

/// What every store takes.
fn of_stores(figures: &Figures, models: &[&Base], out: &mut String) {
    out.push_str(
        "**Stores**, every state held breadth first: memory of the visited states, tables included, in per cent of bare vectors, and \
         time relative to the usual store.\n\n",
    );
    head(out, &["store", "models", "median", "least", "most", "time"]);
    for store in tried(false) {
        let cells = models.iter().filter_map(|base| Some((*base, held(figures, base, store)?)));
        let cells: Vec<(&Base, &Cell)> = cells.collect();
        let shares: Vec<f64> = cells.iter().map(|(base, cell)| takes(base, cell)).collect();
        let seconds = |cell: &Cell| cell.seconds.max(LEAST_SECONDS);
        let time = |(base, cell): &(&Base, &Cell)| Some(seconds(cell) / seconds(held(figures, base, USUAL_STORE)?));
        let times = cells.iter().filter_map(time);
        let time = median(times.collect()).map_or("–".into(), |time| format!("{time:.2}"));
        let ends = [f64::min, f64::max].map(|pick| percent(shares.iter().copied().reduce(pick), 0));
        let [least, most] = ends;
        row(out, &[store.into(), cells.len().to_string(), percent(median(shares), 0), least, most, time]);
    }
    out.push('\n');
}

/// The cache of this store that suffices in the fewest bytes.
fn leanest<'a>(figures: &Figures<'a>, base: &Base, store: &str) -> Option<&'a Cell> {
    let cells = figures.of_model(&base.model).filter(|cell| cell.is_sized() && cell.is_complete());
    cells.filter(|cell| cell.store == store).min_by_key(|cell| cell.store_bytes)
}

/// What the leanest cache takes that suffices, by store.
fn of_caches(figures: &Figures, models: &[&Base], out: &mut String) {
    out.push_str(
        "\n**Caches**, the leanest that suffices of each model: memory of the visited states, tables included, in per cent of bare vectors of all \
         states. In the last line models for which no cache suffices have the leanest store of every state.\n\n",
    );
    head(out, &["cache of", "models", "median", "least", "most"]);
    let mut line = |name: &str, shares: Vec<f64>| {
        let ends = [f64::min, f64::max].map(|pick| percent(shares.iter().copied().reduce(pick), 1));
        let [least, most] = ends;
        row(out, &[name.into(), shares.len().to_string(), percent(median(shares), 1), least, most]);
    };
    let share = |base: &Base, store: &str| leanest(figures, base, store).map(|cell| takes(base, cell));
    for store in tried(true) {
        line(store, models.iter().filter_map(|base| share(base, store)).collect());
    }
    let best = models.iter().filter_map(|base| {
        let caches = tried(true).into_iter().filter_map(|store| share(base, store)).reduce(f64::min);
        let stores = tried(false).into_iter().filter_map(|store| Some(takes(base, held(figures, base, store)?)));
        caches.or_else(|| stores.reduce(f64::min))
    });
    line("**the leanest of these**", best.collect());
}

/// Sizes of vectors, and ratios of this code.
fn sizes(figures: &Figures, models: &[&Base], store: &str) -> Vec<(f64, f64)> {
    models.iter().filter_map(|base| Some((base.vector as f64, ratio(figures, base, store)? * 100.0))).collect()
}

pub fn plots(figures: &Figures) -> Vec<(&'static str, String)> {
    let models = coded(figures);
    if models.is_empty() {
        return Vec::new();
    }
    let bytes = Axis::around("bytes of the vector", models.iter().map(|base| base.vector as f64));
    let ratios = Axis::new("code, per cent of the vector", 0.0, MOST_SHARE);
    let mut codes = Chart::new("Huffman codes, each dot a model", bytes, ratios);
    for (store, name) in CODES {
        codes.dots(name, &sizes(figures, &models, store));
    }
    let share = Axis::new("per cent of bare vectors (150: or more)", 0.0, MOST_SHARE);
    let mut stores = Chart::new("Memory of the visited states", Axis::new(MODELS, 1.0, models.len() as f64), share);
    let shown = |base: &Base, cell: &Cell| (takes(base, cell) * 100.0).min(MOST_SHARE);
    for store in tried(false) {
        let shares = models.iter().filter_map(|base| Some(shown(base, held(figures, base, store)?)));
        stores.sorted(store, shares.collect());
    }
    for store in tried(true) {
        let shares = models.iter().filter_map(|base| Some(shown(base, smallest(figures, base, store)?)));
        stores.sorted(&format!("cache: {store}"), shares.collect());
    }
    vec![("codes.svg", codes.finish()), ("stores.svg", stores.finish())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_states() {
        assert_eq!(argument("huffman:trained(bfs,2%)", 1001), "huffman:trained(bfs,21)");
        assert_eq!(argument("huffman:trained(dfs,15%)", 3), "huffman:trained(dfs,1)");
        for store in ["plain", "huffman:static", "huffman:trained(bfs,77)"] {
            assert_eq!(argument(store, 1000), store);
        }
        for store in tried(false).into_iter().chain(tried(true)) {
            assert!(argument(store, 50).parse::<crate::options::StoreName>().is_ok(), "{store}");
        }
    }

    #[test]
    fn codes_are_shown_with_their_caches() {
        let (bases, cells) = super::super::figures::tests::sample();
        let mut out = String::new();
        text(&Figures::new(&bases, &cells, 6.0), &mut out);
        assert!(out.contains("| m1 | 100 | 8 B | 100 | – | 50 | – | – | 10 % | 1.05 | 25.0 | 125.0 |"), "{out}");
        assert!(out.contains("| median |  |  | 100 | – | 50 | – | – |  |  | 25.0 | 125.0 |"), "{out}");
        assert!(out.contains("| huffman:static | 3 | 110 | 110 | 110 | 2.00 |"), "{out}");
        assert!(out.contains("| tree | 1 | 62.5 | 62.5 | 62.5 |"), "{out}");
        assert!(out.contains("| **the leanest of these** | 3 | 125.0 | 25.0 | 625.0 |"), "{out}");
    }
}
