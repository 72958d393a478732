//! Where a breadth-first search stands, so that it can go on another day.
//!
//! Between two parts of a wave nothing is under way: store, queue, log and books agree. A [`Mark`] says where they stood
//! then. When a search runs out within a part, what it did since counts for the report only: queue and log are written as long
//! as they were at the mark, and states that were entered since are told apart, so that they are found again. Hence a search that
//! goes on finds the same states in the same order, with the same numbers, as one that was never interrupted.

use super::ledger::Books;
use super::{Crew, Leader, Search, read, write};
use crate::bfs::expansion::Done;
use crate::bfs::ledger::Ledger;
use crate::observe::Observer;
use crate::verdict::Why;
use plimsoll_model::Model;
use plimsoll_store::runs::Layers;
use plimsoll_store::{Block, Chain, Entry, LogMark, Queue, StepLog, Unloaded};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Where a search stood, beside its store, queue and log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    level: u32,
    /// States of the level that were not expanded, and how many of them belong to a wave that had begun.
    level_left: usize,
    wave_left: usize,
    books: Books,
}

/// Whoever keeps checkpoints.
pub trait Keeper: Send {
    /// Is it time for another one?
    fn is_due(&self) -> bool;

    /// Keeps one: what `write` writes, and `saved`. What fails is remembered; the search goes on or ends all the same.
    fn keep(&mut self, saved: &Saved, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>);

    /// The search was told to end and has something to do first: takes care that nobody tells it again, and that the model goes on to answer.
    fn give_time(&mut self) {}
}

/// Where a search begins, who keeps checkpoints of it, and who looks on.
#[derive(Default)]
pub struct Company<'k> {
    pub from: Option<Saved>,
    pub keeper: Option<&'k mut dyn Keeper>,
    pub observer: Option<&'k mut dyn Observer>,
}

impl Saved {
    /// States that were found.
    pub fn states(&self) -> u64 {
        self.books.stats.states
    }

    /// Reads what was written with it into structures that are empty.
    pub fn load(
        &self,
        from: &mut dyn Read,
        store: &mut Chain,
        queue: &mut Queue,
        log: &mut StepLog,
        crew: Crew,
    ) -> Result<(), Unloaded> {
        let states = store.load(crew.shard_bits, from)?;
        queue.load(from)?;
        log.load(from)?;
        if from.read(&mut [0])? > 0 {
            return Err(Unloaded::damaged("it does not end where it should"));
        }
        let states = states.unwrap_or(log.len());
        let agree = states == log.len()
            && states.checked_sub(self.books.expanded) == Some(queue.len() as u64)
            && self.books.initial_states <= states
            && self.wave_left <= self.level_left
            && self.level_left <= queue.len();
        if agree { Ok(()) } else { Err(Unloaded::damaged("its parts do not belong together")) }
    }

    pub(super) fn place(&self) -> Place {
        Place { level: self.level, level_left: self.level_left, wave_left: self.wave_left }
    }

    pub(super) fn into_books(self) -> Books {
        self.books
    }
}

/// How far a search is with a level.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub level: u32,
    pub level_left: usize,
    pub wave_left: usize,
}

/// Where everything stood when nothing was under way.
pub(super) struct Mark {
    saved: Saved,
    sampled: usize,
    queued: usize,
    log: LogMark,
}

impl<'s, 'a, 'k, M: Model + ?Sized> Leader<'s, 'a, 'k, M> {
    /// Remembers where everything stands now.
    pub(super) fn mark(&mut self, place: Place, ledger: &Ledger<'a, '_, M>) {
        if self.keeper.is_some() {
            let Place { level, level_left, wave_left } = place;
            let saved = Saved { level, level_left, wave_left, books: ledger.books() };
            let (sampled, queued) = (read(&self.search.tiers).sampled(), read(&self.search.queue).len());
            self.mark = Some(Mark { saved, sampled, queued, log: ledger.log.mark() });
        }
    }

