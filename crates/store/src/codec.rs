//! How states are represented in the store: a state in, its key out. All codecs are injective but those of digests.
//!
//! Encoding goes through `&self`, so several workers can do it at once; what a codec needs to grow (the tables of
//! the tree) grows in [`Coder::reserve`] and nowhere else. Whatever the codec, the leading bits of a key look random.

use crate::budget::{Full, Grant};
use crate::cache::{Hashed, KeyForm};
use crate::digest::{self, Digest, Held};
use crate::hash;
use crate::huffman::{self, Code};
use crate::packed::Density;
use crate::packing::{Packing, Untold};
use crate::recent::Recent;
use crate::stream::{Unloaded, put_number, take_number};
use crate::tree::{self, Shape, Tree};
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// The words as they are.
    Plain,
    /// The used bits, mixed; for states that use up to 128.
    Packed,
    /// Tree compression.
    Tree,
    /// A digest of so many bits.
    Digest(u32),
    /// So many bits of a Bloom filter.
    Bitstate(u32),
    /// As much of a digest as there is room for.
    Adaptive,
    /// Frequent bytes in few bits.
    Huffman(huffman::Kind),
}

impl Codec {
    /// Do different states always have different keys?
    pub fn is_injective(self) -> bool {
        match self {
            Codec::Plain | Codec::Packed | Codec::Tree | Codec::Huffman(_) => true,
            Codec::Digest(_) | Codec::Bitstate(_) | Codec::Adaptive => false,
        }
    }

    /// Is its table as large as its grant from the beginning?
    pub fn fills_grant(self) -> bool {
        matches!(self, Codec::Bitstate(_) | Codec::Adaptive)
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Codec::Plain => f.write_str("plain"),
            Codec::Packed => f.write_str("packed"),
            Codec::Tree => f.write_str("tree"),
            Codec::Digest(bits) => write!(f, "digest:{bits}"),
            Codec::Bitstate(bits) => write!(f, "bitstate:{bits}"),
            Codec::Adaptive => f.write_str("adaptive"),
            Codec::Huffman(kind) => write!(f, "huffman:{kind}"),
        }
    }
}

impl Codec {
    /// Words of 32 bits that make up the key of a state whose words use these bits.
    pub fn key_words(self, used: &[u32]) -> usize {
        let bits: u32 = used.iter().map(|word| word.count_ones()).sum();
        match self {
            Codec::Plain | Codec::Huffman(_) => used.len(),
            Codec::Packed if bits > u64::BITS => 4,
            Codec::Digest(bits) if bits > u64::BITS => 4,
            Codec::Packed | Codec::Tree | Codec::Digest(_) | Codec::Bitstate(_) | Codec::Adaptive => 2,
        }
    }
}

/// What is written for a tree.
const PLAIN: u64 = 0;
const PACKED: u64 = 1;
const TREE: u64 = 2;

/// A codec with its tables, for states of one width.
#[derive(Debug)]
pub enum Coder {
    Plain { width: usize },
    Packed(Packing),
    Tree(Box<Tree>),
    Digest(Digest),
    Huffman(Arc<Code>),
}

/// The keys of a block of states, left-aligned; a buffer of each worker.
#[derive(Debug, Default)]
pub struct Keys {
    /// The leading 64 bits; of plain states, which are their own keys, a hash.
    pub(crate) high: Vec<u64>,
    /// The bits behind them, where keys have more.
    pub(crate) low: Vec<u64>,
    /// The states they belong to, by their places in the block.
    pub(crate) positions: Vec<u32>,
    nodes: tree::Scratch,
    /// The Huffman code of a state.
    coded: Vec<u8>,
}

impl Coder {
    /// A coder for states whose words use these bits; of Huffman codes the static one.
    pub fn new(codec: Codec, used: &[u32], grant: &Grant) -> Result<Coder, Full> {
        let digest = |bits: u32, held: Held| Coder::Digest(Digest::new(used.len(), bits, held));
        Ok(match codec {
            Codec::Digest(bits) => digest(bits, Held::Whole),
            Codec::Bitstate(bits) => digest(digest::MOST_BITS, Held::Bits(bits)),
            Codec::Adaptive => digest(digest::MOST_BITS, Held::Adaptive),
            Codec::Huffman(_) => Coder::Huffman(Arc::new(Code::fixed(used))),
            Codec::Plain => Coder::Plain { width: used.len() },
            Codec::Packed => {
                Coder::Packed(Packing::new(used).expect("the plan packs only states that are narrow enough"))
            }
            Codec::Tree => Coder::Tree(Box::new(Tree::new(Shape::even(used.len()), grant)?)),
        })
    }

