//! `plimsoll simulate`: a walk through a model, at random or by hand.
//!
//! What a check would report is told on the way: failed assertions, violated invariants, deadlocks. A random walk ends there.

use crate::executor::Executor;
use crate::failure::{Failure, exit};
use crate::options::{ColorName, LookFor, SimulateOptions};
use crate::output::Output;
use crate::report::steps;
use crate::report::text::{self, Style};
use crate::size::show_count;
use crate::view::View;
use crate::{room, subject};
use plimsoll_ir::PropertyKind;
use plimsoll_model::{Patience, Successors};
use plimsoll_search::Draw;
use plimsoll_search::trace::is_deadlock;
use std::io::{self, BufRead};
use std::time::{SystemTime, UNIX_EPOCH};

const KEYS: &str = "  NUMBER  take this step      s  show the state         q  quit
  Enter   take any step       l  list the steps again   ?  this help
  u       undo a step
";

/// A walk so far.
struct Walk<'a> {
    executor: &'a Executor,
    view: View<'a>,
    /// The states before the current one, if steps may be taken back.
    before: Vec<Vec<u32>>,
    keeps: bool,
    state: Vec<u32>,
    /// The successors of the current state.
    next: Successors,
    random: Draw,
    style: Style,
    file: String,
    steps: u64,
    /// Choices in all states that were left, and the most of one.
    choices: u64,
    most_choices: usize,
}

/// Runs the command.
pub fn run(options: &SimulateOptions, out: &mut Output) -> Result<u8, Failure> {
    let color = ColorName::Auto.wanted(&io::stdout());
    let look_for = LookFor { invariant: options.invariant.clone(), ..LookFor::default() };
    let subject = subject::load(&options.model, &look_for, ColorName::Auto.wanted(&io::stderr()))?;
    let subject = room::walk(subject, &look_for)?;
    let merge = subject::merges(&options.model, false);
    let content = subject.content.prepared(merge, subject.symmetry.as_ref());
    let executor = Executor::interpreted(content, Patience::default());
    let seed = options.seed.unwrap_or_else(clock);
    let width = executor.reference().width();
    let mut walk = Walk {
        executor: &executor,
        view: View::new(&executor),
        before: Vec::new(),
        keeps: options.interactive,
        state: Vec::new(),
        next: Successors::new(width),
        random: Draw::new(seed),
        style: Style { color, ..Style::default() },
        file: text::file_name(&options.model.model.display().to_string()).into(),
        steps: 0,
        choices: 0,
        most_choices: 0,
    };
    out.print(&format!("seed {seed}\n"));
    let end = match walk.start(out) {
        Err(end) => end,
        Ok(()) if options.interactive => by_hand(&mut walk, out),
        Ok(()) => at_random(&mut walk, options.steps, out),
    };
    out.print(&format!("{}\n{}", end.why, walk.statistics()));
    Ok(end.exit_code)
}

/// Why a walk ends.
struct End {
    why: String,
    exit_code: u8,
}

impl End {
    fn fine(why: &str) -> End {
        End { why: why.into(), exit_code: exit::HOLDS }
    }
}

fn at_random(walk: &mut Walk, steps: u64, out: &mut Output) -> End {
    let mut wrong = walk.wrong();
    for _ in 0..steps {
        if wrong.is_some() || walk.next.is_empty() || out.is_broken() {
            break;
        }
        let choice = walk.random.below(walk.next.len());
        wrong = walk.take(choice, out).or_else(|| walk.wrong());
    }
    match wrong {
        Some(end) => end,
        None if walk.next.is_empty() => End::fine("the end of the model: no step is possible, and none is expected"),
        None => End::fine("stopped after the last step asked for"),
    }
}

