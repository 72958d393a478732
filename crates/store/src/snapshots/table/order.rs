//! A table of levels is put in order, or grows.

use super::{LevelTable, ones};
use crate::packed::by_length;
use crate::packed::geometry::{Geometry, TRIES};
use crate::packed::tagged::unpass;
use crate::packed::waiting::Waiting;

/// When a table grows, one of so many states finds its new home full, and the neighbour too.
const HOMELESS_SHARE: usize = 64;

impl LevelTable {
    /// Clears away what is held no more, gives sets that have become the same one number, and lets who is not at home come closer.
    pub(super) fn tidy<const LONG: bool>(&mut self) {
        let same = self.masks.same_of_all();
        let Self { lines, masks, aside, geometry, .. } = self;
        let mut away = false;
        for number in 0..geometry.lines() {
            let line = lines.line_mut(number);
            for place in ones(geometry.taken(line)) {
                let tag = geometry.tag(line, place);
                match same[tag as usize] {
                    None => {
                        masks.leave(tag);
                        geometry.clear(line, place);
                    }
                    Some(same) => {
                        away |= geometry.attempt(line, place) > 1;
                        if same != tag {
                            masks.moved(tag, same);
                            geometry.set_tag(line, place, same);
                        }
                    }
                }
            }
            unpass(line);
        }
        aside.retain(|_, tag| {
            let live = masks.is_live(*tag);
            if !live {
                masks.leave(*tag);
            }
            live
        });
        if away {
            self.bring_all_closer::<LONG>();
        }
        self.count_passing::<LONG>(away);
        self.masks.collect();
    }

    /// Lets states that are not at home move to the first line on their way that has room.
    fn bring_all_closer<const LONG: bool>(&mut self) {
        let Self { geometry, lines, .. } = self;
        for number in 0..geometry.lines() {
            for place in ones(geometry.taken(lines.line(number))) {
                let line = lines.line(number);
                let ((attempts, rest, low), tag) = (geometry.entry::<LONG>(line, place), geometry.tag(line, place));
                let home = geometry.home(number, rest, attempts);
                for attempt in 1..attempts {
                    let closer = lines.line_mut(geometry.line(home, rest, attempt));
                    if let Some(free) = geometry.free(closer) {
                        geometry.put::<LONG>(closer, free, rest, geometry.tail::<LONG>(rest, low), attempt);
                        geometry.set_tag(closer, free, tag);
                        geometry.clear(lines.line_mut(number), place);
                        break;
                    }
                }
            }
        }
    }

    /// Counts in every line who came by it, if somebody is `away` from home; nothing was counted yet.
    fn count_passing<const LONG: bool>(&mut self, away: bool) {
        let Self { geometry, lines, aside, .. } = self;
        let (mut stuck, mut far) = (0, 0);
        for number in 0..if away { geometry.lines() } else { 0 } {
            for place in ones(geometry.taken(lines.line(number))) {
                let (attempts, rest, _) = geometry.entry::<LONG>(lines.line(number), place);
                if attempts > 1 {
                    far += (attempts > 2) as usize;
                    stuck += geometry.pass(lines, geometry.home(number, rest, attempts), rest, attempts);
                }
            }
        }
        // Who is aside came by every line that it might have been in.
        for (home, rest) in aside.keys().map(|key| geometry.split((key >> 64) as u64)) {
            stuck += geometry.pass(lines, home, rest, TRIES + 1);
        }
        (self.stuck, self.far, self.usual_trouble) = (stuck, far, stuck + self.aside.len());
    }

    /// Grows to at least `lines`, for keys and tags as in `new`; false (and unchanged) if there is no room.
    pub(super) fn grow(&mut self, lines: usize, new: Geometry) -> bool {
        by_length!(self, LONG => self.grow_with::<LONG>(lines, new))
    }

    fn grow_with<const LONG: bool>(&mut self, lines: usize, new: Geometry) -> bool {
        // Who is neither at home nor next to it waits outside meanwhile, and so does who finds no room in either.
        let live = self.masks.live();
        let outside = self.far.min(live) + self.aside.len() + live / HOMELESS_SHARE;
        let Some(mut waiting) = Waiting::<LONG, true>::new(outside, self.lines.arena()) else { return false };
        if !self.lines.grow(lines, waiting.bytes()) {
            return false;
        }
        let new = new.with(new.key_bits(), self.lines.lines()).roomy();
        let old = std::mem::replace(&mut self.geometry, new);
        (self.stuck, self.far) = (0, 0);
        self.spread::<LONG>(&old, &mut waiting);
        for (key, tag) in waiting.keys() {
            self.masks.leave(tag);
            self.enter::<LONG>(key, |_, _| tag);
        }
        self.usual_trouble = self.stuck + self.aside.len();
        self.masks.collect();
        true
    }

    /// Pair by pair of lines from the top end downwards, who is at home there or came from the neighbour goes to its new home, which is the
    /// same line or one above, or next to that; the rest waits, and what is held no more is gone.
    fn spread<const LONG: bool>(&mut self, old: &Geometry, waiting: &mut Waiting<LONG, true>) {
        let Self { geometry: new, masks, lines, aside, stuck, .. } = self;
        for (key, tag) in aside.drain() {
            if masks.is_live(tag) { waiting.push(key, tag) } else { masks.leave(tag) }
        }
        let mut bases = old.bases_from_last();
        for first in (0..old.lines()).step_by(2).rev() {
            let pair = [first, first + 1].map(|number| std::mem::take(lines.line_mut(number)));
            let (Some(second_base), Some(first_base)) = (bases.next(), bases.next()) else { return };
            for (at, line) in pair.iter().enumerate().rev() {
                for place in ones(old.taken(line)) {
                    let (tag, (attempt, rest, low)) = (old.tag(line, place), old.entry::<LONG>(line, place));
                    if !masks.is_live(tag) {
                        masks.leave(tag);
                        continue;
                    }
                    if attempt > 2 {
                        waiting.push(old.key::<LONG>(first + at, first_base, line, place).0, tag);
                        continue;
                    }
                    let is_second = (at == 1) == (attempt == 1);
                    let high = old.join(if is_second { second_base } else { first_base }, rest);
                    let (home, rest) = new.split(high);
                    let found = (1..=2)
                        .find_map(|attempt| Some((attempt, new.free(lines.line(new.line(home, rest, attempt)))?)));
                    match found {
                        Some((attempt, free)) => {
                            *stuck += new.pass(lines, home, rest, attempt);
                            let line = lines.line_mut(new.line(home, rest, attempt));
                            new.put::<LONG>(line, free, rest, new.tail::<LONG>(rest, low), attempt);
                            new.set_tag(line, free, tag);
                        }
                        None => waiting.push((high as u128) << 64 | low as u128, tag),
                    }
                }
            }
        }
    }
}
