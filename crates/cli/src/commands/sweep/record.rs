//! A table on disk that grows line by line and survives being interrupted.
//!
//! The first line says under which settings the rows were made, the second names the columns. A line is
//! written at once and whole; a last line that is not whole is removed when the table is opened again.

use crate::csv;
use crate::failure::Failure;
use crate::output::unwritable;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A table that is open for more rows.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// Opens the table at `path`, or begins it, and returns the rows that are there.
    pub fn open(path: &Path, settings: &str, columns: &[&str]) -> Result<(Record, Vec<Vec<String>>), Failure> {
        let failed = |error: io::Error| unwritable(path, &error);
        let head = format!("# {settings}\n{}", csv::line(columns));
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Failure::usage(format!("{}: another sweep is writing to it", path.display())));
        }
        let mut record = Record { path: path.into(), file };
        let bytes = fs::read(path).map_err(failed)?;
        // A sweep that was killed may have left half a line.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(&bytes[..whole]);
        let Some(rest) = text.strip_prefix(&head) else {
            let begun = head.as_bytes().starts_with(&bytes);
            if !begun {
                return Err(differs(path, settings, text.lines().next().unwrap_or("")));
            }
            record.file.set_len(0).map_err(failed)?;
            record.write(&head)?;
            return Ok((record, Vec::new()));
        };
        record.file.set_len(whole as u64).map_err(failed)?;
        let rows = rest.lines().filter_map(csv::fields).filter(|row| row.len() == columns.len());
        Ok((record, rows.collect()))
    }

    pub fn add(&mut self, row: &[String]) -> Result<(), Failure> {
        self.write(&csv::line(row))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.file.write_all(text.as_bytes()).map_err(|error| unwritable(&self.path, &error))
    }
}

impl Drop for Record {
    /// Closing the file would do, unless a child is just being started: until it runs, it has the file open too.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

fn differs(path: &Path, settings: &str, found: &str) -> Failure {
    Failure::usage(format!(
        "{} was made with other settings:\n  there: {}\n  now:   {settings}\nuse the same, or another folder",
        path.display(),
        found.trim_start_matches("# "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_goes_on_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let open = |settings: &str| Record::open(&path, settings, &["a", "b"]);
        let row = |a: &str, b: &str| vec![a.to_string(), b.to_string()];
        let (mut record, rows) = open("limit 6").unwrap();
        assert!(rows.is_empty());
        assert!(open("limit 6").unwrap_err().text().contains("another sweep"));
        record.add(&row("1", "x,y")).unwrap();
        record.add(&row("2", "z")).unwrap();
        drop(record);
        let whole = fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (mut record, rows) = open("limit 6").unwrap();
            assert!(rows.len() <= 2 && rows.iter().zip([row("1", "x,y"), row("2", "z")]).all(|(a, b)| *a == b));
            record.add(&row("3", "last")).unwrap();
            drop(record);
            let (_, again) = open("limit 6").unwrap();
            assert_eq!(again.len(), rows.len() + 1);
        }
        let failure = open("limit 7").unwrap_err();
        assert!(failure.text().contains("limit 6") && failure.text().contains("limit 7"));
    }
}
