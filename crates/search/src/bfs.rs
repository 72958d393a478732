//! Breadth-first search, level by level, in blocks, by one worker or by several.
//!
//! A block of states is expanded into one buffer and its successors are encoded ([`expansion`]), by any worker; then
//! the buffer is inserted into the store at once (which prefetches all, then probes all), and what is fresh goes to the
//! step log ([`ledger`]) and to the queue ([`desk`]), by one worker at a time and in order. So states are numbered in the
//! order they are found, which is also the order they are expanded in, **whatever the number of workers**: it shows in
//! times only.
//!
//! With a store that forgets, a state may be found and numbered again: nothing is missed, but only `cover` (see
//! [`plimsoll_store::cache`]) ends by itself; anything else needs a limit on redundancy. Traces remain paths of
//! the model, and remain shortest: a state is still found on its own level first.

mod desk;
mod expansion;
mod ledger;

use crate::control::Control;
use crate::verdict::Outcome;
use desk::Desk;
use expansion::Needs;
use ledger::{End, Ledger};
use plimsoll_model::{Conventions, Model};
use plimsoll_store::{Chain, Queue, SharedCoder, StepLog};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

/// As much as the first thread usually has: models may recurse along their expressions.
const STACK_BYTES: usize = 8 << 20;

/// Who searches, and in how large pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    pub workers: usize,
    /// Successors aimed at per block.
    pub block_successors: usize,
}

impl Crew {
    /// Enough successors to hide memory latency, few enough to stay in the processor's caches.
    pub const BLOCK_SUCCESSORS: usize = 1024;

    /// Blocks of wide states have fewer of them: a mebibyte of successors is enough.
    const BLOCK_WORDS: usize = 1 << 18;

    pub fn of(workers: usize) -> Crew {
        Crew { workers, block_successors: Crew::BLOCK_SUCCESSORS }
    }

    /// For states of so many words.
    pub fn for_width(workers: usize, width: usize) -> Crew {
        Crew { workers, block_successors: (Crew::BLOCK_WORDS / width.max(1)).clamp(1, Crew::BLOCK_SUCCESSORS) }
    }

    /// How many blocks are held at once, at most: some wait while an earlier one is not ready.
    pub fn blocks(&self) -> usize {
        if self.workers == 1 { 1 } else { self.workers * 2 + 1 }
    }
}

/// Searches `model` breadth first.
pub fn bfs<M: Model + ?Sized>(
    model: &M,
    store: &mut Chain,
    queue: &mut Queue,
    log: &mut StepLog,
    crew: Crew,
    control: &mut Control,
) -> Outcome {
    let Chain { coder, tiers } = store;
    let needs = Needs::of(tiers);
    // What a cache forgets depends on keys, so they must not depend on who encodes first.
    let encodes_in_order = tiers.health().is_some() && coder.numbers_states();
    let search = Bfs {
        model,
        conventions: model.conventions(),
        needs,
        encodes_in_order,
        most_workers: crew.workers,
        coder: SharedCoder::new(coder),
        desk: Mutex::new(Desk::new(queue, model.width(), crew.block_successors, crew.blocks())),
        ledger: Mutex::new(Ledger::new(model, tiers, log, control)),
        changed: Condvar::new(),
    };
    search.start();
    thread::scope(|scope| search.work(scope));
    let mut desk = search.desk.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut ledger = search.ledger.into_inner().unwrap_or_else(PoisonError::into_inner);
    let end = match desk.end.take().unwrap_or(End::Done) {
        End::Done => ledger.control.stopped().map_or(End::Done, End::Out),
        end => end,
    };
    let complete = matches!(end, End::Done);
    let verdict = ledger.verdict(end);
    ledger.stats.frontier = desk.frontier();
    ledger.stats.look_at(ledger.tiers);
    (ledger.control.watch)(&ledger.stats);
    Outcome { verdict, stats: ledger.stats, complete }
}

struct Bfs<'a, 'c, M: ?Sized> {
    model: &'a M,
    conventions: Conventions,
    needs: Needs,
    encodes_in_order: bool,
    most_workers: usize,
    coder: SharedCoder<'a>,
    desk: Mutex<Desk<'a>>,
    /// Whoever enters blocks holds this; a worker that has to wait for it does something else.
    ledger: Mutex<Ledger<'a, 'c, M>>,
    /// There are blocks to give out, or the search has ended.
    changed: Condvar,
}

/// The desk in the hands of one worker.
type Held<'s, 'a> = MutexGuard<'s, Desk<'a>>;

