//! Streams of states as a breadth-first search offers them to its store: blocks of successors, known ones and new ones
//! mixed as they come. They are recorded from a model, and can be kept in a file of 32-bit words.

use plimsoll_ir::passes::optimise;
use plimsoll_lang::{LoadedModel, Options, load};
use plimsoll_model::{Jit, Model, Successors};
use plimsoll_store::{Block, Buffers, Chain, Codec, Grant};
use std::collections::VecDeque;
use std::path::Path;

/// Successors of a block, about; a search takes as many.
const BLOCK_SUCCESSORS: usize = 1024;
/// The first word of a file.
const MARK: u32 = u32::from_le_bytes(*b"keys");

/// Some states with all their successors.
pub struct Recorded {
    pub parents: Vec<u32>,
    pub firsts: Vec<u32>,
    pub states: Vec<u32>,
    pub depth: u32,
    /// Positions of the successors that were new.
    pub fresh: Vec<u32>,
}

impl Recorded {
    pub fn block(&self) -> Block<'_> {
        Block {
            parents: &self.parents,
            firsts: &self.firsts,
            // Not recorded: steps that change nothing are looked up like others.
            owners: &[],
            states: &self.states,
            skip: &[],
            kinds: &[],
            depth: self.depth,
        }
    }
}

pub struct Stream {
    /// The bits of each word that states use.
    pub used: Vec<u32>,
    pub blocks: Vec<Recorded>,
}

impl Stream {
    /// States that were offered, and how many of them were new.
    pub fn counts(&self) -> (u64, u64) {
        let count = |block: &Recorded| (block.block().len() as u64, block.fresh.len() as u64);
        self.blocks.iter().map(count).fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    }

    /// Searches a model until so many successors were seen.
    pub fn record(path: &Path, successors: usize) -> Result<Stream, String> {
        let options = Options { ignore_property: true, ..Options::default() };
        let loaded = load(path, &options).map_err(|_| format!("{}: not a model that can be loaded", path.display()))?;
        let LoadedModel::System { system, .. } = loaded.model else {
            return Err(format!("{}: a graph, not a model", path.display()));
        };
        let model = Jit::new(optimise(system)).map_err(|error| error.to_string())?;
        let used = model.used_bits();
        let mut store = Chain::new(Codec::Tree, &used, 0, &Grant::unlimited()).map_err(|_| "no memory")?;
        let (mut buffers, mut queue, mut out) = (Buffers::default(), VecDeque::new(), Successors::new(model.width()));
        let mut blocks = Vec::new();
        let mut seen = 0;
        model.initial(&mut out);
        let mut block =
            Recorded { parents: Vec::new(), firsts: vec![0], states: Vec::new(), depth: 0, fresh: Vec::new() };
        let mut begin = true;
        while begin || !queue.is_empty() && seen < successors {
            block.depth = queue.front().map_or(0, |(depth, _): &(u32, Vec<u32>)| depth + 1);
            while !begin && block.firsts[block.firsts.len() - 1] < BLOCK_SUCCESSORS as u32 {
                let Some((_, state)) = queue.pop_front_if(|(depth, _)| *depth + 1 == block.depth) else { break };
                out.clear();
                model.successors(&state, &mut out);
                block.parents.extend_from_slice(&state);
                block.add(&out);
            }
            if std::mem::take(&mut begin) {
                block.add(&out);
            }
            let mut fresh = Vec::new();
            store.insert(block.block(), &mut buffers, &mut fresh).map_err(|_| "no memory")?;
            let width = used.len();
            let state = |&at: &u32| (block.depth, block.states[at as usize * width..][..width].to_vec());
            queue.extend(fresh.iter().map(state));
            seen += block.block().len();
            block.fresh = fresh;
            let next =
                Recorded { parents: Vec::new(), firsts: vec![0], states: Vec::new(), depth: 0, fresh: Vec::new() };
            blocks.push(std::mem::replace(&mut block, next));
        }
        Ok(Stream { used, blocks })
    }

    pub fn write(&self, path: &Path) -> Result<(), String> {
        let mut words = vec![MARK, self.used.len() as u32, self.blocks.len() as u32];
        words.extend(&self.used);
        for block in &self.blocks {
            for part in [&block.parents, &block.firsts, &block.states, &vec![block.depth], &block.fresh] {
                words.push(part.len() as u32);
                words.extend(part);
            }
        }
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub fn read(path: &Path) -> Result<Stream, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let wrong = || format!("{}: not a stream of states", path.display());
        let mut words = Words { left: &bytes };
        let head = words.take(3).filter(|head| head[0] == MARK).ok_or_else(wrong)?;
        let used = words.take(head[1] as usize).ok_or_else(wrong)?;
        let block = |words: &mut Words| {
            let mut part = || {
                let len = words.take(1)?[0] as usize;
                words.take(len)
            };
            let (parents, firsts, states, depth, fresh) = (part()?, part()?, part()?, part()?, part()?);
            Some(Recorded { parents, firsts, states, depth: *depth.first()?, fresh })
        };
        let blocks = (0..head[2]).map(|_| block(&mut words)).collect::<Option<_>>().ok_or_else(wrong)?;
        Ok(Stream { used, blocks })
    }
}

impl Recorded {
    /// Takes the successors of the next state; what goes wrong leads nowhere.
    fn add(&mut self, successors: &Successors) {
        for (state, step) in successors.iter() {
            if !step.is_fault() {
                self.states.extend_from_slice(state);
            }
        }
        let count = successors.iter().filter(|(_, step)| !step.is_fault()).count();
        self.firsts.push(self.firsts[self.firsts.len() - 1] + count as u32);
    }
}

struct Words<'a> {
    left: &'a [u8],
}

impl Words<'_> {
    fn take(&mut self, count: usize) -> Option<Vec<u32>> {
        let (taken, left) = self.left.split_at_checked(count.checked_mul(4)?)?;
        self.left = left;
        Some(taken.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect())
    }
}
