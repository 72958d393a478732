//! Who gets how many bytes. The only place where memory and disk are divided.
//!
//! The budget is for the whole process: what is resident already, what the search needs besides its
//! structures (successor buffers, page tables, slack of the allocator) and a pool that the structures
//! share. Each has a cap; the sum never exceeds the pool. With disk, the frontier gets a small share of its
//! own and spills; without, it takes what the pool has.

mod store;

use crate::hunt::DEFAULT_VISITS;
use crate::machine::{self, Memory};
use crate::options::{Order, StoreName, name_of};
use crate::presets::{CACHE_SIZE_FORMS, Strategy};
use crate::size::{Size, show_bytes};
use crate::training::{Trained, TrainingReport};
use plimsoll_model::{Guide, Model};
use plimsoll_search::Crew;
use plimsoll_store::disk::SLOT;
use plimsoll_store::huffman::Code;
use plimsoll_store::mapped;
use plimsoll_store::runs::{KEY_WORDS, Keep, MOST_WORDS, ORIGIN_WORDS};
use plimsoll_store::tree::{Shape, Tree};
use plimsoll_store::{Budget, Chain, Codec, Coder, Full, Gathered, Grant, Recent, Room};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use store::{choose_codec, chooses, narrows, store_name};

/// The search expands at least this many states at once.
const BLOCK_STATES: u64 = 16;
/// Report, trace, messages, thread of the signal handler, rounding of the allocator, and code that is used from now on: there is
/// more of it where it is not optimised.
const HEADROOM_BYTES: u64 = if cfg!(debug_assertions) { 7 << 18 } else { 1 << 20 };
/// What a search has of files, code above all, where it is let go whenever it is more than [`KEPT_CODE_BYTES`]: measured. What comes
/// between two looks is on top of that.
const CODE_BYTES: u64 = if cfg!(debug_assertions) { 9 << 20 } else { 21 << 18 };
pub const KEPT_CODE_BYTES: u64 = CODE_BYTES / 7 * 6;
/// What the process does not use of all that tables on disk may have, but for this and a share, in which the report and whatever code comes then must
/// find room; and the system counts late, by so much for each processor.
const KEPT_BYTES: u64 = if cfg!(debug_assertions) { 4 << 20 } else { 3 << 19 };
const KEPT_SHARE: u64 = 64;
const LATE_BYTES: u64 = 64 << 10;
/// The system counts resident pages for each processor by itself and adds up now and then, so what it says may lag behind.
const COUNTING_BYTES: u64 = 16 << 10;
/// Page tables take 8 bytes per page of 4096, and chunk lists about as much.
const OVERHEAD_SHIFT: u32 = 8;
/// With a smaller pool nothing worth the name can be explored.
const LEAST_SPARE_BYTES: u64 = 512 << 10;
/// Stack, what the allocator keeps for a thread, and a chunk of the frontier that is being folded.
const WORKER_BYTES: u64 = (256 + 64) << 10;
/// Buffers of several workers may take this part of what is not fixed; in small budgets states are worth more than time.
const WORKERS_SHARE: u64 = 16;
/// Where there is a disk, this part.
const DISK_WORKERS_SHARE: u64 = 4;
/// And this is what workers may use of that share to remember what they have met, if they do so well.
const RECENT_SHARE: u64 = 4;
/// By how much resident memory differs between runs.
const JITTER_BYTES: u64 = 512 << 10;
/// Buffers for writing a checkpoint and for reading one.
const CHECKPOINT_BYTES: u64 = 512 << 10;
/// With disk, this share of the pool is the frontier's own.
const FRONTIER_SHARE: u64 = 16;
/// And this the stack's: its cold end can wait on disk.
const STACK_SHARE: u64 = 8;
/// And this that of numbers: those that do not fit wait on disk.
const NUMBERS_SHARE: u64 = 8;
/// Buffers of what waits, and the first states.
const LEAST_NUMBERS_BYTES: u64 = 1 << 20;
/// Slots that a stack needs in memory when it spills, beside its two uppermost frames.
const STACK_SLOTS: u64 = 4;
/// Chunks the frontier needs in memory when it spills: one read, one written, two in between.
const FRONTIER_CHUNKS: u64 = 4;
/// With disk, this share of the pool is for candidates, and a worker needs so much for blocks that it reads and writes.
const CANDIDATES_SHARE: u64 = 32;
const LAYERS_WORKER_BYTES: u64 = 384 << 10;
/// And this part of the store is not charged: keys that are sorted while a table is written.
const LEAVING_SHARE: u64 = 64;

