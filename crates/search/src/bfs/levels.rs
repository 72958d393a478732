//! What a breadth-first search tells a store that holds levels as wholes ([`plimsoll_store::Tiers::seal`]).

use super::{Leader, write};
use crate::verdict::Why;
use plimsoll_model::Model;
use plimsoll_store::Full;

impl<M: Model + ?Sized> Leader<'_, '_, '_, M> {
    /// A level is complete, and what is fresh in it waits.
    pub(super) fn end_level(&mut self) -> Result<(), Why> {
        let search = self.search;
        let mut tiers = write(&search.tiers);
        let wants_anchor = tiers.seal();
        let mut queue = write(&search.queue);
        if wants_anchor && queue.len() > 0 && queue.ready(1)? > 0 {
            let (mut state, mut keys) = (Vec::new(), Vec::new());
            queue.read(0, 1, &mut state);
            search.coder.keys_of(&state, &mut self.worker.keys, &mut keys).map_err(|Full| Why::Memory)?;
            tiers.anchor(keys[0]).map_err(|Full| Why::Memory)?;
        }
        Ok(())
    }

    /// A wave is over, and the store makes room for another.
    pub(super) fn end_wave(&mut self) -> Result<(), Why> {
        write(&self.search.tiers).settle(self.search.crew.wave_successors).map_err(|Full| Why::Memory)
    }
}