    /// Writes what keys depend on, for states of one width.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        put_number(out, self.kind())?;
        put_number(out, self.width() as u64)?;
        match self {
            Coder::Plain { .. } | Coder::Digest(_) | Coder::Huffman(_) => Ok(()),
            Coder::Packed(packing) => packing.save(out),
            Coder::Tree(tree) => tree.save(out),
        }
    }

    /// Reads what a coder of the same kind has written; its keys are those of the other from then on. One that packs states may
    /// become a tree, as the other did, and a tree may be given up, for a packing if there is one.
    pub fn load(
        &mut self,
        from: &mut dyn Read,
        packing: Option<&Packing>,
        density: Density,
        grant: &Grant,
    ) -> Result<(), Unloaded> {
        let (kind, width) = (take_number(from)?, self.width());
        let holds_keys = matches!(self, Coder::Tree(_) | Coder::Packed(_));
        if kind == PLAIN && holds_keys {
            *self = Coder::Plain { width };
        }
        if let (PACKED, Coder::Tree(_), Some(packing)) = (kind, &*self, packing) {
            *self = Coder::Packed(packing.clone());
        }
        let is_tree = kind == TREE && holds_keys;
        if take_number(from)? != width as u64 || (kind != self.kind() && !is_tree) {
            return Err(Unloaded::damaged("states are of another kind"));
        }
        if is_tree {
            let mut tree = Tree::load(width, from, grant)?;
            tree.set_density(density);
            *self = Coder::Tree(Box::new(tree));
        } else if let Coder::Packed(packing) = self {
            packing.load(from)?;
        }
        Ok(())
    }

    fn kind(&self) -> u64 {
        match self {
            Coder::Plain { .. } => PLAIN,
            Coder::Packed(_) => PACKED,
            Coder::Tree(_) => TREE,
            Coder::Digest(_) => 3,
            Coder::Huffman(_) => 4,
        }
    }

    /// Words per state.
    pub fn width(&self) -> usize {
        match self {
            Coder::Plain { width } => *width,
            Coder::Packed(packing) => packing.width(),
            Coder::Tree(tree) => tree.width(),
            Coder::Digest(digest) => digest.width(),
            Coder::Huffman(code) => code.width(),
        }
    }

    /// Makes sure that `count` more states can be encoded.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        match self {
            Coder::Plain { .. } | Coder::Packed(_) | Coder::Digest(_) | Coder::Huffman(_) => Ok(()),
            Coder::Tree(tree) => tree.reserve(count),
        }
    }

    /// Can `count` more states be encoded without growing anything?
    pub fn has_room(&self, count: usize) -> bool {
        match self {
            Coder::Plain { .. } | Coder::Packed(_) | Coder::Digest(_) | Coder::Huffman(_) => true,
            Coder::Tree(tree) => tree.has_room(count),
        }
    }

    /// Does the key of a state depend on what was encoded before?
    pub fn numbers_states(&self) -> bool {
        matches!(self, Coder::Tree(_))
    }

    /// For what a worker has met lately, in about so many bytes and the form that suits these keys: those of a tree cost more than comparing
    /// states.
    pub fn recent(&self, bytes: usize) -> Recent {
        match self.compares_states() {
            false => Recent::of_keys(self.key_bits(), bytes),
            true => Recent::of_states(self.width(), bytes),
        }
    }

    pub(crate) fn compares_states(&self) -> bool {
        match self {
            Coder::Packed(_) | Coder::Digest(_) => false,
            Coder::Plain { .. } | Coder::Tree(_) | Coder::Huffman(_) => true,
        }
    }

    /// Bits of the longest key so far; 0 if states are compared as they are.
    pub fn key_bits(&self) -> u32 {
        match self {
            Coder::Plain { .. } | Coder::Huffman(_) => 0,
            Coder::Packed(packing) => packing.key_bits(),
            Coder::Tree(tree) => tree.key_bits(),
            Coder::Digest(digest) => digest.bits(),
        }
    }

    /// Bits of the longest key that there may ever be, where keys get longer as states come that differ in more.
    pub fn most_key_bits(&self) -> u32 {
        match self {
            Coder::Packed(packing) => packing.most_key_bits(),
            _ => self.key_bits(),
        }
    }

    /// Has keys tell in what states differ that had none; false if all had.
    pub(crate) fn widen(&mut self) -> bool {
        match self {
            Coder::Packed(packing) => packing.widen(),
            _ => false,
        }
    }

    /// Did a state come that can have no key, so that another coder must take the place of this one?
    pub fn is_outgrown(&self) -> bool {
        matches!(self, Coder::Packed(packing) if packing.is_outgrown())
    }

    /// Unless there is a disk on which keys could be taken apart, those that may be outgrown make way for states as they are: returns what
    /// tells the states of the former then.
    pub(crate) fn without_outgrowing(&mut self, has_disk: bool) -> Option<Packing> {
        let width = self.width();
        match self {
            Coder::Packed(packing) if packing.is_wide() && !has_disk => {
                let packing = packing.clone();
                *self = Coder::Plain { width };
                Some(packing)
            }
            _ => None,
        }
    }

    /// What keys look like to a cache that is one of 2^`told_bits`.
    pub(crate) fn form(&self, told_bits: u32) -> KeyForm {
        let (bytes, hashed) = match self {
            Coder::Plain { width } => (width * 4, Hashed::Whole),
            Coder::Packed(packing) => (packing.key_bits().div_ceil(8) as usize, Hashed::Leading),
            // Keys of roots get longer.
            Coder::Tree(_) => (size_of::<u64>(), Hashed::Leading),
            Coder::Digest(digest) => (digest.bits().div_ceil(8) as usize, Hashed::Leading),
            Coder::Huffman(code) => (code.key_bytes(), Hashed::Whole),
        };
        KeyForm { bytes, hashed, told_bits }
    }

    /// Computes the keys of `states`, which are end to end, and puts them behind those that are there. There must be room
    /// for them.
    pub fn encode(&self, states: &[u32], keys: &mut Keys) -> Result<(), Full> {
        debug_assert_eq!(states.len() % self.width(), 0);
        let Keys { high, low, nodes, coded, .. } = keys;
        match self {
            Coder::Plain { width } => high.extend(states.chunks_exact(*width).map(hash::words)),
            Coder::Packed(packing) => packing.encode(states, high, low).map_err(|Untold| Full)?,
            Coder::Digest(digest) => digest.encode(states, high, low),
            // The tables that hold codes make them again: they are of different lengths, and nobody carries them there.
            Coder::Huffman(code) => high.extend(states.chunks_exact(code.width()).map(|state| {
                code.encode(state, coded);
                hash::bytes(coded)
            })),
            Coder::Tree(tree) => {
                tree.encode(states, nodes)?;
                high.extend_from_slice(&nodes.keys);
            }
        }
        Ok(())
    }

    pub fn bytes(&self) -> usize {
        match self {
            Coder::Plain { .. } | Coder::Packed(_) | Coder::Digest(_) | Coder::Huffman(_) => 0,
            Coder::Tree(tree) => tree.bytes(),
        }
    }

    /// Shared parts of states.
    pub fn parts(&self) -> usize {
        match self {
            Coder::Plain { .. } | Coder::Packed(_) | Coder::Digest(_) | Coder::Huffman(_) => 0,
            Coder::Tree(tree) => tree.nodes(),
        }
    }
}

