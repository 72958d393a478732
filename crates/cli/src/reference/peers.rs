//! Other checkers, as a table: how each is called and how its output is read.
//!
//! A row is one way to run one tool. Commands may name `{model}` (the path of the twin), `{states}` (how many it
//! has, or might have), `{mu}` and `{include}` (see [`Given`]); the first words are programs, looked up on the path unless they start with `./` (made by an earlier command).

use super::{DEADLOCK, ERROR, Expected, HOLDS, INVARIANT};
use std::path::{Path, PathBuf};

/// The name of our binary.
pub const OURS: &str = "plimsoll";

/// One way to run one peer.
pub struct Tool {
    /// What `--peers` asks for.
    pub family: &'static str,
    /// What the report calls it.
    pub name: &'static str,
    /// Where in `models/` its twins are, and how their names end.
    pub folder: &'static str,
    pub extension: &'static str,
    /// Does it count states as we do on every model of its language, not only on twins?
    pub on_any_model: bool,
    /// What the processor time of its search includes besides the search.
    pub besides: Besides,
    /// Prints the version.
    pub version: &'static [&'static str],
    /// Translates and compiles the model.
    pub prepare: &'static [&'static [&'static str]],
    /// The search itself.
    pub search: &'static [&'static str],
    pub read: fn(&str) -> Option<Found>,
}

/// What is not counted of the processor time of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Besides {
    Nothing,
    /// It takes all the memory it may use at once, whatever the model needs: the system's time is left out.
    Pages,
}

/// Where CMurphi is: its compiler and the folder of headers that goes with it.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub mu: Option<PathBuf>,
    pub include: Option<PathBuf>,
}

impl Given {
    /// `mu` from the path, and the folder that `CMURPHI_INCLUDE` names.
    pub fn around() -> Given {
        Given { mu: find_program("mu"), include: std::env::var_os("CMURPHI_INCLUDE").map(PathBuf::from) }
    }
}

/// What a checker says it did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    pub states: u64,
    pub transitions: u64,
    /// Seconds of search, by its own clock.
    pub seconds: Option<f64>,
    /// Bytes for stored states and their table, by its own account.
    pub store_bytes: Option<u64>,
    /// How many things it found wrong, if it goes on after the first.
    pub errors: Option<u64>,
    /// The verdict of a checker that stops at the first thing that is wrong, and the steps of its trace.
    pub verdicts: Option<&'static [&'static str]>,
    pub steps: Option<u64>,
}

impl Found {
    /// What another checker should find too.
    pub fn expected(&self) -> Expected {
        let Found { states, transitions, errors, verdicts, steps, .. } = *self;
        let expected = Expected { errors, verdicts, steps, ..Expected::default() };
        match expected.stops() {
            true => expected,
            false => Expected { states: Some(states), transitions: Some(transitions), ..expected },
        }
    }
}

const SPIN_TRANSLATE: &[&str] = &["spin", "-a", "-o1", "-o2", "-o3", "{model}"];

const LTSMIN_TRANSLATE: &[&str] = &["divine", "compile", "--ltsmin", "{model}"];

/// Its tables, for roots and for other nodes, have a fixed size: here a power of two, two and a half times the states or more,
/// since some models have two nodes for a state. (By default they take a fifth of the machine, and a small model touches a
/// page for each state.) It reports on stderr.
const LTSMIN_SEARCH: &str = "size=20; while test $((1 << size)) -lt $(($0 * 5 / 2)); do size=$((size + 1)); done; \
     exec dve2lts-mc --threads=1 --strategy=bfs --state=$1 -s$size --ratio=0 ./*.dve2C 2>&1";

