//! Candidates on their way through the runs: the keys of many, by shard and in order of key.
//!
//! Sorted keys touch every block of a run once, however many of them are in it; so the more candidates pass at a time, the
//! less is read. A few are held in memory. Many are divided into parts by the leading bits of their keys, parts wait on
//! disk, and each is brought back, sorted and asked for by itself: so a level passes over the runs once, whatever the memory.
//! Keys look random, so most of sorting is to put each into the bucket that its leading bits choose.
//! One bit for each candidate says whether a run knew it; those bits are in the order of discovery, in which the survivors
//! are numbered.

use crate::batch::shard_of;
use crate::budget::{Full, Grant};
use crate::disk::{Slot, Spill, SpillError};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shards and parts are not filled evenly: this much of their room is counted on.
const LOAD_PERCENT: usize = 80;
const LEAST_KEYS: usize = 64;

/// A candidate: the words of its key, leading ones first, and its place among those in the sieve. Where keys are hashes, which
/// are short, the last of those words tells where its vector is.
type Item = [u32; 5];
const VECTOR: usize = 3;

#[inline(always)]
fn high_of(item: &Item) -> u64 {
    (item[0] as u64) << 32 | item[1] as u64
}

#[inline(always)]
fn key_of(item: &Item) -> u128 {
    let low = (item[2] as u64) << 32 | item[3] as u64;
    (high_of(item) as u128) << 64 | low as u128
}

/// In front of the place of a candidate that a run knew.
const KNOWN: u32 = 1 << 31;
const MOST_PLACES: u64 = KNOWN as u64;

fn place_of(item: &Item) -> usize {
    (item[4] & !KNOWN) as usize
}

/// About so many items are in a bucket when they are sorted, and there are at most so many buckets; a few items have none.
const BUCKET: usize = 16;
const MOST_BUCKETS_LOG: u32 = 11;
const FEW: usize = 4 * BUCKET;

/// Sorts items, of whose keys the first `told_bits` are the same.
fn sort(items: &mut [Item], told_bits: u32) {
    if items.len() <= FEW {
        return items.sort_unstable_by(by_key);
    }
    let log = (items.len() / BUCKET).ilog2().min(MOST_BUCKETS_LOG);
    let bucket_of = |item: &Item| shard_of(high_of(item) << told_bits, log);
    let (mut nexts, mut ends) = ([0u32; 1 << MOST_BUCKETS_LOG], [0u32; 1 << MOST_BUCKETS_LOG]);
    items.iter().for_each(|item| ends[bucket_of(item)] += 1);
    let mut sum = 0;
    for (next, end) in nexts.iter_mut().zip(&mut ends).take(1 << log) {
        *next = sum;
        sum += *end;
        *end = sum;
    }
    for bucket in 0..1 << log {
        for at in nexts[bucket] as usize..ends[bucket] as usize {
            // Whoever belongs elsewhere changes places with the next one there, until one comes that belongs here.
            let mut item = items[at];
            let mut home = bucket_of(&item);
            while home != bucket {
                std::mem::swap(&mut item, &mut items[nexts[home] as usize]);
                nexts[home] += 1;
                home = bucket_of(&item);
            }
            items[at] = item;
        }
    }
    let mut start = 0;
    for &end in &ends[..1 << log] {
        items[start..end as usize].sort_unstable_by(by_key);
        start = end as usize;
    }
}

#[inline(always)]
fn by_key(one: &Item, other: &Item) -> std::cmp::Ordering {
    high_of(one).cmp(&high_of(other)).then_with(|| (one[2], one[3]).cmp(&(other[2], other[3])))
}

/// So many are put into shards at a time: few enough for a byte each. And there are no more shards.
const BATCH: usize = 256;
const MOST_SHARDS: usize = 256;

