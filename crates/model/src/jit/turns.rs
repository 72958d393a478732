//! Code for each turn: while an atomic chain runs, few commands can.
//!
//! The guards of most commands are false unless the exclusive scalar has one of a few values. For each of its
//! values the commands that may run are compiled on their own, the value taken as known: in a chain nobody
//! else is asked, and outside of chains no guard asks whether one runs.

use std::collections::BTreeMap;

use plimsoll_ir::{Command, Layout, Slot, System};

/// An exclusive scalar of more bits is not looked at.
const MOST_BITS: u32 = 8;
/// Nor is that of a system of more expressions and statements: compiling takes time and memory.
const MOST_WEIGHT: usize = 50_000;
/// Together the variants may be this many times as large as the system.
const MOST_TIMES: usize = 2;

/// Some of the commands, all that may run in certain states.
pub(super) struct Variant {
    /// In order.
    pub commands: Vec<usize>,
    /// The value of the exclusive scalar in all those states, if they have one in common.
    pub turn: Option<i64>,
}

/// Which variant belongs to which state.
pub(super) struct Turns {
    scalar: Slot,
    /// By what the scalar's bits hold.
    variants: Vec<u16>,
}

impl Turns {
    pub fn variant(&self, state: &[u32]) -> usize {
        self.variants[self.scalar.load(state) as usize] as usize
    }
}

/// Divides a system by turns if that is worth while; else all commands are one variant.
pub(super) fn divide(system: &System, layout: &Layout) -> (Option<Turns>, Vec<Variant>) {
    let whole = || (None, vec![Variant { commands: (0..system.commands.len()).collect(), turn: None }]);
    let weight = |index: usize| system.commands[index].weight();
    let total: usize = (0..system.commands.len()).map(weight).sum();
    let Some(exclusive) = system.exclusive.filter(|_| total <= MOST_WEIGHT) else { return whole() };
    let ty = &system.vars[exclusive.index()].ty;
    let scalar = layout.address(exclusive.index(), ty, &[]).slot(&[]);
    let Some(range) = ty.as_scalar().filter(|_| scalar.bits <= MOST_BITS) else { return whole() };
    let mut variants: Vec<Variant> = Vec::new();
    let mut known: BTreeMap<Vec<usize>, u16> = BTreeMap::new();
    let mut by_bits = Vec::new();
    for raw in 0..1 << scalar.bits {
        let turn = range.decode(raw);
        let runs = |command: &Command| !command.is_blocked(exclusive, turn);
        let commands: Vec<usize> = (0..system.commands.len()).filter(|&index| runs(&system.commands[index])).collect();
        let number = *known.entry(commands).or_insert_with_key(|commands| {
            variants.push(Variant { commands: commands.clone(), turn: Some(turn) });
            variants.len() as u16 - 1
        });
        let variant = &mut variants[number as usize];
        variant.turn = variant.turn.filter(|&first| first == turn);
        by_bits.push(number);
    }
    let size: usize = variants.iter().flat_map(|variant| &variant.commands).map(|&index| weight(index)).sum();
    if size > MOST_TIMES * total {
        return whole();
    }
    (Some(Turns { scalar, variants: by_bits }), variants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Jit, Model, Successors};

    /// Two processes that may run through atomically, and a command that asks nobody, with a guard to be filled in.
    fn system(free: &str) -> System {
        let text = format!(
            r#"system "turns" var p: 0..2 of P var q: 0..2 of Q var turn: 0..7 var n: 0..3
            process P at p {{ a, b, c }} process Q at q {{ a, b, c }} exclusive turn
            command "P0" at P.a {{ when turn == 0 do {{ p := 1; turn := 1; }} }}
            command "P1" at P.b {{ when (turn == 0) || (turn == 1) do {{ n := turn wrapping; p := 2; turn := 0; }} }}
            command "P2" at P.b {{ when ((turn == 0) || (turn == 1)) && (n < 2) do {{ n := n + 1 wrapping; }} }}
            command "Q0" at Q.a {{ when turn == 0 do {{ q := 1; turn := 2; n := turn wrapping; }} }}
            command "Q1" at Q.b {{ when (turn == 0) || (turn == 2) do {{ q := 2; turn := 1; }} }}
            command "free" {{ {free} do {{ n := 0; }} }}"#
        );
        plimsoll_ir::text::parse(&text).unwrap()
    }

    fn variants(system: &System) -> Vec<(Vec<usize>, Option<i64>)> {
        let (_, variants) = divide(system, &Layout::of_system(system));
        variants.into_iter().map(|variant| (variant.commands, variant.turn)).collect()
    }

    #[test]
    fn each_turn_has_the_commands_that_may_run() {
        let whole = (vec![0, 1, 2, 3, 4, 5], Some(0));
        let (first, second) = ((vec![1, 2], Some(1)), (vec![4], Some(2)));
        assert_eq!(variants(&system("when turn == 0")), [whole.clone(), first, second, (vec![], None)]);
        let (first, second) = ((vec![1, 2, 5], Some(1)), (vec![4, 5], Some(2)));
        assert_eq!(variants(&system("")), [whole, first, second, (vec![5], None)]);
    }

    #[test]
    fn what_would_grow_too_much_stays_whole() {
        let mut system = system("");
        (0..200).for_each(|_| system.commands.push(system.commands[5].clone()));
        assert_eq!(variants(&system), [((0..206).collect(), None)]);
    }

    #[test]
    fn the_code_of_each_turn_agrees_with_the_interpreter() {
        for free in ["when turn == 0", "", "when turn > 4"] {
            let jit = Jit::new(system(free)).unwrap();
            let layout = Layout::of_system(jit.interp().system());
            let slot = |var: usize| layout.address(var, &jit.interp().system().vars[var].ty, &[]).slot(&[]);
            for number in 0..4 * 4 * 8 * 4 {
                let mut state = vec![0; jit.width()];
                for (var, value) in [number % 4, number / 4 % 4, number / 16 % 8, number / 128].into_iter().enumerate()
                {
                    slot(var).store(&mut state, value);
                }
                let entries = |model: &dyn Model| {
                    let mut out = Successors::new(model.width());
                    model.successors(&state, &mut out);
                    out.iter().map(|(state, step)| (state.to_vec(), step)).collect::<Vec<_>>()
                };
                assert_eq!(entries(&jit), entries(jit.interp()), "{free:?} in {state:?}");
            }
        }
    }
}
