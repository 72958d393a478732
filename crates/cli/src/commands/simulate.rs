//! `plimsoll simulate`: a walk through a model, at random or by hand.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::options::{ColorName, LookFor, SimulateOptions};
use crate::output::Output;
use crate::report::text::{self, Style};
use crate::view::View;
use crate::{room, subject};
use plimsoll_model::{Patience, Successors};
use std::io::{self, BufRead};
use std::time::{SystemTime, UNIX_EPOCH};

const KEYS: &str = "a number chooses a step, Enter one at random, b goes back, s shows the state, q quits";

/// A walk so far: the states, the last being the current one.
struct Walk<'a> {
    executor: &'a Executor,
    view: View<'a>,
    states: Vec<Vec<u32>>,
    random: Random,
    style: Style,
    file: String,
}

/// What comes after a step.
enum Next {
    Go,
    End(&'static str),
}

/// Runs the command.
pub fn run(options: &SimulateOptions, out: &mut Output) -> Result<u8, Failure> {
    let color = ColorName::Auto.wanted(&io::stdout());
    let subject = subject::load(&options.model, &LookFor::default(), ColorName::Auto.wanted(&io::stderr()))?;
    let subject = room::walk(subject, &LookFor::default())?;
    let executor =
        Executor::interpreted(subject.content.prepared(subject::merges(&options.model, false)), Patience::default());
    let seed = options.seed.unwrap_or_else(clock);
    let mut walk = Walk {
        executor: &executor,
        view: View::new(&executor),
        states: Vec::new(),
        random: Random(seed),
        style: Style { color, ..Style::default() },
        file: text::file_name(&options.model.model.display().to_string()).into(),
    };
    out.print(&format!("seed {seed}\n"));
    if let Next::End(why) = walk.start(out) {
        out.print(&format!("{why}\n"));
        return Ok(0);
    }
    let why = if options.interactive { by_hand(&mut walk, out) } else { at_random(&mut walk, options.steps, out) };
    out.print(&format!("{why}\n"));
    Ok(0)
}

fn at_random(walk: &mut Walk, steps: u64, out: &mut Output) -> &'static str {
    for _ in 0..steps {
        if out.is_broken() {
            break;
        }
        let successors = walk.successors();
        if successors.is_empty() {
            return "no step is possible";
        }
        let choice = walk.random.below(successors.len());
        if let Next::End(why) = walk.take(&successors, choice, out) {
            return why;
        }
    }
    "stopped after the last step asked for"
}

fn by_hand(walk: &mut Walk, out: &mut Output) -> &'static str {
    let mut lines = io::stdin().lock().lines();
    loop {
        let successors = walk.successors();
        walk.list(&successors, out);
        out.print(&format!("[{KEYS}] "));
        let Some(Ok(line)) = lines.next() else { return "\nend of input" };
        let choice = match line.trim() {
            "q" => return "quit",
            "b" if walk.states.len() > 1 => {
                walk.states.pop();
                continue;
            }
            "b" => continue,
            "s" => {
                let mut shown = String::new();
                text::initial_state(&walk.view.state(walk.current()), walk.view.assign(), &mut shown);
                out.print(&shown);
                continue;
            }
            "" if !successors.is_empty() => walk.random.below(successors.len()),
            number => match number.parse::<usize>() {
                Ok(number) if (1..=successors.len()).contains(&number) => number - 1,
                _ => {
                    out.print("there is no such step\n");
                    continue;
                }
            },
        };
        if let Next::End(why) = walk.take(&successors, choice, out) {
            return why;
        }
    }
}

impl Walk<'_> {
    fn start(&mut self, out: &mut Output) -> Next {
        let mut initial = Successors::new(self.executor.reference().width());
        self.executor.reference().initial(&mut initial);
        if initial.is_empty() {
            return Next::End("there is no initial state");
        }
        let choice = self.random.below(initial.len());
        if initial.step(choice).is_fault() {
            return Next::End("the start goes wrong");
        }
        self.states.push(initial.state(choice).to_vec());
        let mut shown = String::new();
        text::initial_state(&self.view.state(self.current()), self.view.assign(), &mut shown);
        out.print(&shown);
        Next::Go
    }

    fn current(&self) -> &[u32] {
        self.states.last().expect("a walk has a state")
    }

    fn successors(&self) -> Successors {
        let mut successors = Successors::new(self.executor.reference().width());
        self.executor.reference().successors(self.current(), &mut successors);
        successors
    }

    /// Takes a step and shows it.
    fn take(&mut self, successors: &Successors, choice: usize, out: &mut Output) -> Next {
        let mut steps = Vec::new();
        self.view.add_steps(self.current(), choice, self.states.len() as u64, &mut steps);
        steps.iter().for_each(|step| out.print(&text::step(step, &self.file, self.view.assign(), self.style)));
        if successors.step(choice).is_fault() {
            return Next::End("the step goes wrong: there is no way on");
        }
        self.states.push(successors.state(choice).to_vec());
        Next::Go
    }

    fn list(&self, successors: &Successors, out: &mut Output) {
        if successors.is_empty() {
            out.print("no step is possible\n");
        }
        for choice in 0..successors.len() {
            let mut steps = Vec::new();
            self.view.add_steps(self.current(), choice, choice as u64 + 1, &mut steps);
            steps.iter().for_each(|step| out.print(&text::step(step, &self.file, self.view.assign(), self.style)));
        }
    }
}

/// A small generator of random numbers (splitmix64, Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        ((self.next() as u128 * limit as u128) >> 64) as usize
    }
}

fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64 & 0xffff_ffff)
}
