//! Wherever a search is cut, and with whatever memory and workers it goes on: the same states with the same numbers, the
//! same counts, verdict and trace as if it had never been cut. What was damaged is refused.

use crate::common::crew::small_crew;
use plimsoll_ir::random::{Draw, Size, random_system};
use plimsoll_model::{Around, GaveUp, Interp, Model, Step, Successors};
use plimsoll_search::{Ask, Company, Control, Crew, Keeper, Limits, Outcome, PathRoom, Saved, Verdict, Why, bfs_with};
use plimsoll_store::blocks::{Reader, Writer};
use plimsoll_store::disk::{Disk, SLOT, faulty::Faulty};
use plimsoll_store::packing::Packing;
use plimsoll_store::runs::{BLOCK_BYTES, Candidates, Keep, Layers};
use plimsoll_store::{Budget, Chain, Codec, Coder, Grant, Queue, Spill, StepLog, Unloaded};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A checkpoint in memory.
#[derive(Clone)]
pub struct Kept {
    pub saved: String,
    bytes: Vec<u8>,
}

/// Keeps a checkpoint at every wave whose number it is told, or as soon as it can be, and tells the search to stop after the last of them.
struct Notebook<'a> {
    waves: AtomicUsize,
    due: Vec<usize>,
    stop: &'a AtomicBool,
    may_fail: bool,
    /// All of them, in order.
    kept: Vec<Kept>,
}

impl Keeper for Notebook<'_> {
    fn is_due(&self) -> bool {
        let wave = self.waves.fetch_add(1, Ordering::Relaxed);
        self.due.iter().filter(|&&due| due <= wave).count() > self.kept.len()
    }

    fn keep(&mut self, saved: &Saved, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {
        let mut bytes = Vec::new();
        // Where disks are sound nothing fails.
        if let Err(error) = write(&mut bytes) {
            assert!(self.may_fail, "{error}");
            return;
        }
        self.kept.push(Kept { saved: serde_json::to_string(saved).unwrap(), bytes });
        if !self.due.is_empty() && self.kept.len() >= self.due.len() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn give_time(&mut self) {
        self.stop.store(false, Ordering::Relaxed);
    }
}

/// A model that tells the search to stop when some states were expanded, in the middle of whatever, and says nothing right from then on.
struct Stopper<'a> {
    model: &'a dyn Model,
    left: AtomicUsize,
    /// The same in the middle of judging them.
    left_to_judge: AtomicUsize,
    stop: &'a AtomicBool,
}

impl Around for Stopper<'_> {
    fn inner(&self) -> &dyn Model {
        self.model
    }

    fn successors_of(&self, state: &[u32], out: &mut Successors) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.model.successors(state, out);
        if self.stop.load(Ordering::Relaxed) {
            out.give_up(GaveUp::Stopped);
        }
    }

    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        if self.left_to_judge.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.model.violated(state).filter(|_| !self.stop.load(Ordering::Relaxed))
    }
}

/// What a search is given.
#[derive(Clone)]
pub struct Setting {
    pub codec: Codec,
    pub crew: Crew,
    pub ask: Ask,
    /// For store, queue and log; candidates have as much as the queue.
    pub memory: [u64; 3],
    pub spills: bool,
    /// Where keys go when memory is full.
    pub layered: bool,
    /// May states be packed when a tree is given up?
    pub packs: bool,
    pub room: Room,
    /// When to keep a checkpoint, by waves; after the last the search ends.
    pub due: Vec<usize>,
    /// After how many states that were expanded, or judged, somebody stops it.
    pub stopped_after: usize,
    pub judged: usize,
}

/// How much can be written, of runs, candidates, queue and log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Room {
    Plenty,
    /// The budget for all of them.
    Budget(u64),
    /// Bytes of the device on which they are, whatever the budget says.
    Device(u64),
    /// So many slots of each, and then no more, not even where something was.
    Writes([usize; 4]),
}

impl Room {
    fn spills(self) -> [Spill; 4] {
        let (budget, device) = match self {
            Room::Budget(bytes) => (bytes, u64::MAX),
            Room::Device(bytes) => (1 << 40, bytes),
            Room::Plenty | Room::Writes(_) => (1 << 40, u64::MAX),
        };
        let (budget, device) = (Budget::new(budget), Arc::new(AtomicU64::new(device)));
        std::array::from_fn(|file| {
            let disk: Box<dyn Disk> = match self {
                Room::Writes(writes) => Box::new(Faulty::after(writes[file], usize::MAX)),
                _ => Box::new(OnDevice { left: device.clone(), slots: Mutex::default() }),
            };
            Spill::over(vec![disk], [BLOCK_BYTES, SLOT, SLOT, SLOT][file], budget.grant("part", u64::MAX))
        })
    }
}

