//! The models that oracles try: ours, or those of the folder that `PLIMSOLL_MODELS` names. `PLIMSOLL_MOST_STATES` is the size
//! above which a model is left out, and `PLIMSOLL_PART=2/16` takes every sixteenth model only.

use plimsoll_ir::passes::optimise;
use plimsoll_lang::{LoadedModel, Options, load};
use plimsoll_model::Jit;
use std::path::{Path, PathBuf};

fn given() -> Option<PathBuf> {
    std::env::var_os("PLIMSOLL_MODELS").map(PathBuf::from)
}

/// Are the models others than ours?
pub fn is_given() -> bool {
    given().is_some()
}

/// Larger models are left out.
pub fn most_states(otherwise: u64) -> u64 {
    std::env::var("PLIMSOLL_MOST_STATES").ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The models of a folder and the folders in it.
fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| ["dve", "m", "pml", "pm"].iter().any(|name| extension == *name))
        {
            found.push(path);
        }
    }
}

/// All that can be compiled, with their names.
pub fn models() -> impl Iterator<Item = (String, Jit)> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let mut paths = Vec::new();
    find(given().as_deref().unwrap_or(&ours), &mut paths);
    paths.sort();
    let part = std::env::var("PLIMSOLL_PART").unwrap_or("0/1".into());
    let (first, step) = part.split_once('/').expect("a part such as 2/16");
    let some = paths.into_iter().skip(first.parse().unwrap()).step_by(step.parse().unwrap());
    some.filter_map(|path| {
        let loaded = load(&path, &Options { ignore_property: true, ..Options::default() }).ok()?;
        let LoadedModel::System { system, .. } = loaded.model else { return None };
        Some((path.display().to_string(), Jit::new(optimise(system)).ok()?))
    })
}