pub const PEERS: &[Tool] = &[
    Tool {
        family: "spin",
        name: "SPIN dfs",
        folder: "promela",
        extension: "pml",
        on_any_model: true,
        besides: Besides::Nothing,
        version: &["spin", "-V"],
        prepare: &[SPIN_TRANSLATE, &["gcc", "-O2", "-w", "-DSAFETY", "-DNOCLAIM", "-DNOREDUCE", "-o", "pan", "pan.c"]],
        search: &["./pan", "-c0", "-n", "-m2000000"],
        read: read_pan,
    },
    Tool {
        family: "spin",
        name: "SPIN bfs",
        folder: "promela",
        extension: "pml",
        on_any_model: false,
        besides: Besides::Nothing,
        version: &["spin", "-V"],
        prepare: &[
            SPIN_TRANSLATE,
            &["gcc", "-O2", "-w", "-DSAFETY", "-DNOCLAIM", "-DNOREDUCE", "-DBFS", "-o", "pan", "pan.c"],
        ],
        search: &["./pan", "-c0", "-n"],
        read: read_pan,
    },
    Tool {
        family: "spin",
        name: "SPIN collapse",
        folder: "promela",
        extension: "pml",
        on_any_model: true,
        besides: Besides::Nothing,
        version: &["spin", "-V"],
        prepare: &[
            SPIN_TRANSLATE,
            &["gcc", "-O2", "-w", "-DSAFETY", "-DNOCLAIM", "-DNOREDUCE", "-DCOLLAPSE", "-o", "pan", "pan.c"],
        ],
        search: &["./pan", "-c0", "-n", "-m2000000"],
        read: read_pan,
    },
    Tool {
        family: "spin-automaton",
        name: "SPIN automaton",
        folder: "promela",
        extension: "pml",
        on_any_model: true,
        besides: Besides::Nothing,
        version: &["spin", "-V"],
        // How large a state may get shows when it runs, as far as it is asked to.
        prepare: &[
            SPIN_TRANSLATE,
            &["gcc", "-O2", "-w", "-DSAFETY", "-DNOCLAIM", "-DNOREDUCE", "-o", "pan", "pan.c"],
            &[
                "sh",
                "-c",
                "./pan -c0 -n -m10000 | sed -n 's/^State-vector \\([0-9]*\\) byte.*/\\1/p' > bytes; test -s bytes",
            ],
            &["sh", "-c", "gcc -O2 -w -DSAFETY -DNOCLAIM -DNOREDUCE -DMA=$(cat bytes) -o pan pan.c"],
        ],
        search: &["./pan", "-c0", "-n", "-m2000000"],
        read: read_pan,
    },
    Tool {
        family: "rumur",
        name: "Rumur",
        folder: "murphi",
        extension: "m",
        on_any_model: true,
        besides: Besides::Nothing,
        version: &["rumur", "--version"],
        prepare: &[
            &["rumur", "--symmetry-reduction", "off", "--threads", "1", "--output", "model.c", "{model}"],
            &["gcc", "-std=c11", "-O3", "-w", "-mcx16", "-o", "model", "model.c", "-lpthread"],
        ],
        search: &["./model"],
        read: read_murphi,
    },
    Tool {
        family: "cmurphi",
        name: "CMurphi",
        folder: "murphi",
        extension: "m",
        on_any_model: true,
        besides: Besides::Pages,
        version: &["sh", "-c", "\"$0\" -h | grep -m1 Release", "{mu}"],
        prepare: &[
            &["cp", "--no-preserve=mode", "{model}", "model.m"],
            &["{mu}", "model.m"],
            &["g++", "-O2", "-w", "-fpermissive", "-I{include}", "-o", "model", "model.cpp", "-lm"],
            // How large a state is shows when it runs.
            &[
                "sh",
                "-c",
                "./model -pn -k100 | sed -n 's/.*rounded up to \\([0-9]*\\) bytes.*/\\1/p' > bytes; test -s bytes",
            ],
        ],
        // Its table has a fixed size; one of twice the need is neither too full nor too slow.
        search: &["sh", "-c", "./model -pn -tv -nosym -k$((1000 + $0 * ($(cat bytes) + 12) / 512))", "{states}"],
        read: read_murphi,
    },
    Tool {
        family: "ltsmin",
        name: "LTSmin tree",
        folder: "dve",
        extension: "dve",
        on_any_model: true,
        besides: Besides::Pages,
        version: &["dve2lts-mc", "--version"],
        prepare: &[LTSMIN_TRANSLATE],
        search: &["sh", "-c", LTSMIN_SEARCH, "{states}", "tree"],
        read: read_ltsmin,
    },
    Tool {
        family: "ltsmin",
        name: "LTSmin cleary",
        folder: "dve",
        extension: "dve",
        on_any_model: true,
        besides: Besides::Pages,
        version: &["dve2lts-mc", "--version"],
        prepare: &[LTSMIN_TRANSLATE],
        search: &["sh", "-c", LTSMIN_SEARCH, "{states}", "cleary-tree"],
        read: read_ltsmin,
    },
];

