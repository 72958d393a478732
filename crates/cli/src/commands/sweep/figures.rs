//! What the cells say together: who succeeds with how little, at what price, and what it depends on.
//!
//! A cell succeeds if its run is complete, which the limit of visits allows only within the limit.

use super::cells::{Base, Cell, USUAL_STORE};

/// Times below this are noise, so ratios are taken of nothing less.
pub const LEAST_SECONDS: f64 = 0.01;

/// Models, cells and what they are asked.
pub struct Figures<'a> {
    pub models: Vec<&'a Base>,
    pub limit: f64,
    /// Sizes in per cent, ascending.
    pub sizes: Vec<u32>,
    /// Orders with strategies, as [`Cell::way`] gives them.
    pub ways: Vec<String>,
    cells: Vec<(&'a Base, &'a Cell)>,
}

/// Memory of the visited states of one model, as shares of the store of plain vectors.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The store of plain vectors relative to the vectors alone, without its tables.
    pub plain: f64,
    /// The compressed store, every state held.
    pub tree: f64,
    /// The leanest cache of plain vectors, and the same with packed keys and compressed; 1, 1 and the compressed store where no
    /// cache suffices.
    pub cache: f64,
    pub packed: f64,
    pub both: f64,
    /// The leanest cache with packed keys breadth first, and depth first.
    pub broad: f64,
    pub deep: f64,
}

