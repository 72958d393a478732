//! The stack of a depth-first search: for every state on the current path, its successors and how many
//! of them were tried. It grows in place within its grant; when that is used up and there is a spill, the
//! cold end, which is needed last, waits on disk.
//!
//! Places are counted in words from the bottom. The first `base` words are on disk, slot by slot; the rest is in
//! memory, always with the top frame and the one below it.

use crate::budget::Grant;
use crate::disk::{SLOT, Shortage, Slot, Spill};
use crate::region::Region;

/// Words before the states of a frame: where the frame below starts (two words), count, cursor, tag.
const HEADER: usize = 5;
const GROWTH_PERCENT: usize = 150;
const FIRST_BYTES: usize = 64 << 10;
const SLOT_WORDS: usize = SLOT / 4;

/// A stack of frames, each a list of states to visit.
#[derive(Debug)]
pub struct Stack {
    width: usize,
    region: Region,
    /// First word of the top frame, and the first free word.
    frame: usize,
    top: usize,
    depth: usize,
    reverse: bool,
    base: usize,
    spill: Option<Spill>,
    /// The cold end, from the bottom.
    slots: Vec<Slot>,
}

impl Stack {
    pub fn new(width: usize, grant: Grant) -> Stack {
        let region = Region::new(grant);
        Stack { width, region, frame: 0, top: 0, depth: 0, reverse: false, base: 0, spill: None, slots: Vec::new() }
    }

    /// States are to be taken from the last to the first of a frame.
    pub fn reversed(self) -> Stack {
        Stack { reverse: true, ..self }
    }

    /// The cold end may wait on disk.
    pub fn spilling(self, spill: Option<Spill>) -> Stack {
        Stack { spill, ..self }
    }

    /// Number of frames.
    pub fn depth(&self) -> usize {
        self.depth
    }

    pub fn bytes(&self) -> usize {
        self.region.bytes()
    }

    /// Puts a frame with `states` (end to end) on top. `tag` is whatever the search wants to find again.
    pub fn push(&mut self, states: &[u32], tag: u32) -> Result<(), Shortage> {
        let words = HEADER + states.len();
        self.make_room(words)?;
        let (below, start) = (self.frame, self.top - self.base);
        let frame = &mut self.region.words_mut()[start..][..words];
        frame[0] = below as u32;
        frame[1] = (below as u64 >> 32) as u32;
        frame[2] = (states.len() / self.width) as u32;
        frame[3] = 0;
        frame[4] = tag;
        frame[HEADER..].copy_from_slice(states);
        self.frame = self.top;
        self.top += words;
        self.depth += 1;
        Ok(())
    }

    /// Makes sure that so many words fit.
    #[inline]
    fn make_room(&mut self, words: usize) -> Result<(), Shortage> {
        let needed = (self.top - self.base + words) * 4;
        if needed <= self.region.bytes() { Ok(()) } else { self.grow(needed) }
    }

    #[cold]
    fn grow(&mut self, mut needed: usize) -> Result<(), Shortage> {
        let comfortable = needed.max(self.region.bytes() * GROWTH_PERCENT / 100).max(FIRST_BYTES);
        if self.region.grow(comfortable) || self.region.grow(needed) {
            return Ok(());
        }
        // Half of what may go goes at once, so that a search that hovers here does not wait for the disk each time.
        let may_go = (self.frame - self.base) / SLOT_WORDS;
        let Some(spill) = self.spill.as_mut().filter(|_| may_go > 0) else { return Err(Shortage::Memory) };
        let words = self.region.words_mut();
        let mut gone = 0;
        while gone < may_go && (gone < may_go.div_ceil(2) || needed - gone * SLOT > words.len() * 4) {
            let cold = bytemuck::cast_slice(&words[gone * SLOT_WORDS..][..SLOT_WORDS]);
            self.slots.push(spill.put(cold).map_err(Shortage::Disk)?);
            gone += 1;
        }
        words.copy_within(gone * SLOT_WORDS..self.top - self.base, 0);
        self.base += gone * SLOT_WORDS;
        needed -= gone * SLOT;
        if needed <= self.region.bytes() || self.region.grow(needed) { Ok(()) } else { Err(Shortage::Memory) }
    }

    /// Makes sure that a place, and all above it, is in memory.
    fn fetch(&mut self, place: usize) -> Result<(), Shortage> {
        while place < self.base {
            let held = self.top - self.base;
            let needed = (held + SLOT_WORDS) * 4;
            if needed > self.region.bytes() && !self.region.grow(needed) {
                return Err(Shortage::Memory);
            }
            let slot = self.slots.pop().expect("what is not in memory is on disk");
            let spill = self.spill.as_mut().expect("it wrote the slot");
            let words = self.region.words_mut();
            words.copy_within(..held, SLOT_WORDS);
            spill.read(&slot, bytemuck::cast_slice_mut(&mut words[..SLOT_WORDS])).map_err(Shortage::Disk)?;
            spill.release(slot);
            self.base -= SLOT_WORDS;
        }
        Ok(())
    }

