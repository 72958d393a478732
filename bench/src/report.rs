//! The table for people and the record for later.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::contest::{Contest, Entry, OUR_ENTRIES, Run, median};
use crate::machine::Machine;
use crate::measure::Cost;
use plimsoll::reference::peers::Found;

const HEAD: &str = "\
| model | states | checker | states/s | steps/s | whole s | peak MiB | peak B/state | B/state | faster | whole faster | with one worker | smaller | store smaller | compact: faster | store smaller |
|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// How many times better than a peer we are; above one is in our favour.
struct Ratios {
    /// CPU time of the search, ours with one worker; ours is the whole command.
    search: f64,
    /// Wall clock from model text to verdict.
    whole: f64,
    /// The same where we have one worker.
    whole_alone: f64,
    /// Peak resident memory; from here on ours with one worker.
    memory: f64,
    /// What each says it used for stored states; peak memory of a checker that does not say.
    store: f64,
    /// Processor time and stored states again, ours with one worker and `--store compact`.
    compact_search: f64,
    compact_store: f64,
}

impl Ratios {
    /// Those with one digit behind the point, and two that may be below one.
    fn cells(&self) -> [String; 7] {
        let many = [self.search, self.whole, self.whole_alone, self.memory, self.store, self.compact_search];
        let [a, b, c, d, e, f] = many.map(|ratio| format!("{ratio:.1}"));
        [a, b, c, d, e, f, format!("{:.2}", self.compact_store)]
    }
}

pub fn markdown(machine: &Machine, contests: &[Contest]) -> String {
    let mut text =
        format!("{} · {} cores · commit {} · {}\n", machine.cpu, machine.cores, machine.commit, machine.date);
    for (name, version) in &machine.peers {
        let _ = writeln!(text, "- {name}: {version}");
    }
    text.push('\n');
    text.push_str(HEAD);
    for contest in contests {
        for entry in &contest.entries {
            text.push_str(&line(contest, entry));
        }
    }
    text.push_str(&summary(contests));
    text
}

fn line(contest: &Contest, entry: &Entry) -> String {
    let start = format!("| {} | {} | {} |", contest.model, contest.states, entry.name);
    if let Some(problem) = &entry.problem {
        return format!("{start} {problem} |\n");
    }
    let show = |value: Option<f64>, digits: usize| value.map_or("–".into(), |value| format!("{value:.digits$}"));
    let mut text = format!(
        "{start} {} | {} | {} | {} | {} | {} |",
        show(entry.median(rate), 0),
        show(entry.median(|run| run.found.transitions as f64 / run.search.cpu_s.max(1e-6)), 0),
        show(entry.median(whole_wall), 2),
        show(entry.median(|run| run.search.peak_bytes as f64 / 1048576.0), 0),
        show(entry.median(|run| run.search.peak_bytes as f64 / run.found.states.max(1) as f64), 1),
        show(store_bytes_per_state(entry), 1),
    );
    let is_ours = contest.ours().iter().any(|ours| ours.name == entry.name);
    match ratios(contest.ours(), entry) {
        Some(r) if !is_ours => {
            text.push_str(&r.cells().map(|cell| format!(" {cell} |")).concat());
        }
        _ => text.push_str(" | | | | | | |"),
    }
    if !contest.counts_match(entry) {
        text.push_str(" **counts differ**");
    }
    text + "\n"
}

/// Median and least ratio over the models, for each peer.
fn summary(contests: &[Contest]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for entry in contests.iter().flat_map(|contest| &contest.entries[contest.ours().len()..]) {
        if !names.contains(&entry.name.as_str()) {
            names.push(&entry.name);
        }
    }
    let mut text = String::from(
        "\n| against | models | faster: median (least) | whole faster | with one worker | smaller | store smaller | compact: faster | store smaller |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for name in names {
        let of_peer = |contest: &Contest| {
            let entry = contest.entries.iter().find(|entry| entry.name == name)?;
            ratios(contest.ours(), entry)
        };
        let all: Vec<Ratios> = contests.iter().filter_map(of_peer).collect();
        let cell = |value: fn(&Ratios) -> f64| {
            let least = all.iter().map(value).fold(f64::INFINITY, f64::min);
            median(all.iter().map(value)).map_or("–".into(), |middle| format!("{middle:.1} ({least:.2})"))
        };
        let whole = [cell(|r| r.whole), cell(|r| r.whole_alone)];
        let cells = [&[cell(|r| r.search)][..], &whole, &[cell(|r| r.memory), cell(|r| r.store)]].concat();
        let cells = [&cells[..], &[cell(|r| r.compact_search), cell(|r| r.compact_store)]].concat();
        let _ = writeln!(text, "| {name} | {} | {} |", all.len(), cells.join(" | "));
    }
    text
}

fn ratios([alone, ours, compact]: [&Entry; OUR_ENTRIES], peer: &Entry) -> Option<Ratios> {
    let to = |ours: &Entry, value: fn(&Run) -> f64| Some(peer.median(value)? / ours.median(value)?);
    Some(Ratios {
        search: to(alone, |run| run.search.cpu_s)?,
        whole: to(ours, whole_wall)?,
        whole_alone: to(alone, whole_wall)?,
        memory: to(alone, |run| run.search.peak_bytes as f64)?,
        store: stored(peer)? / stored(alone)?,
        compact_search: to(compact, |run| run.search.cpu_s)?,
        compact_store: stored(peer)? / stored(compact)?,
    })
}