/// The positions of up to [`BATCH`] things, in the order of their homes.
fn by_home(homes: impl Iterator<Item = usize> + Clone) -> [u8; BATCH] {
    let (mut order, mut starts) = ([0; BATCH], [0u16; MOST_SHARDS + 1]);
    homes.clone().for_each(|home| starts[home + 1] += 1);
    (1..=MOST_SHARDS).for_each(|home| starts[home] += starts[home - 1]);
    for (at, home) in (0..=u8::MAX).zip(homes) {
        order[starts[home] as usize] = at;
        starts[home] += 1;
    }
    order
}

#[derive(Debug)]
pub(crate) struct Sieve {
    /// The number of the first candidate in it.
    first: u64,
    len: usize,
    /// How many may be in it, and how many this time.
    room: usize,
    most: usize,
    shards: Vec<Mutex<Shard>>,
    division: Division,
    /// A bit for each candidate that a run knew.
    known: Vec<AtomicU64>,
    spill: Arc<Spill>,
    grant: Grant,
    bytes: u64,
    /// Words of the vectors whose hashes the keys are; 0 if there are none.
    width: usize,
    /// Items of a shard that are in memory: those of all parts, and those of one part that came back.
    near_room: usize,
    back_room: usize,
}

/// How a shard is divided: bits that choose the part, and how many items a part has in memory and in all.
#[derive(Clone, Copy, Debug, Default)]
struct Division {
    bits: u32,
    near: usize,
    all: usize,
    width: usize,
}

impl Division {
    /// Slots on disk for so many items, at most.
    fn slots_for(self, items: usize, shards: usize) -> usize {
        let is_in_memory = self.near == self.all;
        if is_in_memory { 0 } else { items / self.near + (shards << self.bits) }
    }
}

#[derive(Debug, Default)]
struct Shard {
    /// A chunk for each part.
    near: Items,
    parts: Vec<Part>,
    /// A part that came back.
    back: Items,
    /// A chunk on its way to the disk or from there.
    chunk: Vec<u8>,
}

/// Items, and the vectors that belong to them, if any do.
#[derive(Debug, Default)]
struct Items {
    items: Vec<Item>,
    vectors: Vec<u32>,
}

#[derive(Debug, Default)]
struct Part {
    near: usize,
    /// Full chunks that wait on disk.
    far: Vec<Slot>,
    all: usize,
}

impl Items {
    fn with_capacity(count: usize, width: usize) -> Items {
        Items { items: Vec::with_capacity(count), vectors: Vec::with_capacity(count * width) }
    }

    fn resize(&mut self, count: usize, width: usize) {
        self.items.resize(count, Item::default());
        self.vectors.resize(count * width, 0);
    }
}

impl Shard {
    fn add(
        &mut self,
        mut item: Item,
        vector: &[u32],
        part: usize,
        division: Division,
        spill: &Spill,
    ) -> Result<(), SpillError> {
        if self.parts[part].near == division.near {
            let slot = self.put(part, division, spill)?;
            self.parts[part].far.push(slot);
            self.parts[part].near = 0;
        }
        let at = part * division.near + self.parts[part].near;
        if !vector.is_empty() {
            item[VECTOR] = at as u32;
            self.near.vectors[at * vector.len()..][..vector.len()].copy_from_slice(vector);
        }
        self.near.items[at] = item;
        self.parts[part].near += 1;
        self.parts[part].all += 1;
        Ok(())
    }

    /// Writes the chunk of a part.
    fn put(&mut self, part: usize, Division { near, width, .. }: Division, spill: &Spill) -> Result<Slot, SpillError> {
        let items = bytemuck::cast_slice(&self.near.items[part * near..][..near]);
        if width == 0 {
            return spill.put(items);
        }
        self.chunk.clear();
        self.chunk.extend_from_slice(items);
        self.chunk.extend_from_slice(bytemuck::cast_slice(&self.near.vectors[part * near * width..][..near * width]));
        spill.put(&self.chunk)
    }