/// Part and whole: what a cache may take of the memory it shares with the stack or the frontier.
const CACHE_SHARE: (u64, u64) = (3, 4);
/// A filter that is smaller than this is none.
const LEAST_FILTER_BYTES: u64 = 64 << 10;
/// Tables of a cache take whole pages, large ones huge pages.
const CACHE_ROUNDING_BYTES: u64 = 8 << 20;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    pub memory: Option<Size>,
    pub disk_bytes: u64,
    /// Of it, for the step log.
    pub step_log_bytes: Option<u64>,
    pub spill_dirs: Vec<PathBuf>,
    pub order: Option<Order>,
    pub store: StoreName,
    /// The Huffman code, where the store has one: see [`crate::training`].
    pub trained: Option<Trained>,
    pub strategy: Option<String>,
    pub cache: Option<String>,
    pub cache_size: Option<Room>,
    pub redundancy_percent: Option<u64>,
    /// For what is drawn.
    pub seed: u64,
    /// As many as there are processors, if nobody says otherwise.
    pub workers: Option<usize>,
    /// Will a checkpoint be kept?
    pub checkpoint: bool,
    /// Are states to have numbers that can be asked for?
    pub numbers: bool,
    /// May states be missed when nothing else is left?
    pub lossy: bool,
}

/// What is known about the model and the process when bytes are divided.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The bits of each word that states use.
    pub used_bits: Vec<u32>,
    pub most_successors: u64,
    /// What a worker may take to follow atomic chains.
    pub scratch_bytes: u64,
    /// Resident memory of the process, model and native code included, and the code of the program that will come back.
    pub resident_bytes: u64,
}

/// Everything that was decided.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    pub memory_bytes: u64,
    pub memory_origin: String,
    /// Resident before the search.
    pub process_bytes: u64,
    /// Successor buffers of all blocks.
    pub buffer_bytes: u64,
    /// Page tables, slack, report.
    pub overhead_bytes: u64,
    /// Shared by the structures below.
    pub pool_bytes: u64,
    pub store_bytes: u64,
    pub frontier_bytes: u64,
    pub log_bytes: u64,
    pub stack_bytes: u64,
    /// States that may be on disk.
    pub candidates_bytes: u64,
    /// For numbers of states, where somebody asks for them.
    #[serde(skip)]
    pub numbers_bytes: u64,
    pub disk_bytes: u64,
    /// Of it, for the step log, if that is limited.
    #[serde(skip)]
    pub step_log_bytes: Option<u64>,
    pub spill_dirs: Vec<PathBuf>,
    pub order: String,
    pub store: String,
    pub strategy: String,
    /// How many states a cache may hold; 0 if every state is held.
    pub cache_states: u64,
    /// Visits per state, in per cent, at which the search is given up.
    pub redundancy_percent: Option<u64>,
    /// Visits after which a search that need not end is given up, unless another limit is given.
    pub most_visits: Option<u64>,
    /// For what is drawn.
    pub seed: u64,
    /// How many threads search.
    pub workers: usize,
    /// Who leads a guided search.
    #[serde(skip)]
    pub guide: Option<Arc<Guide>>,
    #[serde(skip)]
    pub strategy_parts: Strategy,
    #[serde(skip)]
    pub crew: Crew,
    /// What a Huffman code comes from.
    pub training: Option<TrainingReport>,
    #[serde(skip)]
    pub code: Option<Arc<Code>>,
    /// The shape of a tree, where that is known before the search.
    #[serde(skip)]
    pub shape: Option<Shape>,
    #[serde(skip)]
    pub codec: Codec,
    /// As few bytes as possible, whatever time that takes.
    #[serde(skip)]
    pub dense: bool,
    /// May packed states have a tree instead, if the first of them say so?
    #[serde(skip)]
    pub chooses: bool,
    /// May keys of packed states be shortened to what the first of them show?
    #[serde(skip)]
    pub narrows: bool,
    #[serde(skip)]
    pub search: Order,
    /// Where the search may go on on disk: how long levels stay there.
    #[serde(skip)]
    pub keep: Option<Keep>,
    /// May the store go on with less when memory is almost full?
    #[serde(skip)]
    pub climbs: bool,
    /// And may it miss states in the end?
    #[serde(skip)]
    pub may_miss: bool,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    TooSmall {
        given_bytes: u64,
        least_bytes: u64,
    },
    /// The strategy makes no sense, or not with these options.
    Strategy(String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (given_bytes, least_bytes) = match self {
            PlanError::TooSmall { given_bytes, least_bytes } => (given_bytes, least_bytes),
            PlanError::Strategy(message) => return f.write_str(message),
        };
        // What is resident differs a little from run to run, and the advice must hold in the next one.
        let (given, least) = (show_bytes(*given_bytes), (least_bytes.saturating_add(JITTER_BYTES)).div_ceil(1 << 20));
        write!(f, "{given} of memory is too small for this model: at least {least} MiB are needed (--memory {least}M)")
    }
}

