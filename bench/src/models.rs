//! The models of the repository, the counts they expect, and their twins in other languages.

use std::path::{Path, PathBuf};

use plimsoll::reference::peers::Tool;

/// A model with what its head comment says about the size of its state space.
#[derive(Clone, Debug)]
pub struct Model {
    pub name: String,
    pub path: PathBuf,
    pub states: u64,
    pub transitions: u64,
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
                let (states, transitions) =
                    expected_counts(&text).ok_or_else(|| format!("the head of {name} gives no counts"))?;
                models.push(Model { name, path, states, transitions });
            }
        }
    }
    models.sort_by(|one, other| one.name.cmp(&other.name));
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
    fn twins_have_the_counts_of_their_models() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
        let mut twins = 0;
        for model in list(&root, &[]).unwrap() {
            for (folder, extension) in [("promela", "pml"), ("murphi", "m")] {
                let path = root.join(folder).join(&model.name).with_extension(extension);
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let counts = format!("expect: states={} transitions={}", model.states, model.transitions);
                assert!(text.contains(&counts), "{}", path.display());
                twins += 1;
            }
        }
        assert!(twins >= 6, "{twins} twins");
    }
}
