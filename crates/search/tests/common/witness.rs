//! A model that remembers which states were found.

use plimsoll_model::{Around, Model};
use std::collections::BTreeSet;
use std::sync::Mutex;

pub struct Witness<'a> {
    model: &'a dyn Model,
    found: Mutex<BTreeSet<Vec<u32>>>,
}

impl Witness<'_> {
    pub fn of(model: &dyn Model) -> Witness<'_> {
        Witness { model, found: Mutex::default() }
    }

    pub fn into_found(self) -> BTreeSet<Vec<u32>> {
        self.found.into_inner().unwrap()
    }
}

impl Around for Witness<'_> {
    fn inner(&self) -> &dyn Model {
        self.model
    }

    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        self.found.lock().unwrap().insert(state.to_vec());
        self.model.violated(state)
    }
}
