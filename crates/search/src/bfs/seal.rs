//! What a breadth-first search does when memory is full and there is a disk ([`plimsoll_store::runs`]).
//!
//! Whether the store has room is asked when a part of a wave was expanded, before any of it is entered; if it has none,
//! tables leave for the disk first, shard by shard. From then on what the store does not know is a candidate, which is
//! neither numbered nor checked. A level is **sealed** when all its states were expanded: the runs are asked for all
//! candidates, again shard by shard, and the survivors are numbered in the order in which they were found. So states,
//! numbers, log, counts and traces are those of a search in memory. A candidate that violates a property seals the level
//! at once, so that the search ends where it would have ended in memory: had it been met before, it would have ended then.

use super::expansion::{Done, Expansion, Hit};
use super::ledger::Ledger;
use super::saved::Place;
use super::{FILL, FLUSH, Leader, MERGE, SETTLE, SIFT, Search, read, write};
use crate::verdict::Why;
use plimsoll_model::Model;
use plimsoll_store::runs::{Layers, Survivors};
use plimsoll_store::{Coder, Entry, Full, Needs, Piece, Queue, Recent, Rung, Shortage, SpillError};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Survivors on their way to the queue.
#[derive(Default)]
pub(super) struct Settled {
    survivors: Survivors,
    /// The place of the first in the queue.
    place: usize,
    pub steps: Piece,
    pub hits: Vec<Hit>,
}

impl Settled {
    /// Queues the survivors and notes how they were found.
    fn number(&mut self, queue: &Queue) {
        let Settled { survivors, place, steps, .. } = self;
        steps.clear();
        queue.write_all(*place, survivors.states.chunks_exact(queue.width()));
        survivors.origins.iter().for_each(|&(parent, position)| steps.push(parent, position));
    }

    /// Looks for violations.
    fn judge<M: Model + ?Sized>(&mut self, model: &M) {
        let Settled { survivors, hits, .. } = self;
        hits.clear();
        if !model.has_properties() {
            return;
        }
        let states = survivors.states.chunks_exact(model.width());
        for (index, (state, &(parent, position))) in states.zip(&survivors.origins).enumerate() {
            if let Some(property) = model.violated(state) {
                hits.push(Hit { index: index as u32, property, parent, position });
            }
        }
    }
}

impl<M: Model + ?Sized> Search<'_, M> {
    /// Numbers the survivors of a piece of the candidates, for which there is a place in the queue.
    pub(super) fn settle(&self, piece: usize, layers: &Layers, records: &mut Vec<u32>) {
        let mut settled = write(&self.settled[piece]);
        layers.survivors(piece, &mut settled.survivors, records);
        settled.number(&read(&self.queue));
        settled.judge(self.model);
    }
}

impl<'a, M: Model + ?Sized> Leader<'_, 'a, '_, M> {
    /// Makes sure that all keys of some blocks, so many, find room, if there is a disk or another way to go on; states of `level`
    /// are being found.
    pub(super) fn make_room(&mut self, entries: &[&Entry], keys: usize, level: u32) -> Result<(), Why> {
        let search = self.search;
        self.make_way(entries, keys)?;
        // The older tables leave first; should that not be enough, all.
        for everything in [false, true] {
            if write(&search.tiers).has_room(entries) {
                return Ok(());
            }
            self.flush(level, everything)?;
        }
        if write(&search.tiers).has_room(entries) { Ok(()) } else { Err(Why::Memory) }
    }

    /// Computes the keys that blocks under way lack, once that has become possible: keys have become longer, or nodes of a tree were given up, with states
    /// if need be; in that case keys that there are mean nothing. Where nothing can be done, nothing is.
    pub(super) fn encode_after_forgetting(&mut self, blocks: &mut [&mut Expansion]) {
        let search = self.search;
        while blocks.iter().any(|block| block.done == Done::Full) && search.coder.make_room(&mut write(&search.tiers)) {
            let again = search.coder.with(Coder::numbers_states);
            let encodes =
                |block: &&mut &mut Expansion| block.done == Done::Full || again && block.done == Done::Encoded;
            for block in blocks.iter_mut().filter(encodes) {
                self.encode(block);
            }
        }
    }

    fn encode(&mut self, block: &mut Expansion) {
        let (search, worker) = (self.search, &mut self.worker);
        // It may have met states of later blocks.
        worker.lately.iter_mut().for_each(Recent::forget);
        let sorted = read(&search.briefing).wave.blocks > 1;
        let needs = Needs { sorted, ..read(&search.tiers).needs() };
        block.encode(&search.coder, needs, &mut worker.keys, worker.lately.as_mut());
    }

