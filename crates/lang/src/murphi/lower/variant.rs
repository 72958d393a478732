//! Procedures that stay procedures: translated once for each way in which they are called.
//!
//! What the caller has in the state is handed over by reference; what it has in temporaries is copied, and copied
//! back where the parameter is `var`. That differs from a reference only if the callee sees one temporary under two
//! names, and such calls are expanded. How a parameter is passed decides which variant of the procedure is called.

use super::call::Procedure;
use super::code::Code;
use super::scope::Entry;
use super::value::Spot;
use super::{Lowered, Lowerer};
use crate::Span;
use crate::murphi::ast::Formal;
use plimsoll_ir::procedures::{Summary, summary};
use plimsoll_ir::{Call, Place, ProcedureId, ReferenceId, Root, Stmt, VarId};
use std::collections::BTreeSet;

/// How a parameter is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pass {
    /// A copy of something that is defined.
    Value,
    /// A copy of something that may be undefined.
    Copy,
    /// A copy that is copied back.
    Back,
    /// A part of the state.
    Reference,
}

/// What tells the variants of a procedure apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    procedure: usize,
    /// How often it is inside itself.
    depth: usize,
    /// Start states know less about what is defined.
    starting: bool,
    passes: Vec<Pass>,
}

/// A procedure as it is called in one way.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    id: ProcedureId,
    pub size: usize,
    /// Variables whose multisets may have changed, and the same of what is handed over.
    touched: BTreeSet<u32>,
    touched_references: BTreeSet<u32>,
}

/// Beyond so many variants of a procedure, what is defined and what may not be is passed in one way.
const FEW_VARIANTS: usize = 3;

/// How deep a procedure may be inside itself, if it is not nested too deep.
const MOST_RECURSION: u32 = 64;
const MOST_NESTED: u32 = 640;
/// Stands for the procedure that is being made.
const ITSELF: ProcedureId = ProcedureId(u32::MAX);

/// Gives calls to the procedure itself its number, and finds how deep inside they are.
fn name_itself(stmts: &mut [Stmt], id: ProcedureId, depth: u32, deepest: &mut u32) {
    for stmt in stmts {
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                name_itself(then, id, depth + 1, deepest);
                name_itself(otherwise, id, depth + 1, deepest);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => name_itself(body, id, depth + 1, deepest),
            Stmt::Call(call) if call.procedure == ITSELF => {
                call.procedure = id;
                *deepest = depth.max(*deepest);
            }
            _ => {}
        }
    }
}

impl<'a> Lowerer<'a> {
    /// How parameters can be passed; nothing if the callee could tell a copy from what was copied.
    pub(super) fn passes(&self, formals: &[Formal], parameters: &[Entry]) -> Option<Vec<Pass>> {
        let place = |entry: &Entry| match entry {
            Entry::Spot(spot) => Some(spot.place.clone()),
            _ => None,
        };
        let roots: Vec<Option<Root>> = parameters.iter().map(|entry| place(entry).map(|place| place.root)).collect();
        let pass = |(index, (formal, entry)): (usize, (&Formal, &Entry))| match entry {
            Entry::Spot(spot) => Some(match spot.place.root {
                Root::Temp(_) if formal.by_reference => {
                    let shared = roots.iter().enumerate().any(|(other, &root)| other != index && root == roots[index]);
                    return (!shared).then_some(Pass::Back);
                }
                Root::Temp(_) if self.types.is_simple(spot.ty) && self.is_defined(spot) => Pass::Value,
                Root::Temp(_) => Pass::Copy,
                Root::Var(_) | Root::Reference(_) => Pass::Reference,
            }),
            _ => Some(Pass::Value),
        };
        formals.iter().zip(parameters).enumerate().map(pass).collect()
    }

    /// The variant of a procedure for parameters that are passed in some way. It is made when first asked for.
    pub(super) fn variant(&mut self, number: usize, mut passes: Vec<Pass>) -> Lowered<(Variant, Vec<Pass>)> {
        let depth = self.expanding.iter().filter(|&&other| other == number).count();
        let mut key = Key { procedure: number, depth, starting: self.starting, passes: passes.clone() };
        let alike = |other: &&Key| (other.procedure, other.depth, other.starting) == (number, depth, key.starting);
        if !self.variants.contains_key(&key) && self.variants.keys().filter(alike).count() >= FEW_VARIANTS {
            for pass in passes.iter_mut().filter(|pass| **pass == Pass::Value) {
                *pass = Pass::Copy;
            }
            key.passes = passes.clone();
        }
        if let Some(found) = self.variants.get(&key) {
            return Ok((found.clone(), passes));
        }
        let made = self.make_variant(number, &passes)?;
        self.variants.insert(key, made.clone());
        Ok((made, passes))
    }

    fn make_variant(&mut self, number: usize, passes: &[Pass]) -> Lowered<Variant> {
        let outer = std::mem::replace(&mut self.code, Code::new());
        self.making.push((number, passes.to_vec()));
        let made = self.translate(number, passes);
        self.making.pop();
        let inner = std::mem::replace(&mut self.code, outer);
        self.made += inner.made;
        let mut procedure = made?;
        procedure.temps = inner.temps;
        procedure.body = inner.out;
        let size = super::code::size(&procedure.body);
        let id = self.add_procedure(procedure);
        Ok(Variant { id, size, touched: inner.touched, touched_references: inner.touched_references })
    }

