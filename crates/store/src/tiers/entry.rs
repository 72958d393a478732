//! A block of states on its way into the store: what is known about it, and its keys.

use crate::batch::Batch;
use crate::budget::Full;
use crate::codec::{Coder, Keys};
use crate::packed::Run;
use crate::recent::Recent;

/// So few keys are not worth sorting.
const FEW: usize = 64;

/// The successors of a block of states.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The states that were expanded, end to end; none for initial states.
    pub parents: &'a [u32],
    /// For each of them its first successor; one more at the end.
    pub firsts: &'a [u32],
    /// For each successor which of those states it belongs to; none for initial states, or where nobody noted it.
    pub owners: &'a [u32],
    /// All successors, end to end.
    pub states: &'a [u32],
    /// Positions in `states`, in order, that hold no successor.
    pub skip: &'a [u32],
    /// What kind of step led to each successor; empty unless the store wants to know.
    pub kinds: &'a [u8],
    /// Steps from an initial state to the successors.
    pub depth: u32,
}

impl<'a> Block<'a> {
    /// States without parents and notes; `firsts` is zero and their number.
    pub fn of(states: &'a [u32], firsts: &'a [u32; 2]) -> Block<'a> {
        Block { parents: &[], firsts, owners: &[], states, skip: &[], kinds: &[], depth: 0 }
    }

    /// How many successors there are.
    pub fn len(&self) -> usize {
        self.firsts.last().map_or(0, |&end| end as usize)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn state(&self, position: usize) -> &'a [u32] {
        let width = self.states.len() / self.len();
        &self.states[position * width..][..width]
    }

    /// The state that a successor was reached from, of `parents` that lie like those of the block; none of initial states.
    #[inline(always)]
    pub(crate) fn parent_of<'p, P>(&self, position: usize, parents: &'p [P]) -> Option<&'p P> {
        parents.get(*self.owners.get(position)? as usize)
    }

    pub(super) fn parent(&self, index: usize) -> &'a [u32] {
        let width = self.parents.len() / (self.firsts.len() - 1);
        &self.parents[index * width..][..width]
    }
}

/// What a store wants to know of the blocks that it is given, and into how many shards they are sorted.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// What kind of step led to each successor.
    pub kinds: bool,
    /// The keys of the states that were expanded.
    pub parents: bool,
    /// In which old snapshots successors are: see [`super::Tiers::recognise`].
    pub lanes: bool,
    /// Nothing but whether they are fresh: states that were met lately need not be entered again.
    pub fresh_only: bool,
    /// But for those that were met when this was another number: they may be gone.
    pub forgot: u64,
    /// Keys sorted by shard, however few: shards will be entered one by one.
    pub sorted: bool,
    pub shard_bits: u32,
}

/// The keys of a block, ready to be entered; afterwards it tells what was fresh.
#[derive(Debug, Default)]
pub struct Entry {
    pub(super) states: Batch,
    pub(super) parents: Batch,
}

impl Entry {
    /// Computes the keys of a block, for which `coder` must have room.
    pub fn encode(&mut self, coder: &Coder, block: Block, needs: Needs, keys: &mut Keys) -> Result<(), Full> {
        self.encode_with(|states, keys| coder.encode(states, keys), block, needs, keys, None)
    }

    /// The same, given how keys are computed and put behind others. States that were met `lately` are left out. Keys are sorted by
    /// shard, unless they are few and all shards are entered at once.
    pub(crate) fn encode_with(
        &mut self,
        encode: impl Fn(&[u32], &mut Keys) -> Result<(), Full>,
        block: Block,
        needs: Needs,
        keys: &mut Keys,
        lately: Option<&mut Recent>,
    ) -> Result<(), Full> {
        if needs.parents {
            keys.clear();
            encode(block.parents, keys)?;
            keys.keep(&[], None);
            self.parents.sort(keys, block.firsts.len() - 1, needs.shard_bits);
        }
        keys.clear();
        match lately {
            Some(recent) if recent.compares_states() => {
                // Where states are forgotten, the one that a step is taken in may be.
                let parents = if needs.forgot == 0 { block.parents } else { &[] };
                encode(recent.unmet(Block { parents, ..block }, &mut keys.positions), keys)?;
            }
            lately => {
                encode(block.states, keys)?;
                keys.keep(block.skip, lately);
            }
        }
        if needs.shard_bits == 0 || needs.parents || needs.sorted || keys.high.len() > FEW {
            self.states.sort(keys, block.len(), needs.shard_bits);
        } else {
            self.states.take(keys, block.len());
        }
        self.states.make_lanes(needs.lanes);
        Ok(())
    }

    /// The keys, and the positions of their states.
    pub(crate) fn keys(&self) -> (Run<'_>, &[u32]) {
        let all = 0..self.states.len();
        (self.states.run(all.clone()), self.states.positions(all))
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// How many of the states are fresh.
    pub fn fresh_count(&self) -> u32 {
        self.states.fresh_count()
    }

    /// The positions of the fresh states, in order; once for each time that keys are computed.
    pub fn fresh(&mut self, positions: &mut Vec<u32>) {
        self.states.fresh(positions);
    }

    /// Puts into `parents` which of the expanded states have only successors that are in one old snapshot, or that were
    /// recognised themselves. Of those that were met lately and not entered `lanes_of` tells it; see [`super::Tiers::lanes`].
    pub fn recognised(&mut self, block: Block, parents: &mut Vec<u32>, lanes_of: impl FnMut(&[u32]) -> u64) {
        parents.clear();
        self.states.recognised(block, parents, lanes_of);
    }

    /// Puts both halves of the keys of the fresh states, in the same order, into `keys`; after [`Entry::fresh`].
    pub fn fresh_keys(&self, keys: &mut Vec<[u64; 2]>) {
        keys.clear();
        keys.resize(self.fresh_count() as usize, [0; 2]);
        self.states.fresh_keys(|index, high, low| keys[index] = [high, low]);
    }
}
