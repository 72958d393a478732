//! Conditions that some reachable state should satisfy (`cover`). They are searched for after a search that found
//! nothing wrong: all at once, and again without each that was found, until none is left or no state satisfies
//! any. Most are found early, so at most one of these searches visits everything.

use crate::failure::{Failure, exit};
use crate::report::Judgement;
use plimsoll_ir::{Property, System};
use plimsoll_search::{Verdict, What};

/// What the searches found.
#[derive(Debug, Default)]
pub struct Coverage {
    /// Names, and how far away the nearest state is.
    pub covered: Vec<(String, usize)>,
    pub missed: Vec<Property>,
    /// A verdict that says why the missed ones are not decided.
    pub undecided: Option<Verdict>,
}

/// Searches for the conditions; `search` checks a system for its properties only.
pub fn cover(
    system: &System,
    covers: &[Property],
    mut search: impl FnMut(System) -> Result<Verdict, Failure>,
) -> Result<Coverage, Failure> {
    let mut coverage = Coverage { missed: covers.to_vec(), ..Coverage::default() };
    while !coverage.missed.is_empty() {
        match search(System { properties: coverage.missed.clone(), ..system.clone() })? {
            Verdict::Violated(violation) => {
                let What::Property(number) = violation.what else {
                    return Err(Failure::internal("something else than a property was found"));
                };
                let found = coverage.missed.remove(number as usize);
                coverage.covered.push((found.name, violation.trace.steps()));
            }
            Verdict::Holds => break,
            undecided => {
                coverage.undecided = Some(undecided);
                break;
            }
        }
    }
    Ok(coverage)
}

impl Coverage {
    /// The verdict, if a condition holds nowhere.
    pub fn judgement(&self) -> Option<Judgement> {
        let first = self.missed.first()?;
        let more = match self.missed.len() - 1 {
            0 => String::new(),
            more => format!(", and so {} more", if more == 1 { "is 1".into() } else { format!("are {more}") }),
        };
        let reason = format!("`{}` (line {}) is true in no reachable state{more}", first.name, first.line);
        let headline = "condition never met";
        Some(Judgement { verdict: "uncovered", headline, reason, exit_code: exit::PROPERTY })
    }

    pub fn note(&self) -> Option<String> {
        let shown: Vec<String> = self.covered.iter().map(|(name, steps)| format!("`{name}` ({steps} steps)")).collect();
        (!shown.is_empty()).then(|| format!("covered: {}", shown.join(", ")))
    }
}