/// A file on a device that others fill too. What was discarded can be written again, by any of them.
struct OnDevice {
    left: Arc<AtomicU64>,
    slots: Mutex<BTreeMap<u64, Vec<u8>>>,
}

impl Disk for OnDevice {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut slots = self.slots.lock().unwrap();
        let more = bytes.len().saturating_sub(slots.get(&offset).map_or(0, Vec::len)) as u64;
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(more));
        taken.map_err(|_| io::Error::new(io::ErrorKind::StorageFull, "no space left on device"))?;
        slots.insert(offset, bytes.to_vec());
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let slots = self.slots.lock().unwrap();
        let slot = slots.get(&offset).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(&slot[..bytes.len()]);
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut slots = self.slots.lock().unwrap();
        let gone: Vec<u64> = slots.range(offset..offset + bytes).map(|(&offset, _)| offset).collect();
        let freed: usize = gone.iter().filter_map(|offset| slots.remove(offset)).map(|slot| slot.len()).sum();
        self.left.fetch_add(freed as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

const PLENTY: [u64; 3] = [1 << 36; 3];

/// Everything that must be the same.
#[derive(Debug, PartialEq)]
pub struct Seen {
    pub outcome: Outcome,
    paths: Vec<Vec<u32>>,
}

fn codec_for(codec: Codec, model: &dyn Model) -> Codec {
    if codec == Codec::Packed && Packing::new(&model.used_bits()).is_none() { Codec::Tree } else { codec }
}

fn layers(model: &dyn Model, grant: &Grant) -> Layers {
    let [runs, candidates, ..] = Room::Plenty.spills();
    Layers::new(Keep::All, Candidates::new(model.width(), &Grant::unlimited(), candidates), runs, grant)
}

/// Searches from the beginning or from a checkpoint; returns what was seen, and the checkpoints.
pub fn search(model: &dyn Model, setting: &Setting, from: Option<&Kept>) -> Result<(Seen, Vec<Kept>), Unloaded> {
    let grant = |part: usize| Budget::new(1 << 36).grant("part", setting.memory[part]);
    let [runs, candidates, queue, log] = setting.room.spills();
    let store_grant = grant(0);
    let mut store = Chain::new(codec_for(setting.codec, model), &model.used_bits(), 0, &store_grant).unwrap();
    if setting.packs {
        store = store.with_packing(&model.used_bits());
        store = if matches!(store.coder, Coder::Packed(_)) { store.narrowing(50) } else { store };
    }
    if setting.layered {
        let candidates = Candidates::new(model.width(), &grant(1), candidates);
        store = store.above(Layers::new(Keep::All, candidates, runs, &store_grant));
    }
    let mut queue = Queue::new(model.width(), grant(1), Some(queue).filter(|_| setting.spills));
    let mut log = StepLog::new(grant(2), Some(log).filter(|_| setting.spills));
    let from = match from {
        Some(kept) => {
            let saved: Saved = serde_json::from_str(&kept.saved).unwrap();
            saved.load(&mut &kept.bytes[..], &mut store, &mut queue, &mut log, setting.crew)?;
            Some(saved)
        }
        None => None,
    };
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let [left, left_to_judge] = [setting.stopped_after, setting.judged].map(AtomicUsize::new);
    let stopper = Stopper { model, left, left_to_judge, stop: &stop };
    let (waves, may_fail) = (AtomicUsize::new(0), setting.room != Room::Plenty);
    let mut notebook = Notebook { waves, due: setting.due.clone(), stop: &stop, may_fail, kept: Vec::new() };
    let room = PathRoom::new(Grant::unlimited());
    let mut control = Control { ask: setting.ask, limits: Limits::default(), stop: &stop, room, watch: &mut watch };
    let keeping = Company { from, keeper: Some(&mut notebook), observer: None };
    let outcome = bfs_with(&stopper, &mut store, &mut queue, &mut log, setting.crew, &mut control, keeping);
    let starts = log.len().min(1);
    let some = (0..log.len()).step_by(7 + log.len() as usize / 50);
    let paths = some.map(|number| log.path(number, starts).unwrap()).collect();
    Ok((Seen { outcome, paths }, notebook.kept))
}

pub fn unlimited(codec: Codec, crew: Crew, ask: Ask) -> Setting {
    Setting {
        codec,
        crew,
        ask,
        memory: PLENTY,
        spills: false,
        layered: false,
        packs: false,
        room: Room::Plenty,
        due: Vec::new(),
        stopped_after: usize::MAX,
        judged: usize::MAX,
    }
}

pub const ALL: Ask = Ask { keep_going: true, ..Ask::EVERYTHING };

/// Random systems with more than a few states and one initial state.
fn systems(count: usize) -> impl Iterator<Item = (u64, Interp)> {
    let size = Size { states: 3_000, ..Size::MEDIUM };
    let all = (0..).map(move |seed| (seed, Interp::new(random_system(seed, size))));
    let large = |model: &Interp| {
        let mut starts = Successors::new(model.width());
        model.initial(&mut starts);
        let setting = unlimited(Codec::Plain, Crew::of(1), ALL);
        starts.len() == 1 && search(model, &setting, None).unwrap().0.outcome.stats.states > 60
    };
    all.filter(move |(_, model)| large(model)).take(count)
}

const CODECS: [Codec; 3] = [Codec::Tree, Codec::Plain, Codec::Packed];

/// Goes on from every checkpoint, with 1, 2 and 5 workers, and compares with the search that was never cut.
fn goes_on(model: &dyn Model, whole: &Seen, kept: &[Kept], codec: Codec, ask: Ask, seed: u64) {
    for (number, kept) in kept.iter().enumerate() {
        let workers = [1, 2, 5][(seed as usize + number) % 3];
        let mut setting = unlimited(codec, small_crew(workers, [4, 1, 30][number % 3]), ask);
        setting.crew.wave_successors = small_crew(1, 4).wave_successors;
        setting.spills = number % 2 == 1;
        let (seen, _) = search(model, &setting, Some(kept)).unwrap();
        assert_eq!(seen, *whole, "seed {seed}, checkpoint {number}, {workers} workers, {codec:?}");
    }
}

#[test]
fn a_search_goes_on_from_every_wave() {
    let mut violated = 0;
    for (seed, model) in systems(60) {
        let ask = if seed % 2 == 0 { ALL } else { Ask { deadlocks: seed % 3 == 0, ..Ask::EVERYTHING } };
        let (codec, mut draw) = (CODECS[seed as usize % 3], Draw::new(seed));
        let crew = small_crew([1, 2, 5][seed as usize / 2 % 3], 4);
        let (whole, _) = search(&model, &unlimited(codec, crew, ask), None).unwrap();
        violated += matches!(whole.outcome.verdict, Verdict::Violated(_)) as u32;
        let due: Vec<usize> = (0..4).map(|_| draw.below(30) as usize).collect();
        let (_, kept) = search(&model, &Setting { due, ..unlimited(codec, crew, ask) }, None).unwrap();
        goes_on(&model, &whole, &kept, codec, ask, seed);
    }
    assert!(violated > 15, "{violated}");
}

#[test]
fn a_search_goes_on_where_it_was_stopped_in_the_middle_of_a_wave() {
    let mut cut = 0;
    for (seed, model) in systems(60) {
        let (codec, mut draw) = (CODECS[seed as usize % 3], Draw::new(seed));
        let crew = small_crew([1, 3][seed as usize / 3 % 2], 4);
        let (whole, _) = search(&model, &unlimited(codec, crew, ALL), None).unwrap();
        let stopped_after = 1 + draw.below(whole.outcome.stats.states) as usize;
        let (part, kept) = search(&model, &Setting { stopped_after, ..unlimited(codec, crew, ALL) }, None).unwrap();
        cut += (part.outcome.stats != whole.outcome.stats) as usize;
        assert!(!kept.is_empty() || part.outcome.complete, "seed {seed}");
        goes_on(&model, &whole, &kept, codec, ALL, seed);
    }
    assert!(cut > 30, "{cut}");
}

/// Counters that are raised one at a time, up to a limit.
pub struct Counters {
    pub width: usize,
    pub most: u32,
}

impl Model for Counters {
    fn width(&self) -> usize {
        self.width
    }

    fn most_successors(&self) -> usize {
        self.width
    }

    fn initial(&self, out: &mut Successors) {
        out.push(&vec![0; self.width], Step(0));
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        for word in (0..self.width).filter(|&word| state[word] < self.most) {
            let mut next = state.to_vec();
            next[word] += 1;
            out.push(&next, Step(word as u32));
        }
    }

    fn used_bits(&self) -> Vec<u32> {
        vec![7; self.width]
    }
}

#[test]
fn what_ran_out_of_memory_or_disk_goes_on_with_more() {
    let model = Counters { width: 7, most: 4 };
    let ask = Ask { deadlocks: false, ..ALL };
    for (number, codec) in CODECS.into_iter().cycle().take(27).enumerate() {
        let crew = Crew { wave_successors: 9000, ..small_crew([1, 2, 5][number / 3 % 3], [300, 60][number % 2]) };
        let (whole, _) = search(&model, &unlimited(codec, crew, ask), None).unwrap();
        assert_eq!(whole.outcome.stats.states, 5u64.pow(7));
        let mut memory = PLENTY;
        // Tables grow in steps, queue and log by chunks of 64 KiB.
        let store = if codec == Codec::Packed { 150 << 10 } else { 300 << 10 };
        memory[number / 9] = [store, 256 << 10, 64 << 10][number / 9];
        let (part, kept) = search(&model, &Setting { memory, ..unlimited(codec, crew, ask) }, None).unwrap();
        assert_eq!(part.outcome.verdict, Verdict::Unknown(Why::Memory), "{codec:?} {number}");
        let [kept] = &kept[..] else { panic!("{} checkpoints", kept.len()) };
        for workers in [1, 3] {
            let crew = Crew { wave_successors: 9000, ..small_crew(workers, 200) };
            let (seen, _) = search(&model, &unlimited(codec, crew, ask), Some(kept)).unwrap();
            assert_eq!(seen, whole, "{codec:?} {number}, {workers} workers");
        }
        // With as much as there was it is full again sooner or later, or tables that need not grow are just small enough.
        match search(&model, &Setting { memory, ..unlimited(codec, crew, ask) }, Some(kept)) {
            Ok((again, _)) if again.outcome.complete => assert_eq!(again, whole),
            Ok((again, _)) => assert_eq!(again.outcome.verdict, Verdict::Unknown(Why::Memory)),
            Err(error) => assert!(matches!(error, Unloaded::Memory), "{error:?}"),
        }
    }
}

/// Some sums of counters are not allowed.
pub struct Judged(pub Counters);

impl Around for Judged {
    fn inner(&self) -> &dyn Model {
        &self.0
    }

    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        (state.iter().sum::<u32>() % 5 == 3).then_some(state[0] % 2)
    }
}

