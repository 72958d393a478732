//! The buffer that executors write successors into: contiguous states of fixed width, and their steps.

use std::ops::Range;

use crate::GaveUp;
use crate::chain;
use crate::symmetry::canon;

/// What led to a successor: the number of a command instance, and whether it went wrong.
///
/// Instances are numbered in order of commands, then of choices, from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step(pub u32);

impl Step {
    /// The command went wrong: the state beside this step means nothing.
    pub const FAULT: u32 = 1 << 31;
    /// An assertion failed on the way; the state is a proper successor all the same.
    pub const VIOLATION: u32 = 1 << 30;
    /// Instances must be numbered below this.
    pub const LIMIT: u32 = 1 << 30;

    pub fn instance(self) -> u32 {
        self.0 & (Self::LIMIT - 1)
    }

    pub fn is_fault(self) -> bool {
        self.0 & Self::FAULT != 0
    }

    pub fn is_violation(self) -> bool {
        self.0 & Self::VIOLATION != 0
    }

    /// The marks for a fault and for a violation, alone.
    pub(crate) fn flags(self) -> u32 {
        self.0 & (Self::FAULT | Self::VIOLATION)
    }

    /// Neither a fault nor a violation?
    pub fn is_plain(self) -> bool {
        self.0 < Self::LIMIT
    }
}

/// Successors of one or several states, appended one after the other.
#[derive(Clone, Debug, Default)]
pub struct Successors {
    width: usize,
    len: usize,
    /// Always holds a whole number of states, at least `len`; what lies beyond `len` is scratch.
    states: Vec<u32>,
    steps: Vec<u32>,
    /// Kept for walks along atomic chains.
    pub(crate) scratch: Option<Box<chain::Scratch>>,
    /// Kept for the search for representatives.
    pub(crate) canon: Option<Box<canon::Scratch>>,
    /// Entries that there are only because of chains.
    pub(crate) unplanned: usize,
    gave_up: Option<GaveUp>,
}

impl Successors {
    pub fn new(width: usize) -> Successors {
        assert!(width > 0, "states have at least one word");
        Successors { width, ..Successors::default() }
    }

    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.unplanned = 0;
        self.gave_up = None;
    }

    /// Is the list incomplete, and why? Then nothing in it means anything.
    pub fn gave_up(&self) -> Option<GaveUp> {
        self.gave_up
    }

    pub fn give_up(&mut self, why: GaveUp) {
        self.gave_up.get_or_insert(why);
    }

    /// What the entries take, and what is kept for more of them.
    pub(crate) fn bytes(&self) -> usize {
        (self.states.capacity() + self.steps.capacity()) * size_of::<u32>()
    }

    /// Keeps only the first `len` entries.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes room for `count` more entries; afterwards that many can be written without allocation.
    #[inline]
    pub fn reserve(&mut self, count: usize) {
        let wanted = self.len + count;
        if self.steps.len() < wanted {
            self.grow(wanted);
        }
    }

    #[cold]
    fn grow(&mut self, wanted: usize) {
        self.steps.resize(wanted, 0);
        self.states.resize(wanted * self.width, 0);
    }

    #[inline]
    pub fn push(&mut self, state: &[u32], step: Step) {
        assert_eq!(state.len(), self.width);
        if self.steps.len() == self.len {
            self.reserve(self.len.max(16));
        }
        self.states[self.len * self.width..][..self.width].copy_from_slice(state);
        self.steps[self.len] = step.0;
        self.len += 1;
    }

    #[inline]
    pub fn state(&self, index: usize) -> &[u32] {
        assert!(index < self.len);
        &self.states[index * self.width..][..self.width]
    }

    pub fn state_mut(&mut self, index: usize) -> &mut [u32] {
        assert!(index < self.len);
        &mut self.states[index * self.width..][..self.width]
    }

    #[inline]
    pub fn step(&self, index: usize) -> Step {
        assert!(index < self.len);
        Step(self.steps[index])
    }

    /// Takes the marks for a fault and for a violation off a step.
    pub fn excuse(&mut self, index: usize) {
        self.steps[index] = self.step(index).instance();
    }

    /// All states, end to end.
    #[inline]
    pub fn states(&self) -> &[u32] {
        &self.states[..self.len * self.width]
    }

    #[inline]
    pub fn steps(&self) -> &[u32] {
        &self.steps[..self.len]
    }

    pub(crate) fn steps_mut(&mut self, first: usize) -> &mut [u32] {
        &mut self.steps[first..self.len]
    }

    /// The states from `first` on, end to end, and their steps.
    pub(crate) fn entries_mut(&mut self, first: usize) -> (&mut [u32], &[u32]) {
        (&mut self.states[first * self.width..self.len * self.width], &self.steps[first..self.len])
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u32], Step)> {
        self.states().chunks_exact(self.width).zip(self.steps().iter().map(|&step| Step(step)))
    }

    /// Appends the entries of `other` from `first` on, which loses them.
    #[inline]
    pub(crate) fn take_from(&mut self, other: &mut Successors, first: usize) {
        if first < other.len {
            self.append(other, first..other.len);
            other.truncate(first);
        }
    }

    /// Appends some entries of `other`.
    #[inline]
    pub(crate) fn append(&mut self, other: &Successors, range: Range<usize>) {
        assert_eq!(other.width, self.width);
        let (states, steps) = self.spare(range.len());
        states.copy_from_slice(&other.states()[range.start * other.width..range.end * other.width]);
        steps.copy_from_slice(&other.steps()[range.clone()]);
        self.len += range.len();
    }

    /// Free space for `count` entries behind the others, for executors that write many at once: states and steps.
    #[inline]
    pub fn spare(&mut self, count: usize) -> (&mut [u32], &mut [u32]) {
        self.reserve(count);
        (&mut self.states[self.len * self.width..][..count * self.width], &mut self.steps[self.len..][..count])
    }

    /// Declares that `count` entries were written into [`Successors::spare`].
    #[inline]
    pub fn commit(&mut self, count: usize) {
        assert!(self.len + count <= self.steps.len(), "more entries than were reserved");
        self.len += count;
    }
}