    /// Tries again to compute the keys of a block for which the codec had no room: without learning, and if that is not
    /// enough without tables in memory.
    pub(super) fn encode_again(&mut self, block: &mut Expansion, level: u32) -> Result<(), Why> {
        let search = self.search;
        if search.coder.with(Coder::is_outgrown) {
            // No memory would help.
            return Ok(());
        }
        let mut encode = |leader: &mut Self| {
            leader.encode(block);
            block.done == Done::Full
        };
        let is_full = !write(&search.tiers).forget_sample() || encode(self);
        if is_full && read(&search.tiers).layers().is_some() {
            self.flush(level, true)?;
            encode(self);
        } else if is_full {
            let mut tiers = write(&search.tiers);
            let outlook = self.outlook;
            let has_filter = tiers.go_on_with_filter(outlook).map_err(|Full| Why::Memory)?;
            let has_room = has_filter || tiers.give_up_frozen(outlook);
            drop(tiers);
            if has_room {
                encode(self);
            }
        }
        Ok(())
    }

    /// Writes tables to disk; if those are empty, what fills memory is something else.
    pub(super) fn flush(&mut self, level: u32, everything: bool) -> Result<(), Why> {
        let search = self.search;
        let shards = {
            let mut tiers = write(&search.tiers);
            if tiers.held().0 == 0 {
                return Err(Why::Memory);
            }
            if !tiers.defers() {
                tiers.note_climb(Rung::Layers, self.outlook);
            }
            search.coder.with(|coder| tiers.begin_flush(coder, level, everything));
            tiers.shards()
        };
        self.for_all(FLUSH, shards, false)?;
        let mut tiers = write(&search.tiers);
        search.coder.with(|coder| tiers.end_flush(coder))?;
        search.defers.store(tiers.defers(), Ordering::Relaxed);
        self.unmerged = true;
        Ok(())
    }

    /// Asks the runs for all candidates, which are states of `level`, and numbers the survivors.
    pub(super) fn seal(&mut self, level: u32, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        if !read(&self.search.tiers).defers() {
            return Ok(());
        }
        self.ask_runs(level, ledger)?;
        self.with_layers(|layers| {
            layers.end_seal(level);
            Ok(())
        })?;
        if !std::mem::take(&mut self.unmerged) {
            return Ok(());
        }
        // Runs that cannot be merged for want of an index are asked again and again.
        let shards = read(&self.search.tiers).shards();
        self.with_layers(|layers| {
            layers.lend_reserve();
            Ok(())
        })?;
        let merged = self.for_all(MERGE, shards, false);
        self.with_layers(|layers| {
            layers.keep_reserve();
            Ok(())
        })?;
        merged
    }

    /// The same, but nothing is too old and nothing is merged.
    pub(super) fn ask_runs(&mut self, level: u32, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let asked = self.settle_all(level, ledger);
        if asked.is_err() {
            self.keep_none();
        }
        asked
    }

    fn settle_all(&mut self, level: u32, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        let shards = read(&search.tiers).shards();
        while self.with_layers(|layers| Ok(layers.begin_fill(level, true)))? {
            // A level of a few states is never shared.
            let few = read(&search.tiers)
                .layers()
                .is_some_and(|layers| layers.candidates.len() < search.crew.shared_successors);
            // Where there turns out to be less disk than was thought, they are as few as memory holds.
            if self.fill(few).is_err() {
                self.with_layers(|layers| Ok(layers.begin_fill(level, false)))?;
                self.fill(few)?;
            }
            self.for_all(SIFT, shards, few)?;
            self.settle(level, few, ledger)?;
        }
        search.urgent.store(false, Ordering::Relaxed);
        self.with_layers(|layers| {
            layers.settle();
            Ok(())
        })
    }

    /// Gives up a tree that takes too much memory beside what is on disk, between two parts of a wave.
    pub(super) fn give_up_large_tree(&mut self, place: Place, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        let is_outgrown = || search.coder.with(|coder| read(&search.tiers).is_outgrown_by(coder));
        if search.observed || !is_outgrown() { Ok(()) } else { self.give_up_keys(place, ledger) }
    }

    /// All keys are taken apart; nothing that was encoded is entered any more. There is no way back in the middle of it, and that may take
    /// more disk than there is, so a checkpoint is kept before.
    pub(super) fn give_up_keys(&mut self, place: Place, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let (search, level) = (self.search, place.level + 1);
        // Workers may have met states that were not entered.
        search.again.fetch_add(1, Ordering::Relaxed);
        // Whoever takes keys apart needs all of them, so levels that are too old go when this one is done.
        self.ask_runs(level, ledger)?;
        self.mark(place, ledger);
        self.keep(0, ledger);
        if let Some(why) = &self.told {
            return Err(why.clone());
        }
        if !search.is_deferring() {
            self.flush(level, true)?;
        }
        Ok(search.coder.give_up_keys(&mut write(&search.tiers), level)?)
    }

    /// Takes note of why a block, and what comes behind it, has no keys.
    pub(super) fn not_encoded(&mut self, done: Done) -> Why {
        self.unentered = done == Done::Full;
        self.search.why(done)
    }

