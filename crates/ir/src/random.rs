//! Random small systems, for tests that compare executors, strategies and passes.
//!
//! Every construct of the representation turns up sooner or later, faults and out-of-range indices
//! included. The same seed and size always give the same system. A system is verified, and its
//! reachable states are at most [`Size::states`]: the domains of all variables that are ever written
//! multiply to no more. Exclusive chains are finite, because a step that keeps the scalar non-zero moves
//! its processes to later locations only. In some systems processes keep their own variables to themselves
//! and take simple steps; in some of the others there are procedures.

mod code;
mod draw;

use crate::expr::{BinOp, Expr, Narrow, Stmt};
use crate::system::{
    Choice, Command, Deadlock, Faults, Kind, Procedure, Process, ProcessId, Property, PropertyKind, System, TempId,
    VarId,
};
use crate::types::{EnumId, Enumeration, Scalar, Type};
use code::{Code, Place};
pub use draw::Draw;

/// How large a random system may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Upper bound on the number of states.
    pub states: u64,
    /// Most processes.
    pub processes: u64,
    /// Most locations of a process.
    pub locations: u64,
    /// Depth of expressions and statements.
    pub depth: u32,
}

impl Size {
    pub const SMALL: Size = Size { states: 1_000, processes: 2, locations: 3, depth: 2 };
    pub const MEDIUM: Size = Size { states: 30_000, processes: 3, locations: 4, depth: 3 };
    pub const LARGE: Size = Size { states: 300_000, processes: 4, locations: 6, depth: 4 };
}

impl Default for Size {
    fn default() -> Size {
        Size::MEDIUM
    }
}

/// A random system that passes [`crate::verify()`].
pub fn random_system(seed: u64, size: Size) -> System {
    let mut draw = Draw::new(seed);
    let private = draw.chance(40);
    let (fixed, hidden, pure) = (Vec::new(), Vec::new(), Vec::new());
    let mut build = Build { draw, size, system: System::new(format!("random {seed}")), fixed, private, hidden, pure };
    build.enumerations();
    build.processes();
    build.variables();
    build.conventions();
    build.procedures();
    build.starts();
    build.commands();
    build.properties();
    build.system
}

struct Build {
    draw: Draw,
    size: Size,
    system: System,
    /// Variables that only special statements write: locations, the exclusive scalar, constant tables.
    fixed: Vec<VarId>,
    /// Are variables of a process its own?
    private: bool,
    /// Variables that the code at hand does not know.
    hidden: Vec<VarId>,
    /// Which procedures may be called in preludes.
    pure: Vec<bool>,
}

impl Build {
    fn enumerations(&mut self) {
        for index in 0..self.draw.below(3) {
            let labels = (0..self.draw.within(1, 4)).map(|label| format!("E{index}_{label}")).collect();
            let first = self.draw.within(-1, 1);
            self.system.enums.push(Enumeration { name: format!("enum{index}"), first, labels });
        }
    }

    fn processes(&mut self) {
        let most = self.size.processes.max(1);
        let count = if self.draw.chance(5) { 0 } else { 1 + self.draw.below(most).max(self.draw.below(most)) };
        for index in 0..count as u32 {
            let fewest = if self.draw.chance(10) { 1 } else { 2 };
            let locations = self.draw.within(fewest, self.size.locations.max(2) as i64);
            let high = if self.draw.chance(20) { 300 } else { locations - 1 };
            let owner = self.draw.chance(90).then_some(ProcessId(index));
            let location = self.system.var(format!("pc{index}"), Scalar::range(0, high), owner);
            self.fixed.push(location);
            if self.draw.chance(20) {
                self.system.vars[location.index()].init = vec![self.draw.below(locations as u64) as i64];
            }
            let locations = (0..locations).map(|location| format!("l{location}")).collect();
            self.system.processes.push(Process { name: format!("P{index}"), location, locations });
        }
    }

    fn variables(&mut self) {
        let locations: u64 = self.system.processes.iter().map(|process| process.locations.len() as u64).product();
        let mut room = self.size.states / locations.max(1);
        for index in 0..self.draw.within(3, 9) {
            let ty = self.ty(2);
            let domain = domain(&ty);
            if domain > room {
                continue;
            }
            room /= domain;
            self.variable(format!("v{index}"), ty);
        }
        if self.draw.chance(30) {
            let element = self.wide_scalar();
            let len = self.draw.within(3, 40) as u32;
            let table = self.variable("table".into(), Type::array(element.into(), len));
            self.fixed.push(table);
        }
        if self.draw.chance(25) && !self.system.processes.is_empty() {
            let high = self.system.processes.len() as i64;
            let exclusive = self.system.var("exclusive", Scalar::range(0, high), None);
            self.fixed.push(exclusive);
            self.system.exclusive = Some(exclusive);
        }
    }