    /// The items of a part, sorted, of whose keys so many leading bits are the same, and where their vectors are.
    fn sorted(
        &mut self,
        part: usize,
        told_bits: u32,
        Division { near: chunk, width, .. }: Division,
        spill: &Spill,
    ) -> Result<(&mut [Item], &[u32]), SpillError> {
        let Shard { near, parts, back, chunk: bytes } = self;
        let Part { near: count, far, .. } = &mut parts[part];
        let range = part * chunk..part * chunk + *count;
        if far.is_empty() {
            let items = &mut near.items[range];
            sort(items, told_bits);
            return Ok((items, &near.vectors));
        }
        back.resize(0, width);
        back.items.extend_from_slice(&near.items[range.clone()]);
        back.vectors.extend_from_slice(&near.vectors[range.start * width..range.end * width]);
        for slot in far.drain(..) {
            let start = back.items.len();
            back.resize(start + chunk, width);
            let items = bytemuck::cast_slice_mut(&mut back.items[start..]);
            let read = if width == 0 {
                spill.read(&slot, items)
            } else {
                bytes.resize(chunk * (size_of::<Item>() + width * 4), 0);
                let read = spill.read(&slot, bytes);
                let (first, second) = bytes.split_at(items.len());
                items.copy_from_slice(first);
                bytemuck::cast_slice_mut(&mut back.vectors[start * width..]).copy_from_slice(second);
                read
            };
            spill.release(slot);
            read?;
        }
        if width > 0 {
            back.items.iter_mut().zip(0..).for_each(|(item, place)| item[VECTOR] = place);
        }
        sort(&mut back.items, told_bits);
        Ok((&mut back.items, &back.vectors))
    }
}

