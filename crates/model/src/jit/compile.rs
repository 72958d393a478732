//! From a system to machine code: how it is divided into functions, and the functions.
//!
//! The time that register allocation takes grows faster than the function, so big models become several
//! functions: one or more neighbouring groups of commands each, or a few locations of one big process.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Value, types};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, ModuleReloc, default_libcall_names};
use plimsoll_ir::{
    Command, Expr, Layout, Locals, Procedure, ProcedureId, Property, PropertyKind, Slot, Stmt, System, Verified,
};

use super::call::{Imports, Procedures, called, sign};
use super::command::code_of;
use super::effort::Effort;
use super::emit::{Emitter, Frame};
use super::shortcuts;
use super::turns::{Turns, Variant, divide};
use crate::Interp;
use crate::order::{Group, Order};

/// Appends successors: source state, room for states, room for steps; gives their number.
pub(super) type Expand = unsafe extern "C" fn(*const u32, *mut u32, *mut u32) -> u64;
/// Judges a state: the number of the first violated property, or -1; or 1 for an accepted end, else 0.
pub(super) type Judge = unsafe extern "C" fn(*const u32) -> i64;

/// A piece of one rank of commands.
pub(super) enum Part {
    Always(Expand),
    /// By the location of a process.
    Switch(Slot, Vec<Option<Expand>>),
}

impl Part {
    pub fn function(&self, state: &[u32]) -> Option<Expand> {
        match self {
            Part::Always(function) => Some(*function),
            Part::Switch(slot, functions) => functions.get(slot.load(state) as usize).copied().flatten(),
        }
    }
}

/// The code of some commands.
pub(super) enum Program {
    /// All have the same rank and fit one function.
    Whole(Expand),
    /// By rank, then in order.
    Divided(Vec<Vec<Part>>),
}

impl Program {
    fn of(sections: Vec<Vec<Part>>) -> Program {
        match sections.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
            [[Part::Always(function)]] => Program::Whole(*function),
            _ => Program::Divided(sections),
        }
    }
}

/// All native functions of a system, and the memory that holds them.
pub(super) struct Native {
    /// One for each variant of the system.
    pub programs: Vec<Program>,
    turns: Option<Turns>,
    /// Each judges some of the properties, in order.
    pub properties: Vec<Judge>,
    pub accepted: Option<Judge>,
    pub code_bytes: usize,
    _code: Code,
}

impl Native {
    /// The commands that may run in a state.
    pub fn program(&self, state: &[u32]) -> &Program {
        &self.programs[self.turns.as_ref().map_or(0, |turns| turns.variant(state))]
    }
}

/// Owns executable memory.
pub(super) struct Code(Mutex<Option<JITModule>>);

impl Code {
    pub fn of(module: JITModule) -> Code {
        Code(Mutex::new(Some(module)))
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.0.get_mut().ok().and_then(Option::take) {
            // SAFETY: the functions are reachable only through what owns this, which is going away.
            unsafe { module.free_memory() }
        }
    }
}

enum Planned {
    Always(FuncId),
    Switch(Slot, Vec<Option<FuncId>>),
}

pub(super) struct Compiler<'a> {
    system: &'a System,
    layout: &'a Layout,
    order: &'a Order,
    procedures: &'a Procedures,
    /// The function of each procedure that is used.
    functions: Vec<Option<FuncId>>,
    effort: Effort,
    /// The value of the exclusive scalar, where it is known.
    turn: Option<i64>,
    stop: &'static AtomicBool,
    module: JITModule,
    /// For functions that are too large for the usual effort.
    quick_isa: OwnedTargetIsa,
    /// Functions that are not machine code yet.
    waiting: Vec<(FuncId, Context)>,
    frontend: FunctionBuilderContext,
    code_bytes: usize,
}

