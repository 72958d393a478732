//! The parts of the store that are measured. Each prepares what it needs, then replays the stream inside [`measured`] and
//! nowhere else.

use crate::stream::Stream;
use plimsoll_store::batch::Batch;
use plimsoll_store::packing::Packing;
use plimsoll_store::{
    Answer, Buffers, Chain, Codec, Coder, Entry, Gathered, Grant, Keys, Needs, Note, Queue, Row, StepLog, Tiers,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Shards, as a power of two, where keys are sorted: as many as several workers have. One worker has one.
const SHARD_BITS: u32 = 6;
/// States that a cache holds, in per cent of those that there are.
const CACHE_PERCENT: u64 = 20;
/// States that are pinned at a time in the cache of a depth-first search.
const PATH: usize = 100;
/// States that are taken from the queue at a time.
const BLOCK: usize = 256;

/// What was measured.
pub struct Measure {
    pub time: Duration,
    /// How many states were handled.
    pub states: u64,
    /// What is held afterwards, and for how many states.
    pub held: Option<(u64, u64)>,
}

pub struct Part {
    pub name: &'static str,
    pub what: &'static str,
    /// Nothing if states are too wide for it.
    pub run: fn(&Stream) -> Option<Measure>,
}

pub const PARTS: [Part; 13] = [
    Part { name: "encode-packed", what: "states to packed keys", run: |stream| encode(stream, Codec::Packed) },
    Part {
        name: "encode-tree",
        what: "states to roots, tables of nodes growing",
        run: |stream| encode(stream, Codec::Tree),
    },
    Part { name: "sort", what: "keys by shard", run: sort },
    Part {
        name: "enter-packed",
        what: "sorted keys into tables that grow",
        run: |stream| enter(stream, Codec::Packed, 0),
    },
    Part { name: "known-packed", what: "the same keys again", run: |stream| enter(stream, Codec::Packed, 1) },
    Part {
        name: "enter-tree",
        what: "sorted roots into tables that grow",
        run: |stream| enter(stream, Codec::Tree, 0),
    },
    Part { name: "plain", what: "everything, states as they are", run: |stream| whole(stream, Codec::Plain, None) },
    Part { name: "packed", what: "everything, packed", run: |stream| whole(stream, Codec::Packed, None) },
    Part { name: "tree", what: "everything, by tree", run: |stream| whole(stream, Codec::Tree, None) },
    Part {
        name: "cache",
        what: "cache:SC breadth first, a fifth of the states",
        run: |stream| cache(stream, "cache:SC"),
    },
    Part { name: "cache-pins", what: "cache:LRU depth first, a fifth of the states", run: pinning },
    Part { name: "queue", what: "new states in and out", run: queue },
    Part { name: "log", what: "how new states were found", run: log },
];

/// Instructions are counted in here and nowhere else.
#[inline(never)]
pub fn measured(work: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn possible(stream: &Stream, codec: Codec) -> Option<Codec> {
    (codec != Codec::Packed || Packing::new(&stream.used).is_some()).then_some(codec)
}

fn coder(stream: &Stream, codec: Codec) -> Option<Coder> {
    Coder::new(possible(stream, codec)?, &stream.used, &Grant::unlimited()).ok()
}

fn encode(stream: &Stream, codec: Codec) -> Option<Measure> {
    let (mut coder, mut keys) = (coder(stream, codec)?, Keys::default());
    let time = measured(&mut || {
        for block in &stream.blocks {
            coder.reserve(block.block().len()).expect("there is memory");
            keys.clear();
            coder.encode(&block.states, &mut keys).expect("there is room");
        }
    });
    let (states, fresh) = stream.counts();
    Some(Measure { time, states, held: (coder.bytes() > 0).then_some((coder.bytes() as u64, fresh)) })
}

fn sort(stream: &Stream) -> Option<Measure> {
    let codec = possible(stream, Codec::Packed).unwrap_or(Codec::Plain);
    let coder = coder(stream, codec)?;
    let mut all = Vec::new();
    for block in &stream.blocks {
        let mut keys = Keys::default();
        coder.encode(&block.states, &mut keys).expect("nothing grows");
        keys.keep(&[], None);
        all.push((keys, block.block().len()));
    }
    let mut batch = Batch::default();
    let time = measured(&mut || all.iter_mut().for_each(|(keys, len)| batch.sort(keys, *len, SHARD_BITS)));
    Some(Measure { time, states: stream.counts().0, held: None })
}

/// Enters all keys once more after so many times.
fn enter(stream: &Stream, codec: Codec, before: usize) -> Option<Measure> {
    let mut coder = coder(stream, codec)?;
    let tiers = Tiers::exact(&coder, SHARD_BITS, &Grant::unlimited()).ok()?;
    let needs = Needs { sorted: true, ..tiers.needs() };
    let (mut time, mut gathered) = (Duration::ZERO, Gathered::default());
    for round in 0..=before {
        let (mut entries, mut keys) = (Vec::new(), Keys::default());
        for block in &stream.blocks {
            let mut entry = Entry::default();
            coder.reserve(block.block().len()).ok()?;
            entry.encode(&coder, block.block(), needs, &mut keys).ok()?;
            entries.push(entry);
        }
        tiers.look_at(&coder);
        let mut work = || {
            let (entry_of, block_of) = (|block: usize| &entries[block], |block: usize| stream.blocks[block].block());
            for shard in 0..tiers.shards() {
                let entered = tiers.enter(shard, entries.len(), entry_of, block_of, &mut gathered, |_| {});
                entered.expect("there is memory");
            }
        };
        if round < before { work() } else { time = measured(&mut work) }
    }
    let (states, bytes) = tiers.held();
    Some(Measure { time, states: stream.counts().0, held: Some((bytes as u64, states as u64)) })
}

fn capacity(stream: &Stream) -> usize {
    (stream.counts().1 * CACHE_PERCENT / 100).max(PATH as u64 * 2) as usize
}

fn whole(stream: &Stream, codec: Codec, row: Option<&Row>) -> Option<Measure> {
    let (codec, grant) = (possible(stream, codec)?, Grant::unlimited());
    let chain = match row {
        None => Chain::new(codec, &stream.used, 0, &grant),
        Some(row) => Chain::with_row(codec, &stream.used, row, false, capacity(stream), &grant),
    };
    let (mut chain, mut buffers, mut fresh) = (chain.ok()?, Buffers::default(), Vec::new());
    let time = measured(&mut || {
        for block in &stream.blocks {
            chain.insert(block.block(), &mut buffers, &mut fresh).expect("there is memory");
        }
    });
    let usage = chain.usage();
    Some(Measure { time, states: stream.counts().0, held: Some((usage.bytes, usage.states)) })
}

fn cache(stream: &Stream, row: &str) -> Option<Measure> {
    let codec = possible(stream, Codec::Packed).unwrap_or(Codec::Plain);
    whole(stream, codec, Some(&row.parse().expect("a row")))
}

fn pinning(stream: &Stream) -> Option<Measure> {
    let codec = possible(stream, Codec::Packed).unwrap_or(Codec::Plain);
    let (row, grant): (Row, _) = ("cache:LRU".parse().expect("a row"), Grant::unlimited());
    let mut chain = Chain::with_row(codec, &stream.used, &row, true, capacity(stream), &grant).ok()?;
    let (mut buffers, mut fresh, mut path) = (Buffers::default(), Vec::new(), VecDeque::new());
    let time = measured(&mut || {
        for block in &stream.blocks {
            let note = Note { depth: block.depth, kind: 0 };
            for state in block.states.chunks_exact(stream.used.len()) {
                if let Answer::New(place) = chain.enter(state, note, &mut buffers, &mut fresh) {
                    path.push_back(place);
                }
                if path.len() > PATH {
                    path.pop_front().into_iter().for_each(|place| chain.unpin(place));
                }
            }
        }
    });
    let usage = chain.usage();
    Some(Measure { time, states: stream.counts().0, held: Some((usage.bytes, usage.states)) })
}

fn queue(stream: &Stream) -> Option<Measure> {
    let (width, grant) = (stream.used.len(), Grant::unlimited());
    let (mut queue, mut out) = (Queue::new(width, grant.clone(), None), Vec::new());
    let mut held = 0;
    let time = measured(&mut || {
        for block in &stream.blocks {
            let first = queue.extend(block.fresh.len()).expect("there is memory");
            for (at, &position) in block.fresh.iter().enumerate() {
                queue.write(first + at, &block.states[position as usize * width..][..width]);
            }
        }
        held = grant.used_bytes();
        while !queue.is_empty() {
            let count = queue.ready(BLOCK).expect("all is in memory");
            queue.read(0, count, &mut out);
            queue.advance(count);
        }
    });
    let fresh = stream.counts().1;
    Some(Measure { time, states: fresh, held: Some((held, fresh)) })
}

fn log(stream: &Stream) -> Option<Measure> {
    let grant = Grant::unlimited();
    let mut log = StepLog::new(grant.clone(), None);
    let time = measured(&mut || {
        let mut parent = 0;
        for block in &stream.blocks {
            let mut index = 0;
            for &position in &block.fresh {
                while block.firsts[index + 1] <= position {
                    index += 1;
                }
                log.push(parent + index as u64, position - block.firsts[index]).expect("there is memory");
            }
            parent += (block.firsts.len() - 1) as u64;
        }
    });
    Some(Measure { time, states: log.len(), held: Some((grant.used_bytes(), log.len())) })
}