impl<'a, M: Model + ?Sized> Bfs<'a, '_, M> {
    fn start(&self) {
        let (mut desk, mut ledger) = (self.desk(), self.ledger.lock().unwrap_or_else(PoisonError::into_inner));
        let mut block = desk.spare();
        let (mut part, mut next) = (0, Some(0));
        while let Some(first) = next {
            let starts = block.start(self.model, self.needs, part, first);
            block.encode(&self.coder, self.needs);
            let entered = ledger.enter_starts(&mut block, &starts);
            if let Err(why) = desk.queue_fresh(&block, &mut ledger).and(entered) {
                desk.end = Some(End::Out(why));
                return;
            }
            (part, next) = (part + 1, starts.next);
        }
        desk.begin(0, &mut ledger);
    }

    /// What each worker does until the search ends.
    fn work<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        let alarm = Alarm(self);
        let mut desk = self.desk();
        while desk.end.is_none() {
            desk = self.enter_ready(desk, scope);
            let Some((number, mut block)) = desk.give() else {
                desk = self.wait(desk);
                continue;
            };
            self.call_another(&mut desk, scope);
            desk = self.apart(desk, || {
                if block.failure.is_none() {
                    block.expand(self.model, &self.conventions, self.needs);
                }
                if block.failure.is_none() && !self.encodes_in_order {
                    block.encode(&self.coder, self.needs);
                }
            });
            desk.take_back(number, block);
        }
        self.changed.notify_all();
        drop(desk);
        std::mem::forget(alarm);
    }

    /// Enters all blocks whose turn it is, unless another worker does so.
    fn enter_ready<'s>(&'s self, mut desk: Held<'s, 'a>, scope: &'s Scope<'s, '_>) -> Held<'s, 'a> {
        // Whoever holds the ledger looks for blocks that are ready before leaving it, with the desk held.
        let Ok(mut ledger) = self.ledger.try_lock() else { return desk };
        while let Some(mut block) = desk.next_to_enter() {
            let mut entered = Ok(());
            desk = self.apart(desk, || {
                if block.failure.is_none() {
                    if self.encodes_in_order {
                        block.encode(&self.coder, self.needs);
                    }
                    block.settle(&self.coder, ledger.tiers, self.needs);
                }
                entered = ledger.enter(&mut block);
            });
            match desk.queue_fresh(&block, &mut ledger).and(entered) {
                Ok(()) => desk.put_away(block, &mut ledger),
                Err(why) => desk.end = Some(End::Out(why)),
            }
            self.call_another(&mut desk, scope);
        }
        drop(ledger);
        desk
    }

    /// Does something that does not need the desk, which others get meanwhile, if there are any.
    fn apart<'s>(&'s self, mut desk: Held<'s, 'a>, action: impl FnOnce()) -> Held<'s, 'a> {
        if desk.workers - desk.waiting == 1 {
            action();
            return desk;
        }
        let calls = std::mem::take(&mut desk.calls);
        drop(desk);
        // Whoever is woken needs the desk, so not earlier.
        (0..calls).for_each(|_| self.changed.notify_one());
        action();
        self.desk()
    }

    /// If there is more to do, gets another worker to do it.
    fn call_another<'s>(&'s self, desk: &mut Held<'s, 'a>, scope: &'s Scope<'s, '_>) {
        if self.most_workers == 1 || !desk.has_more() {
            return;
        }
        if desk.waiting > 0 {
            desk.waiting -= 1;
            desk.called += 1;
            desk.calls += 1;
        } else if desk.workers < self.most_workers {
            let started = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || self.work(scope));
            desk.workers += started.is_ok() as usize;
        }
    }

    /// Waits until there is something to do again.
    fn wait<'s>(&'s self, mut desk: Held<'s, 'a>) -> Held<'s, 'a> {
        desk.waiting += 1;
        (0..std::mem::take(&mut desk.calls)).for_each(|_| self.changed.notify_one());
        while desk.called == 0 && desk.end.is_none() {
            desk = self.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
        desk.called = desk.called.saturating_sub(1);
        desk
    }

    fn desk(&self) -> Held<'_, 'a> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the search if a worker panics, or others would wait for it for ever.
struct Alarm<'s, 'a, 'c, M: Model + ?Sized>(&'s Bfs<'a, 'c, M>);

impl<M: Model + ?Sized> Drop for Alarm<'_, '_, '_, M> {
    fn drop(&mut self) {
        self.0.desk().end.get_or_insert(End::Found);
        self.0.changed.notify_all();
    }
}
