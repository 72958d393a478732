//! The verdict in words, and its exit code.

use super::TraceReport;
use crate::failure::exit;
use crate::presets::CACHE_SIZE_FORMS;
use crate::size::{show_count, show_small};
use crate::view::View;
use plimsoll_ir::PropertyKind;
use plimsoll_search::{Ask, Stats, Verdict, What, Why};
use plimsoll_store::Odds;
use serde::Serialize;

/// A verdict as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// One or two words for programs; the values are listed in the schema of reports.
    pub verdict: &'static str,
    /// The same for people, so that none can be taken for another.
    #[serde(skip)]
    pub headline: &'static str,
    pub reason: String,
    pub exit_code: u8,
}

impl Judgement {
    /// Words for `verdict`. `shown` is the trace of a violation as people see it; `by_levels` says whether levels are held as wholes.
    pub fn of(
        verdict: &Verdict,
        stats: &Stats,
        by_levels: bool,
        ask: &Ask,
        view: &View,
        shown: Option<&TraceReport>,
    ) -> Judgement {
        let (verdict, reason, exit_code) = match verdict {
            Verdict::Holds => ("holds", holds(ask, view), exit::HOLDS),
            Verdict::HoldsUnless(odds) => ("holds unless collision", unless(*odds, stats), exit::HOLDS_UNLESS),
            Verdict::HoldsToDepth(depth) => ("holds to depth", to_depth(*depth, ask), exit::HOLDS_TO_DEPTH),
            Verdict::Violated(violation) => {
                let steps = steps(shown.map_or(violation.trace.steps(), |shown| shown.positions().len() - 1));
                let problem = shown.and_then(|shown| shown.problem.clone());
                match violation.what {
                    What::Deadlock => ("deadlock", format!("a state without a way on, {steps}"), exit::DEADLOCK),
                    What::Fault => ("error", wrong(problem, "a step goes wrong", &steps), exit::ERROR),
                    What::Assertion => ("assertion", wrong(problem, "an assertion fails", &steps), exit::ERROR),
                    What::Property(number) => property(view, number, &steps),
                }
            }
            Verdict::Unknown(why) => ("unknown", unknown(why, stats, by_levels), exit::UNKNOWN),
        };
        Judgement { verdict, headline: headline(verdict, has(view, PropertyKind::Goal)), reason, exit_code }
    }
}

/// What people read first. Who searched for a state wants to know whether it was found.
fn headline(verdict: &'static str, searched: bool) -> &'static str {
    match verdict {
        "holds" if searched => "not found",
        "holds" => "holds",
        "holds unless collision" if searched => "not found unless collision",
        "holds to depth" if searched => "not found to this depth",
        "holds to depth" => "holds to this depth only",
        "deadlock" => "deadlock found",
        "error" => "error in the model",
        "assertion" => "assertion failed",
        "invariant" => "invariant violated",
        "reached" => "found",
        other => other,
    }
}

/// A state that many steps away was looked at, but where it leads was not.
fn to_depth(depth: u32, ask: &Ask) -> String {
    let deadlocks = if ask.deadlocks { ", and no state nearer than that is deadlocked" } else { "" };
    format!("nothing is wrong within {depth} steps{deadlocks}; deeper states were not visited")
}

fn holds(ask: &Ask, view: &View) -> String {
    let asked = [
        (ask.deadlocks, "a deadlock"),
        (ask.errors, "an error"),
        (ask.errors, "a failed assertion"),
        (ask.properties && has(view, PropertyKind::Invariant), "a violated invariant"),
        (ask.properties && has(view, PropertyKind::Goal), "a state that was searched for"),
    ];
    let list: Vec<&str> = asked.iter().filter(|(asked, _)| *asked).map(|(_, words)| *words).collect();
    match list.split_last() {
        None => "every reachable state was visited; nothing was looked for".into(),
        Some((last, [])) => format!("every reachable state was visited without meeting {last}"),
        Some((last, rest)) => {
            format!("every reachable state was visited without meeting {} or {last}", rest.join(", "))
        }
    }
}

fn unless(odds: Odds, stats: &Stats) -> String {
    let (missed, any) = (show_small(odds.omissions()), show_small(odds.probability() * 100.0));
    format!(
        "nothing wrong was seen in {} states, but {missed} more are expected to have been taken for others (that any was: \
         {any} %), and what only they lead to was not seen",
        show_count(stats.states)
    )
}

fn has(view: &View, kind: PropertyKind) -> bool {
    (0..).map_while(|number| view.property(number)).any(|property| property.kind == kind)
}

fn wrong(problem: Option<String>, otherwise: &str, steps: &str) -> String {
    format!("{}, {steps}", problem.unwrap_or_else(|| otherwise.into()))
}

fn property(view: &View, number: u32, steps: &str) -> (&'static str, String, u8) {
    let Some(property) = view.property(number) else { return ("invariant", "a property".into(), exit::PROPERTY) };
    let at = if property.line > 0 { format!(" (line {})", property.line) } else { String::new() };
    match property.kind {
        PropertyKind::Goal => ("reached", format!("`{}` is true{at}, {steps}", property.name), exit::PROPERTY),
        PropertyKind::Invariant => {
            ("invariant", format!("`{}` is violated{at}, {steps}", property.name), exit::PROPERTY)
        }
    }
}

fn steps(count: usize) -> String {
    match count {
        0 => "in an initial state".into(),
        1 => "after 1 step".into(),
        _ => format!("after {} steps", show_count(count as u64)),
    }
}

fn unknown(why: &Why, stats: &Stats, by_levels: bool) -> String {
    let what = match why {
        Why::Memory if by_levels && stats.levels > 0 => format!(
            "memory: level {} does not fit beside the levels that must stay ({} states are held)",
            stats.levels,
            show_count(stats.held)
        ),
        Why::Memory if stats.capacity > 0 && stats.held >= stats.capacity => format!(
            "memory: all {} states that the cache holds are on the stack, wait to be expanded or are kept: a larger one is needed, \
             {CACHE_SIZE_FORMS}",
            show_count(stats.capacity)
        ),
        Why::Memory => "memory: the budget is used up".to_string(),
        Why::Redundancy => format!(
            "redundancy: states were visited {:.1} times each on average (--redundancy-limit); a larger cache would help",
            stats.redundancy()
        ),
        Why::Disk(message) => format!("disk: {message}"),
        Why::Time => "time: the limit is reached".into(),
        Why::States => "states: the limit is reached".into(),
        Why::Depth => {
            "depth: states beyond the limit were not visited, and a depth-first search may miss nearer ones too".into()
        }
        Why::Lossy => "the strategy may miss states, so that it proves nothing".into(),
        Why::Interrupted => "interrupted".into(),
    };
    format!("{what}; nothing wrong was seen in {} states", show_count(stats.states))
}
