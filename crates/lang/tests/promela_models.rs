//! Our own Promela models have the states and steps that their heads promise.

use plimsoll_lang::{LoadedModel, Options, Symbols, load};
use plimsoll_model::{Interp, Model, Successors};
use std::collections::HashSet;
use std::path::Path;

/// Larger ones are left to the comparison over whole folders.
const LARGEST: usize = 50_000;

fn explore(path: &Path) -> (usize, usize) {
    let loaded = load(path, &Options::default()).unwrap_or_else(|error| panic!("{}", error.render(false)));
    let LoadedModel::System { mut system, symbols: Symbols::Promela(mut model) } = loaded.model else {
        panic!("not a Promela model")
    };
    loop {
        plimsoll_ir::verify(&system).unwrap();
        match search(&Interp::new(system)) {
            Ok(counts) => return counts,
            Err(fault) => {
                *model = model.refine(&fault).unwrap_or_else(|| panic!("{}: {fault}", path.display()));
                system = model.system().unwrap();
            }
        }
    }
}

/// States and steps, or the first fault.
fn search(interp: &Interp) -> Result<(usize, usize), String> {
    let mut out = Successors::new(interp.width());
    interp.initial(&mut out);
    let mut open: Vec<Vec<u32>> = out.iter().map(|(state, _)| state.to_vec()).collect();
    let mut seen: HashSet<Vec<u32>> = open.iter().cloned().collect();
    let mut steps = 0;
    while let Some(state) = open.pop() {
        out.clear();
        interp.successors(&state, &mut out);
        steps += out.len();
        for (next, step) in out.iter() {
            if step.is_fault() {
                return Err(interp.explain(&state, step).map_or(String::new(), |explanation| explanation.message));
            }
            if seen.insert(next.to_vec()) {
                open.push(next.to_vec());
            }
        }
    }
    Ok((seen.len(), steps))
}

fn number(text: &str, key: &str) -> Option<usize> {
    let rest = text.split(key).nth(1)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn models_keep_their_promises() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/promela");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let states = number(&text, "states=").unwrap_or_else(|| panic!("{}: no expectation", path.display()));
        let steps = number(&text, "transitions=").unwrap();
        if states <= LARGEST {
            assert_eq!(explore(&path), (states, steps), "{}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 7, "only {checked} models");
}