    /// Takes note of why what was expanded and is left was not entered.
    pub(super) fn not_entered(&mut self, why: Why) -> Why {
        self.unentered = why == Why::Memory;
        why
    }

    /// Where memory is full, a tree is the last thing that can be given up, and where a state can have no key, so are those of all others: can
    /// the search go on with what was not entered? Whoever looks on knows states by their keys, so those stay then.
    pub(super) fn can_go_on_with_other_keys(&mut self) -> bool {
        let search = self.search;
        let can_give_up = || search.coder.with(|coder| read(&search.tiers).can_give_up(coder));
        std::mem::take(&mut self.unentered) && !search.observed && can_give_up()
    }

    /// Must the level be sealed before it is done?
    pub(super) fn must_seal(&self, ledger: &Ledger<'a, '_, M>) -> bool {
        let search = self.search;
        let waits = |layers: &Layers| (layers.candidates.len() as u64, layers.should_settle());
        let (waiting, should_settle) = read(&search.tiers).layers().map_or((0, false), waits);
        let states = ledger.tally.stats.states + waiting;
        waiting > 0
            && (should_settle
                || search.urgent.load(Ordering::Relaxed)
                || ledger.control.limits.states.is_some_and(|most| states >= most))
    }

    /// Puts candidates into the sieve.
    fn fill(&mut self, few: bool) -> Result<(), Why> {
        while let pieces @ 1.. = self.with_layers(|layers| Ok(layers.next_pieces()))? {
            self.for_all(FILL, pieces, few)?;
        }
        Ok(())
    }

    /// Numbers the survivors of those in the sieve.
    fn settle(&mut self, level: u32, few: bool, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        let pieces = if few { 1 } else { search.settled.len() };
        while let survivors @ [_, ..] = &self.with_layers(|layers| layers.next_survivors(pieces))?[..] {
            let mut place = self.make_room_for_survivors(survivors.iter().sum(), ledger)?;
            for (settled, survivors) in search.settled.iter().zip(survivors) {
                write(settled).place = place;
                place += survivors;
            }
            self.for_all(SETTLE, survivors.len(), few)?;
            let candidates = self.with_layers(|layers| Ok(layers.advance()))?;
            ledger.tally.stats.matched += (candidates - survivors.iter().sum::<usize>()) as u64;
            let again = self.goes_on_until_sealed(ledger)?;
            for settled in &search.settled[..survivors.len()] {
                let mut settled = write(settled);
                if again {
                    settled.judge(search.model);
                }
                ledger.enter_survivors(&settled, level)?;
                if let Some(observer) = &mut ledger.observer {
                    let mut keys = Vec::new();
                    let encoded = search.coder.keys_of(&settled.survivors.states, &mut self.worker.keys, &mut keys);
                    encoded.map_err(|Full| Why::Memory)?;
                    observer.fresh(&keys)?;
                }
            }
        }
        Ok(())
    }

    /// Makes room for so many survivors. When the disk is full what is kept aside there must do, if anything is, and the search ends as soon as
    /// nothing waits.
    fn make_room_for_survivors(&mut self, count: usize, ledger: &Ledger<'a, '_, M>) -> Result<usize, Why> {
        let extend = |leader: &Self| write(&leader.search.queue).extend(count);
        let (place, full) = match extend(self) {
            Ok(place) if ledger.log.lacks_disk(count) => (Some(place), SpillError::Full),
            Err(Shortage::Disk(full)) => (None, full),
            extended => return Ok(extended?),
        };
        if self.with_layers(|layers| Ok(layers.leave_disk()))? {
            self.told.get_or_insert(full.into());
        }
        Ok(place.map_or_else(|| extend(self), Ok)?)
    }

    /// Was the search told to end? Then what the model said last may mean nothing. Whoever keeps checkpoints has it go on until the level is sealed,
    /// for before that nothing can be kept, and it ends then.
    fn goes_on_until_sealed(&mut self, ledger: &Ledger<'a, '_, M>) -> Result<bool, Why> {
        let Some(why) = ledger.control.stopped() else { return Ok(false) };
        match &mut self.keeper {
            Some(keeper) if read(&self.search.tiers).layers().is_some_and(Layers::keeps_all) => keeper.give_time(),
            _ => return Err(why),
        }
        self.told = Some(why);
        Ok(true)
    }

    fn with_layers<T>(&self, act: impl FnOnce(&mut Layers) -> Result<T, Shortage>) -> Result<T, Why> {
        let mut tiers = write(&self.search.tiers);
        act(tiers.layers_mut().expect("there is a disk")).map_err(Why::from)
    }

    /// Does something for every shard, or every piece of the candidates, with whoever there is or `alone`, and says what went wrong.
    fn for_all(&mut self, phase: u8, items: usize, alone: bool) -> Result<(), Why> {
        if alone {
            (0..items).for_each(|item| self.search.perform_on_disk(phase, item, &mut self.worker));
        } else {
            self.perform_all(phase, items)?;
        }
        let failure = self.search.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}
