//! What a measurement depends on besides the model: the machine, the day, and the versions compared.

use std::path::Path;
use std::process::{Command, Output};

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
                (tool.name.to_string(), version(&words[0], &arguments).unwrap_or_else(unknown))
            })
            .collect(),
    }
}

/// The first line a program prints, in this repository, if it succeeds.
fn say(program: &str, arguments: &[&str]) -> Option<String> {
    let output = ask(program, arguments)?;
    output.status.success().then(|| first_line(&output))
}

/// What a program says of its version, whatever its exit code: LTSmin's is 255.
fn version(program: &str, arguments: &[&str]) -> Option<String> {
    Some(first_line(&ask(program, arguments)?)).filter(|line| !line.is_empty())
}

fn ask(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()
}

fn first_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_string()
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

    #[test]
    fn a_version_counts_even_if_the_program_fails() {
        let failing = |script| ["-c", script];
        assert_eq!(say("sh", &failing("echo v3; exit 255")), None);
        assert_eq!(version("sh", &failing("echo v3; exit 255")).as_deref(), Some("v3"));
        assert_eq!(version("sh", &failing("exit 1")), None);
    }
}
