//! Where control rests after an element, and what it can do there.

use super::elements::{Elements, Id, Kind};
use crate::promela::lexer::Site;

/// More jumps in a row are taken for a circle.
const LONGEST_CHASE: usize = 500;

impl Elements<'_> {
    /// The location that control reaches when it goes to `from`; `atom` if it comes from inside an atomic
    /// sequence, which jumps may then not leave silently.
    pub fn hunt(&self, from: Id, atom: bool) -> Result<Id, (String, Site)> {
        let mut at = from;
        for _ in 0..LONGEST_CHASE {
            let next = match &self.get(at).kind {
                Kind::Goto(_) => self.goto_target(at),
                Kind::Join | Kind::AfterLoop => self.get(at).next,
                Kind::Unless(normal, _) => self.seqs[*normal].first,
                _ => return Ok(at),
            };
            let Some(next) = next else { return Ok(at) };
            let is_unless = matches!(self.get(at).kind, Kind::Unless(..));
            if atom && !self.get(next).atom && !is_unless {
                return Ok(at);
            }
            at = next;
        }
        Err(("jumps go in a circle without any statement".into(), self.get(from).site))
    }

    /// The elements whose transitions are possible at a location: itself, or the first statements within.
    pub fn leaves(&self, at: Id, out: &mut Vec<Id>) {
        match &self.get(at).kind {
            Kind::Choose(options) => {
                for &option in options {
                    if let Some(first) = self.seqs[option].first {
                        self.leaves(self.start_of(first), out);
                    }
                }
            }
            Kind::Block(inner) => {
                if let Some(first) = self.seqs[*inner].first {
                    self.leaves(self.start_of(first), out);
                }
            }
            Kind::Unless(..) => self.leaves(self.start_of(at), out),
            _ => out.push(at),
        }
    }

    /// Passes joins and enters `unless`, but does not follow jumps.
    fn start_of(&self, mut at: Id) -> Id {
        for _ in 0..LONGEST_CHASE {
            at = match (&self.get(at).kind, self.get(at).next) {
                (Kind::Join, Some(next)) => next,
                (Kind::Unless(normal, _), _) => match self.seqs[*normal].first {
                    Some(first) => first,
                    None => return at,
                },
                _ => return at,
            };
        }
        at
    }
}
