//! Workers that do one thing at a time together: a leader names a task of several items, everybody has a share of them, and
//! whoever has done that helps others with theirs.
//!
//! Nothing is handed over but numbers; what they stand for lies where all can see it. A ticket is the right to one item, with the number of
//! the task in its upper half, so that whoever comes late takes no item of a task that is over: a task ends only when all of its items are
//! done, hence the task of a ticket that counts is still the one that is announced. There are as many tickets as items, so whoever has one
//! finds an item. **Shares are neighbours, and the same each time**: neighbouring blocks have much the same successors, of which a worker
//! recognises more then; what it has written for a block it reads again, and the tables of a shard stay near whoever enters it. Workers without work look for some time, then sleep.

#[cfg(test)]
use shuttle::{hint::spin_loop, sync};
#[cfg(not(test))]
use std::{hint::spin_loop, sync};

use std::ops::ControlFlow;
use std::sync::PoisonError;
use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sync::{Condvar, Mutex, MutexGuard};

/// How often a worker looks for work, or the leader for the end of a task, before it sleeps.
const LOOKS: u32 = if cfg!(test) { 2 } else { 20_000 };

const ITEM_BITS: u32 = 32;
const KIND_BITS: u32 = 4;
const DISMISSED: u64 = (1 << KIND_BITS) - 1;

/// What is announced, packed into 64 bits: the number of the task, its kind, how many items it has.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Task(u64);

impl Task {
    fn new(number: u64, kind: u64, items: usize) -> Task {
        assert!(items < 1 << (ITEM_BITS - KIND_BITS));
        Task(number << ITEM_BITS | kind << (ITEM_BITS - KIND_BITS) | items as u64)
    }

    fn number(self) -> u64 {
        self.0 >> ITEM_BITS
    }

    fn kind(self) -> u64 {
        self.0 >> (ITEM_BITS - KIND_BITS) & DISMISSED
    }

    fn items(self) -> u64 {
        self.0 & ((1 << (ITEM_BITS - KIND_BITS)) - 1)
    }
}

pub(super) struct Team {
    task: AtomicU64,
    /// Rights to an item that were taken, with the number of the task.
    ticket: AtomicU64,
    /// Of each worker, the leader first: the next item and the end, in the upper half.
    shares: Vec<Share>,
    /// Workers that follow.
    followers: AtomicUsize,
    /// Items of the task that are not done.
    open: AtomicUsize,
    /// Somebody panicked.
    broken: AtomicBool,
    sleepers: Mutex<Sleepers>,
    /// There is a new task.
    announced: Condvar,
    /// All items of the task are done.
    done: Condvar,
}

/// In a line of its own, for everybody looks at their own all the time.
#[repr(align(64))]
struct Share(AtomicU64);

impl Share {
    fn take(&self) -> Option<usize> {
        let share = self.0.load(Ordering::Relaxed);
        // Whoever helps finds most of them empty.
        if share as u32 as u64 >= share >> ITEM_BITS {
            return None;
        }
        let share = self.0.fetch_add(1, Ordering::Relaxed);
        let (item, end) = (share as u32 as u64, share >> ITEM_BITS);
        (item < end).then_some(item as usize)
    }
}

#[derive(Default)]
struct Sleepers {
    workers: usize,
    leader: bool,
}

