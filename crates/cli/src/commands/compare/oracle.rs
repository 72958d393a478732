//! Asks a checker that is installed here about a model, in a folder of its own and with a limit of time.

use crate::reference::Expected;
use crate::reference::peers::{Given, PEERS, Tool, fill};
use crate::reference::table::{Row, Truth};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The first way to run the tool, or what is missing for it.
pub fn tool(family: &str) -> Result<&'static Tool, String> {
    let tool = PEERS.iter().find(|tool| tool.family == family).ok_or_else(|| format!("`{family}` is not known"))?;
    match tool.missing(&Given::around()) {
        None => Ok(tool),
        Some(what) => Err(format!("{} cannot be asked: {what}", tool.name)),
    }
}

/// A row for each model of the tool's language below the folder.
pub fn rows(folder: &Path, tool: &'static Tool) -> std::io::Result<Vec<Row>> {
    let mut folders = vec![folder.to_path_buf()];
    let mut names = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next)? {
            let path = entry?.path();
            let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
            let language = extension.and_then(|extension| plimsoll_lang::Language::of_extension(&extension));
            if path.is_dir() {
                folders.push(path);
            } else if language.is_some_and(|language| language.name().eq_ignore_ascii_case(tool.folder)) {
                names.push(path.strip_prefix(folder).unwrap_or(&path).display().to_string());
            }
        }
    }
    names.sort();
    let options: &[&str] = if tool.family == "rumur" { &["--dialect", "rumur"] } else { &[] };
    let row = |instance| Row {
        instance,
        extension: "",
        variant: tool.family,
        options: options.iter().map(ToString::to_string).collect(),
        truth: Truth::Unknown { why: String::new(), refused: false },
    };
    Ok(names.into_iter().map(row).collect())
}

/// What the tool finds, or why it finds nothing.
pub fn ask(tool: &Tool, model: &Path, limit: Duration) -> Result<Expected, String> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("plimsoll-oracle-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let answer = answer(tool, model, limit, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    answer
}

fn answer(tool: &Tool, model: &Path, limit: Duration, folder: &Path) -> Result<Expected, String> {
    let model = model.canonicalize().map_err(|error| error.to_string())?;
    let (deadline, given) = (Instant::now() + limit, Given::around());
    for command in tool.prepare {
        let (output, well) = run(&fill(command, &model, None, &given), folder, deadline)?;
        if !well {
            let first = output.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
            return Err(format!("`{}` refuses: {}", command[0], first.replace(&folder.display().to_string(), ".")));
        }
    }
    let (output, _) = run(&fill(tool.search, &model, None, &given), folder, deadline)?;
    let found = (tool.read)(&output).ok_or("no result in its output")?;
    Ok(found.expected())
}

/// What a program prints, and whether it says that all is well.
fn run(command: &[String], folder: &Path, deadline: Instant) -> Result<(String, bool), String> {
    // A program that an earlier command made lies in the folder.
    let program = command[0].strip_prefix("./").map_or_else(|| PathBuf::from(&command[0]), |made| folder.join(made));
    let problem = |error: std::io::Error| format!("{}: {error}", command[0]);
    let mut child = Command::new(program)
        .args(&command[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(problem)?;
    let pipes: [Option<Box<dyn Read + Send>>; 2] =
        [child.stdout.take().map(|pipe| Box::new(pipe) as _), child.stderr.take().map(|pipe| Box::new(pipe) as _)];
    let readers = pipes.into_iter().flatten().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    });
    let readers: Vec<_> = readers.collect();
    let status = loop {
        match child.try_wait().map_err(problem)? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("time: the limit is reached".into());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text: String = readers.into_iter().map(|reader| reader.join().unwrap_or_default()).collect();
    Ok((text, status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::peers::{Besides, Found};

    fn shell(search: &'static [&'static str]) -> Tool {
        let read = |text: &str| Some(Found { states: text.trim().parse().ok()?, ..Found::default() });
        const PREPARE: &[&[&str]] = &[&["test", "-f", "{model}"]];
        let (version, prepare) = (&["sh"], PREPARE);
        Tool {
            family: "sh",
            name: "sh",
            folder: "dve",
            extension: "dve",
            on_any_model: true,
            besides: Besides::Nothing,
            version,
            prepare,
            search,
            read,
        }
    }

    #[test]
    fn answers_limits_and_refusals() {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let second = Duration::from_secs(20);
        let asked = ask(&shell(&["sh", "-c", "echo 7"]), &model, second).unwrap();
        assert_eq!(asked.states, Some(7));
        assert!(ask(&shell(&["sh", "-c", "echo seven"]), &model, second).unwrap_err().contains("no result"));
        assert!(ask(&shell(&["sleep", "30"]), &model, Duration::from_millis(50)).unwrap_err().starts_with("time"));
        let refusing = Tool { prepare: &[&["sh", "-c", "echo oh; exit 3"]], ..shell(&["sh"]) };
        assert_eq!(ask(&refusing, &model, second).unwrap_err(), "`sh` refuses: oh");
        assert!(tool("nobody").is_err());
    }
}
