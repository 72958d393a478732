//! `plimsoll sweep`: strategies that forget × cache sizes × orders, over many models (Pelánek et al. 2008).
//!
//! First every model is searched with all states held, which gives the number of states that sizes are shares of.
//! Then every cell is a check in a process of its own with plain vectors, limited in **visits** (`--limit` times
//! the states), which does not depend on the machine; a generous limit of time is only a safety net. Last, the
//! leanest runs of every model are repeated with packed keys and with the compressed store. Strategies whose room is no choice have one cell
//! (`levels`), and with `--stores` cells are run with several stores (`stores`). What is finished is in the tables at once, and
//! is not done again. `--resources` is another question with a table of its own (`resources`).

mod cells;
mod chart;
mod figures;
mod levels;
mod plots;
mod record;
mod resources;
mod settings;
mod stores;
mod summary;

use crate::child;
use crate::failure::{Failure, exit};
use crate::interrupt;
use crate::machine;
use crate::options::{Order, SweepOptions};
use crate::output::{Output, unwritable};
use crate::size::{show_count, show_seconds};
use crate::subject::fingerprint;
use cells::{Base, Cell, FULL, USUAL_STORE, ledger_bytes};
use figures::Figures;
use record::Record;
use serde_json::Value;
pub use settings::Sizes;
use settings::Way;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// The safety net of time: this many times what the limit would allow, and never less than the second figure.
const TIME_SLACK: f64 = 10.0;
const LEAST_SECONDS: f64 = 20.0;
/// Visits are limited otherwise, so this limit never counts.
const NO_REDUNDANCY_LIMIT: &str = "1000000x";

struct Sweep<'a> {
    options: &'a SweepOptions,
    program: PathBuf,
    jobs: u64,
    memory: String,
    models: Vec<(String, PathBuf)>,
}

/// Runs the command.
pub fn run(options: &SweepOptions, out: &mut Output) -> Result<u8, Failure> {
    let jobs = options.jobs.unwrap_or_else(|| machine::processors() as u64);
    let memory = match options.memory {
        None => machine::memory_budget(None).bytes / jobs,
        given => machine::memory_budget(given).bytes,
    };
    let sweep = Sweep {
        options,
        program: child::program()?,
        jobs,
        memory: memory.to_string(),
        models: settings::models(options)?,
    };
    let ways = if options.resources { settings::scaling_ways(options)? } else { settings::ways(options)? };
    std::fs::create_dir_all(&options.out).map_err(|error| unwritable(&options.out, &error))?;
    if options.resources {
        return sweep.scale(&ways, out);
    }
    let (bases, cells) = interrupt::while_searching(|| sweep.measure(&ways, out))?;
    let figures = Figures::new(&bases, &cells, options.limit as f64 / 100.0);
    let text = summary::text(&figures);
    sweep.write(std::iter::once(("summary.md", text.clone())).chain(plots::all(&figures)))?;
    out.print(&text);
    let failed = cells.iter().any(Cell::has_failed) || bases.iter().any(|base| base.status.starts_with("failed"));
    Ok(if failed || interrupted() { exit::UNKNOWN } else { 0 })
}

fn interrupted() -> bool {
    interrupt::flag().load(Ordering::Relaxed)
}

