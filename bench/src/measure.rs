//! Runs one process to its end and says what it cost.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a process cost. Costs of processes that ran one after the other can be added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub wall_s: f64,
    /// User and system time, threads included.
    pub cpu_s: f64,
    /// The part of it that the system took.
    pub system_s: f64,
    /// Most memory resident at any time.
    pub peak_bytes: u64,
}

impl Cost {
    pub fn then(self, next: Cost) -> Cost {
        Cost {
            wall_s: self.wall_s + next.wall_s,
            cpu_s: self.cpu_s + next.cpu_s,
            system_s: self.system_s + next.system_s,
            peak_bytes: self.peak_bytes.max(next.peak_bytes),
        }
    }
}

/// A process that ended.
pub struct Ended {
    pub cost: Cost,
    pub stdout: String,
    /// The exit code, or `None` after a signal.
    pub code: Option<i32>,
}

/// Runs `program` in `folder`. Its stderr goes to the file `stderr` there.
pub fn run(program: &Path, arguments: &[String], folder: &Path) -> io::Result<Ended> {
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(folder.join("stderr"))?)
        .spawn()?;
    let mut bytes = Vec::new();
    child.stdout.take().expect("stdout is piped").read_to_end(&mut bytes)?;
    let (status, usage) = wait(child.id())?;
    let wall_s = begun.elapsed().as_secs_f64();
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let cost = Cost {
        wall_s,
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        system_s: seconds(usage.ru_stime),
        // Linux counts in KiB.
        peak_bytes: usage.ru_maxrss as u64 * 1024,
    };
    let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    Ok(Ended { cost, stdout: String::from_utf8_lossy(&bytes).into_owned(), code })
}

/// Waits for the child and returns its status with what it, and its own children, used.
fn wait(id: u32) -> io::Result<(i32, libc::rusage)> {
    let id = libc::pid_t::try_from(id).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: rusage is a C struct of integers, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live variables of the right types.
        let ended = unsafe { libc::wait4(id, &mut status, 0, &mut usage) };
        if ended == id {
            return Ok((status, usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Ended {
        let folder = std::env::temp_dir().join(format!("plimsoll-measure-{}-{}", std::process::id(), script.len()));
        std::fs::create_dir_all(&folder).unwrap();
        let ended = run(Path::new("sh"), &["-c".into(), script.into()], &folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        ended
    }

    #[test]
    fn output_and_exit_code_are_reported() {
        let ended = shell("echo out; echo err >&2; exit 10");
        assert_eq!((ended.stdout.as_str(), ended.code), ("out\n", Some(10)));
        assert_eq!(shell("kill -9 $$").code, None);
    }

    #[test]
    fn sleeping_costs_wall_time_only_and_working_costs_both() {
        let asleep = shell("sleep 0.2").cost;
        assert!(asleep.wall_s >= 0.2 && asleep.cpu_s < 0.1, "{asleep:?}");
        let busy = shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done").cost;
        assert!(busy.cpu_s > 0.0 && busy.peak_bytes > 100_000, "{busy:?}");
    }

    #[test]
    fn costs_add_up_but_for_the_peak() {
        let one = Cost { wall_s: 1.0, cpu_s: 0.5, system_s: 0.25, peak_bytes: 10 };
        let other = Cost { wall_s: 2.0, cpu_s: 0.25, system_s: 0.0, peak_bytes: 7 };
        assert_eq!(one.then(other), Cost { wall_s: 3.0, cpu_s: 0.75, system_s: 0.25, peak_bytes: 10 });
    }
}