fn by_hand(walk: &mut Walk, out: &mut Output) -> End {
    let mut lines = io::stdin().lock().lines();
    let mut fault = None;
    walk.list(out);
    loop {
        if let Some(End { why, .. }) = fault.take().or_else(|| walk.wrong()) {
            out.print(&format!("    !  {why}\n"));
        }
        out.print(&format!("step {} (? for help) > ", walk.steps + 1));
        let Some(Ok(line)) = lines.next() else { return End::fine("\nend of input") };
        let choice = match line.trim() {
            "q" => return End::fine("quit"),
            "?" | "h" | "help" => {
                out.print(KEYS);
                continue;
            }
            "u" | "b" => {
                if !walk.undo() {
                    out.print("this is the first state\n");
                }
                walk.list(out);
                continue;
            }
            "s" => {
                out.print(&walk.shown_state());
                continue;
            }
            "l" => {
                walk.list(out);
                continue;
            }
            "" if !walk.next.is_empty() => walk.random.below(walk.next.len()),
            number => match number.parse::<usize>() {
                Ok(number) if (1..=walk.next.len()).contains(&number) => number - 1,
                _ => {
                    out.print("there is no such step; ? lists what can be typed\n");
                    continue;
                }
            },
        };
        fault = walk.take(choice, out);
        walk.list(out);
    }
}

impl Walk<'_> {
    fn start(&mut self, out: &mut Output) -> Result<(), End> {
        let mut initial = Successors::new(self.next.width());
        self.executor.reference().initial(&mut initial);
        if initial.is_empty() {
            return Err(End::fine("there is no initial state"));
        }
        let choice = self.random.below(initial.len());
        let step = initial.step(choice);
        if !step.is_plain() {
            let why = self.executor.explain(None, step).unwrap_or_else(|| "the start goes wrong".into());
            return Err(End { why, exit_code: exit::ERROR });
        }
        self.go_to(initial.state(choice).to_vec());
        out.print(&self.shown_state());
        Ok(())
    }

    fn shown_state(&self) -> String {
        let mut shown = String::new();
        steps::state(self.steps, &self.view.state(&self.state), self.view.assign(), &mut shown);
        shown
    }

    fn go_to(&mut self, state: Vec<u32>) {
        self.state = state;
        self.next.clear();
        self.executor.reference().successors(&self.state, &mut self.next);
    }

    /// Takes a step and shows it. If something goes wrong in it, says what; where it leads nowhere, the walk stays.
    fn take(&mut self, choice: usize, out: &mut Output) -> Option<End> {
        let mut taken = Vec::new();
        self.view.add_steps(&self.state, choice, self.steps + 1, &mut taken);
        taken.iter().for_each(|step| out.print(&steps::step(step, &self.file, self.view.assign(), self.style)));
        let step = self.next.step(choice);
        let problem = taken.iter().find_map(|step| step.problem.clone());
        self.choices += self.next.len() as u64;
        self.most_choices = self.most_choices.max(self.next.len());
        if !step.is_fault() {
            let before = std::mem::take(&mut self.state);
            let after = self.next.state(choice).to_vec();
            if self.keeps {
                self.before.push(before);
            }
            self.steps += 1;
            self.go_to(after);
        }
        let what = if step.is_fault() { "the step goes wrong" } else { "an assertion fails" };
        problem.map(|problem| End { why: format!("{what}: {problem}"), exit_code: exit::ERROR })
    }

    fn undo(&mut self) -> bool {
        let Some(before) = self.before.pop() else { return false };
        self.steps -= 1;
        self.go_to(before);
        true
    }

    /// What is wrong with the current state.
    fn wrong(&self) -> Option<End> {
        let model = self.executor.reference();
        if let Some(property) = model.violated(&self.state).and_then(|number| self.view.property(number)) {
            let is = if property.kind == PropertyKind::Goal { "is true" } else { "is violated" };
            let line = if property.line > 0 { format!(" (line {})", property.line) } else { String::new() };
            let why = format!("`{}`{line} {is} in this state", property.name);
            return Some(End { why, exit_code: exit::PROPERTY });
        }
        let deadlock = is_deadlock(model, &self.state, &self.next, 0..self.next.len());
        deadlock.then(|| End { why: "a deadlock: there is no way on".into(), exit_code: exit::DEADLOCK })
    }

    fn list(&self, out: &mut Output) {
        for choice in 0..self.next.len() {
            let mut steps = Vec::new();
            self.view.add_steps(&self.state, choice, 0, &mut steps);
            out.print(&steps::choice(choice + 1, &steps, self.style));
        }
    }

    /// How the walk went, in numbers.
    fn statistics(&self) -> String {
        let mean = self.choices as f64 / self.steps.max(1) as f64;
        let (steps, most) = (show_count(self.steps), show_count(self.most_choices as u64));
        format!("depth {steps}; {mean:.1} choices in a state on average, {most} at most\n")
    }
}

fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64 & 0xffff_ffff)
}
