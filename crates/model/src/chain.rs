//! Atomic chains: successors that are not states of their own but stand for their own successors.
//!
//! While the system's exclusive scalar is non-zero in a successor, that successor is replaced by its own
//! successors, in order, and so on. One that has none becomes a state after all, with the scalar zeroed.
//! The step shown is that of the chain's first command; failed assertions on the way are kept. A chain that comes
//! back to a state on its own path never ends: a fault. Both executors use this file, each with its own function
//! for plain successors.
//!
//! Where only one step is possible a chain is followed in constant memory, and a circle is found with one state that
//! is kept (R. P. Brent: An improved Monte Carlo factorization algorithm, 1980). States with several steps, one of which
//! goes on, are remembered ([`Seen`]): what follows is then found once for each first command. Whoever is told to stop, or
//! would need too much memory, gives up, which is no fault of the model.

mod seen;
#[cfg(test)]
mod tests;

use std::ops::Range;

use plimsoll_ir::Slot;

use crate::{GaveUp, Patience, Step, Successors};
use seen::{Answer, Seen};

/// A path of more steps is told by its beginning and its end, half each.
const LONGEST_PATH: usize = 20_000;
/// What a walk worked with is kept for the next one only if it takes no more bytes than this.
const KEPT_BYTES: usize = 1 << 16;

/// The rule that makes chains: where the exclusive scalar lies, and what one walk may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub scalar: Slot,
    pub patience: Patience,
}

/// The successors of one state on the current path, as a range of the common buffer.
#[derive(Clone, Debug)]
struct Level {
    first: usize,
    /// The path goes through the entry before this one.
    next: usize,
    end: usize,
    /// Flags of the steps that led here.
    flags: u32,
    /// The state, among those seen; none for the state that the walk starts in.
    key: Option<u32>,
}

/// What a walk along chains works with. It lives in the list of successors, so that no walk but the first allocates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    levels: Vec<Level>,
    /// Entries that go on, or that come after such entries and wait for their turn.
    buffer: Successors,
    seen: Seen,
    /// The number of entries for which there is room in the plan: as many as there would be without chains.
    planned: usize,
    /// The state that the walk has come to, and one that it came through before.
    at: Vec<u32>,
    before: Vec<u32>,
}

impl Scratch {
    fn new(width: usize) -> Box<Scratch> {
        let scratch = Scratch { buffer: Successors::new(width), ..Scratch::default() };
        Box::new(Scratch { at: vec![0; width], before: vec![0; width], ..scratch })
    }

    fn bytes(&self) -> usize {
        self.levels.capacity() * size_of::<Level>() + self.buffer.bytes() + self.seen.bytes()
    }
}

/// How the walk came to an entry of the list, from the entry that the last level goes through.
#[derive(Clone, Copy, Debug)]
enum End {
    /// It is this entry of the buffer itself.
    Entry(usize),
    /// After so many steps without alternative, the successor of this number.
    Successor(u64, usize),
    /// After so many steps without alternative nobody can go on.
    Stuck(u64),
    /// After so many steps without alternative the path closes a circle.
    Circle(u64),
}

/// The walk cannot be finished.
struct Unfinished;

impl Chain {
    /// Appends the successors of `state`, chains run to their ends. `raw` gives plain successors.
    pub fn successors(&self, raw: impl Fn(&[u32], &mut Successors), state: &[u32], out: &mut Successors) {
        let start = out.len();
        raw(state, out);
        self.run_to_ends(raw, state, start, out);
    }

    /// The same where plain successors of `state` are there already, from `start` on.
    #[inline(always)]
    pub fn run_to_ends(
        &self,
        raw: impl Fn(&[u32], &mut Successors),
        state: &[u32],
        start: usize,
        out: &mut Successors,
    ) {
        let first = self.first_going_on(out, start..out.len());
        if first < out.len() && out.gave_up().is_none() {
            self.run_on_from(raw, state, first, out);
        }
    }

    /// The same where the entry `first` is the first that goes on.
    #[inline(never)]
    fn run_on_from(&self, raw: impl Fn(&[u32], &mut Successors), state: &[u32], first: usize, out: &mut Successors) {
        let mut scratch = out.scratch.take().unwrap_or_else(|| Scratch::new(out.width()));
        scratch.planned = out.len().saturating_sub(out.unplanned);
        let _ = self.walk(&raw, state, first, &mut scratch, out, usize::MAX);
        out.unplanned = out.len().saturating_sub(scratch.planned);
        if scratch.bytes() <= KEPT_BYTES {
            out.scratch = Some(scratch);
        }
    }

