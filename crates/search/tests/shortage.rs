//! However little disk there is: a search that runs out of it within a level, while states wait to be looked for there, leaves a checkpoint
//! of where it stood, and goes on from there as if there had been more.

use crate::common::crew::small_crew;
use crate::resume::{ALL, Counters, Kept, Room, Seen, Setting, numbered, search, unlimited};
use plimsoll_model::{Around, Model};
use plimsoll_search::{Ask, Crew, Verdict, Why};
use plimsoll_store::{Codec, Unloaded};

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

fn expanded(kept: &Kept) -> u64 {
    let saved: serde_json::Value = serde_json::from_str(&kept.saved).unwrap();
    saved["books"]["expanded"].as_u64().unwrap()
}

/// What became of searches that did not end.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// No checkpoint was kept of where they stood.
    lost: u32,
    kept: u32,
    /// Those of them that stood within a level.
    within: u32,
    complete: u32,
}

impl Ends {
    fn add(&mut self, other: Ends) {
        let Ends { lost, kept, within, complete } = other;
        *self = Ends {
            lost: self.lost + lost,
            kept: self.kept + kept,
            within: self.within + within,
            complete: self.complete + complete,
        };
    }
}

/// Searches in rooms, and goes on from what was kept, in memory and on disk.
fn ends(model: &dyn Model, scarce: &Setting, rooms: impl IntoIterator<Item = Room>) -> Ends {
    let plenty = Setting { layered: false, memory: [1 << 36; 3], ..scarce.clone() };
    let (whole, _) = search(model, &plenty, None).unwrap();
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
            ends.complete += 1;
            same(&part, &whole, &what);
            continue;
        }
        match &part.outcome.verdict {
            Verdict::Unknown(why) => assert!(matches!(why, Why::Disk(_) | Why::Memory), "{what}: {why:?}"),
            verdict => assert_eq!(verdict, &whole.outcome.verdict, "{what}"),
        }
        let stood = [part.outcome.stats.states, part.outcome.stats.transitions];
        let Some(kept) = kept.last() else {
            ends.lost += 1;
            continue;
        };
        let is_last = place(kept) == stood;
        *(if is_last { &mut ends.kept } else { &mut ends.lost }) += 1;
        ends.within += (is_last && !level_ends.contains(&expanded(kept))) as u32;
        let crew = Crew { wave_successors: 9000, ..small_crew([1, 2, 5][number % 3], 200) };
        let more = match number % 2 {
            0 => Setting { crew, ..plenty.clone() },
            _ => Setting { memory: [scarce.memory[0] * 2, 1 << 36, 1 << 36], crew, ..scarce.clone() },
        };
        same(&search(model, &more, Some(kept)).unwrap().0, &whole, &what);
    }
    ends
}

/// As many rooms of either kind, from the smallest on, in steps.
fn rooms(least: u64, step: u64, count: u64) -> impl Iterator<Item = Room> {
    (0..count).flat_map(move |number| {
        let bytes = least + number * step;
        [Room::Budget(bytes), Room::Device(bytes)]
    })
}

/// Steps in which a search needs more room or less.
fn step(codec: Codec) -> u64 {
    match codec {
        Codec::Packed => 13_000,
        Codec::Tree => 27_000,
        _ => 70_000,
    }
}

#[test]
fn a_full_disk_leaves_a_checkpoint_of_where_the_search_stood() {
    for (number, codec) in CODECS.into_iter().cycle().take(6).enumerate() {
        let (mut all, packs) = (Ends::default(), number >= 3);
        for workers in [1, 3] {
            all.add(ends(&many(), &scarce(codec, workers, packs, ALL), rooms(300_000, step(codec), 12)));
        }
        assert!(all.lost * 20 < all.kept && all.within > 9, "{codec:?}: {all:?}");
    }
}