impl Sweep<'_> {
    /// Under what a table is made.
    fn settings(&self, table: &str) -> String {
        let check = self.options.check_options.join(" ");
        format!("plimsoll sweep: {table}{}{check}", if check.is_empty() { "" } else { ", check " })
    }

    /// Writes files to the folder.
    fn write<N: AsRef<Path>>(&self, files: impl Iterator<Item = (N, String)>) -> Result<(), Failure> {
        for (name, contents) in files {
            let path = self.options.out.join(name);
            std::fs::write(&path, contents).map_err(|error| unwritable(&path, &error))?;
        }
        Ok(())
    }

    fn measure(&self, ways: &[Way], out: &mut Output) -> Result<(Vec<Base>, Vec<Cell>), Failure> {
        let bases = self.bases(out)?;
        let settings = self.settings(&format!("cells, limit {} % of the states", self.options.limit));
        let (record, rows) = Record::open(&self.options.out.join("cells.csv"), &settings, &Cell::COLUMNS)?;
        let mut ledger = Ledger { record, cells: Vec::new() };
        rows.iter().filter_map(|row| Cell::of_row(row)).for_each(|cell| ledger.keep(cell));
        self.curves(&bases, ways, &mut ledger, out)?;
        self.combinations(&bases, &mut ledger, out)?;
        Ok((bases, ledger.cells))
    }

    /// Searches every model with all states held.
    fn bases(&self, out: &mut Output) -> Result<Vec<Base>, Failure> {
        let SweepOptions { min_states, max_states, .. } = self.options;
        let settings = self.settings(&format!("models, {min_states} to {max_states} states"));
        let (mut record, rows) = Record::open(&self.options.out.join("models.csv"), &settings, &Base::COLUMNS)?;
        let mut bases: Vec<Base> = rows.iter().filter_map(|row| Base::of_row(row)).collect();
        bases.retain(|base| !base.status.starts_with("failed"));
        let mut missing = Vec::new();
        for (name, path) in &self.models {
            let text = fingerprint(path)?;
            match bases.iter().find(|base| base.model == *name) {
                None => missing.push((name, path, text)),
                Some(base) if base.text == text => {}
                Some(_) => return Err(changed(path, &self.options.out)),
            }
        }
        let work = |index: usize, send: &mut dyn FnMut(Base)| {
            let (name, path, text) = &missing[index];
            send(self.base(name, path, text.clone()));
        };
        let mut written = Ok(());
        child::each(missing.len(), self.jobs, work, |base| {
            if interrupted() {
                return;
            }
            if !self.options.quiet {
                out.print(&format!("{:<32} {:<9} {:>12} states\n", base.model, base.status, show_count(base.states)));
            }
            let added = record.add(&base.row());
            written = std::mem::replace(&mut written, Ok(())).and(added);
            bases.push(base);
        });
        bases.sort_by(|a, b| a.model.cmp(&b.model));
        written.map(|()| bases)
    }

    fn base(&self, name: &str, path: &Path, text: String) -> Base {
        let mut base = Base { model: name.into(), text, ..Base::default() };
        base.status = match self.plain_runs(path, &mut base) {
            Ok(status) => status.into(),
            Err(why) => format!("failed: {why}"),
        };
        base
    }

    fn plain_runs(&self, path: &Path, base: &mut Base) -> Result<&'static str, String> {
        let limit = self.options.max_states.saturating_add(1).to_string();
        let full = ["--strategy", "full", "--max-states", &limit];
        let search = |order: &str, store: &str| {
            self.check(path, &self.memory, &[&["--order", order, "--store", store], &full[..]].concat())
        };
        let count = |report: &Value, name: &str| report[name].as_u64().unwrap_or(0);
        let seconds = |report: &Value| report["cpu_seconds"].as_f64().unwrap_or(0.0);
        let tree = search("bfs", "tree")?;
        (base.states, base.transitions) = (count(&tree, "states"), count(&tree, "transitions"));
        (base.height, base.bfs_seconds) = (count(&tree, "levels"), seconds(&tree));
        base.vector = count(&tree["model"], "state_bytes");
        if tree["complete"] != Value::Bool(true) {
            let reason = tree["reason"].as_str().unwrap_or("");
            return if reason.starts_with("states") { Ok("large") } else { Err(reason.into()) };
        }
        if base.states < self.options.min_states {
            return Ok("small");
        }
        base.tree_bytes = ledger_bytes(&tree).0;
        base.plain_bytes = ledger_bytes(&search("bfs", "plain")?).0;
        let deep = search("dfs", "tree")?;
        (base.depth, base.dfs_seconds) = (count(&deep, "depth"), seconds(&deep));
        Ok("ok")
    }

    /// Fills every cell that is missing. One way, store and model at a time goes down the sizes.
    fn curves(&self, bases: &[Base], ways: &[Way], ledger: &mut Ledger, out: &mut Output) -> Result<(), Failure> {
        let stored: Vec<_> =
            ways.iter().flat_map(|way| self.stores(way).into_iter().map(move |store| (way, store))).collect();
        let curves: Vec<_> =
            self.swept(bases).flat_map(|base| stored.iter().map(move |&stored| (base, stored))).collect();
        let known = ledger.cells.clone();
        let work = |index: usize, send: &mut dyn FnMut(Cell)| {
            let ((base, path), (way, store)) = curves[index];
            let sizes = if way.sized { &self.options.sizes.0[..] } else { &[0] };
            for &percent in sizes {
                let mut cell = Cell::new(base, way, store, percent);
                match known.iter().find(|known| known.is_same_run(&cell) && !known.has_failed()) {
                    Some(known) => cell = known.clone(),
                    None => {
                        self.fill(&mut cell, base, path);
                        send(cell.clone());
                    }
                }
                if interrupted() || self.options.stop_at_failure && !cell.is_complete() {
                    break;
                }
            }
        };
        self.each(curves.len(), work, bases, ledger, out)
    }

    /// How the states of a way are held.
    fn stores(&self, way: &Way) -> Vec<&'static str> {
        match (self.options.stores && way.order == Some(Order::Bfs), way.sized) {
            (true, sized) if sized || way.strategy == FULL => stores::tried(sized),
            (_, true) => vec!["plain"],
            (_, false) => vec![USUAL_STORE],
        }
    }

    /// Repeats the leanest run of every model with the compressed store, and those of both orders with packed keys.
    fn combinations(&self, bases: &[Base], ledger: &mut Ledger, out: &mut Output) -> Result<(), Failure> {
        let figures = Figures::new(bases, &ledger.cells, self.options.limit as f64 / 100.0);
        let mut missing = Vec::new();
        for (base, path) in self.swept(bases) {
            let leanest = [None, Some(true), Some(false)].map(|order| figures.leanest(&base.model, order));
            for (leanest, store) in leanest.into_iter().zip(["tree", USUAL_STORE, USUAL_STORE]) {
                let Some(leanest) = leanest else { continue };
                let cell = Cell { store: store.into(), ..leanest.clone() };
                if !ledger.cells.iter().any(|known| known.is_same_run(&cell) && !known.has_failed()) {
                    missing.push((base, path, cell));
                }
            }
        }
        let work = |index: usize, send: &mut dyn FnMut(Cell)| {
            let (base, path, cell) = &missing[index];
            let mut cell = cell.clone();
            self.fill(&mut cell, base, path);
            send(cell);
        };
        self.each(missing.len(), work, bases, ledger, out)
    }

    fn swept<'b>(&'b self, bases: &'b [Base]) -> impl Iterator<Item = (&'b Base, &'b PathBuf)> {
        self.models.iter().filter_map(move |(name, path)| {
            let base = bases.iter().find(|base| base.model == *name && base.is_swept())?;
            Some((base, path))
        })
    }

    /// Does the work and puts the cells that come into the table. What ends because of an interruption does not count.
    fn each(
        &self,
        count: usize,
        work: impl Fn(usize, &mut dyn FnMut(Cell)) + Sync,
        bases: &[Base],
        ledger: &mut Ledger,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let mut written = Ok(());
        child::each(count, self.jobs, work, |cell| {
            if interrupted() {
                return;
            }
            if !self.options.quiet {
                let states = bases.iter().find(|base| base.model == cell.model).map_or(1, |base| base.states.max(1));
                out.print(&format!(
                    "{:<32} {:<28} {:>5} {:<8} {:>6.2} visits per state {:>10}\n",
                    cell.model,
                    format!("{} {}", cell.way(), if cell.store == "plain" { "" } else { &cell.store }),
                    if cell.is_sized() { format!("{} %", cell.percent) } else { String::new() },
                    cell.result,
                    cell.visits as f64 / states as f64,
                    show_seconds(cell.seconds)
                ));
            }
            let added = ledger.add(cell);
            written = std::mem::replace(&mut written, Ok(())).and(added);
        });
        written
    }

    /// Makes the run of a cell.
    fn fill(&self, cell: &mut Cell, base: &Base, path: &Path) {
        let capacity = (base.states * cell.percent as u64).div_ceil(100).max(1).to_string();
        let visits = (base.states.saturating_mul(self.options.limit) / 100).saturating_add(1).to_string();
        let expected = base.seconds(&cell.order) * self.options.limit as f64 / 100.0;
        let time = format!("{:.0}s", (expected * TIME_SLACK).max(LEAST_SECONDS));
        let store = stores::argument(&cell.store, base.states);
        let mut arguments = vec!["--order", &cell.order, "--strategy", &cell.strategy, "--store", &store];
        arguments.extend(["--max-states", &visits, "--time", &time]);
        if cell.is_sized() {
            arguments.extend(["--cache-size", &capacity]);
        }
        if cell.is_breadth_first() {
            arguments.extend(["--redundancy-limit", NO_REDUNDANCY_LIMIT]);
        }
        match self.check(path, &self.memory, &arguments) {
            Ok(report) => cell.fill(&report),
            Err(why) => cell.result = format!("failed: {why}"),
        }
    }

    fn check(&self, path: &Path, memory: &str, arguments: &[&str]) -> Result<Value, String> {
        let fixed = ["--keep-going", "--no-deadlock", "--no-errors", "--memory", memory];
        let given: Vec<&str> = self.options.check_options.iter().map(String::as_str).collect();
        child::check(&self.program, path, &[&fixed, arguments, &given].concat()).map_err(|none| none.to_string())
    }
}

/// The cells there are, in memory and on disk.
struct Ledger {
    record: Record,
    cells: Vec<Cell>,
}

impl Ledger {
    fn add(&mut self, cell: Cell) -> Result<(), Failure> {
        let row = cell.row();
        self.keep(cell);
        self.record.add(&row)
    }

    /// The last of several runs of a cell counts.
    fn keep(&mut self, cell: Cell) {
        self.cells.retain(|known| !known.is_same_run(&cell));
        self.cells.push(cell);
    }
}

fn changed(path: &Path, out: &Path) -> Failure {
    let (path, out) = (path.display(), out.display());
    Failure::usage(format!("{path} has changed since it was measured; use another folder than {out}"))
}