    /// The words from a place in memory on.
    fn words(&mut self, place: usize) -> &mut [u32] {
        let start = place - self.base;
        &mut self.region.words_mut()[start..]
    }

    /// The next state of the top frame that was not tried yet.
    pub fn next(&mut self, out: &mut [u32]) -> bool {
        if self.depth == 0 {
            return false;
        }
        let words = self.words(self.frame);
        if words[3] == words[2] {
            return false;
        }
        words[3] += 1;
        out.copy_from_slice(self.last_taken());
        true
    }

    /// The states taken from the top frame, the last one last.
    pub fn taken(&mut self) -> impl DoubleEndedIterator<Item = &[u32]> {
        assert!(self.depth > 0);
        let (width, reverse) = (self.width, self.reverse);
        let words = self.words(self.frame);
        let (count, cursor) = (words[2] as usize, words[3] as usize);
        let states = &words[HEADER..][..count * width];
        (0..cursor).map(move |taken| {
            let position = if reverse { count - 1 - taken } else { taken };
            &states[position * width..][..width]
        })
    }

    /// All states of the top frame, end to end.
    pub fn frame(&mut self) -> &[u32] {
        assert!(self.depth > 0);
        let width = self.width;
        let words = self.words(self.frame);
        &words[HEADER..][..words[2] as usize * width]
    }

    /// The state last taken from the top frame.
    pub fn last_taken(&mut self) -> &mut [u32] {
        self.taken_from(self.frame)
    }

    /// The state last taken from the frame below the top, whose successors the top frame holds.
    pub fn source(&mut self) -> Option<&[u32]> {
        (self.depth > 1).then(|| {
            let below = self.below(self.frame);
            &*self.taken_from(below)
        })
    }

    fn taken_from(&mut self, frame: usize) -> &mut [u32] {
        let (width, reverse) = (self.width, self.reverse);
        let words = self.words(frame);
        let position = position(words[2], words[3], reverse) as usize;
        &mut words[HEADER + position * width..][..width]
    }

    /// Removes the top frame and returns its tag.
    pub fn pop(&mut self) -> Result<u32, Shortage> {
        assert!(self.depth > 0);
        let tag = self.words(self.frame)[4];
        let below = self.below(self.frame);
        self.top = self.frame;
        self.frame = below;
        self.depth -= 1;
        if self.base > 0 && self.depth > 0 {
            self.fetch(self.frame)?;
            let source = if self.depth > 1 { self.below(self.frame) } else { self.frame };
            self.fetch(source)?;
        }
        Ok(tag)
    }

    /// For every frame from the bottom, the position of the state last taken from it.
    pub fn positions(&mut self) -> Result<Vec<u32>, Shortage> {
        self.path(|position, _| position)
    }

    /// For every frame from the bottom, something about the state last taken from it and its position. Frames on disk
    /// are looked at there.
    pub fn path(&mut self, about: impl Fn(u32, &[u32]) -> u32) -> Result<Vec<u32>, Shortage> {
        let mut path = Vec::with_capacity(self.depth);
        let mut frame = self.frame;
        let (mut header, mut state, mut shown) = ([0; HEADER], vec![0; self.width], Shown::default());
        for _ in 0..self.depth {
            self.copy(frame, &mut header, &mut shown)?;
            let position = position(header[2], header[3], self.reverse);
            self.copy(frame + HEADER + position as usize * self.width, &mut state, &mut shown)?;
            path.push(about(position, &state));
            frame = (header[0] as u64 | (header[1] as u64) << 32) as usize;
        }
        path.reverse();
        Ok(path)
    }

    /// Copies words from wherever they are.
    fn copy(&mut self, place: usize, out: &mut [u32], shown: &mut Shown) -> Result<(), Shortage> {
        for (place, word) in (place..).zip(out) {
            if place >= self.base {
                *word = self.words(place)[0];
                continue;
            }
            let slot = place / SLOT_WORDS;
            if shown.slot != Some(slot) {
                shown.words.resize(SLOT_WORDS, 0);
                let spill = self.spill.as_mut().expect("it wrote the slot");
                let bytes = bytemuck::cast_slice_mut(&mut shown.words);
                spill.read(&self.slots[slot], bytes).map_err(Shortage::Disk)?;
                shown.slot = Some(slot);
            }
            *word = shown.words[place % SLOT_WORDS];
        }
        Ok(())
    }

    fn below(&mut self, frame: usize) -> usize {
        let words = self.words(frame);
        (words[0] as u64 | (words[1] as u64) << 32) as usize
    }
}