/// With hardly any room for survivors it may come to nothing, but never to anything wrong.
#[test]
fn a_disk_with_room_for_nothing_leaves_a_checkpoint_or_none() {
    let mut all = Ends::default();
    for (number, codec) in CODECS.into_iter().cycle().take(6).enumerate() {
        all.add(ends(&many(), &scarce(codec, [1, 3][number % 2], false, ALL), rooms(40_000, 22_000, 12)));
    }
    assert!(all.lost < all.kept / 5, "{all:?}");
}

/// A violation that is found among what waits ends the search there, with the same trace.
#[test]
fn a_violation_is_the_same_where_the_disk_was_full() {
    let ask = Ask { deadlocks: false, ..Ask::EVERYTHING };
    let mut all = Ends::default();
    for (number, codec) in CODECS.into_iter().cycle().take(6).enumerate() {
        let model = judged(if number < 3 { |sum| sum == 16 } else { |sum| sum > 18 });
        all.add(ends(&model, &scarce(codec, [1, 3][number % 2], false, ask), rooms(100_000, step(codec), 12)));
    }
    assert!(all.kept > 20 && all.within > 10, "{all:?}");
}

/// Whatever cannot be written any more, not even where something was. Runs that were to be merged are lost then.
#[test]
fn a_disk_that_takes_nothing_any_more_leaves_a_checkpoint_or_none() {
    for file in 0..4 {
        let mut all = Ends::default();
        for (number, codec) in CODECS.into_iter().enumerate() {
            let writes = |count: usize| {
                let mut writes = [usize::MAX; 4];
                writes[file] = count;
                Room::Writes(writes)
            };
            let rooms = (0..14).map(|count| writes(if file == 0 { count * 6 } else { count }));
            all.add(ends(&many(), &scarce(codec, [3, 1][number % 2], false, ALL), rooms));
        }
        // Candidates and log need no more than they have.
        assert!(all.lost == 0 || file % 2 == 0, "{file}: {all:?}");
        assert!(all.kept > 10 || file > 1, "{file}: {all:?}");
    }
}

/// Memory for the frontier that cannot leave for the disk, and for runs.
#[test]
fn memory_that_is_full_leaves_a_checkpoint_too() {
    let mut all = Ends::default();
    for (number, codec) in CODECS.into_iter().cycle().take(12).enumerate() {
        let scarce = scarce(codec, [1, 3][number / 3 % 2], false, ALL);
        for bytes in (1..8).map(|count| scarce.memory[0] * count / 8 + 20_000) {
            let [_, queue, log] = scarce.memory;
            let memory = [bytes, if number < 6 { queue } else { 1 << 20 }, log];
            all.add(ends(&many(), &Setting { memory, spills: number < 6, ..scarce.clone() }, [Room::Budget(1 << 40)]));
        }
    }
    assert!(all.lost < all.kept / 5 && all.within > 5, "{all:?}");
}

/// A little more disk each time, until it is enough.
#[test]
fn a_search_goes_on_as_often_as_the_disk_was_full() {
    for (number, codec) in CODECS.into_iter().enumerate() {
        let scarce = scarce(codec, [3, 1][number % 2], number == 1, ALL);
        let model = many();
        let plenty = Setting { layered: false, memory: [1 << 36; 3], ..scarce.clone() };
        let (whole, _) = search(&model, &plenty, None).unwrap();
        let (mut from, mut times) = (None::<Kept>, 0);
        for bytes in (300_000..).step_by(step(codec) as usize) {
            let room = [Room::Budget(bytes), Room::Device(bytes)][times % 2];
            let (seen, kept) = match search(&model, &Setting { room, ..scarce.clone() }, from.as_ref()) {
                Ok(searched) => searched,
                Err(error) => {
                    assert!(matches!(error, Unloaded::Disk(_)), "{error:?}");
                    continue;
                }
            };
            if seen.outcome.complete {
                same(&seen, &whole, &format!("{codec:?} after {times} times"));
                break;
            }
            times += 1;
            from = kept.last().cloned().or(from);
        }
        assert!(times > 0, "{codec:?}: {times}");
    }
}
