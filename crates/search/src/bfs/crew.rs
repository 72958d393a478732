//! How many search, and in how large pieces they work.

/// Blocks have no fewer successors than this, unless states are very wide.
const LEAST_SUCCESSORS: usize = 512;
/// Words of a block that stays in the processor's caches.
const NEAR_WORDS: usize = 32 << 10;

/// Who searches, and in how large pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    pub workers: usize,
    /// Successors aimed at per wave, at most.
    pub wave_successors: usize,
    /// Successors aimed at per block by one worker, and by several, at least and at most: all of a part of a wave are
    /// held at once then.
    pub block_successors: usize,
    pub shared_block_successors: [usize; 2],
    /// Blocks of a part of a wave for each of several workers: the more, the less they wait for whoever has the last.
    pub blocks_each: usize,
    /// Smaller waves are not worth calling others.
    pub shared_successors: usize,
    /// Into how many shards a store of one shard is divided, as a power of two, before others are called for the first
    /// time: until then shards would only cost time, and where levels are narrow nobody is ever called.
    pub shard_bits: u32,
    /// Bytes for what each worker has met lately.
    pub recent_bytes: usize,
}

impl Crew {
    /// Enough successors for long runs of keys in every shard, few enough to stay in the processor's caches.
    pub const BLOCK_SUCCESSORS: usize = 8192;
    /// Enough for many workers.
    pub const WAVE_SUCCESSORS: usize = 1 << 20;
    /// Blocks for each worker where there is memory for them, and where there is little.
    pub const BLOCKS_EACH: [usize; 2] = [8, 4];
    /// Bytes for what each worker has met lately, where there is little memory and where there is enough: half of what many
    /// processors have as second cache.
    pub const RECENT_BYTES: [usize; 2] = [128 << 10, 512 << 10];
    /// Successors of a wave for each worker without which they would wait for each other more than work.
    const SUCCESSORS_EACH: usize = 1024;
    /// Blocks of wide states have fewer of them: so many words of successors are enough.
    const BLOCK_WORDS: usize = 1 << 19;

    /// For states of so many words.
    pub fn for_width(workers: usize, width: usize) -> Crew {
        let width = width.max(1);
        let (usual, most) = (Crew::of(workers).with_blocks_of(NEAR_WORDS / width), (Crew::BLOCK_WORDS / width).max(1));
        Crew {
            block_successors: usual.block_successors.min(most),
            shared_block_successors: usual.shared_block_successors.map(|successors| successors.min(most)),
            ..usual
        }
    }

    pub fn of(workers: usize) -> Crew {
        Crew {
            workers,
            wave_successors: Crew::WAVE_SUCCESSORS,
            block_successors: Crew::BLOCK_SUCCESSORS,
            shared_block_successors: [512, 8192],
            blocks_each: Crew::BLOCKS_EACH[0],
            shared_successors: (workers * Crew::SUCCESSORS_EACH).max(4096),
            shard_bits: shard_bits(workers),
            recent_bytes: Crew::RECENT_BYTES[0],
        }
    }

    /// The same with blocks of at most so many successors, but not of very few.
    pub fn with_blocks_of(self, successors: usize) -> Crew {
        let most = successors.max(LEAST_SUCCESSORS);
        let shared_block_successors = self.shared_block_successors.map(|successors| successors.min(most));
        Crew { block_successors: self.block_successors.min(most), shared_block_successors, ..self }
    }

    /// The same for several workers, with all blocks that are wanted, with fewer, and with ever smaller ones: what is smaller takes less memory.
    pub fn with_ever_smaller_blocks(self) -> impl Iterator<Item = Crew> {
        let halved = move |crew: &Crew| {
            let most = crew.shared_block_successors[1] / 2;
            let shared_block_successors = crew.shared_block_successors.map(|successors| successors.min(most));
            let shard_bits = crew.shard_bits.saturating_sub(1).max(least_shard_bits(crew.workers));
            (most >= LEAST_SUCCESSORS).then_some(Crew { shared_block_successors, shard_bits, ..*crew })
        };
        let [usual, few] = Crew::BLOCKS_EACH.map(|blocks_each| Crew { blocks_each, ..self });
        std::iter::once(usual).chain(std::iter::successors(Some(few), halved))
    }

    /// How many blocks are held at once, at most.
    pub fn blocks(&self) -> usize {
        if self.workers == 1 { 1 } else { self.workers * self.blocks_each }
    }
}

/// With fewer shards workers would wait for each other. With many, small blocks would have a few keys for each.
fn least_shard_bits(workers: usize) -> u32 {
    shard_bits(workers).saturating_sub(2)
}

/// Enough shards for a fair share of each worker, and so many that nobody waits long for whoever has the last.
fn shard_bits(workers: usize) -> u32 {
    if workers == 1 { 0 } else { (workers.next_power_of_two().ilog2() + 3).min(8) }
}