/// A slot that was read to be looked at.
#[derive(Default)]
struct Shown {
    slot: Option<usize>,
    words: Vec<u32>,
}

/// The position of the state last taken from a frame.
fn position(count: u32, cursor: u32, reverse: bool) -> u32 {
    if reverse { count - cursor } else { cursor - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::disk::faulty::Faulty;
    use plimsoll_ir::random::Draw;

    #[test]
    fn frames_come_back_in_order_with_their_positions() {
        let mut stack = Stack::new(2, Grant::unlimited());
        let mut state = [0; 2];
        stack.push(&[1, 1, 2, 2, 3, 3], 4).unwrap();
        assert!(stack.next(&mut state) && stack.next(&mut state));
        assert_eq!(state, [2, 2]);
        stack.push(&[7, 7], 9).unwrap();
        assert!(stack.next(&mut state));
        assert_eq!((state, stack.positions().unwrap()), ([7, 7], vec![1, 0]));
        assert_eq!((stack.last_taken().to_vec(), stack.source()), (vec![7, 7], Some(&[2, 2][..])));
        assert_eq!((stack.path(|_, state| state[0]).unwrap(), stack.frame()), (vec![2, 7], &[7, 7][..]));
        assert!(!stack.next(&mut state));
        assert_eq!(stack.pop().unwrap(), 9);
        assert!(stack.next(&mut state) && !stack.next(&mut state));
        assert_eq!((state, stack.depth()), ([3, 3], 1));
    }

    #[test]
    fn a_reversed_stack_takes_the_last_first() {
        let mut stack = Stack::new(1, Grant::unlimited()).reversed();
        let mut state = [0];
        stack.push(&[1, 2, 3], 0).unwrap();
        assert!(stack.next(&mut state) && stack.next(&mut state));
        assert_eq!((state, stack.positions().unwrap()), ([2], vec![1]));
        assert_eq!(stack.taken().collect::<Vec<_>>(), [&[3], &[2]]);
        assert!(stack.next(&mut state) && !stack.next(&mut state));
        assert_eq!(state, [1]);
    }

    /// Walks up and down with little memory, beside a stack with plenty.
    #[test]
    fn a_spilling_stack_is_a_stack() {
        let (budget, disk) = (Budget::new(320 << 10), Faulty::sound());
        let spill = Spill::on(Box::new(disk), Grant::unlimited());
        let mut stack = Stack::new(3, budget.grant("stack", u64::MAX)).spilling(Some(spill));
        let mut twin = Stack::new(3, Grant::unlimited());
        let (mut draw, mut most_on_disk) = (Draw::new(0), 0);
        let (mut state, mut expected) = ([0; 3], [0; 3]);
        for step in 0..90_000u32 {
            let random = draw.bits();
            let another = stack.next(&mut state);
            assert_eq!((another, another.then_some(state)), (twin.next(&mut expected), another.then_some(expected)));
            if another && step % 10_000 == 0 {
                let about = |position: u32, state: &[u32]| position ^ state[1];
                assert_eq!(stack.path(about).unwrap(), twin.path(about).unwrap());
            }
            let climbing = (random >> 20) % 10 < if step % 30_000 < 15_000 { 9 } else { 1 };
            if stack.depth() == 0 || another && climbing {
                let frame: Vec<u32> = (0..3 * (1 + random % 9) as u32).map(|word| step ^ word).collect();
                stack.push(&frame, step).unwrap();
                twin.push(&frame, step).unwrap();
                assert_eq!(stack.source(), twin.source());
            } else if !another || !climbing {
                assert_eq!(stack.pop().unwrap(), twin.pop().unwrap());
            }
            most_on_disk = most_on_disk.max(stack.base);
        }
        assert!(most_on_disk > 4 * SLOT_WORDS && budget.used_bytes() <= 320 << 10, "{most_on_disk} words on disk");
    }

    #[test]
    fn a_full_disk_is_an_answer() {
        let spill = Spill::on(Box::new(Faulty::after(2, 0)), Grant::unlimited());
        let budget = Budget::new(320 << 10);
        let mut stack = Stack::new(1, budget.grant("stack", u64::MAX)).spilling(Some(spill));
        let failure = (0..1_000_000).find_map(|_| stack.push(&[1, 2, 3], 0).err());
        assert!(matches!(failure, Some(Shortage::Disk(_))), "{failure:?}");
    }

    #[test]
    fn a_small_grant_is_an_answer() {
        let budget = Budget::new(256 << 10);
        let mut stack = Stack::new(1, budget.grant("stack", u64::MAX));
        let pushed = (0..100_000).take_while(|_| stack.push(&[1, 2, 3], 0).is_ok()).count();
        assert!((7_000..10_000).contains(&pushed), "{pushed}");
    }
}