impl Sieve {
    /// A sieve in about so many bytes, for keys with vectors of `width` words, which has slots of `spill` for what it cannot
    /// hold.
    pub fn new(shards: usize, bytes: u64, width: usize, spill: &Arc<Spill>, grant: &Grant) -> Result<Sieve, Full> {
        // One part is for the bits, two thirds of the rest for chunks.
        let item_bytes = size_of::<Item>() + width * 4;
        let (room, items) = (bytes.clamp(64, MOST_PLACES) as usize, bytes as usize * 7 / 8 / item_bytes / shards);
        let (near_room, back_room) = ((items * 2 / 3).max(LEAST_KEYS), (items / 3).max(LEAST_KEYS));
        let (words, chunk) = (room.div_ceil(64), spill.slot_bytes() / item_bytes);
        let charged = shards * (near_room + back_room) * item_bytes + words * 8 + room / chunk * size_of::<Slot>();
        if !grant.take(charged as u64) {
            return Err(Full);
        }
        let shard = |_| {
            let (mut near, back) = (Items::default(), Items::with_capacity(back_room, width));
            near.resize(near_room, width);
            Mutex::new(Shard { near, parts: Vec::new(), back, chunk: Vec::new() })
        };
        Ok(Sieve {
            first: 0,
            len: 0,
            room,
            most: room,
            shards: (0..shards).map(shard).collect(),
            division: Division::default(),
            known: (0..words).map(|_| AtomicU64::new(0)).collect(),
            spill: spill.clone(),
            grant: grant.clone(),
            bytes: charged as u64,
            width,
            near_room,
            back_room,
        })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How shards are divided for so many candidates.
    fn divided_for(&self, candidates: usize) -> Division {
        let width = self.width;
        let one = Division { bits: 0, near: self.near_room, all: self.near_room, width };
        let fits = |room: usize| room * LOAD_PERCENT / 100 * self.shards.len() >= candidates;
        if fits(self.near_room) {
            return one;
        }
        let most_bits = (self.near_room / LEAST_KEYS).ilog2();
        let bits = (0..most_bits).find(|bits| fits(self.back_room << bits)).unwrap_or(most_bits);
        let chunk = self.spill.slot_bytes() / (size_of::<Item>() + width * 4);
        let near = (self.near_room >> bits).min(chunk).min(self.back_room);
        let divided = Division { bits, near, all: self.back_room, width };
        // A few parts that wait on disk hold no more than memory does.
        if divided.all << bits > one.all { divided } else { one }
    }

    /// Half of the disk that is left, in slots: keys in it are there a second time.
    pub fn slots_left(&self) -> usize {
        (self.spill.left_bytes()[0] / self.spill.slot_bytes() as u64 / 2) as usize
    }

    /// Empties it, for as many as it can take of so many keys with so many slots on disk, of which the first is that of candidate number `first`.
    /// As few as memory holds take none.
    pub fn begin(&mut self, first: u64, waiting: usize, slots: usize) {
        (self.first, self.len) = (first, 0);
        for shard in &mut self.shards {
            own(shard).parts.drain(..).flat_map(|part| part.far).for_each(|slot| self.spill.release(slot));
        }
        let mut count = waiting.min(self.room);
        (self.division, self.most) = (self.divided_for(count), self.room);
        while self.division.slots_for(count, self.shards.len()) > slots {
            count /= 2;
            (self.division, self.most) = (self.divided_for(count), count.max(self.near_room));
        }
        for shard in &mut self.shards {
            let parts = &mut own(shard).parts;
            parts.resize_with(1 << self.division.bits, Part::default);
        }
        self.known.iter_mut().for_each(|bits| *bits.get_mut() = 0);
    }

    /// How many keys are in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// So many more fit, whatever they are.
    pub fn room_left(&mut self) -> usize {
        (self.room.min(self.most) - self.len).min(self.least_room())
    }

    /// So many more come next, for which there must be room; says the place of the first.
    pub fn expect(&mut self, count: usize) -> usize {
        self.len += count;
        self.len - count
    }

    /// Adds some of those that are expected, from a place on: of each the leading words of its key, the others being zero, and the vector whose hash it
    /// is if it is one. Several workers may.
    pub fn add<'a, K: AsRef<[u32]>>(
        &self,
        place: usize,
        candidates: impl Iterator<Item = (K, &'a [u32])>,
    ) -> Result<(), SpillError> {
        let shard_bits = self.shards.len().ilog2();
        let mut items = (place as u32..).zip(candidates).map(|(place, (key, vector))| {
            let (mut item, key) = ([0, 0, 0, 0, place], key.as_ref());
            item[..key.len()].copy_from_slice(key);
            (item, vector)
        });
        let home = |item: &Item| shard_of(high_of(item), shard_bits);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            batch.clear();
            batch.extend(items.by_ref().take(BATCH));
            if batch.is_empty() {
                return Ok(());
            }
            // Each shard is locked once.
            let order = by_home(batch.iter().map(|(item, _)| home(item)));
            for run in order[..batch.len()]
                .chunk_by(|&one, &other| home(&batch[one as usize].0) == home(&batch[other as usize].0))
            {
                let mut shard = self.lock(home(&batch[run[0] as usize].0));
                for &at in run {
                    let (item, vector) = batch[at as usize];
                    let part = shard_of(high_of(&item) << shard_bits, self.division.bits);
                    shard.add(item, vector, part, self.division, &self.spill)?;
                }
            }
        }
    }

    /// So many keys fit into every part.
    fn least_room(&mut self) -> usize {
        let parts = self.shards.iter_mut().flat_map(|shard| &own(shard).parts);
        self.division.all - parts.map(|part| part.all).max().unwrap_or(0)
    }

    /// Asks for the candidates of one shard, part by part, in order of their keys.
    pub fn ask(&self, shard: usize, mut ask: impl FnMut(&Asked) -> Result<(), SpillError>) -> Result<(), SpillError> {
        let mut shard = self.lock(shard);
        let told_bits = self.shards.len().ilog2() + self.division.bits;
        for part in 0..shard.parts.len() {
            let (items, vectors) = shard.sorted(part, told_bits, self.division, &self.spill)?;
            if !items.is_empty() {
                ask(&Asked { sieve: self, items: Cell::from_mut(items).as_slice_of_cells(), vectors })?;
            }
        }
        Ok(())
    }