    /// The steps and states on the way to the `number`-th successor, which comes last. Of a very long way the middle is
    /// left out.
    pub fn path(
        &self,
        raw: impl Fn(&[u32], &mut Successors),
        state: &[u32],
        number: usize,
    ) -> Option<Vec<(Step, Vec<u32>)>> {
        let (mut head, mut tail) = (Vec::new(), std::collections::VecDeque::new());
        let found = self.follow(raw, state, number, &mut |step, state| {
            if head.len() < LONGEST_PATH / 2 {
                return head.push((step, state.to_vec()));
            }
            if tail.len() == LONGEST_PATH / 2 {
                tail.pop_front();
            }
            tail.push_back((step, state.to_vec()));
        });
        head.extend(tail);
        found.then_some(head)
    }

    /// Tells of the steps and states on the way to the `number`-th successor, in order. Is there such a successor?
    pub fn follow(
        &self,
        raw: impl Fn(&[u32], &mut Successors),
        state: &[u32],
        number: usize,
        visit: &mut dyn FnMut(Step, &[u32]),
    ) -> bool {
        let mut out = Successors::new(state.len());
        raw(state, &mut out);
        let first = self.first_going_on(&out, 0..out.len());
        if number < first {
            visit(out.step(number), out.state(number));
            return true;
        }
        if first == out.len() {
            return false;
        }
        let mut scratch = Scratch::new(state.len());
        scratch.planned = out.len();
        let Ok(Some(end)) = self.walk(&raw, state, first, &mut scratch, &mut out, number) else { return false };
        let Scratch { levels, buffer, .. } = &*scratch;
        let Some((last, path)) = levels.split_last() else { return false };
        for level in path {
            let (step, state) = self.straight(&raw, buffer, level.next - 1, u64::MAX, visit);
            visit(step, &state);
        }
        match end {
            End::Entry(entry) => visit(buffer.step(entry), buffer.state(entry)),
            End::Successor(count, number) => {
                let (step, state) = self.straight(&raw, buffer, last.next - 1, count, visit);
                visit(step, &state);
                out.clear();
                raw(&state, &mut out);
                visit(out.step(number), out.state(number));
            }
            End::Stuck(count) => {
                let (step, mut state) = self.straight(&raw, buffer, last.next - 1, count, visit);
                self.scalar.store(&mut state, 0);
                visit(step, &state);
            }
            End::Circle(count) => {
                let (step, state) = self.straight(&raw, buffer, last.next - 1, count, visit);
                visit(Step(step.0 | Step::FAULT), &state);
            }
        }
        true
    }

    /// Goes from an entry of the buffer as long as there is no alternative, but no more than `count` steps. Tells of all
    /// steps and states but the last, which it returns.
    fn straight(
        &self,
        raw: &impl Fn(&[u32], &mut Successors),
        buffer: &Successors,
        entry: usize,
        count: u64,
        visit: &mut dyn FnMut(Step, &[u32]),
    ) -> (Step, Vec<u32>) {
        let (mut step, mut state) = (buffer.step(entry), buffer.state(entry).to_vec());
        let mut out = Successors::new(state.len());
        for _ in 0..count {
            out.clear();
            raw(&state, &mut out);
            if out.len() != 1 || !self.goes_on(out.state(0), out.step(0)) {
                break;
            }
            visit(step, &state);
            step = out.step(0);
            state.copy_from_slice(out.state(0));
        }
        (step, state)
    }

    fn goes_on(&self, state: &[u32], step: Step) -> bool {
        !step.is_fault() && self.scalar.load(state) != 0
    }

    /// The first entry of a range that goes on, or the end of the range.
    #[inline(always)]
    fn first_going_on(&self, entries: &Successors, range: Range<usize>) -> usize {
        let Slot { word, shift, .. } = self.scalar;
        let (states, mask) = (entries.states(), self.scalar.mask() << shift);
        let mut at = range.start * entries.width() + word as usize;
        // Not by chunks: their construction divides.
        for (offset, &step) in entries.steps()[range.clone()].iter().enumerate() {
            if states[at] & mask != 0 && !Step(step).is_fault() {
                return range.start + offset;
            }
            at += entries.width();
        }
        range.end
    }

