//! Tables of counts that were made with other checkers. The head line tells which kind a table is:
//!
//! * `instance, states, transitions, ...`: DVE models, with one count for each semantics of overflow;
//! * `model, options, states, transitions, verdict, errors, status`: Promela, one row per configuration of
//!   SPIN, of which `nr-o123` (no reduction, no merging) is comparable;
//! * `model, tool, options, states, rules_fired, ...`: Murphi, one row per run of CMurphi or Rumur;
//! * `model, cmurphi, rumur`: Murphi models that one or the other accepts.

use super::{DEADLOCK, ERROR, Expected, HOLDS, INVARIANT};
use crate::csv::{Csv, Line};
use std::path::{Path, PathBuf};

/// One check to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name in the table, without options.
    pub instance: String,
    /// What follows the name in that of the file.
    pub extension: &'static str,
    /// Tells the checks of one instance apart.
    pub variant: &'static str,
    /// Options for `check`.
    pub options: Vec<String>,
    pub truth: Truth,
}

/// What a row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    Counts(Expected),
    /// There is nothing to compare with, for this reason; the model should be accepted unless it is refused elsewhere.
    Unknown {
        why: String,
        refused: bool,
    },
}

/// The label of rows with overflow as an error.
pub const ERROR_SEMANTICS: &str = "error";
const PURE: &str = "nr-o123";

/// Reads a table.
pub fn read(path: &Path) -> Result<Vec<Row>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    parse(&text)
}

/// The file of a row below `folder`, or below its folder `models`.
pub fn model_file(folder: &Path, row: &Row) -> Option<PathBuf> {
    let name = format!("{}{}", row.instance, row.extension);
    [folder.join("models").join(&name), folder.join(&name)].into_iter().find(|path| path.is_file())
}

fn parse(text: &str) -> Result<Vec<Row>, String> {
    let csv = Csv::parse(text)?;
    let has = |columns: &[&str]| columns.iter().all(|column| csv.has(column));
    if has(&["instance", "states"]) {
        csv.lines().map(|line| dve(&line)).collect::<Result<Vec<_>, _>>().map(|rows| rows.concat())
    } else if has(&["model", "tool", "options", "states", "rules_fired", "verdict"]) {
        let rows: Result<Vec<Option<Row>>, String> = csv.lines().map(|line| murphi(&line)).collect();
        Ok(one_unknown(rows?.into_iter().flatten().collect()))
    } else if has(&["model", "options", "states", "transitions", "verdict", "status"]) {
        csv.lines().filter(|line| line.text("options") == PURE).map(|line| promela(&line)).collect()
    } else if has(&["model", "cmurphi", "rumur"]) {
        Ok(csv.lines().map(|line| accepted(&line)).collect())
    } else {
        Err("the columns are those of no table known here (instance,states,...; model,tool,options,...; \
             model,options,...,status; model,cmurphi,rumur)"
            .into())
    }
}

/// One row for each semantics of overflow. Where the table knows of no difference, both have the same counts.
fn dve(line: &Line) -> Result<Vec<Row>, String> {
    let row = |variant: &'static str, expected: Expected| Row {
        instance: line.text("instance").into(),
        extension: ".dve",
        variant,
        options: vec!["--overflow".into(), variant.into()],
        truth: match expected.states {
            Some(_) => Truth::Counts(expected),
            None => Truth::Unknown { why: "no count is known".into(), refused: false },
        },
    };
    let wrapping = Expected {
        states: line.count("states")?,
        transitions: line.count("transitions")?,
        levels: line.count("bfs_levels")?,
        deadlocks: line.count("deadlocks")?,
        ..Expected::default()
    };
    let error = match line.count("states_error_semantics")? {
        None => wrapping.clone(),
        states => Expected { states, ..Expected::default() },
    };
    Ok(vec![row("wrap", wrapping), row(ERROR_SEMANTICS, error)])
}

