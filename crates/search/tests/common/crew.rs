//! Workers with so little to do at a time that many take part in small searches, and memory runs out at many different moments.

use plimsoll_search::Crew;

/// Several workers take so many successors at a time; however one worker cuts waves into blocks.
pub fn small_crew(workers: usize, successors: usize) -> Crew {
    Crew {
        wave_successors: 40 * successors,
        block_successors: 3 * successors,
        shared_block_successors: [successors; 2],
        shared_successors: 2,
        shard_bits: if workers == 1 { 0 } else { 2 },
        ..Crew::of(workers)
    }
}
