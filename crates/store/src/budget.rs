//! Who may use how much memory.
//!
//! A [`Budget`] is divided into [`Grant`]s once, before the search. A grant has a cap of its own, and all
//! grants of a budget draw on one pool, so that what one structure does not need another may use; the
//! sum never exceeds the pool. A structure asks *before* it allocates, and a refusal is an answer the
//! search turns into a verdict.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Units of bytes, as they are written.
pub const UNITS: [(&str, u64); 5] = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];

/// The whole of the memory a run may use.
#[derive(Clone, Debug)]
pub struct Budget {
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    total: AtomicU64,
    /// There may be less in fact.
    end: AtomicU64,
    huge_pages: bool,
    used: AtomicU64,
    accounts: Mutex<Vec<Arc<Account>>>,
}

#[derive(Debug)]
struct Account {
    name: String,
    cap: AtomicU64,
    used: AtomicU64,
    peak: AtomicU64,
}

/// The right to use up to `cap` bytes, as long as the pool has them.
#[derive(Clone, Debug)]
pub struct Grant {
    pool: Arc<Pool>,
    account: Arc<Account>,
    /// Whatever the end of the pool is.
    elsewhere: bool,
}

/// A structure has no room, and its grant none for a larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub cap_bytes: u64,
    pub used_bytes: u64,
    pub peak_bytes: u64,
}

impl Budget {
    pub fn new(total_bytes: u64) -> Budget {
        Budget::with_huge_pages(total_bytes, true)
    }

    /// A budget whose large structures may use huge pages, or not.
    pub fn with_huge_pages(total_bytes: u64, huge_pages: bool) -> Budget {
        let [total, end, used] = [total_bytes, u64::MAX, 0].map(AtomicU64::new);
        let pool = Pool { total, end, huge_pages, used, accounts: Mutex::new(Vec::new()) };
        Budget { pool: Arc::new(pool) }
    }

    /// A grant of at most `cap_bytes`; the pool's size is a cap as well.
    pub fn grant(&self, name: impl Into<String>, cap_bytes: u64) -> Grant {
        let (cap, used) = (AtomicU64::new(cap_bytes.min(self.total_bytes())), AtomicU64::new(0));
        let account = Arc::new(Account { name: name.into(), cap, used, peak: AtomicU64::new(0) });
        self.pool.accounts.lock().expect("no panic while held").push(account.clone());
        Grant { pool: self.pool.clone(), account, elsewhere: false }
    }

    pub fn total_bytes(&self) -> u64 {
        self.pool.total_bytes()
    }

    pub fn used_bytes(&self) -> u64 {
        self.pool.used.load(Ordering::Relaxed)
    }

    /// Every grant: what it was allowed, what it holds now, and what it held at most.
    pub fn ledger(&self) -> Vec<Entry> {
        let accounts = self.pool.accounts.lock().expect("no panic while held");
        accounts
            .iter()
            .map(|account| Entry {
                name: account.name.clone(),
                cap_bytes: account.cap_bytes(),
                used_bytes: account.used.load(Ordering::Relaxed),
                peak_bytes: account.peak.load(Ordering::Relaxed),
            })
            .collect()
    }
}