impl std::error::Error for PlanError {}

impl Facts {
    /// Looks at the model and at this process.
    pub fn now(model: &(impl Model + ?Sized)) -> Facts {
        Facts {
            used_bits: model.used_bits(),
            most_successors: model.most_successors() as u64,
            scratch_bytes: model.scratch_bytes() as u64,
            resident_bytes: machine::resident_bytes() + CODE_BYTES.saturating_sub(mapped::resident_bytes()),
        }
    }

    /// Words per state.
    fn width(&self) -> u64 {
        self.used_bits.len() as u64
    }

    /// Successors in one block, at most (or so: atomic chains may multiply them).
    fn block(&self, crew: &Crew) -> u64 {
        let block = crew.block_successors as u64;
        self.most_successors.saturating_mul(BLOCK_STATES.min(block)).max(block)
    }

    /// Bytes for a successor while it is on its way: its state (vectors may have twice the capacity they need), its key
    /// twice, where it belongs, whose it is, its step.
    fn successor_bytes(&self) -> u64 {
        self.width() * 4 * 2 + 80
    }

    /// Bytes that a worker needs for itself for each successor of a block: numbers of nodes.
    fn own_bytes(&self) -> u64 {
        self.width() * 4 * 2 + 32
    }

    /// Bytes for the successors that are on their way and for all workers.
    fn buffer_bytes(&self, crew: &Crew) -> u64 {
        let buffers = self.successors_at_once(crew).saturating_mul(self.successor_bytes());
        let worker = self.block(crew).saturating_mul(self.own_bytes()).saturating_add(WORKER_BYTES);
        let worker = worker
            .saturating_add(self.scratch_bytes + Recent::most_bytes(self.used_bits.len(), crew.recent_bytes) as u64)
            .saturating_add(if crew.workers > 1 { Gathered::most_bytes(self.block(crew) as usize) as u64 } else { 0 });
        buffers.saturating_add(worker.saturating_mul(crew.workers as u64))
    }

    /// One worker with blocks that `spare` bytes can afford; that shows in times only.
    fn alone(&self, spare: u64) -> Crew {
        let successors = usize::try_from(spare / (self.successor_bytes() + self.own_bytes())).unwrap_or(usize::MAX);
        let recent_bytes = recent_bytes(1, spare)[0];
        Crew { recent_bytes, ..Crew::for_width(1, self.used_bits.len()).with_blocks_of(successors) }
    }

