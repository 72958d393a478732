//! States that a walk along a chain has come through, each with the flags it had then.
//!
//! A hash table with linear probing. What followed from a state that was left is known, so it need not be followed again;
//! a state that is met again while it is on the path closes a circle.

/// What became of a state that was to be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was not known and now has this number.
    New(u32),
    OnPath,
    /// It was on the path, and what follows was found.
    Left,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Words of a state, its flags, and whether it is on the path, end to end.
    entries: Vec<u32>,
    words: usize,
    len: usize,
    /// Numbers of entries plus one, by hash; zero where there is none. A power of two, at least twice as many as entries.
    slots: Vec<u32>,
}

impl Seen {
    pub fn clear(&mut self) {
        if self.len > 0 {
            self.entries.clear();
            self.slots.fill(0);
            self.len = 0;
        }
    }

    pub fn bytes(&self) -> usize {
        (self.entries.capacity() + self.slots.capacity()) * 4
    }

    /// Enters a state with its flags, on the path.
    pub fn enter(&mut self, state: &[u32], flags: u32) -> Answer {
        if 2 * self.len >= self.slots.len() {
            self.words = state.len() + 2;
            self.grow();
        }
        let mut slot = self.home(state, flags);
        while let Some(number) = self.slots[slot].checked_sub(1) {
            let entry = &self.entries[number as usize * self.words..][..self.words];
            if entry[..state.len()] == *state && entry[state.len()] == flags {
                return if entry[state.len() + 1] != 0 { Answer::OnPath } else { Answer::Left };
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = self.len as u32 + 1;
        self.entries.extend_from_slice(state);
        self.entries.extend([flags, 1]);
        self.len += 1;
        Answer::New(self.len as u32 - 1)
    }

    /// All that follows from a state was found.
    pub fn leave(&mut self, number: Option<u32>) {
        if let Some(number) = number {
            self.entries[(number as usize + 1) * self.words - 1] = 0;
        }
    }

    fn home(&self, state: &[u32], flags: u32) -> usize {
        let mix = |hash: u64, word: &u32| (hash.rotate_left(5) ^ *word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = state.iter().fold(flags as u64, mix);
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(16);
        self.slots.clear();
        self.slots.resize(size, 0);
        for number in 0..self.len {
            let entry = &self.entries[number * self.words..][..self.words];
            let mut slot = self.home(&entry[..self.words - 2], entry[self.words - 2]);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = number as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_found_again_with_their_flags() {
        let mut seen = Seen::default();
        for round in 0..2 {
            for number in 0..1000u32 {
                assert_eq!(seen.enter(&[number, number / 3], 0), Answer::New(2 * number), "round {round}");
                assert_eq!(seen.enter(&[number, number / 3], 4), Answer::New(2 * number + 1));
            }
            (0..1000).for_each(|number| seen.leave(Some(2 * number)));
            for number in 0..1000u32 {
                assert_eq!(seen.enter(&[number, number / 3], 0), Answer::Left);
                assert_eq!(seen.enter(&[number, number / 3], 4), Answer::OnPath);
            }
            assert!(seen.bytes() >= 2000 * 16);
            seen.clear();
        }
    }
}