    fn variable(&mut self, name: String, ty: Type) -> VarId {
        let name = match self.draw.below(40) {
            0 => "twice".into(),
            1 => "odd \"name\"\n\u{3b1}".into(),
            2 => format!("P0.{name}"),
            3 => "if".into(),
            _ => name,
        };
        let count = self.system.processes.len() as u64;
        let owner = (count > 0 && self.draw.chance(60)).then(|| ProcessId(self.draw.below(count) as u32));
        let init = if self.draw.chance(40) { self.initial_values(&ty) } else { Vec::new() };
        let var = self.system.var(name, ty, owner);
        self.system.vars[var.index()].init = init;
        var
    }

    fn initial_values(&mut self, ty: &Type) -> Vec<i64> {
        match ty {
            Type::Scalar(scalar) if code::is_wide(scalar) => {
                vec![scalar.low + self.draw.within(0, 3) * code::quarter(scalar)]
            }
            Type::Scalar(scalar) => vec![self.draw.within(scalar.low, scalar.high)],
            Type::Array { element, len } => (0..*len).flat_map(|_| self.initial_values(element)).collect(),
            Type::Record(fields) => fields.iter().flat_map(|(_, ty)| self.initial_values(ty)).collect(),
        }
    }

    fn ty(&mut self, depth: u32) -> Type {
        match self.draw.below(10) {
            0..2 if depth > 0 => {
                let len = self.draw.within(1, 4) as u32;
                Type::array(self.ty(depth - 1), len)
            }
            2..4 if depth > 0 => {
                let count = self.draw.within(1, 3);
                Type::Record((0..count).map(|field| (format!("f{field}"), self.ty(depth - 1))).collect())
            }
            4 => self.wide_scalar().into(),
            _ => self.small_scalar().into(),
        }
    }

    fn small_scalar(&mut self) -> Scalar {
        let (low, high) = self.draw.pick(&[
            (0, 1),
            (0, 1),
            (0, 2),
            (0, 3),
            (-2, 1),
            (-1, 2),
            (1, 3),
            (0, 6),
            (-1, 0),
            (0, 7),
            (5, 6),
        ]);
        let count = self.system.enums.len() as u64;
        let names = (count > 0 && self.draw.chance(30)).then(|| EnumId(self.draw.below(count) as u32));
        Scalar { names, ..Scalar::range(low, high) }
    }

    fn wide_scalar(&mut self) -> Scalar {
        let (low, high) = self.draw.pick(&[
            (0, 255),
            (-32768, 32767),
            (i32::MIN as i64, i32::MAX as i64),
            (0, u32::MAX as i64),
            (-100, 1000),
            (70_000, 100_000),
            (-128, 127),
        ]);
        Scalar::range(low, high)
    }

    fn conventions(&mut self) {
        self.system.faults = if self.draw.chance(50) { Faults::Vanish } else { Faults::Absorb };
        self.system.deadlock = match self.draw.below(6) {
            0 => Deadlock::Never,
            1 => Deadlock::Stuttering,
            2 | 3 => {
                let depth = self.size.depth;
                Deadlock::Stuck { accepted: Some(self.code(Vec::new()).expr(depth)) }
            }
            _ => Deadlock::Stuck { accepted: None },
        };
    }