    /// As many workers as can be afforded, with blocks as large as can be then, where `room` bytes are more than one alone needs. On disk
    /// each wants `layers_bytes` beside its buffers.
    fn crew(&self, wishes: &Wishes, strategy: &Strategy, memory_bytes: u64, room: u64, layers_bytes: u64) -> Crew {
        let spare = memory_bytes.saturating_sub(self.resident_bytes);
        let alone = self.alone(spare / WORKERS_SHARE);
        if strategy.hunt.map_or(strategy.order != Order::Bfs, |hunt| !hunt.is_shared()) {
            return alone;
        }
        let spare = spare / if layers_bytes > 0 { DISK_WORKERS_SHARE } else { WORKERS_SHARE };
        let wants = |crew: &Crew| self.buffer_bytes(crew).saturating_add(layers_bytes * crew.workers as u64);
        let needs = |crew: &Crew| match layers_bytes {
            0 => wants(crew),
            _ => wants(crew) + self.least_waiting(self.width(), crew) + self.least_candidates(crew),
        };
        let most = room.saturating_add(needs(&self.alone(0)));
        let crews = |workers: usize| {
            let of_width = Crew::for_width(workers, self.used_bits.len());
            let remembering =
                move |crew: Crew| recent_bytes(workers, spare).map(|recent_bytes| Crew { recent_bytes, ..crew });
            of_width.with_ever_smaller_blocks().flat_map(remembering)
        };
        let wanted = wishes.workers.unwrap_or_else(machine::processors);
        (2..=wanted).rev().flat_map(crews).find(|crew| wants(crew) <= spare && needs(crew) <= most).unwrap_or(alone)
    }

    /// Bits that a state uses.
    fn used_bits(&self) -> u32 {
        self.used_bits.iter().map(|word| word.count_ones()).sum()
    }

    /// Bytes without which a stack cannot work.
    fn least_stack(&self) -> u64 {
        let frame = self.most_successors.saturating_mul((self.width() + 2) * 4);
        frame.saturating_mul(2).saturating_add(STACK_SLOTS * SLOT as u64)
    }

    /// Bytes without which states of so many words cannot wait partly on disk: what comes at once must be in memory.
    fn least_waiting(&self, words: u64, crew: &Crew) -> u64 {
        let chunk = (SLOT as u64).max(words * 4);
        let at_once = self.successors_at_once(crew).saturating_mul(words * 4).div_ceil(chunk);
        at_once.saturating_add(FRONTIER_CHUNKS).saturating_mul(chunk)
    }

    /// The same for candidates.
    fn least_candidates(&self, crew: &Crew) -> u64 {
        self.least_waiting(self.width() + (ORIGIN_WORDS + KEY_WORDS) as u64, crew)
    }

    /// Successors that are on their way at once.
    fn successors_at_once(&self, crew: &Crew) -> u64 {
        let shared = crew.blocks() as u64 * crew.shared_block_successors[1] as u64;
        if crew.workers == 1 { self.block(crew) } else { self.block(crew).max(shared) }
    }
}

/// What each of so many workers may take of `spare` bytes to remember what it has met: much if there is enough, or little.
fn recent_bytes(workers: usize, spare: u64) -> [usize; 2] {
    let [little, enough] = Crew::RECENT_BYTES;
    let is_enough = spare / RECENT_SHARE / workers as u64 >= enough as u64;
    [if is_enough { enough } else { little }, little]
}