impl Tool {
    /// What its commands need and what is neither on the path nor given.
    pub fn missing(&self, given: &Given) -> Option<String> {
        let commands = self.prepare.iter().chain([&self.version, &self.search]);
        let words: Vec<&str> = commands.clone().flat_map(|command| command.iter().copied()).collect();
        let named = |name: &str| words.iter().any(|word| word.contains(name));
        if named("{mu}") && !given.mu.as_ref().is_some_and(|mu| mu.is_file()) {
            return Some("`mu` is not installed; `--mu` says where it is".into());
        }
        if named("{include}") && !given.include.as_ref().is_some_and(|include| include.is_dir()) {
            return Some("`--mu-include` or CMURPHI_INCLUDE must name the folder of its headers".into());
        }
        let program = commands
            .map(|command| command[0])
            .find(|program| !program.starts_with("./") && !program.starts_with('{') && find_program(program).is_none());
        program.map(|program| format!("`{program}` is not installed"))
    }
}

/// The states of a model that nobody has counted.
const MANY_STATES: u64 = 20_000_000;

/// The words of a command with the model, its states, and what is given, filled in.
pub fn fill(command: &[&str], model: &Path, states: Option<u64>, given: &Given) -> Vec<String> {
    let path = |path: &Option<PathBuf>| path.as_deref().unwrap_or(Path::new("")).to_string_lossy().into_owned();
    let names = [
        ("{model}", model.to_string_lossy().into_owned()),
        ("{states}", states.unwrap_or(MANY_STATES).to_string()),
        ("{mu}", path(&given.mu)),
        ("{include}", path(&given.include)),
    ];
    command
        .iter()
        .map(|word| names.iter().fold(word.to_string(), |word, (name, value)| word.replace(name, value)))
        .collect()
}

/// Where a program is on the path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// What SPIN's verifier prints. It counts the initial state as a transition.
fn read_pan(output: &str) -> Option<Found> {
    if output.contains("max search depth too small") || output.contains("out of memory") {
        return None;
    }
    let before = |mark: &str| -> Option<f64> {
        let line = output.lines().find(|line| line.contains(mark))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let megabytes = |mark: &str| before(mark).map(|size| size * 1024.0 * 1024.0);
    let states_bytes = megabytes("actual memory usage for states").or(megabytes("equivalent memory usage for states"));
    // Its table has a fixed size, whatever the model; what counts is a slot for each state. An automaton has no table.
    let slot_bytes = if output.contains("Minimized Automaton") { 0.0 } else { 8.0 };
    let states = before("states, stored")?;
    let elapsed = output.lines().find_map(|line| line.strip_prefix("pan: elapsed time "));
    Some(Found {
        states: states as u64,
        transitions: before("transitions (= stored+matched)")? as u64 - 1,
        seconds: elapsed.and_then(|rest| rest.split_whitespace().next()?.parse().ok()),
        store_bytes: states_bytes.map(|bytes| (bytes + states * slot_bytes) as u64),
        errors: output.split("errors: ").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok()),
        ..Found::default()
    })
}