    /// Did a run know the candidate at this place?
    pub fn is_known(&self, at: usize) -> bool {
        self.known[at / 64].load(Ordering::Relaxed) >> (at % 64) & 1 == 1
    }

    /// How many of these places have candidates that no run knew.
    pub fn unknown(&self, places: Range<usize>) -> usize {
        let (mut at, mut unknown) = (places.start, 0);
        while at < places.end {
            let count = (64 - at % 64).min(places.end - at);
            let known = self.known[at / 64].load(Ordering::Relaxed) >> (at % 64) << (64 - count);
            unknown += count - known.count_ones() as usize;
            at += count;
        }
        unknown
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn own(shard: &mut Mutex<Shard>) -> &mut Shard {
    shard.get_mut().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Sieve {
    fn drop(&mut self) {
        self.grant.give_back(self.bytes);
        let slots = self.shards.iter_mut().flat_map(|shard| own(shard).parts.drain(..)).flat_map(|part| part.far);
        slots.for_each(|slot| self.spill.release(slot));
    }
}

/// Some candidates of one shard, in order of their keys.
pub(crate) struct Asked<'a> {
    sieve: &'a Sieve,
    items: &'a [Cell<Item>],
    vectors: &'a [u32],
}

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    asked: &'a Asked<'a>,
    cell: &'a Cell<Item>,
    item: Item,
}

impl<'a> Asked<'a> {
    /// Those that no run has known so far.
    #[inline(always)]
    pub fn open(&'a self) -> impl Iterator<Item = Question<'a>> {
        let questions = self.items.iter().map(|cell| Question { asked: self, cell, item: cell.get() });
        questions.filter(|question| question.item[4] & KNOWN == 0)
    }
}

impl Asked<'_> {
    /// The keys of those that a run knew.
    pub fn known(&self) -> impl Iterator<Item = u128> {
        self.items.iter().map(Cell::get).filter(|item| item[4] & KNOWN != 0).map(|item| key_of(&item))
    }
}

impl<'a> Question<'a> {
    #[inline(always)]
    pub fn key(&self) -> u128 {
        if self.asked.sieve.width > 0 { key_of(&self.item) >> 64 << 64 } else { key_of(&self.item) }
    }

    /// What the key is the hash of, if it is one.
    pub fn vector(&self) -> &'a [u32] {
        let width = self.asked.sieve.width;
        &self.asked.vectors[self.item[VECTOR] as usize * width..][..width]
    }

    /// How many candidates came before it.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.asked.sieve.first + place_of(&self.item) as u64
    }

    /// A run knew it.
    pub fn mark(&self) {
        let (at, [a, b, c, d, place]) = (place_of(&self.item), self.item);
        self.cell.set([a, b, c, d, place | KNOWN]);
        self.asked.sieve.known[at / 64].fetch_or(1 << (at % 64), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    #[test]
    fn items_are_sorted_however_their_keys_are_spread() {
        let mut draw = Draw::new(0);
        // Leading bits that are told, bits behind them that differ, and how many.
        for (told_bits, differing, count) in [
            (0, 64, 0),
            (0, 64, 1),
            (3, 61, 65),
            (0, 64, 5000),
            (7, 12, 3000),
            (2, 3, 700),
            (5, 0, 200),
            (0, 64, 70_000),
        ] {
            let told = !u64::MAX.checked_shr(told_bits).unwrap_or(0) & draw.bits();
            let mut item = |place: u32| {
                let high = told | draw.bits().checked_shl(64 - differing).unwrap_or(0) >> told_bits;
                [(high >> 32) as u32, high as u32, draw.below(2) as u32, draw.below(3) as u32, place]
            };
            let mut items: Vec<Item> = (0..count).map(&mut item).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| (key_of(item), place_of(item)));
            sort(&mut items, told_bits);
            assert!(items.is_sorted_by_key(key_of));
            items.sort_by_key(|item| (key_of(item), place_of(item)));
            assert!(items == expected, "{told_bits} {differing} {count}");
        }
    }
}