impl Plan {
    /// Divides the budget, or says how much is needed at least.
    pub fn resolve(wishes: &Wishes, facts: &Facts) -> Result<Plan, PlanError> {
        let Memory { bytes: memory, origin } = machine::memory_budget(wishes.memory);
        let (name, chain) = (wishes.strategy.as_deref(), wishes.cache.as_deref());
        let strategy = Strategy::parse(name, chain, wishes.cache_size, wishes.order).map_err(PlanError::Strategy)?;
        let codec = choose_codec(wishes, &strategy.row, facts)?;
        let keep = keep_of(&strategy, codec, facts.width(), wishes.disk_bytes)?;
        // What was forgotten cannot be kept for another day.
        let climbs = strategy.row.climbs() && wishes.disk_bytes == 0 && !wishes.numbers && !wishes.checkpoint;
        let climbs = climbs && matches!(codec, Codec::Packed | Codec::Tree);
        if wishes.lossy && !climbs {
            return Err(PlanError::Strategy(not_lossy(wishes, &strategy)));
        }
        let order = strategy.order;
        if strategy.hunt.is_some() && !codec.is_injective() {
            let (name, store) = (strategy.name(), wishes.store);
            return Err(PlanError::Strategy(format!("--strategy {name} does not go with --store {store}")));
        }
        let counting = COUNTING_BYTES * machine::processors() as u64;
        let headroom = HEADROOM_BYTES + counting + if wishes.checkpoint { CHECKPOINT_BYTES } else { 0 };
        let fixed = facts.resident_bytes.saturating_add(facts.buffer_bytes(&facts.alone(0))).saturating_add(headroom);
        let for_layers = |workers: usize| keep.map_or(0, |_| LAYERS_WORKER_BYTES * workers as u64);
        let numbers = if wishes.numbers { LEAST_NUMBERS_BYTES } else { 0 };
        let least_pool = least_pool(codec, order, facts)
            .saturating_add(numbers)
            .saturating_add(keep.map_or(0, |_| facts.least_candidates(&facts.alone(0))));
        let least = fixed.saturating_add(least_pool).saturating_add(for_layers(1));
        let least = least.saturating_add(least >> OVERHEAD_SHIFT).saturating_add(1 << OVERHEAD_SHIFT);
        if memory < least {
            return Err(PlanError::TooSmall { given_bytes: memory, least_bytes: least });
        }
        let crew = facts.crew(wishes, &strategy, memory, memory - least, for_layers(1));
        let buffers = facts.buffer_bytes(&crew) + for_layers(crew.workers);
        let overhead = headroom + (memory >> OVERHEAD_SHIFT);
        let pool = memory - facts.resident_bytes - buffers - overhead;
        let mut plan = Plan {
            memory_bytes: memory,
            memory_origin: origin.into(),
            process_bytes: facts.resident_bytes,
            buffer_bytes: buffers,
            overhead_bytes: overhead,
            pool_bytes: pool,
            store_bytes: pool,
            frontier_bytes: 0,
            log_bytes: 0,
            stack_bytes: 0,
            candidates_bytes: 0,
            numbers_bytes: if wishes.numbers { pool } else { 0 },
            disk_bytes: wishes.disk_bytes,
            step_log_bytes: wishes.step_log_bytes,
            spill_dirs: Vec::new(),
            order: if strategy.hunt.is_some() { "own".into() } else { name_of(order) },
            store: store_name(codec, wishes.store),
            dense: wishes.store == StoreName::Compact,
            chooses: chooses(codec, wishes, &strategy, facts),
            narrows: narrows(codec, wishes, &strategy, facts),
            strategy: strategy.name(),
            cache_states: 0,
            redundancy_percent: wishes.redundancy_percent,
            most_visits: strategy.hunt.filter(|hunt| !hunt.ends()).map(|_| DEFAULT_VISITS),
            seed: wishes.seed,
            workers: crew.workers,
            guide: None,
            crew,
            codec,
            training: wishes.trained.as_ref().map(|trained| trained.report.clone()),
            code: wishes.trained.as_ref().map(|trained| trained.code.clone()),
            shape: None,
            search: order,
            keep,
            climbs,
            may_miss: wishes.lossy,
            strategy_parts: strategy,
        };
        plan.divide(wishes, facts);
        plan.size_filter();
        plan.size_cache(facts)?;
        Ok(plan)
    }

    /// What the process may have had before tables on disk take more.
    pub fn most_resident_bytes(&self) -> u64 {
        let late = LATE_BYTES * machine::processors() as u64;
        self.memory_bytes.saturating_sub(KEPT_BYTES + late + self.memory_bytes / KEPT_SHARE)
    }

