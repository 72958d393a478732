//! A table of levels is put in order, or grows.

use super::{LevelTable, MARKED, is_displaced, is_marked, put, slots, tag_of, tail_of};
use crate::snapshots::compact::{REST_BITS, TRIES, scan};
use crate::snapshots::outside::Outside;
use crate::snapshots::places::{Shape, by_tail};

/// When a table grows, one of so many states that were at home finds its new home full.
const HOMELESS_SHARE: usize = 16;

impl LevelTable {
    /// Clears away what is held no more, lets who is not at home come closer, and marks anew where that is not possible.
    pub(super) fn tidy<const TAIL: usize>(&mut self) {
        let Self { lines, masks, aside, shape, .. } = self;
        for number in 0..shape.compact.lines() {
            let line = lines.line_mut(number);
            for place in 0..slots(TAIL) {
                if line[place] != 0 && !masks.is_live(tag_of::<TAIL>(line, place)) {
                    masks.leave(tag_of::<TAIL>(line, place));
                    line[place] = 0;
                }
            }
            let tags: &mut [u16] = bytemuck::cast_slice_mut(line);
            tags[slots(TAIL) * 2] &= !MARKED;
        }
        aside.retain(|&(_, tag)| {
            let live = masks.is_live(tag);
            if !live {
                masks.leave(tag);
            }
            live
        });
        self.marked = 0;
        for number in 0..self.shape.compact.lines() {
            for place in 0..slots(TAIL) {
                if is_displaced(self.lines.line(number)[place]) {
                    self.bring_closer::<TAIL>(number, place);
                }
            }
        }
        // Who is aside came by every line that it might have been in.
        for index in 0..self.aside.len() {
            let (home, rest) = self.shape.home((self.aside[index].0 >> 64) as u64);
            (1..=TRIES).for_each(|attempt| self.mark::<TAIL>(self.shape.compact.line(home, rest, attempt)));
        }
        let displaced =
            |number| self.lines.line(number)[..slots(TAIL)].iter().filter(|&&entry| is_displaced(entry)).count();
        self.displaced = (0..self.shape.compact.lines()).map(displaced).sum();
        self.usually_marked = self.marked;
        self.masks.collect();
    }

    /// Moves a state that is not at home to the first line on its way that has room, and marks those before it.
    fn bring_closer<const TAIL: usize>(&mut self, number: usize, place: usize) {
        let line = self.lines.line(number);
        let (entry, tag, tail) = (line[place], tag_of::<TAIL>(line, place), *tail_of::<TAIL>(line, place));
        let (attempts, rest) = (entry >> REST_BITS, entry & ((1 << REST_BITS) - 1));
        let home = self.shape.compact.home(number, entry);
        for attempt in 1..attempts {
            let closer = self.shape.compact.line(home, rest, attempt);
            let free = scan(self.lines.line(closer), 0).1.trailing_zeros() as usize;
            if free < slots(TAIL) {
                put(self.lines.line_mut(closer), free, attempt << REST_BITS | rest, tag, tail);
                self.lines.line_mut(number)[place] = 0;
                return;
            }
            self.mark::<TAIL>(closer);
        }
    }

    fn mark<const TAIL: usize>(&mut self, number: usize) {
        let line = self.lines.line_mut(number);
        self.marked += !is_marked::<TAIL>(line) as usize;
        let tags: &mut [u16] = bytemuck::cast_slice_mut(line);
        tags[slots(TAIL) * 2] |= MARKED;
    }

    /// Grows to at least `lines`; false (and unchanged) if there is no room.
    pub(super) fn grow(&mut self, lines: usize) -> bool {
        // Who is not at home waits outside meanwhile, and so does who finds a new home full.
        let outside = self.displaced + self.masks.live() / HOMELESS_SHARE;
        if !self.lines.grow(lines, Outside::bytes(outside)) {
            return false;
        }
        let new = Shape::new(self.key_bits, self.common_bits, self.lines.lines());
        let old = std::mem::replace(&mut self.shape, new);
        let aside = std::mem::take(&mut self.aside);
        let mut waiting = Outside::new(self.masks.live(), aside, self.lines.grant());
        (self.marked, self.displaced) = (0, 0);
        by_tail!(old.tail, TAIL => self.spread::<TAIL>(&old, &mut waiting));
        by_tail!(new.tail, TAIL => {
            waiting.for_each(|key, tag| {
                self.masks.leave(tag);
                if self.masks.is_live(tag) {
                    self.enter::<TAIL>(key, |_, _| tag);
                }
            });
        });
        self.usually_marked = self.marked;
        self.masks.collect();
        true
    }

    /// Line by line from the top end downwards, what is at home goes to its new home, which is the same line or one above;
    /// the rest waits, and what is held no more is gone.
    fn spread<const TAIL: usize>(&mut self, old: &Shape, waiting: &mut Outside) {
        for number in (0..old.compact.lines()).rev() {
            let line = std::mem::take(self.lines.line_mut(number));
            for place in (0..slots(TAIL)).filter(|&place| line[place] != 0) {
                let tag = tag_of::<TAIL>(&line, place);
                if !self.masks.is_live(tag) {
                    self.masks.leave(tag);
                    continue;
                }
                let (key, home) = old.key::<TAIL>(number, line[place], tail_of(&line, place));
                if !home || !by_tail!(self.shape.tail, NEW => self.place_at_home::<NEW>(key, tag)) {
                    waiting.push(key, tag);
                }
            }
        }
    }

    /// Puts a state that is not there into its home line, if that has room.
    #[inline(always)]
    fn place_at_home<const TAIL: usize>(&mut self, key: u128, tag: u16) -> bool {
        let (home, rest) = self.shape.home((key >> 64) as u64);
        let line = self.lines.line_mut(home);
        let place = scan(line, 0).1.trailing_zeros() as usize;
        if place < slots(TAIL) {
            put(line, place, 1 << REST_BITS | rest, tag, self.shape.tail::<TAIL>(key));
        }
        place < slots(TAIL)
    }
}
