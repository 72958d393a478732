//! The stack of a depth-first search: for every state on the current path, its successors and how many
//! of them were tried. It grows in place within its grant.

use crate::budget::Grant;
use crate::region::Region;
use crate::roots::Full;

/// Words before the states of a frame: where the frame below starts (two words), count, cursor, tag.
const HEADER: usize = 5;
const GROWTH_PERCENT: usize = 150;
const FIRST_BYTES: usize = 64 << 10;

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
}

impl Stack {
    pub fn new(width: usize, grant: Grant) -> Stack {
        Stack { width, region: Region::new(grant), frame: 0, top: 0, depth: 0, reverse: false }
    }

    /// States are to be taken from the last to the first of a frame.
    pub fn reversed(self) -> Stack {
        Stack { reverse: true, ..self }
    }

    /// Number of frames.
    pub fn depth(&self) -> usize {
        self.depth
    }

    pub fn bytes(&self) -> usize {
        self.region.bytes()
    }

    /// Puts a frame with `states` (end to end) on top. `tag` is whatever the search wants to find again.
    pub fn push(&mut self, states: &[u32], tag: u32) -> Result<(), Full> {
        let words = HEADER + states.len();
        let needed = (self.top + words) * 4;
        if needed > self.region.bytes() {
            let comfortable = needed.max(self.region.bytes() * GROWTH_PERCENT / 100).max(FIRST_BYTES);
            if !self.region.grow(comfortable) && !self.region.grow(needed) {
                return Err(Full);
            }
        }
        let frame = &mut self.region.words_mut()[self.top..][..words];
        frame[0] = self.frame as u32;
        frame[1] = (self.frame as u64 >> 32) as u32;
        frame[2] = (states.len() / self.width) as u32;
        frame[3] = 0;
        frame[4] = tag;
        frame[HEADER..].copy_from_slice(states);
        self.frame = self.top;
        self.top += words;
        self.depth += 1;
        Ok(())
    }

    /// The next state of the top frame that was not tried yet.
    pub fn next(&mut self, out: &mut [u32]) -> bool {
        let words = self.region.words_mut();
        let (count, cursor) = (words[self.frame + 2], words[self.frame + 3]);
        if self.depth == 0 || cursor == count {
            return false;
        }
        words[self.frame + 3] += 1;
        out.copy_from_slice(self.last_taken());
        true
    }

    /// The states taken from the top frame, the last one last.
    pub fn taken(&mut self) -> impl DoubleEndedIterator<Item = &[u32]> {
        assert!(self.depth > 0);
        let (frame, width, reverse) = (self.frame, self.width, self.reverse);
        let words = self.region.words_mut();
        let (count, cursor) = (words[frame + 2] as usize, words[frame + 3] as usize);
        let states = &words[frame + HEADER..][..count * width];
        (0..cursor).map(move |taken| {
            let position = if reverse { count - 1 - taken } else { taken };
            &states[position * width..][..width]
        })
    }

    /// All states of the top frame, end to end.
    pub fn frame(&mut self) -> &[u32] {
        assert!(self.depth > 0);
        let count = self.region.words_mut()[self.frame + 2] as usize;
        &self.region.words_mut()[self.frame + HEADER..][..count * self.width]
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
        let (width, position) = (self.width, self.position(frame) as usize);
        &mut self.region.words_mut()[frame + HEADER + position * width..][..width]
    }

    /// The position of the state last taken from a frame.
    fn position(&mut self, frame: usize) -> u32 {
        let words = self.region.words_mut();
        let (count, cursor) = (words[frame + 2], words[frame + 3]);
        if self.reverse { count - cursor } else { cursor - 1 }
    }

    /// Removes the top frame and returns its tag.
    pub fn pop(&mut self) -> u32 {
        assert!(self.depth > 0);
        let tag = self.region.words_mut()[self.frame + 4];
        self.top = self.frame;
        self.frame = self.below(self.frame);
        self.depth -= 1;
        tag
    }

    /// For every frame from the bottom, the position of the state last taken from it.
    pub fn positions(&mut self) -> Vec<u32> {
        self.path(|position, _| position)
    }

    /// For every frame from the bottom, something about the state last taken from it and its position.
    pub fn path(&mut self, about: impl Fn(u32, &[u32]) -> u32) -> Vec<u32> {
        let mut path = Vec::with_capacity(self.depth);
        let mut frame = self.frame;
        for _ in 0..self.depth {
            let position = self.position(frame);
            path.push(about(position, self.taken_from(frame)));
            frame = self.below(frame);
        }
        path.reverse();
        path
    }

    fn below(&mut self, frame: usize) -> usize {
        let words = self.region.words_mut();
        (words[frame] as u64 | (words[frame + 1] as u64) << 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn frames_come_back_in_order_with_their_positions() {
        let mut stack = Stack::new(2, Grant::unlimited());
        let mut state = [0; 2];
        stack.push(&[1, 1, 2, 2, 3, 3], 4).unwrap();
        assert!(stack.next(&mut state) && stack.next(&mut state));
        assert_eq!(state, [2, 2]);
        stack.push(&[7, 7], 9).unwrap();
        assert!(stack.next(&mut state));
        assert_eq!((state, stack.positions()), ([7, 7], vec![1, 0]));
        assert_eq!((stack.last_taken().to_vec(), stack.source()), (vec![7, 7], Some(&[2, 2][..])));
        assert_eq!((stack.path(|_, state| state[0]), stack.frame()), (vec![2, 7], &[7, 7][..]));
        assert!(!stack.next(&mut state));
        assert_eq!(stack.pop(), 9);
        assert!(stack.next(&mut state) && !stack.next(&mut state));
        assert_eq!((state, stack.depth()), ([3, 3], 1));
    }

    #[test]
    fn a_reversed_stack_takes_the_last_first() {
        let mut stack = Stack::new(1, Grant::unlimited()).reversed();
        let mut state = [0];
        stack.push(&[1, 2, 3], 0).unwrap();
        assert!(stack.next(&mut state) && stack.next(&mut state));
        assert_eq!((state, stack.positions()), ([2], vec![1]));
        assert_eq!(stack.taken().collect::<Vec<_>>(), [&[3], &[2]]);
        assert!(stack.next(&mut state) && !stack.next(&mut state));
        assert_eq!(state, [1]);
    }

    #[test]
    fn a_small_grant_is_an_answer() {
        let budget = Budget::new(256 << 10);
        let mut stack = Stack::new(1, budget.grant("stack", u64::MAX));
        let pushed = (0..100_000).take_while(|_| stack.push(&[1, 2, 3], 0).is_ok()).count();
        assert!((7_000..10_000).contains(&pushed), "{pushed}");
    }
}