    fn divide(&mut self, wishes: &Wishes, facts: &Facts) {
        let pool = self.pool_bytes;
        if let Some(hunt) = self.strategy_parts.hunt {
            (self.stack_bytes, self.store_bytes) = (pool, hunt.store_bytes(pool));
            return;
        }
        match self.search {
            Order::Dfs | Order::DfsReverse if wishes.disk_bytes == 0 => self.stack_bytes = pool,
            Order::Dfs | Order::DfsReverse => {
                self.stack_bytes = (pool / STACK_SHARE).max(facts.least_stack());
                self.store_bytes = pool - self.stack_bytes;
                self.spill_dirs = wishes.folders();
            }
            Order::Bfs if wishes.disk_bytes == 0 => {
                self.frontier_bytes = pool;
                self.log_bytes = pool;
            }
            // What spills must always have room to do so; hence the store cannot take all.
            Order::Bfs => {
                self.frontier_bytes = (pool / FRONTIER_SHARE).max(facts.least_waiting(facts.width(), &self.crew));
                self.log_bytes = 2 * SLOT as u64;
                self.numbers_bytes =
                    (self.numbers_bytes / NUMBERS_SHARE).max(LEAST_NUMBERS_BYTES.min(self.numbers_bytes));
                self.store_bytes = pool - self.frontier_bytes - self.log_bytes - self.numbers_bytes;
                self.spill_dirs = wishes.folders();
                if self.keep.is_some() {
                    self.candidates_bytes = (pool / CANDIDATES_SHARE).max(facts.least_candidates(&self.crew));
                    self.store_bytes -= self.candidates_bytes;
                    self.store_bytes -= self.store_bytes / LEAVING_SHARE;
                }
            }
        }
    }
}

impl Plan {
    /// What takes its memory at once leaves some to the stack or the frontier. How much it is depends on the budget alone, so that
    /// the next run has the same filter.
    fn size_filter(&mut self) {
        if !self.codec.fills_grant() {
            return;
        }
        let most = if !self.spill_dirs.is_empty() {
            self.store_bytes
        } else {
            self.store_bytes / CACHE_SHARE.1 * CACHE_SHARE.0
        };
        let shares =
            (1..u64::BITS).flat_map(|halvings| [4, 3].map(|quarters| (self.memory_bytes >> halvings) / 4 * quarters));
        self.store_bytes = shares.into_iter().find(|bytes| *bytes <= most).unwrap_or(most);
    }

    /// How many states a cache holds, and in how many bytes.
    fn size_cache(&mut self, facts: &Facts) -> Result<(), PlanError> {
        let strategy = &mut self.strategy_parts;
        // Some end, but nobody should wait for it.
        if let Some(percent) = strategy.usual_redundancy_percent().filter(|_| !strategy.row.climbs() || self.climbs) {
            self.redundancy_percent.get_or_insert(percent);
        }
        if !strategy.row.is_cache() {
            return Ok(());
        }
        // Without disk the stack or the frontier is in memory too.
        let most = if !self.spill_dirs.is_empty() {
            self.store_bytes
        } else {
            self.store_bytes / CACHE_SHARE.1 * CACHE_SHARE.0
        };
        let pins = self.search != Order::Bfs;
        if strategy.row.holds_ancestors()
            && let Some(code) = &mut self.code
        {
            // Descendants are counted in the cache itself, so no code may be too long for it.
            *code = Arc::new(Code::clone(code).with_key_bytes(code.most_bytes()));
        }
        let coder = coder(self.codec, self.code.as_ref(), None, &facts.used_bits, &Grant::unlimited());
        let coder = coder.expect("nobody limits it");
        let per_state = Chain::bytes_per_cached(&coder, &strategy.row, pins) as u64;
        if strategy.row.has_levels() {
            // As many as fit, whatever the levels; what a level does not need others may use.
            self.cache_states = (most / per_state).max(1);
            return Ok(());
        }
        let rooms = strategy.row.states(most / per_state, per_state);
        let states = rooms.iter().fold(0, |sum: u64, room| sum.saturating_add(*room));
        let bytes = states.saturating_mul(per_state);
        if states == 0 || bytes > most {
            let (bytes, most) = (show_bytes(bytes.max(per_state)), show_bytes(most));
            return Err(PlanError::Strategy(format!(
                "a cache of {states} states needs {bytes}, and there is room for {most}: {CACHE_SIZE_FORMS}, --memory gives more"
            )));
        }
        strategy.row = strategy.row.with_states(&rooms);
        self.cache_states = states;
        // Nodes, and codes that are too long, are held beside the cache.
        if !matches!(self.codec, Codec::Tree | Codec::Huffman(_)) {
            self.store_bytes = bytes.saturating_add(CACHE_ROUNDING_BYTES).min(self.store_bytes);
        }
        Ok(())
    }
}

