//! `plimsoll info`: what a model is made of.

use crate::failure::Failure;
use crate::options::{ColorName, InfoOptions, LookFor};
use crate::output::Output;
use crate::size::show_count;
use crate::subject::{self, Content, Subject};
use plimsoll_ir::{Effects, Instances, Layout, System, text};
use plimsoll_model::{Graph, Model};
use plimsoll_store::packing::{FEW_BITS, FEWEST_BITS};
use std::fmt::Write;
use std::io;

/// Lists longer than this are cut.
const LONGEST_LIST: usize = 200;

/// Runs the command.
pub fn run(options: &InfoOptions, out: &mut Output) -> Result<u8, Failure> {
    let Subject { language, content, symmetry, .. } =
        subject::load(&options.model, &LookFor::default(), ColorName::Auto.wanted(&io::stderr()))?;
    let merge = subject::merges(&options.model, false);
    let content = if options.unoptimised { content } else { content.prepared(merge, symmetry.as_ref()) };
    let described = match content {
        Content::System(system) if options.ir => text::print(&system),
        Content::System(system) => describe(&system, language),
        Content::Graph(_) if options.ir => return Err(Failure::usage("a graph has no textual form but its own")),
        Content::Graph(graph) => describe_graph(&graph, language),
    };
    out.print(&described);
    Ok(0)
}

fn describe_graph(graph: &Graph, language: &str) -> String {
    let (states, edges, most) = (graph.nodes(), graph.edges(), graph.most_successors());
    format!("language {language}\nstates {states}\ntransitions {edges}\nmost successors {most}\n")
}

fn describe(system: &System, language: &str) -> String {
    let layout = Layout::of_system(system);
    let mut out = String::new();
    let instances = Instances::of(&system.commands).total();
    let _ = writeln!(out, "model            {} ({language})", system.name);
    let bits: u32 = system.used_bits(&layout).iter().map(|word| word.count_ones()).sum();
    let _ = writeln!(out, "state            {} B ({} words, {bits} bits used)", layout.words() * 4, layout.words());
    let store = match bits {
        ..=FEWEST_BITS => "packed",
        bits if bits <= FEW_BITS => "packed, or a tree where the first 32,768 states tell that it takes less",
        _ => "tree, with a root of two or of three numbers, as the first states tell",
    };
    let _ = writeln!(out, "store            {store}");
    let _ = writeln!(out, "processes        {}", system.processes.len());
    let _ = writeln!(out, "variables        {}", system.vars.len());
    let _ = writeln!(out, "commands         {} ({} instances)", system.commands.len(), show_count(instances.into()));
    let _ = writeln!(out, "start commands   {}", system.starts.len());
    let _ = writeln!(out, "properties       {}", system.properties.len());
    let effects = Effects::of(system);
    dependencies(&effects, &mut out);
    processes(system, &mut out);
    fields(system, &layout, &mut out);
    commands(system, &effects, &mut out);
    for property in &system.properties {
        let _ = writeln!(out, "\nproperty {} ({:?}, line {})", property.name, property.kind, property.line);
    }
    out
}

fn dependencies(effects: &Effects, out: &mut String) {
    let summary = effects.summary();
    let _ = writeln!(
        out,
        "dependencies     a command reads {:.1} and writes {:.1} of {} cells; {:.0} % of pairs are independent",
        summary.reads,
        summary.writes,
        summary.cells,
        summary.density * 100.0
    );
}

fn processes(system: &System, out: &mut String) {
    let _ = writeln!(out, "\n{:<20} {:>9} {:>9}", "process", "locations", "commands");
    for (index, process) in system.processes.iter().take(LONGEST_LIST).enumerate() {
        let own = |command: &&plimsoll_ir::Command| command.process().is_some_and(|mover| mover.index() == index);
        let commands = system.commands.iter().filter(own).count();
        let _ = writeln!(out, "{:<20} {:>9} {commands:>9}", process.name, process.locations.len());
    }
    rest(system.processes.len(), out);
}

fn fields(system: &System, layout: &Layout, out: &mut String) {
    let _ = writeln!(out, "\n{:<28} {:>6} {:>5} {:>5}  values", "field", "word", "bit", "bits");
    let all = system.vars.iter().enumerate().flat_map(|(index, var)| {
        layout
            .scalars(index, &var.ty)
            .into_iter()
            .map(move |(suffix, slot, scalar)| (format!("{}{suffix}", var.name), slot, scalar))
    });
    let mut count = 0;
    for (name, slot, scalar) in all {
        count += 1;
        if count <= LONGEST_LIST {
            let values = format!("{}..{}", scalar.low, scalar.high);
            let _ = writeln!(out, "{name:<28} {:>6} {:>5} {:>5}  {values}", slot.word, slot.shift, slot.bits);
        }
    }
    rest(count, out);
}

fn commands(system: &System, effects: &Effects, out: &mut String) {
    let _ = writeln!(out, "\n{:<6} {:<40} {:>5} {:>6} {:>6}", "line", "command", "rank", "reads", "writes");
    for (index, command) in system.commands.iter().take(LONGEST_LIST).enumerate() {
        let id = plimsoll_ir::CommandId(index as u32);
        let (reads, writes) = (effects.reads(id).count(), effects.writes(id).count());
        let _ = writeln!(out, "{:<6} {:<40} {:>5} {reads:>6} {writes:>6}", command.line, command.label, command.rank);
    }
    rest(system.commands.len(), out);
}

fn rest(count: usize, out: &mut String) {
    if count > LONGEST_LIST {
        let _ = writeln!(out, "... and {} more", count - LONGEST_LIST);
    }
}