fn promela(line: &Line) -> Result<Row, String> {
    // A name may be followed by definitions of macros.
    let mut words = line.text("model").split(" -D");
    let instance = words.next().unwrap_or_default().to_string();
    let defines = words.flat_map(|define| ["-D".to_string(), define.trim().to_string()]);
    let options = ["--language".to_string(), "promela".to_string()].into_iter().chain(defines).collect();
    let truth = match line.text("status") {
        "ok" => Truth::Counts(Expected {
            states: line.count("states")?,
            // SPIN counts the initial state as a transition.
            transitions: line.count("transitions")?.map(|count| count.saturating_sub(1)),
            errors: line.count("errors")?,
            ..Expected::default()
        }),
        status => Truth::Unknown { why: format!("SPIN did not finish: {status}"), refused: false },
    };
    Ok(Row { instance, extension: "", variant: "pure", options, truth })
}

fn murphi(line: &Line) -> Result<Option<Row>, String> {
    let (options, verdict) = (line.text("options"), line.text("verdict"));
    let off = options.contains("-nosym") || options.contains("--symmetry-reduction off");
    let exact = options.contains("-permlimit0") || options.contains("--symmetry-reduction exhaustive");
    let rejected = verdict == "reject";
    if !off && !exact && !rejected {
        // The counts of the tools' default symmetry depend on their memory layout.
        return Ok(None);
    }
    let verdicts = match verdict {
        "ok" => Some(HOLDS),
        "deadlock" => Some(DEADLOCK),
        "invariant" => Some(INVARIANT),
        "error-stmt" => Some(ERROR),
        _ => None,
    };
    let (dialect, variant) = match (line.text("tool"), exact) {
        ("rumur", false) => ("rumur", "rumur"),
        ("rumur", true) => ("rumur", "rumur exact"),
        (_, false) => ("cmurphi", "cmurphi"),
        (_, true) => ("cmurphi", "cmurphi exact"),
    };
    let mut expected = Expected { verdicts, steps: line.count("trace_len")?, ..Expected::default() };
    if verdicts == Some(HOLDS) {
        expected.states = line.count("states")?;
        expected.transitions = line.count("rules_fired")?;
        expected.levels = line.count("levels")?;
    }
    let truth = match verdicts {
        Some(_) => Truth::Counts(expected),
        None => Truth::Unknown { why: format!("{dialect}: {verdict}"), refused: rejected },
    };
    Ok(Some(murphi_row(line.text("model").into(), ".m", variant, dialect, exact, truth)))
}

fn murphi_row(
    instance: String,
    extension: &'static str,
    variant: &'static str,
    dialect: &str,
    exact: bool,
    truth: Truth,
) -> Row {
    let symmetry = if exact { "exact" } else { "off" };
    let options = ["--dialect", dialect, "--symmetry", symmetry].map(String::from).to_vec();
    Row { instance, extension, variant, options, truth }
}

/// Of a model without any counts, one row that says why; of others, the rows with counts.
fn one_unknown(rows: Vec<Row>) -> Vec<Row> {
    let mut kept: Vec<Row> = Vec::new();
    for row in &rows {
        let Truth::Unknown { why, refused } = &row.truth else {
            kept.push(row.clone());
            continue;
        };
        let counted = |other: &Row| other.instance == row.instance && matches!(other.truth, Truth::Counts(_));
        if rows.iter().any(counted) {
            continue;
        }
        match kept.iter_mut().find(|other| other.instance == row.instance) {
            Some(Row { truth: Truth::Unknown { why: known, refused: also }, options, .. }) => {
                *known = format!("{known}, {why}");
                // The dialect of the tool that accepts it.
                if *also && !refused {
                    options.clone_from(&row.options);
                }
                *also &= refused;
            }
            _ => kept.push(row.clone()),
        }
    }
    kept
}

