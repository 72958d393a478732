//! Do strategies scale with what they are given (Tripakis 2008)? How many different states each explores of models that do not
//! fit, with more and more memory and as much time as there is, and the other way round.

use super::chart::{Axis, Chart};
use super::record::Record;
use super::settings::Way;
use super::summary::{head, row};
use super::{NO_REDUNDANCY_LIMIT, Sweep, changed, interrupted};
use crate::child;
use crate::failure::{Failure, exit};
use crate::interrupt;
use crate::output::Output;
use crate::size::{show_bytes, show_count, show_seconds};
use crate::subject::fingerprint;
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

/// One strategy with so much memory and time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Run {
    model: String,
    /// Tells whether the text has changed.
    text: String,
    order: String,
    strategy: String,
    memory: u64,
    milliseconds: u64,
    /// `complete`, what ran out, or `failed: ...`.
    result: String,
    visits: u64,
    /// Different states; about, if some were forgotten.
    distinct: u64,
    cpu_seconds: f64,
    peak_rss: u64,
}

impl Run {
    const COLUMNS: [&str; 11] = [
        "model",
        "text",
        "order",
        "strategy",
        "memory_bytes",
        "time_ms",
        "result",
        "visits",
        "distinct",
        "cpu_seconds",
        "peak_rss",
    ];

    fn fill(&mut self, report: &Value) {
        let count = |name: &str| report[name].as_u64().unwrap_or(0);
        self.result = match report["complete"] == Value::Bool(true) {
            true => "complete".into(),
            false => report["reason"].as_str().unwrap_or("").split(':').next().unwrap_or("").to_string(),
        };
        (self.visits, self.distinct, self.peak_rss) = (count("states"), count("distinct"), count("peak_rss"));
        self.cpu_seconds = report["cpu_seconds"].as_f64().unwrap_or(0.0);
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![self.model.clone(), self.text.clone(), self.order.clone(), self.strategy.clone()];
        row.extend([self.memory, self.milliseconds].map(|amount| amount.to_string()));
        row.push(self.result.clone());
        row.extend([self.visits, self.distinct].map(|count| count.to_string()));
        row.extend([format!("{:.4}", self.cpu_seconds), self.peak_rss.to_string()]);
        row
    }

    fn of_row(row: &[String]) -> Option<Run> {
        let count = |index: usize| row[index].parse::<u64>().ok();
        let [model, text, order, strategy] = [0, 1, 2, 3].map(|index: usize| row[index].clone());
        let (memory, milliseconds, result) = (count(4)?, count(5)?, row[6].clone());
        let (visits, distinct, cpu_seconds, peak_rss) = (count(7)?, count(8)?, row[9].parse().ok()?, count(10)?);
        let run =
            Run { model, text, order, strategy, memory, milliseconds, result, visits, distinct, cpu_seconds, peak_rss };
        Some(run)
    }

    fn is_complete(&self) -> bool {
        self.result == "complete"
    }

    fn has_failed(&self) -> bool {
        self.result.starts_with("failed")
    }

    fn is_same_run(&self, other: &Run) -> bool {
        self.memory == other.memory
            && self.milliseconds == other.milliseconds
            && self.model == other.model
            && self.way() == other.way()
    }

    fn way(&self) -> String {
        format!("{} {}", self.order, self.strategy).trim_start().to_string()
    }
}

