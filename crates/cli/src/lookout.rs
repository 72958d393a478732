//! Looks on while a command searches: shows how far it is, warns, and notes what is missing.

use crate::health::Health;
use crate::output::say;
use crate::progress::Progress;
use crate::room::Missing;
use plimsoll_model::Step;
use plimsoll_search::{Stats, Watch};

pub struct Lookout<'a, 'm> {
    pub progress: Progress,
    /// Who warns, if anybody is to be warned or told at the end.
    pub health: Option<&'a mut Health>,
    /// Are warnings wanted at once?
    pub warns: bool,
    /// A model that may need room for more processes.
    pub missing: Option<&'a mut Missing<'m>>,
}

impl Watch for Lookout<'_, '_> {
    fn counts(&mut self, stats: &Stats) {
        self.progress.watch(stats);
        let warning = self.health.as_mut().and_then(|health| health.watch(stats));
        if let Some(warning) = warning.filter(|_| self.warns) {
            self.progress.clear();
            say(&warning);
        }
    }

    fn fault(&mut self, state: &[u32], step: Step) {
        if let Some(missing) = &mut self.missing {
            missing.fault(state, step);
        }
    }
}
