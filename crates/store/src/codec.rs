//! How states are represented in the store: a state in, its key out. All codecs are injective.
//!
//! Encoding goes through `&self`, so several workers can do it at once; what a codec needs to grow (the tables of
//! the tree) grows in [`Coder::reserve`] and nowhere else.

use crate::budget::Grant;
use crate::packing::Packing;
use crate::roots::Full;
use crate::tree::{self, Shape, Tree};

/// Words of a root.
const ROOT_WORDS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// The words as they are.
    Plain,
    /// The used bits, mixed; for states that use up to 128.
    Packed,
    /// Tree compression.
    Tree,
}

impl Codec {
    /// Words of the key of a state of `width` words, where keys are held as words.
    pub fn key_words(self, width: usize) -> usize {
        match self {
            Codec::Plain | Codec::Packed => width,
            Codec::Tree => ROOT_WORDS,
        }
    }
}

/// A codec with its tables, for states of one width.
#[derive(Debug)]
pub enum Coder {
    Plain { width: usize },
    Packed(Packing),
    Tree(Tree),
}

/// The keys of a block of states; a buffer of each worker.
#[derive(Debug, Default)]
pub struct Keys {
    nodes: tree::Scratch,
    words: Vec<u32>,
    pub(crate) packed: Vec<u128>,
    /// Are the keys roots, or the states themselves?
    rooted: bool,
    /// Both numbers of every root are below this.
    pub(crate) bound: u32,
}

impl Coder {
    /// A coder for states whose words use these bits.
    pub fn new(codec: Codec, used: &[u32], grant: &Grant) -> Result<Coder, Full> {
        Ok(match codec {
            Codec::Plain => Coder::Plain { width: used.len() },
            Codec::Packed => {
                Coder::Packed(Packing::new(used).expect("the plan packs only states that are narrow enough"))
            }
            Codec::Tree => Coder::Tree(Tree::new(Shape::even(used.len()), grant)?),
        })
    }

    /// Words per state.
    pub fn width(&self) -> usize {
        match self {
            Coder::Plain { width } => *width,
            Coder::Packed(packing) => packing.width(),
            Coder::Tree(tree) => tree.width(),
        }
    }

    /// Makes sure that `count` more states can be encoded.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        match self {
            Coder::Plain { .. } | Coder::Packed(_) => Ok(()),
            Coder::Tree(tree) => tree.reserve(count),
        }
    }

    /// Can `count` more states be encoded without growing anything?
    pub fn has_room(&self, count: usize) -> bool {
        match self {
            Coder::Plain { .. } | Coder::Packed(_) => true,
            Coder::Tree(tree) => tree.has_room(count),
        }
    }

    /// Does the key of a state depend on what was encoded before?
    pub fn numbers_states(&self) -> bool {
        matches!(self, Coder::Tree(_))
    }

    /// After another `count` states, both numbers of every root are below this.
    pub fn bound(&self, count: usize) -> u32 {
        match self {
            Coder::Plain { .. } | Coder::Packed(_) => 0,
            Coder::Tree(tree) => tree.bound(count),
        }
    }

    /// Computes the keys of `states`, which are end to end. There must be room for them.
    pub fn encode(&self, states: &[u32], keys: &mut Keys) -> Result<(), Full> {
        debug_assert_eq!(states.len() % self.width(), 0);
        match self {
            Coder::Plain { .. } => keys.rooted = false,
            Coder::Packed(packing) => packing.encode(states, &mut keys.packed),
            Coder::Tree(tree) => {
                keys.rooted = true;
                tree.encode(states, &mut keys.nodes)?;
            }
        }
        keys.bound = self.bound(0);
        Ok(())
    }

    pub fn bytes(&self) -> usize {
        match self {
            Coder::Plain { .. } | Coder::Packed(_) => 0,
            Coder::Tree(tree) => tree.bytes(),
        }
    }

    /// Shared parts of states.
    pub fn parts(&self) -> usize {
        match self {
            Coder::Plain { .. } | Coder::Packed(_) => 0,
            Coder::Tree(tree) => tree.nodes(),
        }
    }
}

impl Keys {
    /// Are these roots of the tree with this number?
    pub(crate) fn are_of(&self, tree: u64) -> bool {
        self.rooted && (self.nodes.tree == tree || self.nodes.roots.is_empty())
    }

    pub(crate) fn roots(&self) -> &[u64] {
        &self.nodes.roots
    }

    /// The keys of `states`, which were encoded last, as words end to end.
    pub(crate) fn words<'a>(&'a mut self, states: &'a [u32]) -> &'a [u32] {
        if !self.rooted {
            return states;
        }
        self.words.clear();
        self.words.extend(self.nodes.roots.iter().flat_map(|root| [*root as u32, (root >> 32) as u32]));
        &self.words
    }
}
