//! A table of levels is put in order, or grows.

use super::{LevelTable, ones};
use crate::packed::by_length;
use crate::packed::geometry::{Geometry, TRIES};
use crate::packed::tagged::{mark, unmark};
use crate::packed::waiting::Waiting;

/// When a table grows, one of so many states that were at home finds its new home full.
const HOMELESS_SHARE: usize = 16;

impl LevelTable {
    /// Clears away what is held no more, lets who is not at home come closer, and marks anew where that is not possible.
    pub(super) fn tidy<const LONG: bool>(&mut self) {
        let Self { lines, masks, aside, geometry, .. } = self;
        for number in 0..geometry.lines() {
            let line = lines.line_mut(number);
            for place in ones(geometry.taken(line)) {
                let tag = geometry.tag(line, place);
                if !masks.is_live(tag) {
                    masks.leave(tag);
                    geometry.clear(line, place);
                }
            }
            unmark(line);
        }
        aside.retain(|_, tag| {
            let live = masks.is_live(*tag);
            if !live {
                masks.leave(*tag);
            }
            live
        });
        (self.marked, self.displaced) = (0, 0);
        for number in 0..self.geometry.lines() {
            for place in ones(self.geometry.taken(self.lines.line(number))) {
                if self.geometry.attempt(self.lines.line(number), place) > 1 {
                    self.bring_closer::<LONG>(number, place);
                }
            }
        }
        // Who is aside came by every line that it might have been in.
        let Self { lines, aside, geometry, marked, .. } = self;
        for (home, rest) in aside.keys().map(|key| geometry.split((key >> 64) as u64)) {
            for attempt in 1..=TRIES {
                *marked += mark(lines.line_mut(geometry.line(home, rest, attempt))) as usize;
            }
        }
        self.usually_marked = self.marked;
        self.masks.collect();
    }

    /// Moves a state that is not at home to the first line on its way that has room, and marks those before it.
    fn bring_closer<const LONG: bool>(&mut self, number: usize, place: u32) {
        let Self { geometry, lines, .. } = self;
        let line = lines.line(number);
        let ((attempts, rest, low), tag) = (geometry.entry::<LONG>(line, place), geometry.tag(line, place));
        let (home, tail) = (geometry.home(number, rest, attempts), geometry.tail::<LONG>(rest, low));
        for attempt in 1..attempts {
            let closer = lines.line_mut(geometry.line(home, rest, attempt));
            if let Some(free) = geometry.free(closer) {
                geometry.put::<LONG>(closer, free, rest, tail, attempt);
                geometry.set_tag(closer, free, tag);
                geometry.clear(lines.line_mut(number), place);
                self.displaced += (attempt > 1) as usize;
                return;
            }
            self.marked += mark(closer) as usize;
        }
        self.displaced += 1;
    }

    /// Grows to at least `lines`, for keys and tags as in `new`; false (and unchanged) if there is no room.
    pub(super) fn grow(&mut self, lines: usize, new: Geometry) -> bool {
        by_length!(self, LONG => self.grow_with::<LONG>(lines, new))
    }

    fn grow_with<const LONG: bool>(&mut self, lines: usize, new: Geometry) -> bool {
        // Who is not at home waits outside meanwhile, and so does who finds a new home full.
        let live = self.masks.live();
        let outside = self.displaced.min(live) + self.aside.len() + live / HOMELESS_SHARE;
        let Some(mut waiting) = Waiting::<LONG, true>::new(outside, live, self.lines.arena()) else { return false };
        if !self.lines.grow(lines, waiting.bytes()) {
            return false;
        }
        let new = new.with(new.key_bits(), self.lines.lines()).roomy();
        let old = std::mem::replace(&mut self.geometry, new);
        (self.marked, self.displaced) = (0, 0);
        self.spread::<LONG>(&old, &mut waiting);
        for (key, tag) in waiting.keys() {
            self.masks.leave(tag);
            self.enter::<LONG>(key, |_, _| tag);
        }
        self.usually_marked = self.marked;
        self.masks.collect();
        true
    }

    /// Line by line from the top end downwards, what is at home goes to its new home, which is the same line or one above;
    /// the rest waits, and what is held no more is gone.
    fn spread<const LONG: bool>(&mut self, old: &Geometry, waiting: &mut Waiting<LONG, true>) {
        let Self { geometry: new, masks, lines, aside, .. } = self;
        for (key, tag) in aside.drain() {
            if masks.is_live(tag) { waiting.push(key, tag) } else { masks.leave(tag) }
        }
        for (number, base) in (0..old.lines()).rev().zip(old.bases_from_last()) {
            let line = std::mem::take(lines.line_mut(number));
            for place in ones(old.taken(&line)) {
                let (tag, (attempt, rest, low)) = (old.tag(&line, place), old.entry::<LONG>(&line, place));
                if !masks.is_live(tag) {
                    masks.leave(tag);
                    continue;
                }
                if attempt > 1 {
                    waiting.push(old.key::<LONG>(number, base, &line, place).0, tag);
                    continue;
                }
                let high = old.join(base, rest);
                let (home, rest) = new.split(high);
                let (home, tail) = (lines.line_mut(home), new.tail::<LONG>(rest, low));
                match new.free(home) {
                    Some(free) => {
                        new.put::<LONG>(home, free, rest, tail, 1);
                        new.set_tag(home, free, tag);
                    }
                    None => waiting.push((high as u128) << 64 | low as u128, tag),
                }
            }
        }
    }
}
