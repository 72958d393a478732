//! The store: a codec and tiers. A state is encoded, then offered to the first tier, which admits everything and keeps
//! it in RAM.

use crate::budget::{Full, Grant};
use crate::cache::{Answer, AnyCache, Cache, Note, Place, Ways};
use crate::codec::{Codec, Coder, Keys};
use crate::digest::Held;
use crate::packed::Density;
use crate::row::Row;
use crate::runs::Layers;
use crate::stream::Unloaded;
use crate::tiers::{Block, Entry, Tiers};
use std::io::Read;

/// A set of states, filled block by block. Its halves can be used apart: several workers may encode blocks at once, and
/// enter different shards at once.
#[derive(Debug)]
pub struct Chain {
    pub coder: Coder,
    pub tiers: Tiers,
}

/// What the store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub states: u64,
    pub bytes: u64,
    /// Shared parts of states (nodes of the tree).
    pub parts: u64,
}

/// Buffers for inserting blocks.
#[derive(Debug, Default)]
pub struct Buffers {
    entry: Entry,
    keys: Keys,
}

#[cfg(test)]
impl Buffers {
    /// The keys of the last block.
    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }
}

impl Chain {
    /// A chain of one exact tier in 2^`shard_bits` shards, for states whose words use these bits.
    pub fn new(codec: Codec, used: &[u32], shard_bits: u32, grant: &Grant) -> Result<Chain, Full> {
        Chain::of(Coder::new(codec, used, grant)?, shard_bits, grant)
    }

    /// The same for a coder that is there.
    pub fn of(coder: Coder, shard_bits: u32, grant: &Grant) -> Result<Chain, Full> {
        let tiers = Tiers::exact(&coder, shard_bits, grant)?;
        Ok(Chain { coder, tiers })
    }

    /// The same with tables that are as full as they say.
    pub fn with_density(mut self, density: Density) -> Chain {
        if let Coder::Tree(tree) = &mut self.coder {
            tree.set_density(density);
        }
        Chain { coder: self.coder, tiers: self.tiers.with_density(density) }
    }

    /// The same for states that are packed, and will have a tree if the first of them say so; see [`Tiers::choosing`].
    pub fn choosing(self) -> Chain {
        Chain { tiers: self.tiers.choosing(&self.coder), ..self }
    }

    /// The same for states that are packed, with keys that tell what the first of them show; see [`Tiers::narrowing`].
    pub fn narrowing(self, states: usize) -> Chain {
        Chain { tiers: self.tiers.narrowing(&self.coder, states), ..self }
    }

    /// The same for states whose words use these bits, should a tree be given up; see [`Tiers::with_packing`].
    pub fn with_packing(self, used: &[u32]) -> Chain {
        Chain { tiers: self.tiers.with_packing(used), ..self }
    }

    /// The same with room on disk; see [`Tiers::above`].
    pub fn above(self, layers: Layers) -> Chain {
        Chain { tiers: self.tiers.above(layers), ..self }
    }

    /// The same with a way on when memory is almost full; see [`Tiers::climbing`].
    pub fn climbing(self, row: &Row, may_miss: bool) -> Chain {
        Chain { tiers: self.tiers.climbing(&self.coder, row, may_miss), ..self }
    }

    /// The tiers of a row for at most `capacity` states whose words use these bits; it can pin states if `pins`.
    pub fn with_row(
        codec: Codec,
        used: &[u32],
        row: &Row,
        pins: bool,
        capacity: usize,
        grant: &Grant,
    ) -> Result<Chain, Full> {
        Chain::of_row(Coder::new(codec, used, grant)?, row, pins, capacity, grant)
    }

    /// The same for a coder that is there.
    pub fn of_row(coder: Coder, row: &Row, pins: bool, capacity: usize, grant: &Grant) -> Result<Chain, Full> {
        let tiers = Tiers::of(&coder, row, pins, capacity, grant)?;
        Ok(Chain { coder, tiers })
    }

    /// Takes over what another store of the same kind has written, coder first; this one is empty. It has 2^`shard_bits`
    /// shards from then on. Says how many states there are, if that is known.
    pub fn load(&mut self, shard_bits: u32, from: &mut dyn Read) -> Result<Option<u64>, Unloaded> {
        self.coder.load(from, self.tiers.packing(), self.tiers.density(), self.tiers.grant())?;
        let packed = self.coder.without_outgrowing(self.tiers.layers().is_some_and(Layers::keeps_all));
        self.tiers.load(&self.coder, packed.as_ref(), shard_bits, from)
    }