/// Whatever waits for the disk when the search is told to end, also within a part of a wave: it is settled, and nothing that is wrong with it is missed.
#[test]
fn a_search_on_disk_goes_on_wherever_it_was_stopped() {
    let model = Judged(Counters { width: 7, most: 4 });
    let (mut draw, mut waited) = (Draw::new(3), [0; 3]);
    for number in 0..36 {
        let codec = [Codec::Packed, Codec::Tree, Codec::Plain][number % 3];
        let crew = |workers: usize| Crew { wave_successors: 9000, ..small_crew(workers, 200) };
        let plenty = unlimited(codec, crew([1, 2, 5][number / 3 % 3]), ALL);
        let least = [90 << 10, 160 << 10, 600 << 10][number % 3];
        let scarce =
            Setting { memory: [least, 1 << 36, 1 << 36], layered: true, packs: number % 2 == 0, ..plenty.clone() };
        let (whole, _) = search(&model, &plenty, None).unwrap();
        assert!(whole.outcome.stats.property_hits > 10_000);
        // All states but the first are judged.
        let mut moments = [usize::MAX; 2];
        moments[number / 9 % 2] = 1 + draw.below(whole.outcome.stats.states - 1) as usize;
        let [stopped_after, judged] = moments;
        let (part, kept) = search(&model, &Setting { stopped_after, judged, ..scarce.clone() }, None).unwrap();
        let [kept] = &kept[..] else { panic!("{number}: {} checkpoints", kept.len()) };
        assert!(!part.outcome.complete, "{number}");
        let from_runs = || {
            let store = Chain::new(codec, &model.used_bits(), 0, &Grant::unlimited()).unwrap();
            store.with_packing(&model.used_bits()).load(0, &mut &kept.bytes[..]).unwrap().is_none()
        };
        waited[number % 3] += from_runs() as usize;
        // With little memory what was kept does not find room in tables.
        let memory = [[10, 2][number / 18] * least, 1 << 36, 1 << 36];
        for setting in [plenty, Setting { memory, ..scarce }] {
            let (seen, _) = search(&model, &setting, Some(kept)).unwrap();
            let (stats, of) = (&seen.outcome.stats, &whole.outcome.stats);
            assert_eq!(
                (stats.states, stats.transitions, stats.levels),
                (of.states, of.transitions, of.levels),
                "{number}"
            );
            assert_eq!((stats.property_hits, stats.deadlocks), (of.property_hits, of.deadlocks), "{number}");
            assert_eq!((&seen.outcome.verdict, &seen.paths), (&whole.outcome.verdict, &whole.paths), "{number}");
        }
    }
    assert!(waited.iter().all(|&count| count > 2), "{waited:?}");
}