fn accepted(line: &Line) -> Row {
    let ok = |tool: &str| line.text(tool) == "ok";
    let dialect = if ok("rumur") && !ok("cmurphi") { "rumur" } else { "cmurphi" };
    let refused = !ok("cmurphi") && !ok("rumur");
    let why = match refused {
        true => format!("cmurphi: {}, rumur: {}", line.text("cm_msg"), line.text("ru_msg")),
        false => "a table of accepted models".into(),
    };
    murphi_row(line.text("model").into(), "", "accepted", dialect, false, Truth::Unknown { why, refused })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(row: &Row) -> &Expected {
        match &row.truth {
            Truth::Counts(expected) => expected,
            Truth::Unknown { why, .. } => panic!("{}: {why}", row.instance),
        }
    }

    #[test]
    fn a_dve_table_has_a_row_for_each_semantics_of_overflow() {
        let rows = parse("states,instance,x,deadlocks,states_error_semantics\n12,a.1,zz,,7\n,b.2\n\n").unwrap();
        assert_eq!(rows.len(), 4);
        assert_eq!(counts(&rows[0]), &Expected { states: Some(12), ..Expected::default() });
        assert_eq!(counts(&rows[1]), &Expected { states: Some(7), ..Expected::default() });
        assert!(matches!(rows[2].truth, Truth::Unknown { refused: false, .. }));
    }

    #[test]
    fn a_promela_table_counts_the_initial_state_and_names_macros() {
        let text = "model,options,states,transitions,depth,verdict,errors,status\n\
                    a/b.pml -DN=4,nr-o123,10,21,9,none,0,ok\na/b.pml,por,5,6,9,none,0,ok\nc,nr-o123,7,8,9,none,0,timeout\n";
        let rows = parse(text).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].instance.as_str(), rows[0].options.join(" ")),
            ("a/b.pml", "--language promela -D N=4".into())
        );
        let expected = Expected { states: Some(10), transitions: Some(20), errors: Some(0), ..Expected::default() };
        assert_eq!(counts(&rows[0]), &expected);
        assert!(matches!(&rows[1].truth, Truth::Unknown { why, .. } if why.ends_with("timeout")));
    }

    #[test]
    fn a_murphi_table_has_a_row_for_each_tool() {
        let text = "model,tool,options,states,rules_fired,levels,verdict,trace_len\n\
                    m,cmurphi,-m48 -nosym,10,20,5,ok,\nm,cmurphi,-m48,4,7,5,ok,\nm,rumur,generate,,,,reject,\n\
                    n,rumur,--symmetry-reduction off,9,9,,deadlock,3\n\
                    o,cmurphi,-nosym,,,,timeout,\no,rumur,generate,,,,reject,\np,rumur,generate,,,,reject,\n";
        let rows = parse(text).unwrap();
        assert_eq!(rows.iter().map(|row| row.instance.as_str()).collect::<String>(), "mnop");
        assert_eq!(counts(&rows[0]).levels, Some(5));
        assert_eq!(rows[1].options.join(" "), "--dialect rumur --symmetry off");
        let deadlock = Expected { verdicts: Some(DEADLOCK), steps: Some(3), ..Expected::default() };
        assert_eq!(counts(&rows[1]), &deadlock);
        assert_eq!(rows[2].truth, Truth::Unknown { why: "cmurphi: timeout, rumur: reject".into(), refused: false });
        assert!(matches!(rows[3].truth, Truth::Unknown { refused: true, .. }));
    }

    #[test]
    fn models_may_be_listed_by_who_accepts_them() {
        let rows =
            parse("model,bytes,cmurphi,cm_msg,rumur,ru_msg\na.m,1,reject,no,ok,\nb.m,1,reject,x,reject,y\n").unwrap();
        assert_eq!(rows[0].options[1], "rumur");
        assert!(matches!(rows[0].truth, Truth::Unknown { refused: false, .. }));
        assert!(matches!(&rows[1].truth, Truth::Unknown { refused: true, why } if why == "cmurphi: x, rumur: y"));
    }

    #[test]
    fn a_broken_table_is_refused() {
        for text in ["", "a,b\n1,2\n", "instance,states\na,many\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