    /// Bytes that a cached state takes in tables that do not depend on what is shared.
    pub fn bytes_per_cached(coder: &Coder, row: &Row, pins: bool) -> usize {
        if row.has_levels() {
            return Tiers::bytes_per_state_of_levels(coder);
        }
        let form = coder.form(0);
        let caches = row.after_kept().filter(|_| matches!(coder, Coder::Packed(_)) && !pins);
        let caches = caches.as_ref().unwrap_or(row);
        match caches.alone().filter(|_| !pins) {
            Some(_) => Ways::bytes_per_entry(form),
            None => Cache::bytes_per_entry(caches, form),
        }
    }

    /// Makes sure that `count` more states can be encoded and, unless they belong to few shards, find room.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        self.reserve_keys(count)?;
        self.tiers.reserve(count)
    }

    /// Makes sure that `count` more states can be encoded, also at the cost of never learning how to do it better.
    fn reserve_keys(&mut self, count: usize) -> Result<(), Full> {
        let mut reserved = self.coder.reserve(count);
        if reserved.is_err() && self.tiers.forget_sample() {
            reserved = self.coder.reserve(count);
        }
        while reserved.is_err() && self.tiers.make_room_for_keys(&mut self.coder) {
            reserved = self.coder.reserve(count);
        }
        reserved
    }

    /// Gives up nodes of forgotten states before tables would have to grow, if it is worth it.
    fn tidy(&mut self, count: usize) {
        if !self.coder.has_room(count) && self.tiers.wants_collection(&self.coder) {
            self.tiers.collect(&mut self.coder);
        }
    }

    /// Inserts a block and puts into `fresh` the positions of states not held before; of equal states in one block
    /// the first is fresh. On `Full` nothing is lost, but `fresh` covers only a part of the block.
    pub fn insert(&mut self, block: Block, buffers: &mut Buffers, fresh: &mut Vec<u32>) -> Result<(), Full> {
        let Buffers { entry, keys } = buffers;
        fresh.clear();
        self.tiers.learn(&mut self.coder, None);
        self.tidy(block.len());
        self.reserve_keys(block.len())?;
        let mut encoded = entry.encode(&self.coder, block, self.tiers.needs(), keys);
        while encoded.is_err() && self.tiers.make_room_for_keys(&mut self.coder) {
            encoded = entry.encode(&self.coder, block, self.tiers.needs(), keys);
        }
        encoded?;
        self.tiers.look_at(&self.coder);
        let entered = self.tiers.enter_all(block, entry);
        entry.fresh(fresh);
        self.tiers.sample(block, fresh);
        entered
    }

    /// Inserts one state. In a cache a new state is pinned until [`Chain::unpin`] is called for its place.
    pub fn enter(&mut self, state: &[u32], note: Note, buffers: &mut Buffers, fresh: &mut Vec<u32>) -> Answer {
        if self.tiers.pinning().is_none() {
            if let Coder::Digest(digest) = &self.coder
                && digest.held != Held::Whole
                && let (high, low) = digest.of(state)
                && let Some(new) = self.tiers.enter_digest(high, low)
            {
                return if new { Answer::New(Place::NOWHERE) } else { Answer::Known };
            }
            return match self.insert(Block::of(state, &[0, 1]), buffers, fresh) {
                Err(Full) => Answer::Full,
                Ok(()) if fresh.is_empty() => Answer::Known,
                Ok(()) => Answer::New(Place::NOWHERE),
            };
        }
        let keys = &mut buffers.keys;
        keys.clear();
        self.tidy(1);
        let encoded = self.reserve_keys(1).and_then(|()| self.coder.encode(state, keys));
        let entered = encoded.ok().and_then(|()| self.tiers.enter_pinned(state, keys, note));
        entered.unwrap_or(Answer::Full)
    }

    /// Asks for what is needed to enter these states, which are end to end, one by one, if that is found out quickly.
    pub fn expect(&mut self, states: &[u32], buffers: &mut Buffers) {
        let keys = &mut buffers.keys;
        keys.clear();
        match &self.coder {
            Coder::Digest(digest) => digest.encode(states, &mut keys.high, &mut keys.low),
            // What has no key yet gets one when it comes.
            Coder::Packed(packing) => _ = packing.encode(states, &mut keys.high, &mut keys.low),
            Coder::Plain { .. } | Coder::Tree(_) | Coder::Huffman(_) => return,
        }
        self.tiers.expect(&keys.high);
    }

    /// Takes back one pin.
    pub fn unpin(&mut self, place: Place) {
        if let Some(cache) = self.tiers.pinning() {
            cache.unpin(place);
        }
    }

    /// Tells a cache how many successors a pinned state has.
    pub fn count_successors(&mut self, place: Place, successors: usize) {
        if let Some(cache) = self.tiers.pinning() {
            cache.count_successors(place, successors);
        }
    }

    /// Does the store keep notes, and may it forget?
    pub fn is_cache(&self) -> bool {
        self.tiers.health().is_some()
    }

    pub fn wants_kinds(&self) -> bool {
        self.tiers.needs().kinds
    }

    pub fn usage(&self) -> Usage {
        let (states, bytes) = self.tiers.held();
        Usage { states: states as u64, bytes: (bytes + self.coder.bytes()) as u64, parts: self.coder.parts() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::cache::Rule;
    use crate::huffman::{Kind, Training};
    use crate::tree::Shape;
    use plimsoll_ir::random::Draw;
    use std::collections::HashSet;
    use std::sync::Arc;

    #[test]
    fn every_codec_agrees_with_a_hash_set() {
        let codecs = [Codec::Plain, Codec::Packed, Codec::Tree, Codec::Huffman(Kind::Static)];
        let widths = [1, 2, 3, 6, 11, 26];
        for (codec, width) in codecs.into_iter().flat_map(|codec| widths.map(|width| (codec, width))) {
            let mut chain = Chain::new(codec, &vec![3; width], width as u32 % 9, &Grant::unlimited()).unwrap();
            let (mut buffers, mut fresh, mut twin) = (Buffers::default(), Vec::new(), HashSet::new());
            let mut draw = Draw::new(0);
            for _ in 0..300 {
                let states: Vec<u32> = (0..40 * width).map(|_| draw.below(3) as u32).collect();
                chain.insert(Block::of(&states, &[0, 40]), &mut buffers, &mut fresh).unwrap();
                let states = states.chunks(width).enumerate();
                let expected: Vec<u32> = states
                    .filter(|(_, state)| twin.insert(state.to_vec()))
                    .map(|(position, _)| position as u32)
                    .collect();
                assert_eq!(fresh, expected, "{codec:?}, width {width}");
            }
            assert_eq!(chain.usage().states, twin.len() as u64);
        }
    }

    #[test]
    fn a_full_store_says_so_and_stays_within_its_grant() {
        for codec in [Codec::Plain, Codec::Packed, Codec::Tree, Codec::Huffman(Kind::Static)] {
            let budget = Budget::new(1 << 20);
            let grant = budget.grant("store", 1 << 20);
            let mut chain = Chain::new(codec, &[0xFF_FFFF, 0, 7, 0, 0xFF_FFFF, 1], 2, &grant).unwrap();
            let (mut buffers, mut fresh) = (Buffers::default(), Vec::new());
            let mut count = 0u32;
            loop {
                let state = [count, 0, count % 7, 0, count / 100, 1];
                if chain.insert(Block::of(&state, &[0, 1]), &mut buffers, &mut fresh).is_err() {
                    break;
                }
                assert_eq!(fresh, [0]);
                count += 1;
            }
            assert!(count > 10_000 && budget.used_bytes() <= 1 << 20, "{codec:?}: {count}");
            assert_eq!(chain.usage().states, count as u64);
        }
    }

    /// Numbers as states, a thousand at a time; how many of them are fresh.
    fn fresh_of(chain: &mut Chain, numbers: std::ops::Range<u32>, buffers: &mut Buffers) -> usize {
        let (mut fresh, mut count) = (Vec::new(), 0);
        let numbers: Vec<u32> = numbers.collect();
        for states in numbers.chunks(1000) {
            chain.insert(Block::of(states, &[0, states.len() as u32]), buffers, &mut fresh).unwrap();
            count += fresh.len();
        }
        count
    }

    #[test]
    fn what_is_kept_stays_and_what_comes_after_is_forgotten() {
        let row = Row::chain("KEEP:50%,LRU:50%").unwrap();
        for capacity in [10, 700, 40_000] {
            let (kept, buffers) = (capacity as u32 / 2, &mut Buffers::default());
            let grant = Grant::unlimited();
            let mut chain = Chain::with_row(Codec::Packed, &[0xFF_FFFF], &row, false, capacity, &grant).unwrap();
            assert!(chain.is_cache());
            let all = 20 * capacity as u32;
            assert_eq!(fresh_of(&mut chain, 0..all, buffers), all as usize);
            let distinct = chain.tiers.health().unwrap().distinct as f64;
            assert!((distinct / all as f64 - 1.0).abs() < 0.08, "{distinct} of {all}");
            // Shards are not filled evenly: one may have been full a little early.
            let certain = if chain.tiers.shards() == 1 { kept } else { kept / 10 * 9 };
            assert_eq!(fresh_of(&mut chain, 0..certain, buffers), 0, "of {capacity}");
            assert_eq!(fresh_of(&mut chain, capacity as u32..2 * capacity as u32, buffers), capacity);
            let health = chain.tiers.health().unwrap();
            assert!(health.forgotten > 0 && health.held <= capacity as u64 && health.held >= kept as u64, "{health:?}");
            assert_eq!(health.held, chain.usage().states);
        }
    }

    #[test]
    fn what_is_kept_freezes_early_where_memory_runs_out() {
        let row = Row::chain("KEEP:90%,LRU:10%").unwrap();
        let budget = Budget::new(2 << 20);
        let grant = budget.grant("store", 2 << 20);
        let mut chain = Chain::with_row(Codec::Packed, &[u32::MAX, 255], &row, false, 1 << 24, &grant).unwrap();
        let (mut buffers, mut fresh) = (Buffers::default(), Vec::new());
        for number in 0..1_000_000u32 {
            chain.insert(Block::of(&[number, number % 200], &[0, 1]), &mut buffers, &mut fresh).unwrap();
            assert_eq!(fresh, [0], "{number}");
        }
        let health = chain.tiers.health().unwrap();
        assert!(health.held > 100_000 && health.forgotten > 100_000, "{health:?}");
        assert!(budget.used_bytes() <= 2 << 20);
        for number in 0..50_000u32 {
            chain.insert(Block::of(&[number, number % 200], &[0, 1]), &mut buffers, &mut fresh).unwrap();
            assert!(fresh.is_empty(), "{number} is kept");
        }
    }

    /// Codes of most lengths in slots that are too short for some: a cache of them answers like one of vectors that holds
    /// those for ever.
    #[test]
    fn caches_of_codes_hold_what_is_too_long_for_them() {
        let used = [0xFFFF, 0xFF, 3];
        let mut training = Training::new(&used);
        (0..5_000).for_each(|number| training.add(&[number % 300, number % 5, number % 3]));
        let code = training.code();
        let longest = code.most_bytes();
        for key_bytes in 1..=longest {
            let code = Arc::new(code.clone().with_key_bytes(key_bytes));
            for row in [Row::single(Rule::LeastRecent), Row::chain("MFU:25%,LRU:75%").unwrap()] {
                let mut chain =
                    Chain::of_row(Coder::Huffman(code.clone()), &row, false, 10_000, &Grant::unlimited()).unwrap();
                let (mut buffers, mut fresh, mut draw) = (Buffers::default(), Vec::new(), Draw::new(7));
                let (mut twin, mut count) = (HashSet::new(), 0);
                for _ in 0..3_000 {
                    let number = draw.below(4_000) as u32;
                    let state = [number * 16, number % 7, number % 3];
                    chain.insert(Block::of(&state, &[0, 1]), &mut buffers, &mut fresh).unwrap();
                    assert_eq!(!fresh.is_empty(), twin.insert(state), "{key_bytes} bytes");
                    count += fresh.len();
                }
                assert_eq!(chain.usage().states, count as u64);
            }
        }
    }

    /// Short digests on purpose: as many states are missed as the store says, and some are.
    #[test]
    fn as_many_states_are_missed_as_are_expected() {
        for (codec, states) in [(16, 2_000), (16, 100_000), (20, 60_000), (24, 300_000), (24, 40_000)]
            .map(|(bits, states)| (Codec::Digest(bits), states))
            .into_iter()
            .chain([(Codec::Bitstate(3), 300_000), (Codec::Adaptive, 300_000)])
        {
            let (mut missed, mut expected, mut any, mut probable) = (0.0, 0.0, 0.0, 0.0);
            const RUNS: u32 = 6;
            for run in 0..RUNS {
                let grant = Budget::new(4 << 20).grant("store", if codec.fills_grant() { 1 << 19 } else { 4 << 20 });
                let mut chain = Chain::new(codec, &[u32::MAX, u32::MAX], run % 3, &grant).unwrap();
                let numbers: Vec<u32> = (0..states).flat_map(|number| [number / 9, (number % 9) << run]).collect();
                let (mut fresh, mut found) = (Vec::new(), 0);
                for states in numbers.chunks(1000) {
                    chain
                        .insert(Block::of(states, &[0, states.len() as u32 / 2]), &mut Buffers::default(), &mut fresh)
                        .unwrap();
                    found += fresh.len();
                }
                assert_eq!(chain.usage().states, found as u64);
                let odds = chain.tiers.odds().unwrap();
                missed += f64::from(states) - found as f64;
                expected += odds.omissions();
                any += if found < states as usize { 1.0 } else { 0.0 };
                probable += odds.probability();
            }
            assert!(missed > 0.0 && (0.8..1.25).contains(&(missed / expected)), "{codec}: {missed} for {expected}");
            assert!((any - probable).abs() < 1.0, "{codec}: missed some {any} times, expected {probable}");
        }
        assert!(Chain::new(Codec::Packed, &[7], 0, &Grant::unlimited()).unwrap().tiers.odds().is_none());
    }

    /// Each of its many tables may grow as large as all of them.
    #[test]
    fn a_wide_state_has_tables_for_all_memory_of_a_large_machine() {
        let large = Budget::new(4 << 40).grant("store", u64::MAX);
        let mut chain = Chain::new(Codec::Tree, &[u32::MAX; 500], 0, &large).unwrap();
        assert_eq!(chain.coder.reserve(1_000), Ok(()));
    }

    /// What comes one by one is known or not as if it had come in blocks, and so are the odds.
    #[test]
    fn filters_answer_one_by_one_as_they_do_for_blocks() {
        for (codec, shard_bits) in [(Codec::Bitstate(3), 0), (Codec::Bitstate(4), 2), (Codec::Adaptive, 0)] {
            let chain = || {
                let grant = Budget::new(64 << 10).grant("store", 64 << 10);
                Chain::new(codec, &[u32::MAX, u32::MAX], shard_bits, &grant).unwrap()
            };
            let (mut single, mut blocks, mut draw) = (chain(), chain(), Draw::new(3));
            let (mut buffers, mut fresh) = (Buffers::default(), Vec::new());
            for _ in 0..3_000 {
                let states: Vec<u32> = (0..2 * 20).map(|_| draw.below(180) as u32).collect();
                single.expect(&states, &mut buffers);
                let mut enter = |state: &[u32]| single.enter(state, Note::default(), &mut buffers, &mut fresh);
                let new: Vec<bool> = states.chunks(2).map(|state| enter(state) != Answer::Known).collect();
                blocks.insert(Block::of(&states, &[0, 20]), &mut buffers, &mut fresh).unwrap();
                assert!((0..20).all(|at| new[at] == fresh.contains(&(at as u32))), "{codec}");
            }
            let told = |chain: &Chain| (chain.usage().states, chain.tiers.odds().unwrap().omissions());
            assert!((told(&single).1 - told(&blocks).1).abs() < 1e-6 && told(&single).0 == told(&blocks).0, "{codec}");
            assert!(told(&single).1 > 0.1, "{codec}: {:?}", told(&single));
        }
    }

    /// Inserts random walks and compares with a hash set.
    fn compare(width: usize, blocks: usize, budget: u64) -> Chain {
        let grant = Budget::new(budget).grant("store", budget);
        let mut chain = Chain::new(Codec::Tree, &vec![u32::MAX; width], width as u32 % 4, &grant).unwrap();
        let (mut buffers, mut fresh, mut twin) = (Buffers::default(), Vec::new(), HashSet::new());
        let mut draw = Draw::new(0);
        let mut state = vec![0; width];
        for _ in 0..blocks {
            let mut states = Vec::new();
            for _ in 0..100 {
                state[draw.below(width as u64) as usize] = draw.below(40) as u32;
                states.extend_from_slice(&state);
            }
            chain.insert(Block::of(&states, &[0, 100]), &mut buffers, &mut fresh).unwrap();
            let all = states.chunks(width).zip(0..);
            let expected: Vec<u32> = all.filter(|(state, _)| twin.insert(state.to_vec())).map(|(_, at)| at).collect();
            assert_eq!(fresh, expected, "width {width}");
        }
        assert_eq!(chain.usage().states, twin.len() as u64);
        chain
    }

    #[test]
    fn agrees_with_a_hash_set_before_and_after_learning() {
        for width in (1..=130).step_by(3) {
            let learned = compare(width, 60, 1 << 30).tiers.has_learned();
            assert!(learned || !Shape::can_be_learned(width), "width {width}");
        }
        assert!(!compare(5, 400, 1 << 30).tiers.samples(), "it has learned twice");
        compare(2000, 10, 1 << 30);
    }

    #[test]
    fn without_memory_for_a_new_tree_it_stays_as_it_is() {
        let plenty = compare(40, 60, 1 << 30);
        let scarce = compare(40, 60, 1100 << 10);
        assert!(plenty.tiers.has_learned() && !scarce.tiers.samples());
        assert!(scarce.coder.bytes() != plenty.coder.bytes());
    }
}
