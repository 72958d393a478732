//! How a breadth-first search begins: initial states, part by part, and what the store learns from the first states.

use super::ledger::Ledger;
use super::{Leader, read, write};
use crate::verdict::Why;
use plimsoll_model::Model;
use plimsoll_store::{Keys, Recent};
use std::sync::atomic::Ordering;

/// Parts of the initial states between two calls of `watch`.
const PARTS_PER_LOOK: u32 = 32;

impl<'a, M: Model + ?Sized> Leader<'_, 'a, '_, M> {
    /// Enters the initial states.
    pub(super) fn start(&mut self, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        let mut block = write(&search.blocks[0]);
        let (mut part, mut next) = (0u32, Some(0));
        while let Some(first) = next {
            if part > 0 {
                let look = part.is_multiple_of(PARTS_PER_LOOK);
                if let Some(why) = ledger.control.must_end(look, &mut ledger.tally.stats, &read(&search.tiers)) {
                    return Err(why);
                }
                self.learn(ledger);
            }
            let starts = block.start(search.model, search.needs, part, first);
            block.encode(&search.coder, search.needs, &mut self.worker.keys, self.worker.lately.as_mut());
            self.enter_alone(&mut block, Some(&starts.positions))?;
            ledger.enter_starts(&block, &starts.wrong)?;
            search.room()?;
            ledger.show(&block, true, search.is_deferring(), || !read(&search.tiers).samples())?;
            (part, next) = (part + 1, starts.next);
        }
        drop(block);
        self.seal(0, ledger)?;
        ledger.end_starts();
        Ok(())
    }

    /// Lets the store learn, if it is time for that.
    pub(super) fn learn(&mut self, ledger: &mut Ledger<'a, '_, M>) {
        let mut are_first = true;
        let mut told = ledger
            .observer
            .as_mut()
            .map(|observer| move |keys: &Keys| observer.rekey(keys, std::mem::take(&mut are_first)));
        let told = told.as_mut().map(|told| told as &mut dyn FnMut(&Keys));
        if self.search.coder.learn_from(&mut write(&self.search.tiers), told) {
            // Whoever knows states by their keys knows none any more.
            self.search.again.fetch_add(1, Ordering::Relaxed);
            self.worker.lately.iter_mut().for_each(Recent::forget);
        }
    }
}
