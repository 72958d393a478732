//! What a model may ask about its own processes: `enabled(pid)`, `pc_value(pid)` and `np_`.

use super::transition::Spot;
use super::value::{Draft, Value, balanced};
use super::{Frame, Lowering};
use crate::promela::ast::Expr as Source;
use plimsoll_ir::{BinOp, Expr, Narrow, Scalar, Stmt};

impl Lowering<'_> {
    /// Can the process take a step?
    pub fn is_process_enabled(&mut self, pid: &Source, frame: Frame, draft: &mut Draft) -> Value {
        let pid = self.value(pid, frame, draft).expr;
        let pid = draft.keep(pid);
        let answer = draft.temp("enabled", Scalar::BOOL);
        draft.code.push(Stmt::assign(answer, 0, Narrow::Wrap));
        for spot in self.spots().into_iter().filter(|spot| Some(spot.slot) != frame.slot) {
            let location = self.slots[spot.slot].location(spot.proctype, spot.location);
            let here = self.stands_at(spot.slot, &[location]);
            let asked = Expr::equal(pid.clone(), Expr::Const(spot.slot as i64));
            let before = draft.take_code();
            let enabled = self.can_leave(spot, draft);
            let mut then = std::mem::replace(&mut draft.code, before);
            let truth = Expr::binary(BinOp::Ne, enabled, Expr::Const(0));
            then.push(Stmt::assign(answer, truth, Narrow::Wrap));
            draft.code.push(Stmt::If { condition: Expr::all([asked, here]), then, otherwise: Vec::new() });
        }
        Value::truth(Expr::read(answer))
    }

    /// Is any transition of a location enabled?
    fn can_leave(&mut self, spot: Spot, draft: &mut Draft) -> Expr {
        let count = self.automata[spot.proctype].locations[spot.location].transitions.len();
        let mut terms = Vec::new();
        for index in 0..count {
            let transition = self.transition(spot, index);
            terms.push(self.is_enabled(spot, index, &transition, draft));
        }
        let any = balanced(BinOp::Or, terms);
        match self.provided(spot.frame(), draft) {
            Some(provided) => Expr::all([provided, any]),
            None => any,
        }
    }

    /// SPIN's number of the place where the process is; 0 if there is none.
    pub fn place_number(&mut self, pid: &Source, frame: Frame, draft: &mut Draft) -> Value {
        let pid = self.value(pid, frame, draft).expr;
        let pid = draft.keep(pid);
        let answer = draft.temp("place", Scalar::I32);
        draft.code.push(Stmt::assign(answer, 0, Narrow::Wrap));
        for spot in self.spots() {
            let place = self.slots[spot.slot].location(spot.proctype, spot.location);
            let here = self.stands_at(spot.slot, &[place]);
            let condition = Expr::all([Expr::equal(pid.clone(), Expr::Const(spot.slot as i64)), here]);
            let number = self.automata[spot.proctype].locations[spot.location].number;
            let then = vec![Stmt::assign(answer, number as i64, Narrow::Wrap)];
            draft.code.push(Stmt::If { condition, then, otherwise: Vec::new() });
        }
        Value::of_scalar(Expr::read(answer), Scalar::I32)
    }

    /// Is no process at a progress label?
    pub fn no_progress(&self) -> Value {
        let mut terms = Vec::new();
        for (number, slot) in self.slots.iter().enumerate() {
            for &(proctype, first) in &slot.tenants {
                let labels = self.automata[proctype].labels.iter();
                let progress = labels.filter(|(label, _)| label.name.starts_with("progress"));
                let places: Vec<u32> = progress.filter_map(|(_, at)| Some(first + (*at)? as u32)).collect();
                if !places.is_empty() {
                    terms.push(Expr::negate(self.stands_at(number, &places)));
                }
            }
        }
        Value::truth(balanced(BinOp::And, terms))
    }
}