    fn code(&mut self, temps: Vec<(String, Type)>) -> Code<'_> {
        Code::new(&mut self.draw, &self.system, (&self.fixed, &self.hidden), &self.pure, temps)
    }

    fn procedures(&mut self) {
        if self.private || self.draw.chance(40) {
            return;
        }
        for index in 0..self.draw.within(1, 4) {
            let pure = self.draw.chance(40);
            let references: Vec<_> =
                (0..self.draw.below(3)).map(|number| (format!("r{number}"), self.a_type_in_use())).collect();
            let mut temps: Vec<(String, Type)> =
                (0..self.draw.below(3)).map(|number| (format!("i{number}"), self.a_type_in_use())).collect();
            let inputs = temps.len();
            temps.push(("s".into(), self.small_scalar().into()));
            if self.draw.chance(50) {
                temps.push(("u".into(), self.a_type_in_use()));
            }
            let count = temps.len() as u64;
            let outputs = (0..self.draw.below(3)).map(|_| TempId(self.draw.below(count) as u32)).collect();
            let depth = self.size.depth;
            let (name, line) = (format!("f{index}"), self.draw.below(9) as u32);
            let recursion = if self.draw.chance(30) { self.draw.within(1, 3) as u32 } else { 0 };
            let (body, types) = (Vec::new(), references.clone());
            let own = Procedure { name, line, references, temps: temps.clone(), inputs, outputs, recursion, body };
            // Some may call themselves.
            if recursion > 0 {
                self.system.procedures.push(own.clone());
                self.pure.push(pure);
            }
            let mut code = self.code(temps).refer_to(&types);
            code = if pure { code.only_temps() } else { code.may_discard().may_assert() };
            let body = code.statements(depth);
            let temps = code.into_temps();
            self.system.procedures.truncate(index as usize);
            self.pure.truncate(index as usize);
            self.system.procedures.push(Procedure { temps, body, ..own });
            self.pure.push(pure);
        }
    }

    /// Lets the code that follows know the variables of these processes, and those of nobody.
    fn hide_from(&mut self, movers: &[ProcessId]) {
        let foreign = |var: &crate::system::Var| var.owner.is_some_and(|owner| !movers.contains(&owner));
        let all = self.system.vars.iter().enumerate().filter(|(_, var)| foreign(var));
        self.hidden = if self.private { all.map(|(index, _)| VarId(index as u32)).collect() } else { Vec::new() };
    }

    /// A command with temporaries, choices and perhaps a prelude; guard and body are left to the caller.
    fn frame(&mut self, label: String) -> Command {
        let mut command = Command::new(label);
        command.line = self.draw.below(100) as u32;
        command.kind = self.draw.pick(&[Kind::Control, Kind::Receive, Kind::Send, Kind::Assign, Kind::Other]);
        if self.draw.chance(40) {
            for index in 0..self.draw.within(1, 2) {
                let temp = command.temp(format!("c{index}"), Scalar::range(-2, 9));
                let low = self.draw.within(-2, 3);
                let high = low + self.draw.within(0, 2);
                command.choices.push(Choice { temp, low, high });
            }
        }
        if self.draw.chance(40) {
            let scalar = self.small_scalar();
            command.temp("t", scalar);
        }
        if self.draw.chance(40) {
            let ty = self.a_type_in_use();
            command.temp("u", ty);
        }
        if self.draw.chance(25) {
            let depth = self.size.depth;
            let mut code = self.code(std::mem::take(&mut command.temps)).only_temps().may_discard();
            command.prelude = code.statements(depth);
            command.temps = code.into_temps();
        }
        command
    }

    /// The type of some variable or of a part of one, so that whole copies are possible.
    fn a_type_in_use(&mut self) -> Type {
        let at = self.draw.below(self.system.vars.len() as u64) as usize;
        let mut ty = self.system.vars[at].ty.clone();
        while self.draw.chance(30) {
            ty = match ty {
                Type::Scalar(_) => break,
                Type::Array { element, .. } => *element,
                Type::Record(mut fields) => fields.swap_remove(0).1,
            };
        }
        ty
    }

    /// Fills in guard and body; `tail` comes last in the body.
    fn fill(&mut self, mut command: Command, tail: Vec<Stmt>) -> Command {
        let depth = self.size.depth;
        let mut code = self.code(std::mem::take(&mut command.temps)).may_discard().may_assert();
        let guard = code.guard(depth);
        command.guard = match command.guard {
            Expr::TRUE => guard,
            given => Expr::binary(BinOp::And, given, guard),
        };
        command.body = code.statements(depth);
        command.temps = code.into_temps();
        let at = if self.draw.chance(80) { command.body.len() } else { 0 };
        command.body.splice(at..at, tail);
        command
    }

    fn starts(&mut self) {
        if self.draw.chance(60) {
            return;
        }
        for index in 0..self.draw.within(1, 3) {
            let command = self.frame(format!("start {index}"));
            let command = self.fill(command, Vec::new());
            self.system.starts.push(command);
        }
        // Few systems without any initial state are enough.
        if self.draw.chance(90) {
            self.system.starts.push(Command::new("plain start"));
        }
    }

    fn commands(&mut self) {
        for process in 0..self.system.processes.len() {
            for location in 0..self.system.processes[process].locations.len() as u32 {
                if self.draw.chance(12) {
                    continue;
                }
                // Chains have as many ends as there are ways through them.
                let most = if self.system.exclusive.is_some() { 2 } else { 3 };
                for _ in 0..self.draw.within(1, most) {
                    self.moving_command(ProcessId(process as u32), location);
                }
            }
        }
        let fewest = if self.system.commands.is_empty() { 2 } else { 0 };
        self.hide_from(&[]);
        for index in 0..self.draw.within(fewest, 3) {
            let command = self.frame(format!("free {index}"));
            let tail = self.release().into_iter().collect();
            let command = self.fill(command, tail);
            self.system.commands.push(command);
        }
        if self.draw.chance(30) {
            for command in &mut self.system.commands {
                command.rank = self.draw.pick(&[0, 0, 0, 1, 2, 7]);
            }
        }
        self.system.sort_commands();
    }

    /// A command of one process, or a joint step of two.
    fn moving_command(&mut self, process: ProcessId, location: u32) {
        let count = self.system.processes.len() as u64;
        let simple = self.private && self.draw.chance(60);
        let partner = ProcessId(self.draw.below(count) as u32);
        let mut at = vec![(process, location)];
        if partner != process && !simple && self.draw.chance(25) {
            let locations = self.system.processes[partner.index()].locations.len() as u64;
            at.push((partner, self.draw.below(locations) as u32));
        }
        self.hide_from(&at.iter().map(|&(mover, _)| mover).collect::<Vec<_>>());
        let label = format!("P{} at {location}", process.0);
        let mut command = if simple { Command::new(label) } else { self.frame(label) };
        command.at = at;
        let mut tail = Vec::new();
        let mut forward = true;
        for &(process, location) in &command.at {
            let found = &self.system.processes[process.index()];
            let count = found.locations.len() as u32;
            let anywhere = self.draw.below(count as u64) as u32;
            let target = if self.draw.chance(60) { (location + 1) % count } else { anywhere };
            forward &= target > location;
            tail.push(Stmt::assign(found.location, target as i64, Narrow::Trap));
        }
        match self.system.exclusive {
            Some(exclusive) if forward && self.draw.chance(60) => {
                tail.push(Stmt::assign(exclusive, process.0 as i64 + 1, Narrow::Trap))
            }
            _ => tail.extend(self.release()),
        }
        if let Some(exclusive) = self.system.exclusive
            && (simple || self.draw.chance(70))
        {
            let holder = |value: i64| Expr::equal(Expr::read(exclusive), Expr::Const(value));
            command.guard = Expr::any([holder(0), holder(process.0 as i64 + 1)]);
        }
        let command = if simple { self.simple(command, tail) } else { self.fill(command, tail) };
        self.system.commands.push(command);
        self.hidden.clear();
    }

    /// Gives a command a body that cannot go wrong.
    fn simple(&mut self, mut command: Command, tail: Vec<Stmt>) -> Command {
        let count = self.draw.below(3);
        let mut code = self.code(Vec::new());
        command.body = (0..count).filter_map(|_| code.simple_assignment()).collect();
        command.body.extend(tail);
        command
    }

    fn release(&self) -> Option<Stmt> {
        self.system.exclusive.map(|exclusive| Stmt::Reset(Place::from(exclusive)))
    }

    fn properties(&mut self) {
        if self.draw.chance(30) {
            self.hidden.clear();
        }
        for index in 0..self.draw.below(4) {
            let kind = if self.draw.chance(60) { PropertyKind::Invariant } else { PropertyKind::Goal };
            let mut temps = Vec::new();
            if self.draw.chance(40) {
                temps.push(("t".into(), self.small_scalar().into()));
                temps.push(("u".into(), self.a_type_in_use()));
            }
            let depth = self.size.depth;
            let line = self.draw.below(50) as u32;
            let wants_prelude = self.draw.chance(40);
            let mut code = self.code(temps).only_temps();
            let prelude = if wants_prelude { code.statements(depth) } else { Vec::new() };
            let expr = code.guard(depth);
            let temps = code.into_temps();
            self.system.properties.push(Property { name: format!("p{index}"), line, kind, temps, prelude, expr });
        }
    }
}

/// How many values a variable of this type may take; wide scalars are only given a handful.
fn domain(ty: &Type) -> u64 {
    match ty {
        Type::Scalar(scalar) if code::is_wide(scalar) => 5,
        Type::Scalar(scalar) => (scalar.high - scalar.low + 1) as u64 + !scalar.contains(0) as u64,
        Type::Array { element, len } => domain(element).saturating_pow(*len),
        Type::Record(fields) => fields.iter().fold(1, |product, (_, ty)| product.saturating_mul(domain(ty))),
    }
}

#[cfg(test)]
mod tests;