impl Keys {
    /// All bits of each key.
    pub(crate) fn whole(&self) -> impl Iterator<Item = u128> {
        let low = |index: usize| self.low.get(index).copied().unwrap_or(0);
        self.high.iter().enumerate().map(move |(index, &high)| (high as u128) << 64 | low(index) as u128)
    }

    pub fn clear(&mut self) {
        self.high.clear();
        self.low.clear();
    }

    /// Says that the keys are those of all states of a block, and drops those at the positions `skip`, and of states that were met
    /// `lately`.
    pub fn keep(&mut self, skip: &[u32], lately: Option<&mut Recent>) {
        let Keys { high, low, positions, .. } = self;
        positions.clear();
        positions.extend(0..high.len() as u32);
        match lately {
            Some(recent) if low.is_empty() => retain(high, low, positions, skip, |high, _| !recent.meet_key(high)),
            Some(recent) => retain(high, low, positions, skip, |high, low| !recent.meet_long_key(high, low)),
            None if skip.is_empty() => {}
            None => retain(high, low, positions, skip, |_, _| true),
        }
    }
}

/// Keeps the keys that are `wanted`, but for those at the positions `skip`.
#[inline(always)]
fn retain(
    high: &mut Vec<u64>,
    low: &mut Vec<u64>,
    positions: &mut Vec<u32>,
    skip: &[u32],
    mut wanted: impl FnMut(u64, u64) -> bool,
) {
    let mut skip = skip.iter().copied().peekable();
    let mut kept = 0;
    for at in 0..high.len() {
        let key = (high[at], low.get(at).copied().unwrap_or(0));
        // It is written in any case, so that nobody has to guess whether it is wanted.
        (high[kept], positions[kept]) = (key.0, at as u32);
        if let Some(low) = low.get_mut(kept) {
            *low = key.1;
        }
        let skipped = skip.next_if_eq(&(at as u32)).is_some();
        kept += (!skipped && wanted(key.0, key.1)) as usize;
    }
    high.truncate(kept);
    low.truncate(kept);
    positions.truncate(kept);
}