#[test]
fn what_is_on_disk_goes_on_in_memory_and_the_other_way_round() {
    let model = Counters { width: 7, most: 4 };
    let ask = Ask { deadlocks: false, ..ALL };
    let (mut draw, mut were_on_disk, mut within) = (Draw::new(0), [0; 3], 0);
    for (number, codec) in [Codec::Packed, Codec::Tree, Codec::Plain].into_iter().cycle().take(6).enumerate() {
        let crew = |workers: usize| Crew { wave_successors: 9000, ..small_crew(workers, 200) };
        // The second time.
        let packs = number >= 3;
        let plenty = unlimited(codec, crew([1, 2, 5][number % 3]), ask);
        let memory = |bytes: u64| [bytes, 1 << 36, 1 << 36];
        let scarce = |crew: Crew, bytes: u64| Setting {
            memory: memory(bytes),
            layered: true,
            packs,
            ..unlimited(codec, crew, ask)
        };
        // The tree takes most of it, and is given up.
        let least = [90 << 10, 160 << 10, 600 << 10][number % 3];
        let (whole, _) = search(&model, &plenty, None).unwrap();
        // Levels are sealed early for them.
        let due: Vec<usize> = (0..3).map(|_| 24 + draw.below(22) as usize).collect();
        let (_, on_disk) = search(&model, &Setting { due: due.clone(), ..scarce(plenty.crew, least) }, None).unwrap();
        let (_, in_memory) = search(&model, &Setting { due, ..plenty.clone() }, None).unwrap();
        assert!(on_disk.len() > 1 && in_memory.len() > 1);
        let from_runs = |kept: &Kept| {
            let store = Chain::new(codec, &model.used_bits(), 0, &Grant::unlimited()).unwrap();
            store.with_packing(&model.used_bits()).load(0, &mut &kept.bytes[..]).unwrap().is_none()
        };
        assert!(!in_memory.iter().any(from_runs));
        let ends: Vec<u64> = (whole.outcome.stats.level_sizes.states.iter())
            .scan(0, |sum, size| {
                *sum += size;
                Some(*sum)
            })
            .collect();
        let is_within = |kept: &Kept| {
            let saved: serde_json::Value = serde_json::from_str(&kept.saved).unwrap();
            !ends.contains(&saved["books"]["expanded"].as_u64().unwrap())
        };
        within += on_disk.iter().filter(|kept| is_within(kept) && from_runs(kept)).count();
        were_on_disk[number % 3] += on_disk.iter().filter(|&kept| from_runs(kept)).count();
        for (index, kept) in on_disk.iter().chain(&in_memory).enumerate() {
            let workers = [1, 2, 5][(index + number) % 3];
            let unlimited = Setting { packs, ..unlimited(codec, crew(workers), ask) };
            for setting in [unlimited, scarce(crew(workers), 10 * least)] {
                let (seen, _) = search(&model, &setting, Some(kept)).unwrap();
                let (Outcome { verdict, stats, .. }, of) = (&seen.outcome, &whole.outcome.stats);
                assert_eq!((verdict, stats.states, stats.transitions), (&Verdict::Holds, of.states, of.transitions));
                assert_eq!(
                    (stats.levels, stats.matched, &seen.paths),
                    (of.levels, of.matched, &whole.paths),
                    "{index}"
                );
            }
        }
    }
    assert!(were_on_disk.iter().all(|&count| count >= 2) && within > 3, "{were_on_disk:?}, {within} within levels");
}