    /// Adds a procedure that is complete.
    pub(super) fn add_procedure(&mut self, mut procedure: plimsoll_ir::Procedure) -> ProcedureId {
        let id = ProcedureId(self.system.procedures.len() as u32);
        let mut depth = 0;
        name_itself(&mut procedure.body, id, 1, &mut depth);
        procedure.recursion = MOST_NESTED.checked_div(depth).map_or(0, |times| times.min(MOST_RECURSION));
        self.summaries.push(summary(&procedure, &self.summaries));
        self.system.procedures.push(procedure);
        id
    }

    /// Translates the body into the code at hand, which is empty.
    fn translate(&mut self, number: usize, passes: &[Pass]) -> Lowered<plimsoll_ir::Procedure> {
        let Procedure { proc, formals, .. } = self.procs[number].clone();
        let (mut references, mut outputs, mut inputs) = (Vec::new(), Vec::new(), 0);
        let mut parameters = Vec::new();
        for ((formal, ty), pass) in proc.formals.iter().zip(formals).zip(passes) {
            let stored = self.types.stored(ty);
            let spot = if *pass == Pass::Reference {
                references.push((formal.name.text.clone(), stored));
                let root = Root::Reference(ReferenceId(references.len() as u32 - 1));
                // The caller knows whether what it hands over lies in a multiset.
                Spot { in_multiset: true, ..Spot::temp(Place { root, path: Vec::new() }, ty, false) }
            } else {
                inputs += 1;
                // What is copied back changes; what is not does so neither here nor there.
                let temp = match pass {
                    Pass::Back => self.code.temp(&formal.name.text, stored),
                    _ => self.code.fixed_temp(&formal.name.text, stored),
                };
                outputs.extend((*pass == Pass::Back).then_some(temp));
                Spot::temp(temp.into(), ty, *pass == Pass::Value)
            };
            parameters.push(Entry::Spot(Spot { writable: formal.by_reference, ..spot }));
        }
        if let Some(Spot { place: Place { root: Root::Temp(temp), .. }, .. }) = self.expand(number, parameters)? {
            outputs.insert(0, temp);
        }
        let (name, line) = (proc.name.text.clone(), self.line(proc.name.span));
        let (temps, body) = (Vec::new(), Vec::new());
        Ok(plimsoll_ir::Procedure { name, line, references, temps, inputs, outputs, recursion: 0, body })
    }

    /// Calls the variant that is being made. Nobody knows yet what it changes.
    pub(super) fn call_itself(
        &mut self,
        number: usize,
        passes: &[Pass],
        parameters: Vec<Entry>,
        span: Span,
    ) -> Lowered<Option<Spot>> {
        let references = passes.iter().filter(|pass| **pass == Pass::Reference).count() as u32;
        let touched_references = (0..references).collect();
        let unknown = Variant { id: ITSELF, size: 0, touched: BTreeSet::new(), touched_references };
        self.call_variant(number, &unknown, passes, parameters, span)
    }

    /// Calls a variant and returns the place of its result, if it has one.
    pub(super) fn call_variant(
        &mut self,
        number: usize,
        variant: &Variant,
        passes: &[Pass],
        parameters: Vec<Entry>,
        span: Span,
    ) -> Lowered<Option<Spot>> {
        let Procedure { proc, formals, result, .. } = self.procs[number].clone();
        let (mut references, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for (((formal, ty), pass), entry) in proc.formals.iter().zip(formals).zip(passes).zip(parameters) {
            let spot = match entry {
                Entry::Spot(spot) => spot,
                Entry::Value(value) => {
                    let temp = self.code.fixed_temp(&formal.name.text, self.types.stored(ty));
                    let spot = Spot::temp(temp.into(), ty, true);
                    self.store(&spot, value, span)?;
                    spot
                }
                Entry::Type(_) | Entry::Procedure(_) => unreachable!("parameters are places or values"),
            };
            if *pass != Pass::Reference {
                inputs.push(spot.place.clone());
                outputs.extend((*pass == Pass::Back).then_some(spot.place));
                continue;
            }
            if variant.touched_references.contains(&(references.len() as u32)) {
                self.note_touched(&Spot { ty, ..spot.clone() });
            }
            references.push(spot.place);
        }
        let result = result.map(|ty| {
            let temp = self.code.fixed_temp("result", self.types.stored(ty));
            outputs.insert(0, temp.into());
            Spot::temp(temp.into(), ty, false)
        });
        self.code.touched.extend(&variant.touched);
        let call = Call { procedure: variant.id, references, inputs, outputs };
        self.emit_call(call);
        Ok(result)
    }

    /// Emits a call and forgets what it may change.
    pub(super) fn emit_call(&mut self, call: Call) {
        let all = || (0..self.system.vars.len() as u32).map(VarId).collect();
        let done = match call.procedure {
            ITSELF => Summary { writes: all(), ..Summary::default() },
            procedure => self.summaries[procedure.index()].clone(),
        };
        for var in done.writes {
            self.code.written(&var.into());
        }
        for (place, _) in call.references.iter().zip(done.writes_reference).filter(|(_, written)| *written) {
            self.code.written(place);
        }
        self.code.emit(Stmt::Call(Box::new(call)));
    }
}