impl<'a> Compiler<'a> {
    /// For the system of the interpreter, which was verified: layouts, indices and depths are then such that the code
    /// stays within the states it is given.
    pub fn new(
        verified: Verified<'a>,
        interp: &'a Interp,
        procedures: &'a Procedures,
        effort: Effort,
    ) -> Result<Compiler<'a>, String> {
        let (system, layout, order) = (verified.system(), interp.layout(), interp.order());
        let total: usize = system.commands.iter().map(Command::weight).sum::<usize>()
            + system.procedures.iter().map(Procedure::weight).sum::<usize>();
        let commands = system.commands.iter().map(|command| (&command.label, command.weight()));
        let properties = system.properties.iter();
        let properties = properties.map(|property| (&property.name, property.weight()));
        let procedures_weights = system.procedures.iter().map(|procedure| (&procedure.name, procedure.weight()));
        if let Some((name, _)) =
            commands.chain(properties).chain(procedures_weights).find(|&(_, weight)| weight > effort.most)
        {
            return Err(format!("`{name}` is too large for native code"));
        }
        let isa = isa_for(total > effort.quick)?;
        let quick_isa = isa_for(true)?;
        let module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let frontend = FunctionBuilderContext::new();
        let waiting = Vec::new();
        let functions = vec![None; system.procedures.len()];
        let (turn, stop) = (None, interp.patience().stop);
        Ok(Compiler {
            system,
            layout,
            order,
            procedures,
            functions,
            effort,
            turn,
            stop,
            module,
            quick_isa,
            waiting,
            frontend,
            code_bytes: 0,
        })
    }

    pub fn compile(mut self) -> Result<Native, String> {
        self.routines()?;
        let (turns, variants) = divide(self.system, self.layout);
        let programs = variants.iter().map(|variant| self.program(variant)).collect::<Result<Vec<_>, String>>()?;
        let properties = self.properties()?;
        let accepted = match &self.system.deadlock {
            plimsoll_ir::Deadlock::Stuck { accepted: Some(expr) } => Some(self.accepted(expr)?),
            _ => None,
        };
        self.define_waiting()?;
        self.module.finalize_definitions().map_err(|error| error.to_string())?;
        let module = &self.module;
        let expand = |id: FuncId| {
            // SAFETY: `self.expand` declared and defined this function with exactly this signature.
            unsafe { std::mem::transmute::<*const u8, Expand>(module.get_finalized_function(id)) }
        };
        let judge = |id: FuncId| {
            // SAFETY: `self.judge` declared and defined this function with exactly this signature.
            unsafe { std::mem::transmute::<*const u8, Judge>(module.get_finalized_function(id)) }
        };
        let part = |planned: Planned| match planned {
            Planned::Always(id) => Part::Always(expand(id)),
            Planned::Switch(slot, ids) => Part::Switch(slot, ids.into_iter().map(|id| id.map(expand)).collect()),
        };
        let section = |parts: Vec<Planned>| parts.into_iter().map(part).collect();
        let program = |sections: Vec<Vec<Planned>>| Program::of(sections.into_iter().map(section).collect());
        Ok(Native {
            programs: programs.into_iter().map(program).collect(),
            turns,
            properties: properties.into_iter().map(judge).collect(),
            accepted: accepted.map(judge),
            code_bytes: self.code_bytes,
            _code: Code::of(self.module),
        })
    }

    fn program(&mut self, variant: &Variant) -> Result<Vec<Vec<Planned>>, String> {
        self.turn = variant.turn;
        let order = self.order;
        let sections = order.sections.iter().map(|section| section.only(&variant.commands));
        let sections: Vec<_> = sections.filter(|groups| !groups.is_empty()).collect();
        sections.iter().map(|groups| self.section(groups)).collect()
    }

    /// Divides the commands of one rank into functions.
    fn section(&mut self, groups: &[Group]) -> Result<Vec<Planned>, String> {
        let mut parts = Vec::new();
        let mut list: Vec<usize> = Vec::new();
        let mut weight = 0;
        for group in groups {
            let own: Vec<usize> = sorted(group.lists.iter().flatten());
            let own_weight = self.weight(&own);
            if !list.is_empty() && weight + own_weight > self.effort.function {
                parts.push(Planned::Always(self.expand(&std::mem::take(&mut list))?));
                weight = 0;
            }
            match group.process {
                Some(_) if own_weight > self.effort.function => parts.extend(self.big_process(group)?),
                _ => {
                    for index in own {
                        if !list.is_empty() && weight > self.effort.function {
                            parts.push(Planned::Always(self.expand(&std::mem::take(&mut list))?));
                            weight = 0;
                        }
                        weight += self.weight(&[index]);
                        list.push(index);
                    }
                }
            }
        }
        if !list.is_empty() {
            parts.push(Planned::Always(self.expand(&list)?));
        }
        Ok(parts)
    }

    /// Several functions for one process, each for some neighbouring locations. What is too large for one location is divided among several
    /// parts, of which each has one function for it.
    fn big_process(&mut self, group: &Group) -> Result<Vec<Planned>, String> {
        let process = group.process.expect("the group has a process");
        let var = self.system.processes[process.index()].location;
        let slot = self.layout.address(var.index(), &self.system.vars[var.index()].ty, &[]).slot(&[]);
        let mut parts: Vec<Vec<Option<FuncId>>> = Vec::new();
        let mut pending: Vec<usize> = Vec::new();
        for location in 0..group.lists.len() {
            pending.push(location);
            let next = group.lists.get(location + 1).map_or(usize::MAX, |list| self.weight(list));
            let list = sorted(pending.iter().flat_map(|&location| &group.lists[location]));
            if self.weight(&list).saturating_add(next) > self.effort.function {
                for (number, piece) in self.pieces(&list).into_iter().enumerate() {
                    let id = self.expand(piece)?;
                    if parts.len() == number {
                        parts.push(vec![None; group.lists.len()]);
                    }
                    pending.iter().for_each(|&location| parts[number][location] = Some(id));
                }
                pending.clear();
            }
        }
        Ok(parts.into_iter().map(|functions| Planned::Switch(slot, functions)).collect())
    }

    /// Neighbouring commands that fit one function, or are alone.
    fn pieces<'l>(&self, list: &'l [usize]) -> Vec<&'l [usize]> {
        let mut weight = 0;
        let chunks = list.chunk_by(|&before, &next| {
            weight += self.weight(&[before]);
            let fits = weight + self.weight(&[next]) <= self.effort.function;
            if !fits {
                weight = 0;
            }
            fits
        });
        chunks.collect()
    }

    fn weight(&self, list: &[usize]) -> usize {
        list.iter().map(|&index| code_of(&self.system.commands[index])).sum()
    }

    fn expand(&mut self, list: &[usize]) -> Result<FuncId, String> {
        let order = self.order;
        let known = self.turn.and_then(|turn| {
            let exclusive = self.system.exclusive?;
            Some((self.layout.root_bit(exclusive.index()), turn))
        });
        let mut callees = Vec::new();
        for &index in list {
            let command = &self.system.commands[index];
            called(&command.prelude, &mut callees);
            called(&command.body, &mut callees);
        }
        self.function(3, &callees, |emitter, params| {
            emitter.turn = known;
            emitter.commands(order, list, (params[1], params[2]));
        })
    }

    fn properties(&mut self) -> Result<Vec<FuncId>, String> {
        let system = self.system;
        let mut functions = Vec::new();
        let mut first = 0;
        while first < system.properties.len() {
            let mut weight = 0;
            let rest = system.properties[first..].iter();
            let limit = self.effort.function;
            let fits = |property: &&Property| {
                let before = weight;
                weight += property.weight();
                before == 0 || weight <= limit
            };
            let count = rest.take_while(fits).count();
            functions.push(self.judge(first..first + count)?);
            first += count;
        }
        Ok(functions)
    }

    fn judge(&mut self, numbers: std::ops::Range<usize>) -> Result<FuncId, String> {
        let properties = &self.system.properties;
        let mut callees = Vec::new();
        properties[numbers.clone()].iter().for_each(|property| called(&property.prelude, &mut callees));
        self.function(1, &callees, |emitter, _| {
            for number in numbers {
                let property = &properties[number];
                let (violated, fine) = (emitter.fresh(), emitter.fresh());
                let code: [&[Stmt]; 2] = [&property.prelude, &[]];
                let locals = Locals::temps(&property.temps);
                emitter.open_scope(Frame { locals, inputs: 0, code, expr: &property.expr }, violated, violated);
                if emitter.run(&property.prelude) {
                    match property.kind {
                        PropertyKind::Invariant => emitter.branch(&property.expr, fine, violated),
                        PropertyKind::Goal => emitter.branch(&property.expr, violated, fine),
                    }
                }
                emitter.b.switch_to_block(violated);
                let number = emitter.constant(number as i64);
                emitter.b.ins().return_(&[number.value]);
                emitter.b.switch_to_block(fine);
            }
            let none = emitter.constant(-1);
            emitter.b.ins().return_(&[none.value]);
        })
    }

    fn accepted(&mut self, expr: &'a Expr) -> Result<FuncId, String> {
        self.function(1, &[], |emitter, _| {
            let (yes, no) = (emitter.fresh(), emitter.fresh());
            emitter.open_scope(Frame { locals: Locals::temps(&[]), inputs: 0, code: [&[], &[]], expr }, no, no);
            emitter.branch(expr, yes, no);
            for (block, answer) in [(yes, 1), (no, 0)] {
                emitter.b.switch_to_block(block);
                let answer = emitter.constant(answer);
                emitter.b.ins().return_(&[answer.value]);
            }
        })
    }

    /// Declares the functions of all procedures in use, and then fills them.
    fn routines(&mut self) -> Result<(), String> {
        let system = self.system;
        let used = |&index: &usize| self.procedures.used[index];
        let used: Vec<usize> = (0..system.procedures.len()).filter(used).collect();
        for &index in &used {
            let mut signature = self.module.make_signature();
            sign(&mut signature, &system.procedures[index]);
            let id = self.module.declare_anonymous_function(&signature).map_err(|error| error.to_string())?;
            self.functions[index] = Some(id);
        }
        for index in used {
            let procedure = &system.procedures[index];
            let mut context = self.module.make_context();
            sign(&mut context.func.signature, procedure);
            let mut callees = Vec::new();
            called(&procedure.body, &mut callees);
            let id = self.functions[index].expect("just declared");
            self.fill(id, context, &callees, |emitter, params| emitter.procedure(index, params))?;
        }
        Ok(())
    }

    /// Declares a function of `count` pointers that returns a number; `emit` fills it.
    fn function(
        &mut self,
        count: usize,
        callees: &[ProcedureId],
        emit: impl FnOnce(&mut Emitter<'a, '_>, &[Value]),
    ) -> Result<FuncId, String> {
        let mut context = self.module.make_context();
        let signature = &mut context.func.signature;
        signature.params.resize(count, AbiParam::new(types::I64));
        signature.returns.push(AbiParam::new(types::I64));
        let id = self.module.declare_anonymous_function(&context.func.signature);
        let id = id.map_err(|error| error.to_string())?;
        self.fill(id, context, callees, emit)?;
        Ok(id)
    }

    /// Generates a function that calls these procedures; it becomes machine code later.
    fn fill(
        &mut self,
        id: FuncId,
        mut context: Context,
        callees: &[ProcedureId],
        emit: impl FnOnce(&mut Emitter<'a, '_>, &[Value]),
    ) -> Result<(), String> {
        let mut imports = Imports::new();
        for callee in callees {
            let function = self.functions[callee.index()].ok_or("a procedure without a function")?;
            imports.insert(*callee, self.module.declare_func_in_func(function, &mut context.func));
        }
        let builder = FunctionBuilder::new(&mut context.func, &mut self.frontend);
        let source = (self.system, self.layout);
        let (mut emitter, params) = Emitter::start(builder, source, self.procedures, imports, self.stop);
        emit(&mut emitter, &params);
        emitter.b.seal_all_blocks();
        emitter.b.finalize(self.module.target_config());
        shortcuts::take(&mut context.func);
        self.waiting.push((id, context));
        if self.waiting.len() >= self.effort.waiting {
            self.define_waiting()?;
        }
        Ok(())
    }

    /// Makes machine code of the functions that wait for it.
    fn define_waiting(&mut self) -> Result<(), String> {
        let mut waiting = std::mem::take(&mut self.waiting);
        translate((self.module.isa(), &*self.quick_isa), self.effort.large, &mut waiting)?;
        for (id, context) in &waiting {
            let code = context.compiled_code().ok_or("a function without code")?;
            let relocations = code.buffer.relocs().iter();
            let relocations: Vec<_> =
                relocations.map(|place| ModuleReloc::from_mach_reloc(place, &context.func, *id)).collect();
            let alignment = u64::from(code.buffer.alignment);
            let defined = self.module.define_function_bytes(*id, alignment, code.code_buffer(), &relocations);
            defined.map_err(|error| format!("{error:?}"))?;
            self.code_bytes += code.code_info().total_size as usize;
        }
        Ok(())
    }
}