/// Counters with words behind them of which few parts repeat, so that a tree gets large. The last states are written with all their bits turned:
/// they differ in few bits for a long time, and then in more than a key has.
struct Turning {
    counters: Counters,
    /// From this sum on.
    from: u32,
}

/// Words behind the counters.
const BEHIND: usize = 4;

impl Turning {
    fn counted<'a>(&self, state: &'a [u32]) -> &'a [u32] {
        &state[..self.counters.width]
    }

    /// The state with these counters.
    fn with(&self, counters: &[u32]) -> Vec<u32> {
        let mixed = |word: u32| {
            let sum = counters.iter().fold(word, |sum, count| (sum * 31 + count * 977) % 0xFFFF);
            sum & 0xFFF
        };
        let words = counters.iter().copied().chain((0..BEHIND as u32).map(mixed));
        let is_late = counters.iter().sum::<u32>() >= self.from;
        words.map(|word| if is_late { !word } else { word }).collect()
    }
}

impl Model for Turning {
    fn width(&self) -> usize {
        self.counters.width + BEHIND
    }

    fn most_successors(&self) -> usize {
        self.counters.most_successors()
    }

    fn initial(&self, out: &mut Successors) {
        out.push(&self.with(&vec![0; self.counters.width]), Step(0));
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        let counters: Vec<u32> = self.counted(state).iter().map(|&word| word.min(!word)).collect();
        let mut next = Successors::new(counters.len());
        self.counters.successors(&counters, &mut next);
        next.iter().for_each(|(counters, step)| out.push(&self.with(counters), step));
    }
}