impl Pool {
    fn total_bytes(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

impl Account {
    fn cap_bytes(&self) -> u64 {
        self.cap.load(Ordering::Relaxed)
    }
}

impl Grant {
    /// A grant nobody limits, for tests and for callers without a budget.
    pub fn unlimited() -> Grant {
        Budget::new(u64::MAX).grant("unlimited", u64::MAX)
    }

    /// Takes `bytes` from the pool, or refuses and takes nothing.
    #[must_use]
    pub fn take(&self, bytes: u64) -> bool {
        let add = |used: u64, cap: u64| used.checked_add(bytes).filter(|&sum| sum <= cap);
        let relaxed = Ordering::Relaxed;
        let account = &self.account;
        let Ok(before) = account.used.fetch_update(relaxed, relaxed, |used| add(used, account.cap_bytes())) else {
            return false;
        };
        if self.pool.used.fetch_update(relaxed, relaxed, |used| add(used, self.end())).is_err() {
            account.used.fetch_sub(bytes, relaxed);
            return false;
        }
        account.peak.fetch_max(before + bytes, relaxed);
        true
    }

    /// Returns `bytes` that were taken.
    pub fn give_back(&self, bytes: u64) {
        let before = self.account.used.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{}: gave back more than it took", self.account.name);
        self.pool.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What could be taken right now.
    pub fn left_bytes(&self) -> u64 {
        let own = self.cap_bytes() - self.used_bytes();
        own.min(self.unused_bytes())
    }

    /// What anybody could still take of the pool.
    pub fn unused_bytes(&self) -> u64 {
        self.end().saturating_sub(self.pool.used.load(Ordering::Relaxed))
    }

    /// There is less than was thought: nobody can take more from now on than somebody gives back.
    pub fn end_pool(&self) {
        self.pool.end.fetch_min(self.pool.used.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The same for what is elsewhere, where there may be as much as was thought.
    pub fn elsewhere(self) -> Grant {
        Grant { elsewhere: true, ..self }
    }

    fn end(&self) -> u64 {
        let total = self.pool.total_bytes();
        if self.elsewhere { total } else { total.min(self.pool.end.load(Ordering::Relaxed)) }
    }

    /// Would less than half of it be used if so many bytes were taken?
    pub fn has_plenty(&self, bytes: usize) -> bool {
        self.left_bytes() >= (self.cap_bytes().min(self.pool.total_bytes()) / 2).saturating_add(bytes as u64)
    }

    pub fn used_bytes(&self) -> u64 {
        self.account.used.load(Ordering::Relaxed)
    }

    pub fn cap_bytes(&self) -> u64 {
        self.account.cap_bytes()
    }

    /// From now on it may use so many bytes more, and the pool has as many more, which others thought they would need and do not.
    pub fn raise(&self, bytes: u64) {
        self.pool.total.fetch_add(bytes, Ordering::Relaxed);
        self.account.cap.fetch_add(bytes, Ordering::Relaxed);
    }

    /// May large structures use huge pages?
    pub fn allows_huge_pages(&self) -> bool {
        self.pool.huge_pages
    }
}

/// Reads `512M`, `1.5G`, `64KiB`, `1000`; units are powers of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let explain = || "expected a size such as 512M, 1.5G or a number of bytes".to_string();
    let upper = text.trim().to_ascii_uppercase();
    let digits = upper.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(upper.len());
    let (number, unit) = upper.split_at(digits);
    let unit = unit.trim().trim_end_matches('B').trim_end_matches('I');
    let scale = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(explain)?.1;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(|| "more bytes than there can be".to_string());
    }
    let value = number.parse::<f64>().map_err(|_| explain())? * scale as f64;
    if value < u64::MAX as f64 { Ok(value as u64) } else { Err("more bytes than there can be".into()) }
}

/// A number of bytes that [`parse_bytes`] reads again, always with a unit.
pub fn write_bytes(bytes: u64) -> String {
    let (name, scale) = *UNITS.iter().rev().find(|(_, scale)| bytes.is_multiple_of(*scale)).unwrap_or(&UNITS[0]);
    format!("{}{}", bytes / scale, if name.is_empty() { "B" } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_cap_nor_the_pool_is_exceeded() {
        let budget = Budget::new(100);
        let (one, two) = (budget.grant("one", 60), budget.grant("two", 1000));
        assert!(one.take(60) && !one.take(1));
        assert!(!two.take(41) && two.take(40) && !two.take(1));
        one.give_back(10);
        assert!(two.take(10));
        assert_eq!((budget.used_bytes(), one.left_bytes(), two.left_bytes()), (100, 0, 0));
        let ledger = budget.ledger();
        assert_eq!((ledger[0].used_bytes, ledger[0].peak_bytes, ledger[1].cap_bytes), (50, 60, 100));
        two.give_back(30);
        one.end_pool();
        assert!(!two.take(1) && !one.take(1));
        one.give_back(5);
        assert_eq!((two.left_bytes(), budget.used_bytes()), (5, 65));
        assert_eq!(two.elsewhere().left_bytes(), 35);
    }

    #[test]
    fn who_is_raised_has_more_and_the_others_do_not() {
        let budget = Budget::new(100);
        let (one, two) = (budget.grant("one", 60), budget.grant("two", 50));
        assert!(one.take(60) && two.take(40));
        one.raise(20);
        assert_eq!((budget.total_bytes(), one.left_bytes(), two.left_bytes(), two.unused_bytes()), (120, 20, 10, 20));
        assert!(!one.take(21) && one.take(20) && !two.take(1));
    }
}