impl Sweep<'_> {
    /// Runs what is missing, and writes tables and figures.
    pub fn scale(&self, ways: &[Way], out: &mut Output) -> Result<u8, Failure> {
        let table = self.options.out.join("resources.csv");
        let (mut record, rows) = Record::open(&table, &self.settings("resources"), &Run::COLUMNS)?;
        let mut runs: Vec<Run> =
            rows.iter().filter_map(|row| Run::of_row(row)).filter(|run| !run.has_failed()).collect();
        let missing = self.missing(ways, &runs)?;
        let mut written = Ok(());
        interrupt::while_searching(|| {
            let work = |index: usize, send: &mut dyn FnMut(Run)| send(self.scaled(&missing[index]));
            child::each(missing.len(), self.jobs, work, |run| {
                if interrupted() {
                    return;
                }
                if !self.options.quiet {
                    let time = show_seconds(run.milliseconds as f64 / 1000.0);
                    let memory = show_bytes(run.memory);
                    let (model, way, states) = (&run.model, run.way(), show_count(run.distinct));
                    out.print(&format!("{model:<32} {way:<28} {memory:>9} {time:>8} {states:>15} {}\n", run.result));
                }
                let added = record.add(&run.row());
                written = std::mem::replace(&mut written, Ok(())).and(added);
                runs.push(run);
            });
        });
        written?;
        let text = text(&runs);
        self.write(std::iter::once(("resources.md".to_string(), text.clone())).chain(plots(&runs)))?;
        out.print(&text);
        Ok(if runs.iter().any(Run::has_failed) || interrupted() { exit::UNKNOWN } else { 0 })
    }

    /// Every way with every memory and the longest time, and with the largest memory and every time.
    fn missing(&self, ways: &[Way], known: &[Run]) -> Result<Vec<Run>, Failure> {
        let (memories, times) = (&self.options.memories, &self.options.times);
        let (most, longest) = (memories.iter().max(), times.iter().max());
        let budgets = memories.iter().filter_map(|&memory| Some((memory, *longest?)));
        let mut budgets: Vec<(u64, Duration)> =
            budgets.chain(times.iter().filter_map(|&time| Some((*most?, time)))).collect();
        budgets.sort();
        budgets.dedup();
        let mut missing = Vec::new();
        for (name, path) in &self.models {
            let text = fingerprint(path)?;
            if known.iter().any(|run| run.model == *name && run.text != text) {
                return Err(changed(path, &self.options.out));
            }
            for way in ways {
                for &(memory, time) in &budgets {
                    let (model, text, order, strategy) =
                        (name.clone(), text.clone(), way.order_name(), way.strategy.clone());
                    let milliseconds = time.as_millis() as u64;
                    let run = Run { model, text, order, strategy, memory, milliseconds, ..Run::default() };
                    if !known.iter().any(|known| known.is_same_run(&run)) {
                        missing.push(run);
                    }
                }
            }
        }
        Ok(missing)
    }

    fn scaled(&self, run: &Run) -> Run {
        let mut run = run.clone();
        let time = format!("{}ms", run.milliseconds);
        let mut arguments = vec!["--strategy", &run.strategy, "--time", &time];
        arguments.extend(["--redundancy-limit", NO_REDUNDANCY_LIMIT]);
        if !run.order.is_empty() {
            arguments.extend(["--order", &run.order]);
        }
        let path = self.models.iter().find(|(name, _)| *name == run.model).map(|(_, path)| path);
        let report = path.map(|path| self.check(path, &run.memory.to_string(), &arguments));
        match report {
            Some(Ok(report)) => run.fill(&report),
            Some(Err(why)) => run.result = format!("failed: {why}"),
            None => {}
        }
        run
    }
}

/// One line of a figure: what is given more of, and the runs from the least to the most of it.
struct Line<'a> {
    way: String,
    points: Vec<(f64, &'a Run)>,
}

impl Line<'_> {
    /// How many times as many states twice as much gives, on average; nothing where all states were visited.
    fn growth(&self) -> Option<f64> {
        let ((low, first), (high, last)) = (self.points.first()?, self.points.last()?);
        let doublings = (high / low).log2();
        let grows = doublings > 0.0 && first.distinct > 0 && !last.is_complete();
        grows.then(|| (last.distinct as f64 / first.distinct as f64).powf(1.0 / doublings))
    }
}

/// The lines of a model: against memory with the longest time, or against time with the largest memory.
fn lines<'a>(runs: &'a [Run], model: &str, of_memory: bool) -> Vec<Line<'a>> {
    let of_model = || runs.iter().filter(|run| run.model == model && !run.has_failed());
    let given = |run: &Run| if of_memory { run.memory } else { run.milliseconds };
    let other = |run: &Run| if of_memory { run.milliseconds } else { run.memory };
    let most = of_model().map(other).max();
    let mut ways: Vec<String> = of_model().map(Run::way).collect();
    ways.sort();
    ways.dedup();
    let line = |way: String| {
        let mut of_way: Vec<&Run> = of_model().filter(|run| run.way() == way && Some(other(run)) == most).collect();
        of_way.sort_by_key(|run| given(run));
        Line { way, points: of_way.into_iter().map(|run| (given(run) as f64, run)).collect() }
    };
    ways.into_iter().map(line).collect()
}

fn models(runs: &[Run]) -> Vec<&str> {
    let mut models: Vec<&str> = runs.iter().map(|run| run.model.as_str()).collect();
    models.sort();
    models.dedup();
    models
}