/// `N states, M rules fired in Ts.`, as both Murphi checkers print at the end.
fn read_murphi(output: &str) -> Option<Found> {
    let line = output.lines().rev().find(|line| line.contains("rules fired in") && line.contains("states, "))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let seconds = words.last()?.trim_end_matches('.').trim_end_matches('s');
    let mut error = output.lines().skip_while(|line| !line.contains("error trace for the error:")).skip(1);
    let error = error.find(|line| !line.trim().is_empty()).map(|line| line.trim().to_ascii_lowercase());
    let fired = output.lines().filter(|line| line.starts_with("Rule ") && line.ends_with(" fired.")).count() as u64;
    Some(Found {
        states: words.first()?.parse().ok()?,
        transitions: words.get(2)?.parse().ok()?,
        seconds: seconds.parse().ok(),
        verdicts: Some(match error.as_deref() {
            None => HOLDS,
            Some(error) if error.starts_with("deadlock") => DEADLOCK,
            Some(error) if error.starts_with("invariant") => INVARIANT,
            Some(_) => ERROR,
        }),
        steps: error.is_some().then_some(fired),
        ..Found::default()
    })
}

/// `Explored N states M transitions, ...`, `Total exploration time T sec ...` and `Tree memory: xMB, y B/state, ...`, as
/// LTSmin's multi-core tools print.
fn read_ltsmin(output: &str) -> Option<Found> {
    if output.contains("table full!") {
        return None;
    }
    let words: Vec<&str> = output.split_whitespace().collect();
    let behind = |mark: &[&str]| {
        let at = words.windows(mark.len()).position(|some| some == mark)?;
        words.get(at + mark.len()).copied()
    };
    let at = words.windows(4).position(|w| w[0] == "Explored" && w[2] == "states")?;
    let states: u64 = words[at + 1].parse().ok()?;
    let tree = words.windows(2).position(|w| w == ["Tree", "memory:"]).and_then(|at| words.get(at + 3));
    let each: Option<f64> = tree.and_then(|bytes| bytes.parse().ok());
    Some(Found {
        states,
        transitions: words.get(at + 3)?.parse().ok()?,
        seconds: behind(&["Total", "exploration", "time"]).and_then(|seconds| seconds.parse().ok()),
        store_bytes: each.map(|each| (each * states as f64) as u64),
        ..Found::default()
    })
}

