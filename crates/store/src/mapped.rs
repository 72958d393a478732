//! What this process has of files: the code of the program, its constants and those of its libraries.
//!
//! The system maps what is used together with what lies around it, up to sixteen pages, and all of that stays: a search that uses two
//! megabytes of code soon has eight. Nobody writes to these pages, so they may go at any time; what is used again is mapped
//! again, from where the system has it anyway, in about a microsecond for those sixteen pages. (Breakpoints of a debugger are lost.)

use crate::meter::statm;
use rustix::mm::{Advice, madvise};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How often whoever watches looks: by then a search has again what it uses, and not yet what it used once.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const WATCH_STACK_BYTES: usize = 64 << 10;
const NO_LIMIT: u64 = u64::MAX;

static LIMIT: AtomicU64 = AtomicU64::new(NO_LIMIT);
/// Did somebody start to watch?
static WATCHED: OnceLock<()> = OnceLock::new();
static UNWRITTEN: OnceLock<Vec<Range<usize>>> = OnceLock::new();

/// What the process has of files now.
pub fn resident_bytes() -> u64 {
    statm(2).unwrap_or(0)
}

/// What somebody who watches lets it have; 0 if nobody does.
pub(crate) fn kept_bytes() -> u64 {
    Some(LIMIT.load(Ordering::Relaxed)).filter(|&bytes| bytes != NO_LIMIT).unwrap_or(0)
}

/// Takes from this process all it has of files that nobody has written to.
pub fn let_go() {
    for part in unwritten() {
        // SAFETY: nobody has written to these pages or will, so those that come back are the same.
        let _ = unsafe { madvise(part.start as *mut _, part.len(), Advice::LinuxDontNeed) };
    }
}

/// The same if somebody watches, so that it is known what may go: then nothing is allocated.
pub(crate) fn let_go_if_watched() {
    if kept_bytes() > 0 {
        let_go();
    }
}

/// From now on lets all of it go whenever it is more than so many bytes; who looks allocates nothing.
pub fn keep_below(bytes: u64) {
    unwritten();
    LIMIT.store(bytes, Ordering::Relaxed);
    WATCHED.get_or_init(|| {
        let watch = || loop {
            if resident_bytes() > LIMIT.load(Ordering::Relaxed) {
                let_go();
            }
            thread::sleep(BETWEEN_LOOKS);
        };
        // If there can be no such thread, what is used stays as it does elsewhere.
        let _ = thread::Builder::new().stack_size(WATCH_STACK_BYTES).spawn(watch);
    });
}

/// Where files are mapped that nobody can write to and nobody has written to: constants with addresses in them have pages of their own.
fn unwritten() -> &'static [Range<usize>] {
    UNWRITTEN.get_or_init(|| unwritten_in(&std::fs::read_to_string("/proc/self/smaps").unwrap_or_default()))
}

fn unwritten_in(maps: &str) -> Vec<Range<usize>> {
    let (mut parts, mut part) = (Vec::new(), None);
    for line in maps.lines() {
        match line.strip_prefix("Anonymous:") {
            Some(size) => parts.extend(part.take().filter(|_| size.trim() == "0 kB")),
            // Other lines about a part begin with a name, which is no number.
            None => part = read_only_part(line).or(part),
        }
    }
    parts
}

/// From where to where a file is mapped that cannot be written to, if a line says that.
fn read_only_part(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let part = number(begin)?..number(end)?;
    let is_read_only = matches!(words.next()?, "r--p" | "r-xp") && words.nth(2)? != "0";
    // What begins here is another part, whatever it is.
    Some(if is_read_only { part } else { part.start..part.start })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn only_what_nobody_wrote_to_may_go() {
        let maps = "\
5000-6000 r--p 00000000 fe:00 17 /bin/program\nRss: 4 kB\nAnonymous:          0 kB\nVmFlags: rd\n\
6000-9000 r-xp 00001000 fe:00 17 /bin/program\nRss: 8 kB\nAnonymous:          0 kB\n\
9000-a000 r--p 00004000 fe:00 17 /bin/program\nAnonymous:          4 kB\n\
a000-b000 rw-p 00005000 fe:00 17 /bin/program\nAnonymous:          0 kB\n\
b000-c000 r--p 00000000 00:00 0 [vvar]\nAnonymous:          0 kB\n\
c000-d000 r-xp 00000000 fe:00 18 /lib/a library\nAnonymous:          0 kB\n";
        let parts: Vec<_> = unwritten_in(maps).into_iter().filter(|part| !part.is_empty()).collect();
        assert_eq!(parts, [0x5000..0x6000, 0x6000..0x9000, 0xc000..0xd000]);
    }

    /// Other tests run meanwhile, and let some of it come back.
    #[test]
    fn code_leaves_at_once_and_whenever_it_is_too_much() {
        let before = resident_bytes();
        assert!(before > 1 << 20, "{before}");
        let_go();
        assert!(resident_bytes() < before, "{before}");
        keep_below(0);
        let (mut least, start) = (u64::MAX, Instant::now());
        while least > before / 2 && start.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(1));
            least = least.min(resident_bytes());
        }
        keep_below(NO_LIMIT);
        assert!(least <= before / 2, "{before} {least}");
    }
}
