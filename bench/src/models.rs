//! The models of the repository with their twins in other languages, and models of a corpus with a table of counts.

use std::path::{Path, PathBuf};

use plimsoll::reference::peers::Tool;
use plimsoll::reference::table::{self, Truth};

/// A model with what is known about the size of its state space.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub name: String,
    pub path: PathBuf,
    /// More arguments for our `check`.
    pub options: Vec<String>,
    /// States and transitions. Where nobody knows them, what we find is expected of the others.
    pub counts: Option<(u64, u64)>,
}

/// Which models of a corpus take part.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    pub names: &'a [String],
    pub least_states: u64,
    pub most_states: u64,
}

/// All DVE models that hold and whose names contain one of `wanted` (all, if there is none), by name.
/// A search that stops at a violation visits as many states as its order makes it, so it compares nothing.
pub fn list(root: &Path, wanted: &[String]) -> Result<Vec<Model>, String> {
    let folder = root.join("dve");
    let problem = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut models = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path().canonicalize().map_err(problem)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "dve") {
            continue;
        }
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part)) {
            let text = std::fs::read_to_string(&path).map_err(problem)?;
            if rows(&text).any(|row| row.trim() == "verdict=holds") {
                let counts = expected_counts(&text).ok_or_else(|| format!("the head of {name} gives no counts"))?;
                models.push(Model { name, path, counts: Some(counts), options: Vec::new() });
            }
        }
    }
    models.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(models)
}

/// Models of a corpus (see `plimsoll compare`), by their number of states. Models of unknown size take part if
/// they are named in full. Searches go on after errors, and properties are left out, as SPIN's are; Murphi's checkers
/// keep them.
pub fn corpus(folder: &Path, wanted: &Wanted) -> Result<Vec<Model>, String> {
    let table = folder.join("counts.csv");
    let rows = table::read(&table).map_err(|why| format!("{}: {why}", table.display()))?;
    let mut models: Vec<Model> = Vec::new();
    for row in rows.iter().filter(|row| !row.variant.ends_with("exact")) {
        let named = wanted.names.contains(&row.instance);
        let counts = match &row.truth {
            Truth::Counts(expected) if !expected.stops() => expected.states.zip(expected.transitions),
            _ => None,
        };
        let fits = |(states, _)| (wanted.least_states..=wanted.most_states).contains(&states);
        let chosen = wanted.names.is_empty() || wanted.names.iter().any(|part| row.instance.contains(part.as_str()));
        let known = models.iter().any(|model| model.name == row.instance);
        if known || !(named || chosen && counts.is_some_and(fits)) {
            continue;
        }
        let path = table::model_file(folder, row).and_then(|path| path.canonicalize().ok());
        let path = path.ok_or_else(|| format!("{}: no such model file", row.instance))?;
        let mut options = row.options.clone();
        options.extend(["--keep-going", "--merge", "off"].map(String::from));
        if path.extension().is_none_or(|extension| extension != "m") {
            options.push("--ignore-property".into());
        }
        models.push(Model { name: row.instance.clone(), path, options, counts });
    }
    models.sort_by_key(|model| model.counts);
    Ok(models)
}

/// The file in the tool's language that has the same states as the model.
pub fn twin(root: &Path, name: &str, tool: &Tool) -> Option<PathBuf> {
    root.join(tool.folder).join(format!("{name}.{}", tool.extension)).canonicalize().ok()
}

/// The rows of expectations in the head comment.
fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| line.starts_with("//")).filter_map(|line| line.strip_prefix("// expect:"))
}

/// States and transitions in the first row that gives both and needs no options.
fn expected_counts(text: &str) -> Option<(u64, u64)> {
    let value = |row: &str, key: &str| row.split_whitespace().find_map(|pair| pair.strip_prefix(key)?.parse().ok());
    rows(text)
        .filter(|row| !row.contains("options="))
        .find_map(|row| Some((value(row, "states=")?, value(row, "transitions=")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_counts_stand_in_the_head() {
        let text = "// A model.\n//\n// expect: options=\"--overflow error\" states=3 transitions=4\n// expect: transitions=9 states=5\n";
        assert_eq!(expected_counts(text), Some((5, 9)));
        assert_eq!(expected_counts("byte x;\n// expect: states=5 transitions=9\n"), None);
        assert_eq!(expected_counts("// expect: states=5\n"), None);
    }

    #[test]
    fn a_corpus_is_chosen_by_size_and_name() {
        let folder = std::env::temp_dir().join(format!("plimsoll-corpus-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let table = "model,tool,options,states,rules_fired,levels,verdict,trace_len\n\
                     a,cmurphi,-nosym,900,20,5,ok,\na,rumur,--symmetry-reduction off,900,20,,ok,\n\
                     b,rumur,--symmetry-reduction off,,,,timeout,\nc,cmurphi,-nosym,800,20,5,ok,\nd,cmurphi,-nosym,7,9,5,ok,\n";
        std::fs::write(folder.join("counts.csv"), table).unwrap();
        ["a.m", "b.m", "c.m", "d.m"].iter().for_each(|name| std::fs::write(folder.join(name), "").unwrap());
        let names = |wanted: &[&str]| {
            let names: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            let wanted = Wanted { names: &names, least_states: 100, most_states: 1000 };
            corpus(&folder, &wanted).unwrap().into_iter().map(|model| model.name).collect::<String>()
        };
        assert_eq!((names(&[]).as_str(), names(&["b", "a"]).as_str()), ("ca", "ba"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn twins_have_the_counts_of_their_models() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
        let mut twins = 0;
        for model in list(&root, &[]).unwrap() {
            for (folder, extension) in [("promela", "pml"), ("murphi", "m")] {
                let path = root.join(folder).join(&model.name).with_extension(extension);
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let (states, transitions) = model.counts.unwrap();
                let counts = format!("expect: states={states} transitions={transitions}");
                assert!(text.contains(&counts), "{}", path.display());
                twins += 1;
            }
        }
        assert!(twins >= 6, "{twins} twins");
    }
}