/// Before packed keys are given up for whole states, and after that: it goes on, on disk and in memory, also where keys are outgrown only then.
#[test]
fn what_is_on_disk_goes_on_when_its_keys_are_outgrown() {
    let ask = Ask { deadlocks: false, ..ALL };
    let crew = |workers: usize| Crew { wave_successors: 1000, ..small_crew(workers, 30) };
    let (mut were_packed, mut were_whole) = (0, 0);
    for (number, from) in [11, 13, 15].into_iter().enumerate() {
        let model = Turning { counters: Counters { width: 6, most: 4 }, from };
        let plenty = Setting { packs: true, ..unlimited(Codec::Tree, crew([1, 2, 5][number % 3]), ask) };
        let (whole, _) = search(&model, &plenty, None).unwrap();
        assert_eq!(whole.outcome.stats.states, 5u64.pow(6));
        let scarce = |crew: Crew, bytes: u64| Setting {
            memory: [bytes, 1 << 36, 1 << 36],
            layered: true,
            crew,
            ..plenty.clone()
        };
        let due: Vec<usize> = (0..8).map(|number| 16 + number * 6).collect();
        let (_, kept) = search(&model, &Setting { due, ..scarce(plenty.crew, 150 << 10) }, None).unwrap();
        for (index, kept) in kept.iter().enumerate() {
            let mut store = Chain::new(Codec::Tree, &model.used_bits(), 0, &Grant::unlimited()).unwrap();
            store = store.with_packing(&model.used_bits()).above(layers(&model, &Grant::unlimited()));
            store.load(0, &mut &kept.bytes[..]).unwrap();
            were_packed += matches!(store.coder, Coder::Packed(_)) as u32;
            were_whole += matches!(store.coder, Coder::Plain { .. }) as u32;
            let workers = [1, 2, 5][(index + number) % 3];
            let on_disk = [1 << 20, 8 << 20].map(|bytes| scarce(crew(workers), bytes));
            for setting in on_disk.iter().chain([&Setting { crew: crew(workers), ..plenty.clone() }]) {
                let (seen, _) = search(&model, setting, Some(kept)).unwrap();
                assert_eq!(numbered(&seen), numbered(&whole), "from {from}, checkpoint {index}, {:?}", setting.memory);
            }
        }
    }
    assert!(were_packed > 4 && were_whole > 4, "{were_packed} packed, {were_whole} whole");
}

