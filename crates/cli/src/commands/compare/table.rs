//! The table of expected counts: comma-separated values with a head line; empty means unknown.

use crate::csv;
use std::path::Path;

/// What is known about one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub instance: String,
    pub states: Option<u64>,
    pub transitions: Option<u64>,
    pub bfs_levels: Option<u64>,
    pub deadlocks: Option<u64>,
    /// States where a value that does not fit is an error.
    pub states_error_semantics: Option<u64>,
}

/// Reads a table.
pub fn read(path: &Path) -> Result<Vec<Row>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Row>, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let head = lines.next().ok_or("the table is empty")?.1;
    let head = csv::fields(head).ok_or("the first line has an open quote")?;
    let column = |name: &str| head.iter().position(|found| found == name);
    let instance = column("instance").ok_or("there is no column `instance`")?;
    column("states").ok_or("there is no column `states`")?;
    lines
        .map(|(number, line)| {
            let cells = csv::fields(line).ok_or_else(|| format!("line {}: a quote is left open", number + 1))?;
            let count = |name: &str| -> Result<Option<u64>, String> {
                match column(name).and_then(|column| cells.get(column)).map_or("", String::as_str) {
                    "" => Ok(None),
                    text => text
                        .parse()
                        .map(Some)
                        .map_err(|_| format!("line {}: `{text}` is no count of {name}", number + 1)),
                }
            };
            Ok(Row {
                instance: cells.get(instance).cloned().unwrap_or_default(),
                states: count("states")?,
                transitions: count("transitions")?,
                bfs_levels: count("bfs_levels")?,
                deadlocks: count("deadlocks")?,
                states_error_semantics: count("states_error_semantics")?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_go_by_name_and_may_be_missing_or_empty() {
        let rows = parse("states,instance,x,deadlocks\n12,a.1,zz,\n,b.2\n\n").unwrap();
        assert_eq!(rows[0], Row { instance: "a.1".into(), states: Some(12), ..Row::default() });
        assert_eq!(rows[1], Row { instance: "b.2".into(), ..Row::default() });
    }

    #[test]
    fn a_broken_table_is_refused() {
        for text in ["", "a,b\n1,2\n", "instance,states\na,many\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