    /// Whoever keeps checkpoints keeps some disk aside, so that what waits can be settled when there is no other.
    pub(super) fn keep_disk(&self) {
        if self.keeper.is_some() && self.told.is_none() {
            write(&self.search.tiers).layers_mut().into_iter().for_each(Layers::keep_disk);
        }
    }

    /// Keeps a checkpoint if it is time for one; the last mark was at `place`.
    pub(super) fn keep_if_due(&mut self, place: Place, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        if !self.keeper.as_ref().is_some_and(|keeper| keeper.is_due()) {
            return Ok(());
        }
        // Their level may take long.
        if self.candidates_wait() {
            self.seal(place.level + 1, ledger)?;
            self.mark(place, ledger);
        }
        if read(&self.search.tiers).can_be_saved() {
            self.keep(0, ledger);
        }
        Ok(())
    }

    /// Do candidates wait, which cannot be written, in a search that could be kept otherwise?
    fn candidates_wait(&self) -> bool {
        let wait = |layers: &Layers| layers.keeps_all() && !layers.candidates.is_empty();
        read(&self.search.tiers).layers().is_some_and(wait)
    }

    /// Must candidates that wait be settled when the search ends? What was expanded by then counts: a block that the model gave up
    /// has no keys, and whether states violate anything is asked when they are settled.
    pub(super) fn must_settle(&self) -> bool {
        self.keeper.is_some() && self.candidates_wait() && read(&self.search.tiers).is_whole()
    }

    /// Keeps a checkpoint of a search that ends between two parts of a wave, at `place`, where the last mark was.
    pub(super) fn keep_last(&mut self, place: Place, ledger: &mut Ledger<'a, '_, M>) {
        if self.must_settle() { self.keep_settled(place, 0, ledger) } else { self.keep(0, ledger) }
    }

    /// Settles what waits, and keeps a checkpoint of how things stand then, at `place`. So many blocks were entered of which nothing counts.
    pub(super) fn keep_settled(&mut self, place: Place, blocks: usize, ledger: &mut Ledger<'a, '_, M>) {
        if let Some(keeper) = &mut self.keeper {
            keeper.give_time();
        }
        if self.ask_runs(place.level + 1, ledger).is_ok() {
            write(&self.search.tiers).layers_mut().map(Layers::leave_disk);
            self.mark(place, ledger);
            self.keep(blocks, ledger);
        }
    }

    /// Tells whoever keeps checkpoints that there is none, for some of what waits may have been numbered: nothing that was marked stands any more.
    pub(super) fn keep_none(&mut self) {
        if let (Some(keeper), Some(mark)) = (&mut self.keeper, &self.mark) {
            let failed = || io::Error::other("states of the level at hand could not be looked for on disk");
            keeper.keep(&mark.saved, &mut |_| Err(failed()));
        }
    }

    /// Keeps a checkpoint of how things stood at the last mark. Since then so many blocks may have been entered.
    pub(super) fn keep(&mut self, blocks: usize, ledger: &mut Ledger<'a, '_, M>) {
        let (Some(keeper), Some(mark)) = (&mut self.keeper, &self.mark) else { return };
        let Search { coder, tiers, queue, .. } = self.search;
        let blocks: Vec<_> = self.search.blocks[..blocks].iter().map(read).collect();
        let entered = blocks.iter().filter(|block| block.done == Done::Encoded);
        let unnumbered: Vec<(Block, &Entry)> = entered.map(|block| (block.block(), &block.entry)).collect();
        let (tiers, queue) = (read(tiers), read(queue));
        keeper.keep(&mark.saved, &mut |out| {
            if !tiers.can_be_saved() {
                return Err(io::Error::other("states of the level at hand have to be looked for on disk first"));
            }
            coder.save(out)?;
            tiers.save(&unnumbered, mark.sampled, out)?;
            queue.save(mark.queued, out)?;
            ledger.log.save(mark.log, out)
        });
    }
}