/// What our own `check --json` prints.
pub fn read_ours(output: &str) -> Option<Found> {
    let report: serde_json::Value = serde_json::from_str(output).ok()?;
    let states = report.get("states")?.as_u64()?;
    Some(Found {
        states,
        transitions: report.get("transitions")?.as_u64()?,
        seconds: report.get("seconds").and_then(|value| value.as_f64()),
        store_bytes: report.get("bytes_per_state").and_then(|each| Some((each.as_f64()? * states as f64) as u64)),
        ..Found::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pan_counts_one_transition_too_many() {
        let output = "State-vector 44 byte, depth reached 9, errors: 0\n  1347266 states, stored\n  5389065 transitions (= stored+matched)\n\
                      \x20  82.231\tequivalent memory usage for states (stored*(State-vector + overhead))\n\
                      \x20  51.620\tactual memory usage for states (compression: 62.77%)\n\
                      \x20 128.000\tmemory used for hash table (-w24)\n\npan: elapsed time 1.06 seconds\n";
        let found = read_pan(output).unwrap();
        assert_eq!((found.states, found.transitions, found.seconds), (1_347_266, 5_389_064, Some(1.06)));
        assert_eq!(found.store_bytes, Some((51.62 * 1024.0 * 1024.0 + 8.0 * 1_347_266.0) as u64));
        let automaton = read_pan(&format!("Minimized Automaton:\t 14685 nodes and  55340 edges\n{output}")).unwrap();
        assert_eq!(automaton.store_bytes, Some((51.62 * 1024.0 * 1024.0) as u64));
        let wanted =
            Expected { states: Some(1_347_266), transitions: Some(5_389_064), errors: Some(0), ..Default::default() };
        assert_eq!(found.expected(), wanted);
    }

    #[test]
    fn a_truncated_search_is_no_result() {
        let output = "error: max search depth too small\n  10 states, stored\n  20 transitions (= stored+matched)\n";
        assert_eq!(read_pan(output), None);
    }

    #[test]
    fn murphi_checkers_end_with_a_summary() {
        let output = "\t 10000 states explored in 0s, with 30 rules fired and 9 states in the queue.\n\
                      State Space Explored:\n\n\t1347266 states, 5389064 rules fired in 13s.\n";
        let found = read_murphi(output).unwrap();
        assert_eq!((found.states, found.transitions, found.seconds), (1_347_266, 5_389_064, Some(13.0)));
        assert_eq!((found.verdicts, found.steps), (Some(HOLDS), None));
    }

    #[test]
    fn murphi_checkers_stop_with_a_trace() {
        let output = "The following is the error trace for the error:\n\n\tinvariant 1 failed\n\nStartstate 1 fired.\n\
                      x:1\n----------\n\nRule \"a\", p: 1 fired.\nx:2\n\nRule \"b\" fired.\n\n\t9 states, 12 rules fired in 0s.\n";
        let expected = read_murphi(output).unwrap().expected();
        assert_eq!(expected, Expected { verdicts: Some(INVARIANT), steps: Some(2), ..Expected::default() });
    }

    #[test]
    fn our_report_is_json() {
        let found = read_ours(r#"{"verdict": "holds", "states": 7, "transitions": 9, "seconds": 0.5}"#).unwrap();
        assert_eq!((found.states, found.transitions, found.seconds, found.store_bytes), (7, 9, Some(0.5), None));
        assert_eq!(read_ours("holds"), None);
    }

    #[test]
    fn ltsmin_explores_and_says_how_long() {
        let output = "dve2lts-mc: Running bfs using 1 core (sequential)\n\
                      dve2lts-mc: 192 levels 10000 states 19849 transitions\ndve2lts-mc:  \n\
                      dve2lts-mc: Explored 12 states 25 transitions, fanout: 2.083\n\
                      dve2lts-mc: Total exploration time 0.010 sec (0.010 sec minimum, 0.010 sec on average)\n\
                      dve2lts-mc: States per second: 1200, Transitions per second: 2500\ndve2lts-mc:  \n\
                      dve2lts-mc: Queue width: 8B, total height: 533, memory: 0.00MB\n\
                      dve2lts-mc: Tree memory: 0.1MB, 21.5 B/state, compr.: 9.8%\n\
                      dve2lts-mc: Est. total memory use: 3.1MB (~2048.0MB paged-in)\n";
        let found = read_ltsmin(output).unwrap();
        assert_eq!((found.states, found.transitions, found.seconds), (12, 25, Some(0.01)));
        assert_eq!(found.store_bytes, Some(258));
        assert_eq!(read_ltsmin("dve2lts-mc, 0.0: Error"), None);
        // One of several threads says so of itself.
        assert_eq!(read_ltsmin(&output.replace("mc: ", "mc( 0/ 2): ")), Some(found));
        // It also reports what it had when a table was full.
        let full = format!("dve2lts-mc: Error: tree leafs table full! Change -s/--ratio.\n{output}");
        assert_eq!(read_ltsmin(&full), None);
    }

    #[test]
    fn commands_are_filled_in() {
        let given = Given { mu: Some("x/mu".into()), include: Some("y".into()) };
        assert_eq!(fill(SPIN_TRANSLATE, Path::new("a b.pml"), None, &given).last().unwrap(), "a b.pml");
        let cmurphi = PEERS.iter().find(|tool| tool.family == "cmurphi").unwrap();
        let all: Vec<String> =
            cmurphi.prepare.iter().flat_map(|command| fill(command, Path::new("m"), Some(7), &given)).collect();
        assert!(all.contains(&"x/mu".into()) && all.contains(&"-Iy".into()), "{all:?}");
        assert_eq!(fill(cmurphi.search, Path::new("m"), Some(7), &given).last().unwrap(), "7");
    }

    #[test]
    fn cmurphi_needs_its_compiler_and_its_headers() {
        let cmurphi = PEERS.iter().find(|tool| tool.family == "cmurphi").unwrap();
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let file = Some(here.join("Cargo.toml"));
        assert!(cmurphi.missing(&Given::default()).unwrap().contains("--mu"));
        let without = Given { mu: file.clone(), include: None };
        assert!(cmurphi.missing(&without).unwrap().contains("--mu-include"));
        let complete = Given { mu: file, include: Some(here) };
        assert!(cmurphi.missing(&complete).is_none_or(|missing| missing.contains("`g++`")));
    }
}