/// The codec with its tables.
pub fn coder(
    codec: Codec,
    code: Option<&Arc<Code>>,
    shape: Option<&Shape>,
    used: &[u32],
    grant: &Grant,
) -> Result<Coder, Full> {
    match (code, shape) {
        (Some(code), _) => Ok(Coder::Huffman(code.clone())),
        (None, Some(shape)) => Ok(Coder::Tree(Box::new(Tree::new(shape.clone(), grant)?))),
        (None, None) => Coder::new(codec, used, grant),
    }
}

impl Wishes {
    /// Where temporary files go.
    fn folders(&self) -> Vec<PathBuf> {
        if self.spill_dirs.is_empty() { vec![std::env::temp_dir()] } else { self.spill_dirs.clone() }
    }
}

/// Why nothing can be missed in the end where somebody allows it.
fn not_lossy(wishes: &Wishes, strategy: &Strategy) -> String {
    let name = strategy.name();
    match wishes {
        _ if !strategy.row.climbs() => format!("--lossy is for --strategy auto, and this is {name}"),
        _ if wishes.disk_bytes > 0 => "--lossy is for searches in memory: with --disk they stay exact".into(),
        _ if wishes.checkpoint => "--lossy does not go with --checkpoint: what was lost cannot be kept".into(),
        _ => format!("--lossy is for exact stores of keys: leave out --store {}", wishes.store),
    }
}

/// How long levels stay on disk, if they go there. Only exact keys can.
fn keep_of(strategy: &Strategy, codec: Codec, width: u64, disk_bytes: u64) -> Result<Option<Keep>, PlanError> {
    let refused = |reason: &str| Err(PlanError::Strategy(format!("--strategy {} {reason}", strategy.name())));
    let has_keys =
        matches!(codec, Codec::Packed | Codec::Tree) || (codec == Codec::Plain && width <= MOST_WORDS as u64);
    match strategy.row.kept_levels() {
        Some(_) if disk_bytes == 0 => refused("keeps levels on disk, so it needs --disk, for example --disk 20G"),
        Some(_) if !has_keys => refused("writes states to disk, so it needs --store packed, tree, plain or auto"),
        Some(keep) => Ok(Some(keep)),
        None if disk_bytes == 0 || !has_keys || strategy.order != Order::Bfs => Ok(None),
        None => Ok(Some(Keep::All).filter(|_| strategy.row.holds_all())),
    }
}