/// Tables for people.
fn text(runs: &[Run]) -> String {
    let mut out = String::from(
        "Different states explored (about, where states are forgotten), with so much memory and the longest time, and with the largest memory \
         and so much time. `×2`: times as many states with twice as much, on average; `all` where every state was visited.\n",
    );
    for model in models(runs) {
        let _ = writeln!(out, "\n**{model}**\n");
        let axes = [true, false].map(|of_memory| lines(runs, model, of_memory));
        let amounts = axes.each_ref().map(|lines| {
            let mut amounts: Vec<u64> =
                lines.iter().flat_map(|line| line.points.iter().map(|point| point.0 as u64)).collect();
            amounts.sort_unstable();
            amounts.dedup();
            amounts
        });
        let memories = amounts[0].iter().map(|&bytes| show_bytes(bytes));
        let times = amounts[1].iter().map(|&time| show_seconds(time as f64 / 1000.0));
        let double = || std::iter::once("×2".to_string());
        let columns =
            std::iter::once("strategy".to_string()).chain(memories).chain(double()).chain(times).chain(double());
        head(&mut out, &columns.collect::<Vec<_>>());
        for (of_memory, of_time) in axes[0].iter().zip(&axes[1]) {
            let mut cells = vec![of_memory.way.clone()];
            for (line, amounts) in [of_memory, of_time].into_iter().zip(&amounts) {
                cells.extend(amounts.iter().map(|&amount| {
                    let run = line.points.iter().find(|point| point.0 as u64 == amount);
                    run.map_or("–".into(), |(_, run)| show_count(run.distinct))
                }));
                let all = line.points.last().is_some_and(|(_, run)| run.is_complete());
                let growth = line.growth().map_or("–".into(), |growth| format!("{growth:.2}"));
                cells.push(if all { "all".into() } else { growth });
            }
            row(&mut out, &cells);
        }
    }
    out
}

/// Two figures for each model.
fn plots(runs: &[Run]) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    for model in models(runs) {
        for (of_memory, name, across, unit) in
            [(true, "memory", "memory, MiB", 1_048_576.0), (false, "time", "time, seconds", 1000.0)]
        {
            let lines = lines(runs, model, of_memory);
            let points = || lines.iter().flat_map(|line| &line.points);
            let across = Axis::around(across, points().map(|point| point.0 / unit).collect::<Vec<_>>().into_iter());
            let up = points().map(|point| point.1.distinct as f64).collect::<Vec<_>>();
            let mut chart = Chart::new(model, across, Axis::around("different states explored", up.into_iter()));
            for line in &lines {
                let points = line.points.iter().map(|(amount, run)| (amount / unit, run.distinct as f64));
                chart.curve(&line.way, &points.collect::<Vec<_>>());
            }
            plots.push((format!("{model}-{name}.svg"), chart.finish()));
        }
    }
    plots
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(strategy: &str, memory: u64, milliseconds: u64, distinct: u64, result: &str) -> Run {
        let (model, order) = ("m.dve".to_string(), "bfs".to_string());
        Run {
            model,
            order,
            strategy: strategy.into(),
            memory,
            milliseconds,
            distinct,
            result: result.into(),
            ..Run::default()
        }
    }

    #[test]
    fn rows_are_read_as_written() {
        let mut run = run("cache:SC", 1 << 20, 1500, 0, "");
        run.fill(&json!({ "complete": false, "reason": "time: over", "states": 9, "distinct": 7, "peak_rss": 5, "cpu_seconds": 1.5 }));
        assert_eq!((run.result.as_str(), run.visits, run.distinct), ("time", 9, 7));
        assert_eq!(run.row().len(), Run::COLUMNS.len());
        assert_eq!(Run::of_row(&run.row()), Some(run));
    }

    #[test]
    fn tables_tell_what_twice_as_much_gives() {
        let (mib, second) = (1 << 20, 1000);
        let runs = [
            run("a", 32 * mib, 4 * second, 1000, "memory"),
            run("a", 128 * mib, 4 * second, 4000, "memory"),
            run("a", 128 * mib, second, 2000, "time"),
            run("b", 32 * mib, 4 * second, 500, "time"),
            run("b", 128 * mib, 4 * second, 9000, "complete"),
            run("b", 128 * mib, second, 500, "time"),
            run("c", 128 * mib, second, 0, "failed: so it is"),
        ];
        let text = text(&runs);
        assert!(text.contains("| strategy | 32.0 MiB | 128 MiB | ×2 | 1.00 s | 4.00 s | ×2 |"), "{text}");
        assert!(text.contains("| bfs a | 1,000 | 4,000 | 2.00 | 2,000 | 4,000 | 1.41 |"), "{text}");
        assert!(
            text.contains("| bfs b | 500 | 9,000 | all | 500 | 9,000 | all |") && !text.contains("bfs c"),
            "{text}"
        );
        let plots = plots(&runs);
        let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["m.dve-memory.svg", "m.dve-time.svg"]);
        assert!(plots.iter().all(|(_, plot)| plot.contains("bfs b") && !plot.contains("NaN")));
    }
}
