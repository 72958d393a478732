//! What a measurement depends on besides the model: the machine, the day, and the versions compared.

use std::path::Path;
use std::process::Command;

use plimsoll::reference::peers::{Given, Tool, fill};

/// Where and with what a comparison was made.
pub struct Machine {
    pub date: String,
    /// The commit measured, with `+` if the working tree differs from it.
    pub commit: String,
    pub cpu: String,
    pub cores: usize,
    /// Name and version of each peer.
    pub peers: Vec<(String, String)>,
}

pub fn describe(peers: &[&Tool], given: &Given) -> Machine {
    let unknown = || "unknown".to_string();
    let dirty = say("git", &["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    let commit = say("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(unknown);
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| cpu_model(&text)).unwrap_or_else(unknown);
    Machine {
        date: say("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]).unwrap_or_else(unknown),
        commit: if dirty { format!("{commit}+") } else { commit },
        cpu,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        peers: peers
            .iter()
            .map(|tool| {
                let words = fill(tool.version, Path::new(""), None, given);
                let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
                (tool.name.to_string(), say(&words[0], &arguments).unwrap_or_else(unknown))
            })
            .collect(),
    }
}

/// The first line a program prints, in this repository.
fn say(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_string())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_named() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2GHz\n").as_deref(), Some("Some CPU @ 2GHz"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn a_missing_program_says_nothing() {
        assert_eq!(say("no-such-program", &[]), None);
        assert_eq!(say("echo", &["one"]).as_deref(), Some("one"));
    }
}