    /// Replaces the entries of `out` from `first` on, which goes on, by the ends of their chains, in order, depth
    /// first, until there is one of number `wanted`; then it says how that was reached, and the levels show the path.
    fn walk(
        &self,
        raw: &impl Fn(&[u32], &mut Successors),
        start: &[u32],
        first: usize,
        scratch: &mut Scratch,
        out: &mut Successors,
        wanted: usize,
    ) -> Result<Option<End>, Unfinished> {
        scratch.levels.clear();
        scratch.buffer.clear();
        scratch.buffer.take_from(out, first);
        scratch.levels.push(Level { first: 0, next: 0, end: scratch.buffer.len(), flags: 0, key: None });
        while let Some(level) = scratch.levels.last_mut() {
            if level.next == level.end {
                scratch.buffer.truncate(level.first);
                scratch.seen.leave(level.key);
                scratch.levels.pop();
                continue;
            }
            let (entry, before, depth) = (level.next, out.len(), scratch.levels.len());
            let level = scratch.levels.last_mut().expect("there is one");
            let (state, step) = (scratch.buffer.state(entry), scratch.buffer.step(entry));
            if self.goes_on(state, step) {
                level.next += 1;
                if level.key.is_none() {
                    // What follows another first step has another name.
                    scratch.seen.clear();
                }
                let end = self.run_on(raw, start, scratch, out)?;
                if out.len() > wanted {
                    scratch.levels.truncate(depth);
                    return Ok(end.map(|end| match end {
                        End::Successor(count, _) => End::Successor(count, wanted - before),
                        end => end,
                    }));
                }
            } else {
                level.next = self.first_going_on(&scratch.buffer, entry + 1..level.end);
                out.append(&scratch.buffer, entry..level.next);
                rename(&scratch.levels, &scratch.buffer, out, before);
                if out.len() > wanted {
                    return Ok(Some(End::Entry(entry + wanted - before)));
                }
            }
        }
        Ok(None)
    }

    /// Goes on from the entry that the last level goes through, to where the chain ends or there are alternatives,
    /// which become a level. Says how it came to what it appends to `out`, if it does.
    fn run_on(
        &self,
        raw: &impl Fn(&[u32], &mut Successors),
        start: &[u32],
        scratch: &mut Scratch,
        out: &mut Successors,
    ) -> Result<Option<End>, Unfinished> {
        let Scratch { levels, buffer, seen, at, before, planned } = scratch;
        let level = levels.last().expect("the walk holds a level");
        let entry = level.next - 1;
        let mark = buffer.step(levels[0].next - 1).instance();
        let mut flags = level.flags | buffer.step(entry).flags();
        // Most chains are short: the state that the path begins with stays where it is, and none before the second is kept.
        let (mut count, mut kept_at, mut kept_flags) = (0u64, 1u64, u32::MAX);
        let first = out.len();
        loop {
            let state: &[u32] = if count == 0 { buffer.state(entry) } else { at };
            let is_known = kept_flags == flags && before == state;
            if is_known || self.scalar.load(start) != 0 && start == state {
                out.push(state, Step(mark | flags | Step::FAULT));
                return Ok(Some(End::Circle(count)));
            }
            if count == 2 * kept_at {
                before.copy_from_slice(state);
                (kept_at, kept_flags) = (count, flags);
            }
            raw(state, out);
            if out.gave_up().is_some() || self.patience.is_over() {
                out.give_up(GaveUp::Stopped);
                return Err(Unfinished);
            }
            if out.len() != first + 1 || !self.goes_on(out.state(first), out.step(first)) {
                break;
            }
            flags |= out.step(first).flags();
            at.copy_from_slice(out.state(first));
            out.truncate(first);
            count += 1;
        }
        let state: &[u32] = if count == 0 { buffer.state(entry) } else { at };
        if out.len() == first {
            out.push(state, Step(mark | flags));
            self.scalar.store(out.state_mut(first), 0);
            return Ok(Some(End::Stuck(count)));
        }
        let next = self.first_going_on(out, first..out.len());
        if next < out.len() {
            match seen.enter(state, flags) {
                Answer::Left => {
                    out.truncate(first);
                    return Ok(None);
                }
                Answer::OnPath => {
                    out.truncate(first);
                    out.push(state, Step(mark | flags | Step::FAULT));
                    return Ok(Some(End::Circle(count)));
                }
                Answer::New(key) => {
                    let (at, end) = (buffer.len(), buffer.len() + out.len() - next);
                    buffer.take_from(out, next);
                    levels.push(Level { first: at, next: at, end, flags, key: Some(key) });
                }
            }
        }
        name(out, first, mark | flags);
        let unplanned = out.len().saturating_sub(*planned) * (out.width() + 1) * size_of::<u32>();
        if unplanned + scratch.bytes() > self.patience.chain_bytes {
            out.give_up(GaveUp::Memory);
            return Err(Unfinished);
        }
        Ok(Some(End::Successor(count, 0)))
    }
}

/// Gives the entries of `out` from `first` on, which end chains, the first step of their path and all its flags.
fn rename(levels: &[Level], buffer: &Successors, out: &mut Successors, first: usize) {
    // Entries beside the first step are what they are.
    if let [top, .., last] = levels {
        name(out, first, buffer.step(top.next - 1).instance() | last.flags);
    }
}

fn name(out: &mut Successors, first: usize, mark: u32) {
    for step in out.steps_mut(first) {
        *step = mark | Step(*step).flags();
    }
}
