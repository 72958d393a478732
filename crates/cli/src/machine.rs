//! What the operating system says about memory: this machine's, this group's and this process's.

use crate::size::Size;
use plimsoll_store::meter;
use std::fs;
use std::path::{Path, PathBuf};

/// Of the memory that is free now, this share is taken if nobody says otherwise.
const SHARE_OF_AVAILABLE: (u64, u64) = (3, 4);
/// A group at its limit is killed, and the kernel charges page tables to it, so a little is left.
const SHARE_OF_GROUP: (u64, u64) = (15, 16);
/// Part of what may still be mapped (`ulimit -v`, `ulimit -d`): tables reserve more than they use, code and stacks come on top.
const SHARE_OF_ADDRESSES: u64 = 2;
/// Assumed where the system does not tell.
const UNKNOWN_MACHINE: u64 = 1 << 30;

/// A number of bytes and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub bytes: u64,
    pub origin: &'static str,
}

/// The memory a run may use: what was asked for, or what the machine can spare; never more than can be mapped.
pub fn memory_budget(asked: Option<Size>) -> Memory {
    let budget = unlimited_budget(asked);
    match meter::mappable_bytes().map(|bytes| bytes / SHARE_OF_ADDRESSES) {
        Some(bytes) if bytes < budget.bytes => {
            Memory { bytes, origin: "half of the addresses left by ulimit -v or -d" }
        }
        _ => budget,
    }
}

fn unlimited_budget(asked: Option<Size>) -> Memory {
    let group = group_limit();
    match asked {
        Some(Size::Bytes(bytes)) => Memory { bytes, origin: "as given" },
        Some(Size::Percent(percent)) => {
            let whole = meminfo("MemTotal").unwrap_or(UNKNOWN_MACHINE).min(group.unwrap_or(u64::MAX));
            Memory { bytes: (whole as f64 * percent / 100.0) as u64, origin: "as given, of the memory there is" }
        }
        None => {
            let (part, whole) = SHARE_OF_AVAILABLE;
            let available = meminfo("MemAvailable").unwrap_or(UNKNOWN_MACHINE) / whole * part;
            let (part, whole) = SHARE_OF_GROUP;
            match group.map(|limit| limit / whole * part) {
                Some(limit) if limit < available => Memory { bytes: limit, origin: "15/16 of the cgroup limit" },
                _ => Memory { bytes: available, origin: "3/4 of the available memory" },
            }
        }
    }
}

/// Resident memory of this process now.
pub fn resident_bytes() -> u64 {
    meter::resident_bytes().unwrap_or(0)
}

/// The most resident memory that this process ever had.
pub fn peak_resident_bytes() -> u64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|status| kilobytes(&status, "VmHWM")).unwrap_or(0)
}

/// Processor time of this process so far.
pub fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn meminfo(key: &str) -> Option<u64> {
    kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, key)
}

/// The value of a line `key:   123 kB`, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// The smallest memory limit of this process's cgroups, of either version, and the groups around them.
fn group_limit() -> Option<u64> {
    group_limit_in(Path::new("/sys/fs/cgroup"), &fs::read_to_string("/proc/self/cgroup").ok()?)
}

/// Each line of `groups` is a number, a list of controllers (none in version 2) and a path.
fn group_limit_in(root: &Path, groups: &str) -> Option<u64> {
    let limit = |line: &str| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        match controllers {
            "" => smallest_limit(root, group, "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                // Without a limit the number is huge, so nothing is to be done about it.
                smallest_limit(&root.join("memory"), group, "memory.limit_in_bytes")
            }
            _ => None,
        }
    };
    groups.lines().filter_map(limit).min()
}

fn smallest_limit(root: &Path, group: &str, file: &str) -> Option<u64> {
    let mut folder: PathBuf = root.join(group.trim_start_matches('/'));
    let mut least = None::<u64>;
    while folder.starts_with(root) {
        let limit = fs::read_to_string(folder.join(file)).ok().and_then(|text| text.trim().parse::<u64>().ok());
        least = least.into_iter().chain(limit).min();
        if !folder.pop() {
            break;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(group_limit_in(root.path(), "0::/a/b\n"), None);
        fs::write(root.path().join("a/memory.max"), "1000\n").unwrap();
        fs::write(root.path().join("memory.max"), "2000\n").unwrap();
        assert_eq!(group_limit_in(root.path(), "0::/a/b\n"), Some(1000));
        assert_eq!(group_limit_in(root.path(), "0::/\n"), Some(2000));
        let first_version = root.path().join("memory/c");
        fs::create_dir_all(&first_version).unwrap();
        fs::write(first_version.join("memory.limit_in_bytes"), "700\n").unwrap();
        assert_eq!(group_limit_in(root.path(), "3:cpu:/x\n2:hugetlb,memory:/c\n0::/\n"), Some(700));
        // Within a container the path may be that of the host.
        fs::write(root.path().join("memory/memory.limit_in_bytes"), "800\n").unwrap();
        assert_eq!(group_limit_in(root.path(), "2:memory:/docker/abc\n"), Some(800));
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_bytes() > 100_000 && peak_resident_bytes() >= resident_bytes() / 2);
        assert!(memory_budget(None).bytes > 1 << 20 && processor_seconds() > 0.0);
        assert_eq!(memory_budget(Some(Size::Bytes(7))).bytes, 7);
        let (half, whole) = (memory_budget(Some(Size::Percent(50.0))), memory_budget(Some(Size::Percent(100.0))));
        assert!(half.bytes < whole.bytes);
    }

    #[test]
    fn lines_are_found_by_their_whole_key() {
        let text = "VmHWMx:\t1 kB\nVmHWM:\t   20 kB\n";
        assert_eq!(kilobytes(text, "VmHWM"), Some(20 << 10));
        assert_eq!(kilobytes(text, "Vm"), None);
    }
}