impl<'a> Figures<'a> {
    pub fn new(bases: &'a [Base], cells: &'a [Cell], limit: f64) -> Figures<'a> {
        let models: Vec<&Base> = bases.iter().filter(|base| base.is_swept()).collect();
        let of_model = |cell: &'a Cell| Some((*models.iter().find(|base| base.model == cell.model)?, cell));
        let cells: Vec<(&Base, &Cell)> = cells.iter().filter_map(of_model).collect();
        let sized = || cells.iter().map(|(_, cell)| *cell).filter(|cell| cell.is_sized());
        let mut sizes: Vec<u32> = sized().map(|cell| cell.percent).collect();
        let mut ways: Vec<String> = sized().map(Cell::way).collect();
        sizes.sort_unstable();
        sizes.dedup();
        ways.sort();
        ways.dedup();
        Figures { models, limit, sizes, ways, cells }
    }

    /// Caches of plain vectors.
    fn plain(&self) -> impl Iterator<Item = (&'a Base, &'a Cell)> {
        self.cells.iter().copied().filter(|(_, cell)| cell.is_sized() && cell.store == "plain")
    }

    /// All runs of a model.
    pub fn of_model(&self, model: &str) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().map(|(_, cell)| *cell).filter(move |cell| cell.model == model)
    }

    /// The smallest cache that suffices for a model; of several the one with the fewest visits.
    pub fn best(&self, model: &str) -> Option<&'a Cell> {
        self.best_of(model, |_, _| true)
    }

    /// The same among the runs that take no more than the limit in time too.
    pub fn best_in_time(&self, model: &str) -> Option<&'a Cell> {
        self.best_of(model, |base, cell| time_ratio(base, cell) <= self.limit)
    }

    /// The run that takes the least memory for visited states, in one of the orders or in any.
    pub fn leanest(&self, model: &str, breadth_first: Option<bool>) -> Option<&'a Cell> {
        let in_order = |cell: &&Cell| breadth_first.is_none_or(|asked| asked == cell.is_breadth_first());
        let complete = self.complete(model).map(|(_, cell)| cell).filter(in_order);
        complete.min_by_key(|cell| (cell.store_bytes, cell.visits))
    }

    fn best_of(&self, model: &str, accepts: impl Fn(&Base, &Cell) -> bool) -> Option<&'a Cell> {
        let accepted = self.complete(model).filter(|(base, cell)| accepts(base, cell));
        accepted.map(|(_, cell)| cell).min_by_key(|cell| (cell.percent, cell.visits))
    }

    fn complete(&self, model: &str) -> impl Iterator<Item = (&'a Base, &'a Cell)> {
        self.plain().filter(move |(base, cell)| base.model == model && cell.is_complete())
    }

    /// A run once more with another store, if it suffices.
    pub fn twin(&self, cell: &Cell, store: &str) -> Option<&'a Cell> {
        let twin = Cell { store: store.into(), ..cell.clone() };
        self.of_model(&cell.model).find(|cell| cell.is_same_run(&twin) && cell.is_complete())
    }

    /// For how many models a cache of `percent` or less suffices, for some way or for the given one.
    pub fn successes(&self, way: Option<&str>, percent: u32) -> usize {
        let counts = |base: &&&Base| {
            let suffices =
                |cell: &Cell| cell.is_complete() && cell.percent <= percent && way.is_none_or(|way| cell.way() == way);
            self.plain().any(|(of, cell)| of.model == base.model && suffices(cell))
        };
        self.models.iter().filter(counts).count()
    }

    /// For how many models some cache of `percent` or less suffices within the limit in time too.
    pub fn successes_in_time(&self, percent: u32) -> usize {
        let best = |base: &&&Base| self.best_in_time(&base.model).is_some_and(|cell| cell.percent <= percent);
        self.models.iter().filter(best).count()
    }

    /// The median over all models of visits per state; none if more than half of the runs fail.
    pub fn median_visits(&self, way: &str, percent: u32) -> Option<f64> {
        self.median_of(way, percent, visit_ratio)
    }

    /// The median over all models of the time relative to the search that holds every state.
    pub fn median_time(&self, way: &str, percent: u32) -> Option<f64> {
        self.median_of(way, percent, time_ratio)
    }

    fn median_of(&self, way: &str, percent: u32, ratio: impl Fn(&Base, &Cell) -> f64) -> Option<f64> {
        let cells = self.plain().filter(|(_, cell)| cell.percent == percent && cell.way() == way && cell.is_complete());
        let mut ratios: Vec<f64> = cells.map(|(base, cell)| ratio(base, cell)).collect();
        ratios.resize(self.models.len(), f64::INFINITY);
        median(ratios).filter(|ratio| ratio.is_finite())
    }

    /// Ways by the number of models for which they are best, most first.
    pub fn wins(&self) -> Vec<(String, usize)> {
        let best: Vec<String> = self.models.iter().filter_map(|base| Some(self.best(&base.model)?.way())).collect();
        let count = |way: &String| best.iter().filter(|best| *best == way).count();
        let mut wins: Vec<(String, usize)> = self.ways.iter().map(|way| (way.clone(), count(way))).collect();
        wins.retain(|(_, count)| *count > 0);
        wins.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        wins
    }

    /// For every model some property of it and the smallest cache that suffices in per cent; 100 if none does.
    pub fn against(&self, property: impl Fn(&Base) -> f64) -> Vec<(f64, f64)> {
        let smallest = |base: &Base| self.best(&base.model).map_or(100.0, |cell| cell.percent as f64);
        self.models.iter().map(|base| (property(base), smallest(base))).collect()
    }

    pub fn memory(&self) -> Vec<Memory> {
        let of = |base: &&Base| {
            let share = |bytes: u64| bytes as f64 / base.plain_bytes.max(1) as f64;
            let tree = share(base.tree_bytes);
            let cell = self.leanest(&base.model, None);
            let cache = cell.map_or(1.0, |cell| share(cell.store_bytes));
            let twin = |cell: Option<&Cell>, store: &str| Some(share(self.twin(cell?, store)?.store_bytes));
            let packed = twin(cell, USUAL_STORE).unwrap_or(1.0);
            let both = twin(cell, "tree").unwrap_or(tree);
            let [broad, deep] = [true, false]
                .map(|breadth_first| twin(self.leanest(&base.model, Some(breadth_first)), USUAL_STORE).unwrap_or(1.0));
            let plain = base.plain_bytes as f64 / (base.states * base.vector).max(1) as f64;
            Memory { plain, tree, cache, packed, both, broad, deep }
        };
        self.models.iter().map(of).collect()
    }
}

/// Visits per state of the model.
pub fn visit_ratio(base: &Base, cell: &Cell) -> f64 {
    cell.visits as f64 / base.states.max(1) as f64
}

/// Processor time against that of the same order with every state held.
pub fn time_ratio(base: &Base, cell: &Cell) -> f64 {
    cell.seconds.max(LEAST_SECONDS) / base.seconds(&cell.order).max(LEAST_SECONDS)
}