/// Writes a checkpoint to a disk, and goes on from it; none if it could not be written.
fn through(disk: Faulty, kept: &Kept, model: &Counters, codec: Codec) -> Option<Result<Seen, Unloaded>> {
    let disk = Arc::new(disk);
    let mut writer = Writer::new(disk.clone(), Grant::unlimited());
    writer.write_all(&kept.bytes).and_then(|()| writer.finish()).ok()?;
    let mut bytes = Vec::new();
    if let Err(error) = Reader::new(disk).read_to_end(&mut bytes) {
        return Some(Err(error.into()));
    }
    let kept = Kept { bytes, ..kept.clone() };
    let setting = unlimited(codec, small_crew(2, 100), ALL);
    Some(search(model, &setting, Some(&kept)).map(|(seen, _)| seen))
}

/// Also where states were in runs, as keys and as they are.
#[test]
fn whatever_fails_on_disk_the_answer_is_the_same_or_none() {
    for (codec, layered, bytes) in
        [(Codec::Tree, false, 1 << 36), (Codec::Packed, true, 30 << 10), (Codec::Plain, true, 150 << 10)]
    {
        let model = Counters { width: 6, most: 4 };
        let setting = unlimited(codec, small_crew(1, 100), ALL);
        let (whole, _) = search(&model, &setting, None).unwrap();
        let due = vec![if layered { 18 } else { 5 }];
        let memory = [bytes, 1 << 36, 1 << 36];
        let (_, kept) = search(&model, &Setting { due, layered, memory, ..setting }, None).unwrap();
        let kept = &kept[0];
        let mut store = Chain::new(codec, &model.used_bits(), 0, &Grant::unlimited()).unwrap();
        assert_eq!(store.load(0, &mut &kept.bytes[..]).unwrap().is_none(), layered, "{codec:?}");
        let through = |disk: Faulty| through(disk, kept, &model, codec);
        assert_eq!(numbered(&through(Faulty::sound()).unwrap().unwrap()), numbered(&whole), "{codec:?}");
        let blocks = kept.bytes.len() / (64 << 10) + 2;
        for count in 0..blocks {
            assert!(through(Faulty::after(count, usize::MAX)).is_none(), "write {count} of {blocks}");
            assert!(through(Faulty::cutting_writes_after(count)).is_none(), "write {count} of {blocks}");
            assert!(through(Faulty::after(usize::MAX, 2 * count)).unwrap().is_err(), "read {count}");
            assert!(through(Faulty::losing_writes_after(count)).unwrap().is_err(), "lost {count}");
            assert!(through(Faulty::cutting_writes_in_silence_after(count)).unwrap().is_err(), "cut {count}");
        }
        assert!(through(Faulty::failing_to_sync_after(0)).is_none());
        let mut draw = Draw::new(7);
        for _ in 0..100 {
            let bit = draw.below(kept.bytes.len() as u64 * 8) as usize;
            assert!(through(Faulty::flipping(bit)).unwrap().is_err(), "bit {bit}");
        }
    }
}

/// What must be the same also where candidates waited, which are part of a frontier.
pub fn numbered(seen: &Seen) -> (&Verdict, [u64; 4], &Vec<Vec<u32>>) {
    let stats = &seen.outcome.stats;
    (&seen.outcome.verdict, [stats.states, stats.transitions, stats.levels.into(), stats.matched], &seen.paths)
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let model = Counters { width: 6, most: 4 };
    let setting = unlimited(Codec::Tree, small_crew(1, 100), ALL);
    let (_, kept) = search(&model, &Setting { due: vec![3, 5], ..setting.clone() }, None).unwrap();
    let mixed = Kept { saved: kept[0].saved.clone(), bytes: kept[1].bytes.clone() };
    assert!(matches!(search(&model, &setting, Some(&mixed)), Err(Unloaded::Damaged(_))));
    for codec in [Codec::Plain, Codec::Packed] {
        let other = Setting { codec, ..setting.clone() };
        assert!(matches!(search(&model, &other, Some(&kept[0])), Err(Unloaded::Damaged(_))), "{codec:?}");
    }
    let wider = Counters { width: 7, most: 4 };
    assert!(matches!(search(&wider, &setting, Some(&kept[0])), Err(Unloaded::Damaged(_))));
    // However short, and however wrong without anybody noticing: no panic.
    let mut draw = Draw::new(3);
    for round in 0..200 {
        let mut kept = kept[round % 2].clone();
        let at = draw.below(kept.bytes.len() as u64) as usize;
        match round % 4 {
            0 => kept.bytes.truncate(at),
            1 => kept.bytes.truncate(at % 200),
            _ => kept.bytes[at % 4096] ^= 1 << (at % 8),
        }
        let _ = search(&model, &setting, Some(&kept));
    }
}