impl Team {
    /// For so many workers, the leader among them.
    pub fn new(workers: usize) -> Team {
        Team {
            shares: (0..workers).map(|_| Share(AtomicU64::new(0))).collect(),
            followers: AtomicUsize::new(0),
            task: AtomicU64::new(0),
            ticket: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleepers: Mutex::new(Sleepers::default()),
            announced: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Announces a task, takes part in it, and returns when all items are done. False if somebody panicked.
    #[must_use]
    pub fn lead(&self, kind: u8, items: usize, work: impl FnMut(u8, usize)) -> bool {
        self.announce(kind.into(), items);
        self.take_part(0, work);
        let mut looks = 0;
        while self.open.load(Ordering::Acquire) > 0 {
            looks += 1;
            if looks < LOOKS {
                spin_loop();
                continue;
            }
            let mut sleepers = self.sleepers();
            sleepers.leader = true;
            while self.open.load(Ordering::Acquire) > 0 {
                sleepers = self.done.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
            }
            sleepers.leader = false;
        }
        !self.broken.load(Ordering::Acquire)
    }

    /// Takes part in every task until the team is dismissed: `work` is given its kind and the item.
    pub fn follow(&self, mut work: impl FnMut(u8, usize)) {
        let number = self.followers.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last = 0;
        while let ControlFlow::Continue(task) = self.wait_for_another(last) {
            last = task.number();
            self.take_part(number, &mut work);
        }
    }

    /// Sends everybody home.
    pub fn dismiss(&self) {
        self.announce(DISMISSED, 0);
    }

    fn announce(&self, kind: u64, items: usize) {
        let last = Task(self.task.load(Ordering::Relaxed));
        let task = Task::new(last.number() + 1, kind, items);
        self.open.store(items, Ordering::Relaxed);
        self.deal(items);
        let sleepers = self.sleepers();
        self.task.store(task.0, Ordering::Release);
        self.ticket.store(task.number() << ITEM_BITS, Ordering::Release);
        // The leader takes an item too.
        let wanted = if kind == DISMISSED { usize::MAX } else { items.saturating_sub(1) };
        let calls = wanted.min(sleepers.workers);
        drop(sleepers);
        (0..calls).for_each(|_| self.announced.notify_one());
    }

    /// Gives everybody who is there a share. Nobody takes items now.
    fn deal(&self, items: usize) {
        let workers = self.shares.len().min(self.followers.load(Ordering::Relaxed) + 1);
        let first = |worker: usize| (items * worker.min(workers) / workers) as u64;
        for (worker, share) in self.shares.iter().enumerate() {
            share.0.store(first(worker + 1) << ITEM_BITS | first(worker), Ordering::Relaxed);
        }
    }

    /// An item for whoever has the right to one: of their own share, or of the next that has any.
    fn item(&self, worker: usize) -> usize {
        let mut shares = self.shares.iter().cycle().skip(worker).take(self.shares.len());
        shares.find_map(Share::take).expect("there are as many tickets as items")
    }

    /// Does items of the current task until none is left.
    fn take_part(&self, worker: usize, mut work: impl FnMut(u8, usize)) {
        loop {
            let ticket = self.ticket.fetch_add(1, Ordering::AcqRel);
            let (number, count) = (ticket >> ITEM_BITS, ticket & ((1 << ITEM_BITS) - 1));
            let task = Task(self.task.load(Ordering::Acquire));
            if task.number() != number || count >= task.items() {
                return;
            }
            let mut done = Done { team: self, in_order: false };
            work(task.kind() as u8, self.item(worker));
            done.in_order = true;
        }
    }

    /// Waits for a task other than the one with number `last`.
    fn wait_for_another(&self, last: u64) -> ControlFlow<(), Task> {
        let current = || Task(self.task.load(Ordering::Acquire));
        let announced = |task: Task| task.number() != last;
        let mut looks = 0;
        while looks < LOOKS && !announced(current()) {
            looks += 1;
            spin_loop();
        }
        if !announced(current()) {
            let mut sleepers = self.sleepers();
            while !announced(current()) {
                sleepers.workers += 1;
                sleepers = self.announced.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
                sleepers.workers -= 1;
            }
        }
        let task = current();
        if task.kind() == DISMISSED { ControlFlow::Break(()) } else { ControlFlow::Continue(task) }
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An item that is being done; it counts as done also if that panics.
struct Done<'a> {
    team: &'a Team,
    in_order: bool,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if !self.in_order {
            self.team.broken.store(true, Ordering::Release);
        }
        if self.team.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            let sleepers = self.team.sleepers();
            if sleepers.leader {
                self.team.done.notify_one();
            }
        }
    }
}

/// Sends the workers home, also if the leader panics.
pub struct Dismissal<'s>(pub &'s Team);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.dismiss();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shuttle::thread;
    use sync::Arc;

    /// Every item of every task is done exactly once, in time, and as what it is; everybody goes home.
    fn every_item_is_done_once(tasks: &'static [usize], workers: usize) {
        let team = Arc::new(Team::new(workers + 1));
        let most = tasks.iter().copied().max().unwrap_or(0);
        let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..tasks.len() * most).map(|_| AtomicUsize::new(0)).collect());
        let followers: Vec<_> = (0..workers)
            .map(|_| {
                let (team, counts) = (team.clone(), counts.clone());
                thread::spawn(move || {
                    team.follow(|kind, item| {
                        counts[kind as usize * most + item].fetch_add(1, Ordering::Relaxed);
                    });
                })
            })
            .collect();
        for (kind, &items) in tasks.iter().enumerate() {
            assert!(team.lead(kind as u8, items, |kind, item| {
                counts[kind as usize * most + item].fetch_add(1, Ordering::Relaxed);
            }));
            let done = (0..most).map(|item| counts[kind * most + item].load(Ordering::Relaxed));
            assert!(done.enumerate().all(|(item, count)| count == (item < items) as usize), "task {kind}");
        }
        team.dismiss();
        followers.into_iter().for_each(|follower| follower.join().unwrap());
        let all = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum::<usize>();
        assert_eq!(all, tasks.iter().sum::<usize>());
    }

    #[test]
    fn under_any_schedule_every_item_is_done_once() {
        shuttle::check_random(|| every_item_is_done_once(&[3, 1, 0, 2], 2), 3_000);
        shuttle::check_random(|| every_item_is_done_once(&[1, 4], 3), 3_000);
        shuttle::check_pct(|| every_item_is_done_once(&[2, 2, 1], 2), 3_000, 4);
    }

    #[test]
    fn an_item_that_fails_is_done_and_the_leader_told() {
        shuttle::check_random(
            || {
                let team = Team::new(1);
                assert!(team.lead(0, 2, |_, _| {}));
                team.open.store(1, Ordering::Relaxed);
                drop(Done { team: &team, in_order: false });
                assert!(team.open.load(Ordering::Relaxed) == 0 && !team.lead(0, 1, |_, _| {}));
            },
            1,
        );
    }
}
