//! Files for tests: our models, and folders that do not outlive a test.

use std::fs;

/// The path of one of our models.
pub fn model(name: &str) -> String {
    format!("{}/../../models/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().into()
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// What is in it, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
