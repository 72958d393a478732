//! However little disk there is: a search that runs out of it within a level, while states wait to be looked for there, leaves a checkpoint
//! of where it stood, and goes on from there as if there had been more.

use crate::resume::{ALL, Counters, Kept, Room, Seen, Setting, numbered, search, small_crew, unlimited};
use plimsoll_model::{Around, Model};
use plimsoll_search::{Ask, Crew, Verdict, Why};
use plimsoll_store::Codec;

/// Counters of which some sums are not allowed.
struct Judged {
    counters: Counters,
    is_wrong: fn(u32) -> bool,
}

impl Around for Judged {
    fn inner(&self) -> &dyn Model {
        &self.counters
    }

    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        (self.is_wrong)(state.iter().sum()).then_some(state[0] % 2)
    }
}

const CODECS: [Codec; 3] = [Codec::Packed, Codec::Tree, Codec::Plain];

fn judged(is_wrong: fn(u32) -> bool) -> Judged {
    Judged { counters: Counters { width: 7, most: 4 }, is_wrong }
}

fn many() -> Judged {
    judged(|sum| sum % 5 == 3)
}

/// Little memory, in which tables leave soon and a few chunks wait.
fn scarce(codec: Codec, workers: usize, packs: bool, ask: Ask) -> Setting {
    let least = match codec {
        Codec::Packed => 90 << 10,
        Codec::Tree => 160 << 10,
        _ => 600 << 10,
    };
    let crew = Crew { wave_successors: 9000, ..small_crew(workers, 200) };
    let memory = [least, 256 << 10, 128 << 10];
    Setting { memory, layered: true, spills: true, packs, ..unlimited(codec, crew, ask) }
}

fn same(seen: &Seen, whole: &Seen, what: &str) {
    assert_eq!(numbered(seen), numbered(whole), "{what}");
    let hits = |seen: &Seen| (seen.outcome.stats.property_hits, seen.outcome.stats.deadlocks);
    assert_eq!(hits(seen), hits(whole), "{what}");
}

/// How many states were found by then, and how many steps of expanded ones were counted.
fn place(kept: &Kept) -> [u64; 2] {
    let saved: serde_json::Value = serde_json::from_str(&kept.saved).unwrap();
    ["states", "transitions"].map(|name| saved["books"]["stats"][name].as_u64().unwrap())
}

/// What became of searches that did not end.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// Nothing could be kept.
    lost: u32,
    kept: u32,
    /// Those of them that ended within a level.
    within: u32,
}

/// Searches in rooms, and goes on from where disk ended, in memory and on disk.
fn ends(model: &dyn Model, scarce: &Setting, rooms: impl IntoIterator<Item = Room>) -> Ends {
    let (whole, _) = search(model, &Setting { layered: false, memory: [1 << 36; 3], ..scarce.clone() }, None).unwrap();
    let mut level_ends = vec![0];
    level_ends.extend(whole.outcome.stats.level_sizes.states.iter().scan(0, |sum, size| {
        *sum += size;
        Some(*sum)
    }));
    let mut ends = Ends::default();
    for (number, room) in rooms.into_iter().enumerate() {
        let what = format!("{room:?}, {:?}, {} workers", scarce.codec, scarce.crew.workers);
        let (part, kept) = search(model, &Setting { room, ..scarce.clone() }, None).unwrap();
        if part.outcome.complete {
            same(&part, &whole, &what);
            continue;
        }
        match &part.outcome.verdict {
            Verdict::Unknown(why) => assert!(matches!(why, Why::Disk(_)), "{what}: {why:?}"),
            verdict => assert_eq!(verdict, &whole.outcome.verdict, "{what}"),
        }
        let [kept] = &kept[..] else {
            assert!(kept.is_empty() || scarce.due.len() > 0, "{what}");
            ends.lost += 1;
            continue;
        };
        // Nothing that counts is lost.
        assert_eq!(place(kept), [part.outcome.stats.states, part.outcome.stats.transitions], "{what}");
        ends.kept += 1;
        let saved: serde_json::Value = serde_json::from_str(&kept.saved).unwrap();
        ends.within += !level_ends.contains(&saved["books"]["expanded"].as_u64().unwrap()) as u32;
        let crew = Crew { wave_successors: 9000, ..small_crew([1, 2, 5][number % 3], 200) };
        let more = match number % 2 {
            0 => Setting { layered: false, memory: [1 << 36; 3], crew, ..scarce.clone() },
            _ => Setting { memory: [scarce.memory[0] * 2, 1 << 36, 1 << 36], crew, ..scarce.clone() },
        };
        same(&search(model, &more, Some(kept)).unwrap().0, &whole, &what);
    }
    ends
}

#[test]
fn a_full_disk_leaves_a_checkpoint_of_where_the_search_stood() {
    for (number, codec) in CODECS.into_iter().cycle().take(6).enumerate() {
        let (mut sum, packs) = (Ends::default(), number >= 3);
        for workers in [1, 3] {
            let scarce = scarce(codec, workers, packs, ALL);
            let budgets = (number..40).step_by(3).map(|count| Room::Budget(count as u64 * 45_000 + 100_000));
            let devices = (number..40).step_by(3).map(|count| Room::Device(count as u64 * 45_000 + 100_000));
            let ends = ends(&many(), &scarce, budgets.chain(devices));
            println!("{codec:?} {workers} {packs} {ends:?}");
        }
    }
}