/// The middle value, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// Pearson's coefficient; none where one side does not vary.
pub fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum::<f64>();
    let scale = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    (points.len() > 2 && scale > 0.0).then(|| sum(&|x, y| x * y) / scale)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Three models; the third needs a large cache, and `bfs b` is better than `bfs a`.
    pub fn sample() -> (Vec<Base>, Vec<Cell>) {
        let base = |name: &str, states: u64, transitions: u64| Base {
            model: name.into(),
            status: "ok".into(),
            states,
            transitions,
            height: states / 10,
            vector: 8,
            plain_bytes: 100 * states,
            tree_bytes: 40 * states,
            bfs_seconds: 1.0,
            ..Base::default()
        };
        let bases = vec![base("m1", 100, 150), base("m2", 200, 400), base("m3", 300, 1200)];
        let cell = |base: &Base, strategy: &str, percent: u32, visits: u64, result: &str| Cell {
            model: base.model.clone(),
            order: "bfs".into(),
            strategy: strategy.into(),
            store: "plain".into(),
            percent,
            result: result.into(),
            visits,
            seconds: visits as f64 / base.states as f64 * 4.0,
            store_bytes: percent as u64 * base.states,
            ..Cell::default()
        };
        let mut cells = Vec::new();
        for (base, visits) in bases.iter().zip([110, 220, 1800]) {
            cells.push(cell(base, "a", 10, visits, if base.model == "m1" { "complete" } else { "states" }));
            cells.push(cell(base, "a", 50, visits, if base.model == "m3" { "states" } else { "complete" }));
            cells.push(cell(base, "b", 10, visits - 5, if base.model == "m3" { "memory" } else { "complete" }));
            cells.push(cell(base, "b", 50, base.states, "complete"));
        }
        let compressed = Cell { store: "tree".into(), store_bytes: 500, ..cells[2].clone() };
        cells.push(compressed);
        cells.push(Cell { store: "auto".into(), store_bytes: 600, ..cells[2].clone() });
        for base in &bases {
            let full = Cell { store: "auto".into(), all_bytes: 400, ..cell(base, "full", 0, base.states, "complete") };
            let result = if base.model == "m3" { "memory" } else { "complete" };
            let pebble = cell(base, "pebble", 0, base.states * 3 / 2, result);
            let code = Cell { code_bytes: 8.0, store_bytes: base.states * 44 / 5, ..full.clone() };
            cells.push(Cell { store: "auto".into(), all_bytes: base.states, seconds: 8.0, ..pebble });
            cells.push(Cell { store: "huffman:static".into(), seconds: 8.0, ..code.clone() });
            cells.push(Cell { store: "huffman:trained(bfs,15%)".into(), code_bytes: 4.0, ..code });
            cells.push(full);
        }
        let of_codes = Cell { store: "huffman:trained(bfs,15%)".into(), store_bytes: 200, ..cells[2].clone() };
        cells.push(of_codes);
        (bases, cells)
    }

    #[test]
    fn the_best_is_the_smallest_and_then_the_quickest() {
        let (bases, cells) = sample();
        let figures = Figures::new(&bases, &cells, 6.0);
        assert_eq!((figures.sizes.clone(), figures.ways.clone()), (vec![10, 50], vec!["bfs a".into(), "bfs b".into()]));
        let best = figures.best("m1").unwrap();
        assert_eq!((best.percent, best.strategy.as_str()), (10, "b"));
        assert_eq!(figures.best("m3").unwrap().percent, 50);
        assert_eq!(figures.wins(), [("bfs b".to_string(), 3)]);
        assert_eq!((figures.successes(Some("bfs a"), 10), figures.successes(Some("bfs a"), 50)), (1, 2));
        assert_eq!((figures.successes(None, 10), figures.successes(None, 50)), (2, 3));
        assert_eq!((figures.successes_in_time(10), figures.successes_in_time(50)), (2, 3));
        assert_eq!((figures.median_visits("bfs a", 10), figures.median_visits("bfs b", 50)), (None, Some(1.0)));
        assert_eq!(figures.twin(figures.leanest("m1", None).unwrap(), "tree").unwrap().store_bytes, 500);
        assert!(figures.leanest("m1", Some(false)).is_none());
        let memory = figures.memory();
        assert_eq!((memory[0].cache, memory[0].both), (0.1, 0.05));
        assert_eq!((memory[0].packed, memory[0].broad, memory[0].deep), (0.06, 0.06, 1.0));
        assert_eq!((memory[1].tree, memory[1].both, memory[1].packed), (0.4, 0.4, 1.0));
        assert!(correlation(&figures.against(Base::degree)).unwrap() > 0.9);
    }

    #[test]
    fn numbers_are_as_in_books() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
        let line = |slope: f64| [(0.0, 0.0), (1.0, slope), (2.0, 2.0 * slope)];
        assert!((correlation(&line(3.0)).unwrap() - 1.0).abs() < 1e-9);
        assert!((correlation(&line(-2.0)).unwrap() + 1.0).abs() < 1e-9);
        assert_eq!(correlation(&line(0.0)), None);
    }
}
