//! `plimsoll man`: manual pages, made from the table of options.

use crate::failure::Failure;
use crate::options::Options;
use crate::output::{Output, unwritable};
use clap::CommandFactory;
use clap_mangen::Man;
use std::path::Path;

/// Prints the page of the program, or writes that of each command too, into a folder.
pub fn run(folder: Option<&Path>, out: &mut Output) -> Result<u8, Failure> {
    let mut program = Options::command();
    program.build();
    let page = |command: clap::Command| {
        let mut page = Vec::new();
        Man::new(command).render(&mut page).map_err(Failure::internal)?;
        Ok::<_, Failure>(page)
    };
    let Some(folder) = folder else {
        out.print(&String::from_utf8_lossy(&page(program)?));
        return Ok(0);
    };
    let below = |name: &str, command: &clap::Command| -> Vec<(String, clap::Command)> {
        let known = command.get_subcommands().filter(|known| known.get_name() != "help");
        known.map(|known| (format!("{name}-{}", known.get_name()), known.clone())).collect()
    };
    let commands = below("plimsoll", &program).into_iter();
    let commands = commands.flat_map(|(name, command)| {
        let own = below(&name, &command);
        std::iter::once((name, command)).chain(own)
    });
    let named = commands.map(|(name, command)| (format!("{name}.1"), command));
    for (name, command) in std::iter::once(("plimsoll.1".to_string(), program.clone())).chain(named) {
        let path = folder.join(name);
        std::fs::write(&path, page(command)?).map_err(|error| unwritable(&path, &error))?;
        out.print(&format!("{}\n", path.display()));
    }
    Ok(0)
}
