//! The rules of the repository that no compiler checks.

use std::path::{Path, PathBuf};

/// Lines of a source file, its tests not counted.
const LONGEST_FILE: usize = 600;
const LONGEST_HEAD: usize = 15;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All files below a folder with one of the extensions.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_string_lossy().to_string();
            if entry.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extensions.iter().any(|&wanted| extension == wanted)) {
                found.push(entry);
            }
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn sources() -> Vec<(PathBuf, String)> {
    let folders = [root().join("crates"), root().join("bench")];
    folders.iter().flat_map(|folder| files(folder, &["rs"])).map(|path| (path.clone(), text(&path))).collect()
}

fn report(flaws: Vec<String>) {
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
}

#[test]
fn files_are_short_and_say_what_they_are() {
    let mut flaws = Vec::new();
    for (path, text) in sources() {
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let lines = code.lines().count();
        if lines > LONGEST_FILE && !path.components().any(|part| part.as_os_str() == "tests") {
            flaws.push(format!("{}: {lines} lines", path.display()));
        }
        let head = text.lines().take_while(|line| line.starts_with("//!")).count();
        // Tests in a file of their own belong to the file beside them; the front of a crate may show examples.
        let (is_front, is_tests) = (path.ends_with("lib.rs"), path.ends_with("tests.rs"));
        if head == 0 && !is_tests || head > LONGEST_HEAD && !is_front {
            flaws.push(format!("{}: a head of {head} lines", path.display()));
        }
    }
    report(flaws);
}

#[test]
fn nothing_is_left_lying_about() {
    let words = ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!(", "dbg!(", "#[ignore]", "allow(dead_code)"];
    let own = Path::new(file!()).file_name().unwrap();
    let mut flaws = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path.file_name() != Some(own)) {
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                flaws.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    report(flaws);
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let prefixes = ["/home/", "/root/", "/work/", "/Users/", "/tmp/"];
    let own = Path::new(file!()).file_name().unwrap();
    let mut flaws = Vec::new();
    for path in files(&root(), &["rs", "md", "toml", "json", "dve", "pml", "sh", "yml"]) {
        if path.file_name() == Some(own) {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for prefix in prefixes.iter().filter(|prefix| text.contains(**prefix)) {
            flaws.push(format!("{}: {prefix}", path.display()));
        }
    }
    report(flaws);
}

#[test]
fn every_file_of_tests_is_compiled() {
    let mut flaws = Vec::new();
    let mut all = 0;
    for manifest in files(&root(), &["toml"]).into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let folder = manifest.with_file_name("tests");
        let Ok(modules) = std::fs::read_to_string(folder.join("all.rs")) else { continue };
        let manifest = text(&manifest);
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_stem().unwrap().to_string_lossy();
            let is_file = entry.extension().is_some_and(|extension| extension == "rs");
            let is_module = modules.lines().any(|line| line == format!("mod {name};"));
            let is_binary = manifest.contains(&format!("[[test]]\nname = \"{name}\""));
            if is_file && is_module == is_binary {
                flaws.push(format!("{}: neither in all.rs nor in Cargo.toml, or in both", entry.display()));
            }
            all += is_file as u32;
        }
    }
    assert!(all > 40, "{all} files");
    report(flaws);
}

#[test]
fn crates_depend_only_downwards() {
    let allowed: [(&str, &[&str]); 7] = [
        ("ir", &[]),
        ("store", &[]),
        ("lts", &[]),
        ("lang", &["ir", "lts"]),
        ("model", &["ir"]),
        ("search", &["model", "store"]),
        ("cli", &["ir", "lts", "lang", "model", "store", "search"]),
    ];
    for (name, below) in allowed {
        let manifest = text(&root().join("crates").join(name).join("Cargo.toml"));
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or("");
        let dependencies = dependencies.split("\n[").next().unwrap();
        let used = dependencies.lines().filter_map(|line| line.strip_prefix("plimsoll-"));
        let used: Vec<&str> = used.map(|rest| rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap()).collect();
        assert!(used.iter().all(|name| below.contains(name)), "{name} depends on {used:?}");
    }
}

#[test]
fn unsafe_code_is_where_it_is_needed() {
    for name in ["ir", "lts", "lang", "search", "cli"] {
        let front = text(&root().join("crates").join(name).join("src/lib.rs"));
        assert!(front.contains("#![forbid(unsafe_code)]"), "{name}");
    }
    let mut flaws = Vec::new();
    for (path, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let opens = line.contains("unsafe {") || line.trim_start().starts_with("unsafe impl");
            let explained = lines[number.saturating_sub(8)..=number].iter().any(|line| line.contains("SAFETY:"));
            if opens && !explained && !path.ends_with(file!()) && !line.contains("contains(") {
                flaws.push(format!("{}:{}: unsafe without a reason", path.display(), number + 1));
            }
        }
    }
    report(flaws);
}

#[test]
fn paths_named_in_documents_exist() {
    let root = root();
    let mut flaws = Vec::new();
    let documents = files(&root, &["md"]);
    for document in &documents {
        for word in text(document).split(|c: char| c.is_whitespace() || "`()[]|,;\"'".contains(c)) {
            let word = word.trim_end_matches(['.', ':', ')']);
            let word = word.split('#').next().unwrap();
            let starts = ["crates/", "docs/", "models/", "bench/", "fuzz/"];
            if !starts.iter().any(|start| word.starts_with(start))
                || word.contains(['*', '{', '<', '…', '$'])
                || word.contains("NAME")
            {
                continue;
            }
            let beside = document.parent().unwrap().join(word);
            if !root.join(word).exists() && !beside.exists() {
                flaws.push(format!("{}: {word} does not exist", document.display()));
            }
        }
    }
    report(flaws);
}

#[test]
fn every_option_is_described_outside_the_program() {
    let readme = root().join("README.md");
    let mut documents = if readme.exists() { text(&readme) } else { String::new() };
    documents.extend(files(&root().join("docs"), &["md"]).iter().map(|path| text(path)));
    let options = text(&root().join("crates/cli/src/options.rs"));
    let mut flaws = Vec::new();
    // The attribute of an option; its long name is in there, or that of the field.
    let mut attribute = "";
    for line in options.split("#[cfg(test)]").next().unwrap().lines().map(str::trim) {
        if line.starts_with("#[arg(") && line.contains("long") {
            attribute = line;
        } else if let (false, Some(field)) = (attribute.is_empty(), line.strip_prefix("pub ")) {
            let given = attribute.split_once("long = \"").and_then(|(_, rest)| rest.split_once('"'));
            let name = given.map_or(field.split(':').next().unwrap(), |(name, _)| name);
            let name = format!("--{}", name.replace('_', "-"));
            if !documents.contains(&name) {
                flaws.push(format!("{name} is described neither in README.md nor in docs/"));
            }
            attribute = "";
        }
    }
    report(flaws);
}