/// Bytes per state by the checker's own account, or those of the whole process.
fn stored(entry: &Entry) -> Option<f64> {
    let peak = |run: &Run| run.search.peak_bytes as f64 / run.found.states.max(1) as f64;
    store_bytes_per_state(entry).or_else(|| entry.median(peak))
}

/// States per second of processor time that the search process used.
fn rate(run: &Run) -> f64 {
    run.found.states as f64 / run.search.cpu_s.max(1e-6)
}

fn whole_wall(run: &Run) -> f64 {
    run.prepare.wall_s + run.search.wall_s
}

/// What the checker itself says it stored, per state.
fn store_bytes_per_state(entry: &Entry) -> Option<f64> {
    median(entry.runs.iter().filter_map(|run| Some(run.found.store_bytes? as f64 / run.found.states as f64)))
}

/// Writes everything measured to a file named by date and commit, and returns its path.
pub fn record(
    folder: &Path,
    machine: &Machine,
    repeats: u32,
    options: &str,
    contests: &[Contest],
) -> io::Result<PathBuf> {
    let peers: Value = machine.peers.iter().map(|(name, version)| json!({"name": name, "version": version})).collect();
    let document = json!({
        "date": machine.date, "commit": machine.commit, "cpu": machine.cpu, "cores": machine.cores,
        "peers": peers, "repeats": repeats, "options": options,
        "contests": contests.iter().map(contest_json).collect::<Value>(),
    });
    std::fs::create_dir_all(folder)?;
    let name = format!("{}-{}.json", machine.date.replace([':', 'Z'], ""), machine.commit.trim_end_matches('+'));
    let path = folder.join(name);
    std::fs::write(&path, serde_json::to_string_pretty(&document)? + "\n")?;
    Ok(path)
}

fn contest_json(contest: &Contest) -> Value {
    let entry = |entry: &Entry| {
        json!({
            "checker": entry.name, "problem": entry.problem,
            "runs": entry.runs.iter().map(run_json).collect::<Value>(),
        })
    };
    json!({
        "model": contest.model, "states": contest.states, "transitions": contest.transitions, "agrees": contest.agrees(),
        "entries": contest.entries.iter().map(entry).collect::<Value>(),
    })
}

fn run_json(run: &Run) -> Value {
    let cost = |cost: &Cost| json!({"wall_s": cost.wall_s, "cpu_s": cost.cpu_s, "peak_bytes": cost.peak_bytes});
    let Found { states, transitions, seconds, store_bytes, .. } = run.found;
    json!({
        "prepare": cost(&run.prepare), "search": cost(&run.search),
        "found": {"states": states, "transitions": transitions, "seconds": seconds, "store_bytes": store_bytes},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, seconds: f64, peak_bytes: u64) -> Entry {
        let search = Cost { wall_s: seconds, cpu_s: seconds, system_s: 0.0, peak_bytes };
        let prepare = Cost { wall_s: 1.0, cpu_s: 1.0, system_s: 0.0, peak_bytes: 1 };
        let found = Found { states: 1000, transitions: 3000, store_bytes: Some(8000), ..Found::default() };
        Entry { name: name.into(), runs: vec![Run { prepare, search, found }], problem: None }
    }

    fn contest() -> Contest {
        let mut compact = entry("compact", 2.0, 1 << 20);
        compact.runs[0].found.store_bytes = Some(5000);
        let ours = [entry("alone", 1.0, 1 << 20), entry("ours", 0.5, 2 << 20), compact];
        let entries = ours.into_iter().chain([entry("peer", 5.0, 4 << 20)]).collect();
        Contest { model: "m".into(), states: 1000, transitions: 3000, entries }
    }

    fn machine() -> Machine {
        let peers = vec![("peer".to_string(), "1.0".to_string())];
        Machine { date: "2025-01-02T03:04:05Z".into(), commit: "abc+".into(), cpu: "c".into(), cores: 2, peers }
    }

    #[test]
    fn ratios_stand_beside_the_peer() {
        let text = markdown(&machine(), &[contest()]);
        assert!(
            text.contains("| m | 1000 | alone | 1000 | 3000 | 2.00 | 1 | 1048.6 | 8.0 | | | | | | | |\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "| m | 1000 | peer | 200 | 600 | 6.00 | 4 | 4194.3 | 8.0 | 5.0 | 4.0 | 3.0 | 4.0 | 1.0 | 2.5 | 1.60 |\n"
            ),
            "{text}"
        );
        let ratios = "5.0 (5.00) | 4.0 (4.00) | 3.0 (3.00) | 4.0 (4.00) | 1.0 (1.00) | 2.5 (2.50) | 1.6 (1.60)";
        assert!(text.contains(&format!("| peer | 1 | {ratios} |\n")), "{text}");
    }

    #[test]
    fn disagreement_is_marked() {
        let mut contest = contest();
        contest.entries[OUR_ENTRIES].runs[0].found.states += 1;
        assert!(markdown(&machine(), &[contest]).contains("counts differ"));
    }

    #[test]
    fn records_are_complete_and_named_by_date_and_commit() {
        let folder = std::env::temp_dir().join(format!("plimsoll-record-{}", std::process::id()));
        let path = record(&folder, &machine(), 3, "--x", &[contest()]).unwrap();
        let document: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(path.file_name().unwrap(), "2025-01-02T030405-abc.json");
        assert_eq!(document["contests"][0]["entries"][3]["runs"][0]["search"]["cpu_s"], 5.0);
        assert_eq!((document["repeats"].as_u64(), document["options"].as_str()), (Some(3), Some("--x")));
    }
}