/// Translates functions to machine code, several at once where there are processors: this is most of the time between
/// a model's text and its first state.
fn translate(
    (usual, quick): (&dyn TargetIsa, &dyn TargetIsa),
    large: usize,
    functions: &mut [(FuncId, Context)],
) -> Result<(), String> {
    let workers = thread::available_parallelism().map_or(1, |count| count.get()).min(functions.len());
    let left = Mutex::new(functions.iter_mut());
    let work = || -> Result<(), String> {
        loop {
            let next = left.lock().map_err(|error| error.to_string())?.next();
            let Some((_, context)) = next else { return Ok(()) };
            let isa = if context.func.dfg.num_insts() > large { quick } else { usual };
            context.compile(isa, &mut ControlPlane::default()).map_err(|error| format!("{:?}", error.inner))?;
        }
    };
    thread::scope(|scope| {
        // Who cannot be started leaves the work to the others.
        let others: Vec<_> =
            (1..workers).filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let own = work();
        others.into_iter().try_fold((), |(), other| other.join().map_err(|_| "a translator panicked")?).and(own)
    })
}

/// The machine at hand, and how hard code for it is worked on.
pub(super) fn isa_for(quick: bool) -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    let mut set = |name: &str, value: &str| flags.set(name, value).map_err(|error| error.to_string());
    set("opt_level", if quick { "none" } else { "speed" })?;
    set("regalloc_algorithm", if quick { "single_pass" } else { "backtracking" })?;
    set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" })?;
    set("enable_table_access_spectre_mitigation", "false")?;
    set("enable_heap_access_spectre_mitigation", "false")?;
    set("probestack_strategy", "inline")?;
    set("unwind_info", "false")?;
    let isa = cranelift_native::builder()?;
    isa.finish(settings::Flags::new(flags)).map_err(|error| error.to_string())
}

fn sorted<'i>(indices: impl Iterator<Item = &'i usize>) -> Vec<usize> {
    let mut list: Vec<usize> = indices.copied().collect();
    list.sort_unstable();
    list
}
