//! What a breadth-first search tells a store that holds levels as wholes ([`plimsoll_store::Tiers::seal`]), or may come to
//! do so.

use super::ledger::{End, Ledger};
use super::{Leader, read, write};
use crate::control::PathRoom;
use crate::verdict::Why;
use plimsoll_model::Model;
use plimsoll_store::runs::Layers;
use plimsoll_store::{Entry, Full, Outlook};

/// Levels may have so many successors more than is usual.
const SPARE_SUCCESSORS: usize = 1024;

impl<'a, M: Model + ?Sized> Leader<'_, 'a, '_, M> {
    /// A level with so many states begins.
    pub(super) fn begin_level(&mut self, states: usize) {
        let Outlook { widths, used_bytes, .. } = &mut self.outlook;
        *widths = [widths[1], states as u64];
        *used_bytes = [used_bytes[1], read(&self.search.tiers).used_bytes()];
    }

    /// Begins it, if it is searched. Tables take all memory that there is, so they may have to give some back for a longer path.
    pub(super) fn begin(&mut self, level: u32, ledger: &mut Ledger<'a, '_, M>) -> Result<(), End> {
        for everything in [false, true] {
            match ledger.begin(level) {
                Err(End::Out(Why::Memory)) => self.free_memory(level, everything).map_err(End::Out)?,
                begun => return begun,
            }
        }
        ledger.begin(level)
    }

    /// Lets tables leave memory so that a path can get longer, or gives up whatever can be given up; states of `level` were found.
    fn free_memory(&mut self, level: u32, everything: bool) -> Result<(), Why> {
        let search = self.search;
        let leave = |bytes: u64| write(&search.tiers).layers_mut().map(|layers| layers.leave(bytes)).is_some();
        if leave(PathRoom::PIECE_BYTES) {
            if everything {
                write(&search.tiers).layers_mut().into_iter().for_each(Layers::drop_filters);
            }
            let flushed = self.flush(level, everything);
            leave(0);
            return flushed;
        }
        let freed = write(&self.search.tiers).give_up_frozen(self.outlook);
        if freed { Ok(()) } else { Err(Why::Memory) }
    }

    /// Takes note of how far the search is; states of `level` will be found next.
    pub(super) fn look_out(&mut self, level: u32, ledger: &Ledger<'a, '_, M>) {
        let stats = &ledger.tally.stats;
        let waiting = read(&self.search.queue).len();
        let successors = waiting.saturating_mul(ledger.degree() + 1).min(self.search.crew.wave_successors);
        self.outlook = Outlook {
            level,
            states: stats.states,
            matched: stats.matched,
            waiting: waiting as u64,
            next_bytes: ledger.log.more_bytes(successors + SPARE_SUCCESSORS),
            ..self.outlook
        };
    }

    /// Lets a store climb that can, before the keys of some blocks, so many, are entered ([`plimsoll_store::Tiers::make_way`]).
    pub(super) fn make_way(&mut self, entries: &[&Entry], keys: usize) -> Result<(), Why> {
        let search = self.search;
        let (waiting_bytes, more) = read(&search.queue).bytes(keys);
        let outlook = Outlook { waiting_bytes, next_bytes: more + self.outlook.next_bytes, ..self.outlook };
        write(&search.tiers).make_way(entries, keys, outlook).map_err(|Full| Why::Memory)
    }

    /// An error if the search must end now, with whatever it has.
    pub(super) fn end_if_due(&self, look: bool, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        if let Some(why) = &self.told {
            return Err(why.clone());
        }
        let ends = ledger.control.must_end(look, &mut ledger.tally.stats, &read(&self.search.tiers));
        ends.filter(|why| !self.goes_on_after(why)).map_or(Ok(()), Err)
    }

    /// Can the search go on all the same? A store that forgets too much may go on with a filter.
    fn goes_on_after(&self, why: &Why) -> bool {
        *why == Why::Redundancy && write(&self.search.tiers).go_on_with_filter(self.outlook) == Ok(true)
    }

    /// A level is complete, and what is fresh in it, states of `level`, waits.
    pub(super) fn end_level(&mut self, level: u32, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        let is_short = {
            let tiers = read(&search.tiers);
            tiers.forgets() || !tiers.climbs().is_empty()
        };
        if is_short {
            ledger.prune();
        }
        // A log that does not begin at the beginning is not written to checkpoints.
        if self.keeper.is_none() {
            ledger.keep_level(level, &mut write(&search.queue))?;
        }
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