/// What the structures need before the first state can be expanded, and a little more.
fn least_pool(codec: Codec, order: Order, facts: &Facts) -> u64 {
    // The store itself knows best: one is built in address space only.
    let trial = Budget::new(if codec.fills_grant() { LEAST_FILTER_BYTES } else { 1 << 30 });
    let wanted = usize::try_from(facts.block(&facts.alone(0))).unwrap_or(usize::MAX);
    let store = match Chain::new(codec, &facts.used_bits, 0, &trial.grant("trial", 1 << 30)) {
        Ok(mut chain) => chain.reserve(wanted).map_or(1 << 30, |()| chain.usage().bytes),
        Err(_) => 1 << 30,
    };
    let others = match order {
        Order::Bfs => facts.least_waiting(facts.width(), &facts.alone(0)).saturating_add(2 * SLOT as u64),
        Order::Dfs | Order::DfsReverse => facts.least_stack(),
    };
    store.saturating_add(others).saturating_add(LEAST_SPARE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts { used_bits: vec![u32::MAX; 6], most_successors: 20, scratch_bytes: 0, resident_bytes: 8 << 20 }
    }

    fn plan(memory: u64, disk_bytes: u64, order: Order) -> Result<Plan, PlanError> {
        let wishes = Wishes { memory: Some(Size::Bytes(memory)), disk_bytes, order: Some(order), ..Wishes::default() };
        Plan::resolve(&wishes, &facts())
    }

    #[test]
    fn the_parts_never_exceed_the_whole() {
        for memory in [16 << 20, 100 << 20, 1 << 30, 1 << 40] {
            for (disk, order) in [(0, Order::Bfs), (1 << 30, Order::Bfs), (0, Order::Dfs), (1, Order::Dfs)] {
                let plan = plan(memory, disk, order).unwrap();
                let fixed = plan.process_bytes + plan.buffer_bytes + plan.overhead_bytes;
                assert_eq!(fixed + plan.pool_bytes, memory);
                let spilling = !plan.spill_dirs.is_empty();
                let parts = plan.store_bytes + plan.frontier_bytes + plan.log_bytes + plan.candidates_bytes;
                assert!(!spilling || parts <= plan.pool_bytes, "what spills has a share of its own");
                let caps = [plan.store_bytes, plan.frontier_bytes, plan.log_bytes, plan.stack_bytes];
                assert!(caps.iter().all(|&cap| cap <= plan.pool_bytes));
            }
        }
    }

    #[test]
    fn the_least_budget_works_and_less_does_not() {
        for (disk, order) in [(0, Order::Bfs), (1 << 30, Order::Bfs), (0, Order::Dfs)] {
            let Err(PlanError::TooSmall { least_bytes, .. }) = plan(1, disk, order) else {
                panic!("one byte is enough")
            };
            assert!(least_bytes > facts().resident_bytes && least_bytes < 16 << 20, "{least_bytes}");
            assert!(plan(least_bytes, disk, order).is_ok());
            assert!(plan(least_bytes - 1, disk, order).is_err());
        }
    }

    #[test]
    fn depth_first_in_reverse_order_is_planned_like_depth_first() {
        for strategy in ["cache:LRU", "cover", "sleep+cache:LFU", "cache:KEEP:50%,SC:50%", "full"] {
            let [dfs, reverse] = [Order::Dfs, Order::DfsReverse].map(|order| {
                let wishes = Wishes {
                    memory: Some(Size::Bytes(100 << 20)),
                    order: Some(order),
                    strategy: Some(strategy.into()),
                    ..Wishes::default()
                };
                Plan::resolve(&wishes, &facts()).unwrap()
            });
            assert_eq!((dfs.cache_states, dfs.store_bytes), (reverse.cache_states, reverse.store_bytes), "{strategy}");
        }
    }

    #[test]
    fn shares_are_of_the_memory_for_states() {
        let states = |strategy: &str, size: Option<&str>| {
            let (strategy, cache_size) = (Some(strategy.into()), size.map(|size| size.parse().unwrap()));
            let memory = Some(Size::Bytes(100 << 20));
            let wishes = Wishes { memory, strategy, cache_size, ..Wishes::default() };
            Plan::resolve(&wishes, &facts()).unwrap().cache_states
        };
        let all = states("cache:LRU", None);
        assert_eq!((states("cache:LRU", Some("100%")), states("cache:LRU:100%", None)), (all, all));
        assert!(states("cache:LRU", Some("20%")).abs_diff(all / 5) <= 1);
        assert_eq!((states("cache:LRU", Some("600")), states("cache:KEEP:500,SC:100", None)), (600, 600));
    }

    #[test]
    fn more_memory_never_means_fewer_workers_and_little_is_enough_for_two() {
        let crew = |megabytes: u64, disk_bytes, workers| {
            let memory = Some(Size::Bytes(megabytes << 20));
            let wishes = Wishes { memory, disk_bytes, workers: Some(workers), ..Wishes::default() };
            Plan::resolve(&wishes, &facts()).unwrap().crew
        };
        for disk_bytes in [0, 1 << 30] {
            let crews: Vec<_> = (16..2000).map(|megabytes| crew(megabytes, disk_bytes, 16)).collect();
            assert!(crews.is_sorted_by_key(|crew| crew.workers), "{disk_bytes}");
            assert_eq!((crews[0].workers, crews[1900].workers), (1, 16));
        }
        assert_eq!([crew(64, 0, 2), crew(24, 1 << 30, 2)].map(|crew| crew.workers), [2, 2]);
        // Who is alone has blocks as large as there is memory for.
        assert_eq!(crew(64, 0, 1).block_successors, crew(64, 1 << 30, 1).block_successors);
    }

    #[test]
    fn absurd_models_are_refused_not_overflowed() {
        let facts = Facts {
            used_bits: vec![u32::MAX; 1 << 20],
            most_successors: u64::MAX / 4,
            scratch_bytes: 0,
            resident_bytes: 8 << 20,
        };
        let error = Plan::resolve(&Wishes::default(), &facts).unwrap_err();
        assert!(error.to_string().contains("too small for this model"));
    }
}
