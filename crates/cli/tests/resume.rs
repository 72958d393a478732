//! `check --checkpoint` and `resume`: whatever ends a search, it goes on to the same answer, or is refused with a reason.

use crate::common::files::model;
use crate::common::run::{PROGRAM, code, run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder for checkpoints that does not exist yet, with a blank in its name.
fn place() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a run").display().to_string();
    (folder, place)
}

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no report: {said}"));
    assert_eq!(report["exit_code"], code(output), "{said}");
    report
}

fn json(arguments: &[&str]) -> Value {
    report(&run(&[&arguments[..1], &["--json"], &arguments[1..]].concat()))
}

/// A budget that leaves a search so many MiB beside what the process has. That differs from build to build, and a little from run to run.
fn beside_process(path: &str, megabytes: u64) -> String {
    let plan = || json(&["check", path, "--executor", "interp", "--max-states", "9"])["plan"]["process_bytes"].as_u64();
    let least = (0..4).filter_map(|_| plan()).min().unwrap();
    format!("{}M", (least >> 20) + megabytes)
}

/// What must be the same, however often a search was cut.
fn lasting(report: &Value) -> Value {
    let names = ["verdict", "reason", "exit_code", "complete", "states", "transitions", "levels", "depth", "deadlocks"];
    let more = ["faults", "failed_assertions", "property_hits", "matched", "distinct"];
    let mut kept: serde_json::Map<String, Value> =
        names.iter().chain(&more).map(|name| (name.to_string(), report[name].clone())).collect();
    kept.insert("positions".into(), report["trace"]["positions"].clone());
    kept.into()
}

/// Refused with a message that says `why`, and nothing else.
fn refused(arguments: &[&str], why: &str) {
    let output = run(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 2, "{arguments:?}: {said}");
    assert!(said.starts_with("error: ") && said.contains(why), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

/// Numbers that look random (Knuth's linear congruential generator).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn however_often_it_is_cut_the_answer_is_the_same() {
    for (number, (name, options, verdict)) in [
        (model("dve/lift.dve"), &["--store", "tree"][..], "holds"),
        (model("dve/lift.dve"), &["--store", "plain", "--executor", "interp"], "holds"),
        (model("dve/mesi_4.dve"), &["--store", "packed", "--disk", "1G"], "holds"),
        (model("dve/election_pairs_7.dve"), &[], "deadlock"),
        (model("dve/election_pairs_7.dve"), &["--keep-going"], "deadlock"),
        (model("dve/sliding_window_broken.dve"), &[], "invariant"),
        (model("dve/lamport_fast_3.dve"), &["--max-depth", "25"], "holds to depth"),
        (model("promela/courier_ring.pml"), &["--keep-going"], "holds"),
        (model("promela/lost_counts.pml"), &[], "assertion"),
        (model("murphi/directory.m"), &["--symmetry", "exact"], "holds"),
    ]
    .into_iter()
    .enumerate()
    {
        let whole = json(&[&["check", &name, "--workers", "1"], options].concat());
        assert!(whole["checkpoint"].is_null());
        let (states, mut random) = (whole["states"].as_u64().unwrap(), Random(number as u64));
        let (_folder, place) = place();
        let (mut limit, mut cuts) = (1 + random.below(states), 0);
        let workers = |cuts: usize| ["1", "2", "5"][(number + cuts) % 3];
        let first = ["check", &name, "--checkpoint", &place, "--workers", workers(0), "--max-states"];
        let mut seen = json(&[&first, &[limit.to_string().as_str()][..], options].concat());
        while seen["verdict"] == "unknown" {
            cuts += 1;
            assert!(seen["reason"].as_str().unwrap().starts_with("states"), "{name}: {}", seen["reason"]);
            assert_eq!(seen["checkpoint"]["folder"], place);
            assert_eq!(seen["checkpoint"]["resume"], format!("plimsoll resume '{place}'"));
            let files: Vec<_> = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(files.len(), 3, "{files:?}");
            limit = if cuts == 3 { 1 << 40 } else { limit + 1 + random.below(states) };
            let memory = ["64M", "1G", "200M"][cuts % 3];
            let (limit, workers) = (limit.to_string(), workers(cuts));
            seen = json(&["resume", &place, "--max-states", &limit, "--workers", workers, "--memory", memory]);
        }
        assert_eq!(lasting(&seen), lasting(&whole), "{name} {options:?} after {cuts} cuts");
        assert_eq!(seen["verdict"], verdict, "{name}");
        assert!(cuts > 0 || verdict != "holds", "{name} was never cut");
        // What holds to a depth may hold further.
        let over = verdict != "holds to depth";
        assert!(seen["checkpoint"].is_null() == over && Path::new(&place).exists() != over, "{name}");
    }
}

#[test]
fn a_model_that_needed_room_for_processes_is_resumed_with_that_room() {
    let (folder, place) = place();
    let path = folder.path().join("room.pml").display().to_string();
    // Walks hardly ever come so far that they see the processes.
    let text = "byte n, k; proctype P() { k == 3 }
        init { do :: n < 200 -> n++ :: n > 0 -> n = 0 :: n == 200 && k < 3 -> run P(); k++; n = 0 :: k == 3 -> break od }";
    fs::write(&path, text).unwrap();
    let whole = json(&["check", &path, "--no-deadlock"]);
    let cut = json(&["check", &path, "--no-deadlock", "--checkpoint", &place, "--max-states", "700"]);
    assert_eq!(cut["verdict"], "unknown");
    let manifest = fs::read_to_string(Path::new(&place).join("manifest")).unwrap();
    assert!(!manifest.contains("\"requests\": []"), "the search was not begun again: {manifest}");
    assert_eq!(lasting(&json(&["resume", &place, "--max-states", "1000000"])), lasting(&whole));
}

#[test]
fn time_memory_and_interruptions_leave_a_checkpoint() {
    let large = model("dve/sliding_window_large.dve");
    let (_folder, place) = place();
    let reason = |report: &Value| report["reason"].as_str().unwrap().split([':', ';']).next().unwrap().to_string();
    // One worker, who is not done before he is interrupted.
    let alone = ["--executor", "interp", "--workers", "1"];
    let check = |time: &str| json(&[&["check", &large, "--checkpoint", &place, "--time", time], &alone[..]].concat());
    // Where the machine is loaded, so is the model, for some time.
    let times = ["400ms", "1s", "2s", "5s"].into_iter();
    let late = times.map(check).find(|late| late["checkpoint"].is_object()).expect("a search begins some time");
    assert_eq!((reason(&late).as_str(), &late["exit_code"]), ("time", &Value::from(20)));
    let found = late["checkpoint"]["states"].as_u64().unwrap();
    assert!(found > 0 && found <= late["states"].as_u64().unwrap());
    // Interrupted.
    let mut child = Command::new(PROGRAM);
    child.args(["resume", &place, "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let stopped = child.wait_with_output().unwrap();
    match code(&stopped) {
        130 => {} // Before the search went on.
        _ => assert_eq!(reason(&report(&stopped)), "interrupted"),
    }
    // Too little memory for what there is, or for what comes, for all states take more than 20 MiB; never more than is allowed.
    for (megabytes, workers) in [(7, "1"), (10, "2"), (14, "3")] {
        let memory = beside_process(&large, megabytes);
        let output = run(&["resume", &place, "--json", "--memory", &memory, "--workers", workers]);
        if code(&output) == 2 {
            assert!(String::from_utf8_lossy(&output.stderr).contains("need more memory"));
            continue;
        }
        let full = report(&output);
        assert_eq!(reason(&full), "memory");
        assert!(full["peak_rss"].as_u64().unwrap() <= full["memory_budget"].as_u64().unwrap(), "{memory}");
        assert!(full["checkpoint"]["states"].as_u64().unwrap() >= found);
    }
    let whole = json(&["resume", &place, "--memory", "200M", "--disk", "1G", "--workers", "2"]);
    assert_eq!((&whole["verdict"], &whole["states"]), (&Value::from("holds"), &Value::from(3_833_172)));
    assert_eq!((&whole["transitions"], &whole["complete"]), (&Value::from(15_753_696), &Value::from(true)));
}

/// The number of the newest file that a checkpoint has or will have.
fn newest(place: &str) -> u64 {
    let names = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| name.to_str()?.strip_prefix("search-")?.parse().ok());
    numbers.max().unwrap_or(0)
}

#[test]
fn killed_at_any_moment_it_goes_on() {
    kill_often(&model("dve/lift.dve"), &["--memory", "200M"], 60);
}

/// States of 16 words, which are too many for the memory, are written as they are.
#[test]
fn killed_at_any_moment_it_goes_on_with_whole_states_on_disk() {
    let sets: Vec<String> =
        (0..12).map(|at| format!("d[{at}] = (a * {} + b * 1009 + c * {at}) % 999983", at + 31)).collect();
    let step = |name: char| format!("s -> s {{ guard {name} < 45; effect {name} = {name} + 1, {}; }}", sets.join(", "));
    let steps = ['a', 'b', 'c'].map(step).join(", ");
    let text =
        format!("byte a; byte b; byte c; int d[12]; process P {{ state s; init s; trans {steps}; }} system async;");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.dve").display().to_string();
    fs::write(&path, text).unwrap();
    let memory = beside_process(&path, 7);
    let scarce = ["--memory", &memory, "--disk", "1G", "--store", "plain"];
    let report = json(&[&["check", &path, "--executor", "interp", "--workers", "1"], &scarce[..]].concat());
    assert!(report["layers"]["flushes"].as_u64() > Some(0), "{memory}: {} {}", report["reason"], report["layers"]);
    kill_often(&path, &scarce, 20);
}

/// Kills a run that writes checkpoints all the time, again and again, and goes on each time. Moments are told by what was
/// written, and a little later, or by time alone: whatever it does then.
fn kill_often(path: &str, budget: &[&str], most_kills: u32) {
    let options = [&["--executor", "interp", "--json", "--checkpoint-every", "0s"], budget].concat();
    let whole = json(&["check", path, "--executor", "interp"]);
    let (_folder, place) = place();
    let (mut random, mut kills, mut resumed) = (Random(1), 0, 0);
    while kills < most_kills {
        let stands = Path::new(&place).join("manifest").exists();
        resumed += stands as u32;
        let workers = ["1", "2"][random.below(2) as usize];
        let mut command = Command::new(PROGRAM);
        match stands {
            true => command.args(["resume", &place, "--json", "--workers", workers]),
            false => command.args(["check", path, "--checkpoint", &place, "--workers", workers]).args(&options),
        };
        let (before, more) = (newest(&place), random.below(4));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let end = Instant::now() + Duration::from_millis(random.below(80));
        let early = |end: Instant| if more == 0 { Instant::now() < end } else { newest(&place) < before + more };
        while early(end) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(300));
        }
        std::thread::sleep(Duration::from_micros(random.below(4000)));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            continue;
        }
        assert_eq!(lasting(&report(&child.wait_with_output().unwrap())), lasting(&whole));
    }
    if Path::new(&place).join("manifest").exists() {
        assert_eq!(lasting(&json(&["resume", &place])), lasting(&whole));
    } else {
        refused(&["resume", &place], if Path::new(&place).exists() { "no checkpoint" } else { "no such folder" });
    }
    assert!(resumed > most_kills / 2, "{resumed} resumed");
}

/// A checkpoint of a small search, and a copy of its model.
fn small(folder: &Path) -> (String, PathBuf) {
    let (path, place) = (folder.join("model.dve"), folder.join("run"));
    fs::copy(model("dve/bakery_2.dve"), &path).unwrap();
    let (name, place_name) = (path.display().to_string(), place.display().to_string());
    let cut = json(&["check", &name, "--checkpoint", &place_name, "--max-states", "40", "--store", "tree"]);
    assert_eq!(cut["verdict"], "unknown", "{}", cut["reason"]);
    (name, place)
}

#[test]
fn damaged_foreign_and_missing_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (name, place) = small(folder.path());
    let resume = ["resume", place.to_str().unwrap()];
    let (manifest, data) = (place.join("manifest"), place.join("search-1"));
    let mut random = Random(5);
    for path in [&manifest, &data] {
        let sound = fs::read(path).unwrap();
        for round in 0..40 {
            let mut bytes = sound.clone();
            let at = random.below(sound.len() as u64) as usize;
            match round % 4 {
                0 => bytes.truncate(at),
                _ => bytes[at] ^= 1 << random.below(8),
            }
            fs::write(path, &bytes).unwrap();
            refused(&resume, if path == &data { "search-1 is damaged" } else { "manifest" });
        }
        for bytes in [&b""[..], b"hello\n", &[&sound[..], b"x"].concat()] {
            fs::write(path, bytes).unwrap();
            refused(&resume, if path == &data { "search-1 is damaged" } else { "manifest is" });
        }
        fs::remove_file(path).unwrap();
        refused(&resume, if path == &data { "search-1 cannot be read" } else { "no checkpoint" });
        fs::write(path, &sound).unwrap();
    }
    // Of another version: of the format, and of the program.
    let sound = fs::read_to_string(&manifest).unwrap();
    let (head, text) = sound.split_once('\n').unwrap();
    let own = head.split(' ').nth(1).unwrap();
    let with = |version: &str, text: &str| format!("plimsoll-checkpoint {version} {:08x}\n{text}", crc32(text));
    fs::write(&manifest, with("0", text)).unwrap();
    refused(&resume, &format!("version 0, and this program reads version {own}"));
    let other = text.replace("\"program\": \"", "\"program\": \"9.");
    fs::write(&manifest, with(own, &other)).unwrap();
    refused(&resume, "it was written by plimsoll 9.");
    // Of the same model, but with something else made of it; and with another command.
    fs::write(&manifest, with(own, &text.replacen("\"system\": \"", "\"system\": \"0", 1))).unwrap();
    refused(&resume, "not what it was when the checkpoint was written");
    fs::write(&manifest, with(own, &text.replacen("\"check\"", "\"info\"", 1))).unwrap();
    refused(&resume, "command line that is not understood");
    // The files of two checkpoints, mixed up.
    let other = tempfile::tempdir().unwrap();
    let (_, other_place) = small(other.path());
    fs::write(&manifest, &sound).unwrap();
    let own = fs::read(&data).unwrap();
    fs::copy(other_place.join("search-1"), &data).unwrap();
    refused(&resume, "search-1 is damaged: it belongs to another checkpoint");
    fs::write(&data, own).unwrap();
    // The model has changed, and is gone; then it is as it was.
    let model_text = fs::read_to_string(&name).unwrap();
    fs::write(&name, format!("{model_text} ")).unwrap();
    refused(&resume, "model.dve has changed since the checkpoint was written");
    fs::remove_file(&name).unwrap();
    refused(&resume, "model.dve");
    fs::write(&name, model_text).unwrap();
    let whole = json(&["check", &name]);
    assert_eq!(lasting(&json(&[&resume[..], &["--max-states", "1000000"]].concat())), lasting(&whole));
}

/// The checksum of the manifest, written down as simply as can be.
fn crc32(text: &str) -> u32 {
    let step = |sum: u32, byte: u8| {
        (0..8).fold(sum ^ byte as u32, |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    };
    !text.bytes().fold(!0, step)
}

#[test]
fn what_cannot_be_is_said_before_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let (name, place) = small(folder.path());
    let place = place.to_str().unwrap();
    refused(&["check", &name, "--checkpoint", place], "there is a checkpoint already: `plimsoll resume ");
    let lock = fs::File::open(Path::new(place).join("lock")).unwrap();
    lock.lock().unwrap();
    refused(&["resume", place], "another run of plimsoll uses it");
    refused(&["check", &name, "--checkpoint", place], "another run of plimsoll uses it");
    drop(lock);
    let new = folder.path().join("new").display().to_string();
    let below = folder.path().join("not/there").display().to_string();
    refused(&["check", &name, "--checkpoint", &below], "cannot be created");
    refused(&["check", &name, "--checkpoint", &name], "cannot be written");
    refused(&["resume", &new], "no such folder");
    refused(&["check", "-", "--language", "dve", "--checkpoint", &new], "standard input");
    let unfit = ["sleep", "cover", "frontier-safety-net", "walk"].map(|name| ["--strategy", name]);
    let unfit = unfit.iter().map(|options| &options[..]);
    for options in
        unfit.chain([&["--order", "dfs"][..], &["--cache", "LRU", "--order", "bfs"], &["--store", "bitstate"]])
    {
        refused(&[&["check", &name, "--checkpoint", &new], options].concat(), "this strategy cannot be resumed");
    }
    refused(&["check", &name, "--checkpoint", &new, "--all-violations"], "--all-violations");
    refused(&["check", &name, "--checkpoint", &new, "--unreached"], "--unreached");
    assert!(!Path::new(&new).exists(), "nothing is left behind");
    // Asked to keep it, it stays, and gives the same answer again; a folder that was there is not removed.
    let kept = json(&["resume", place, "--max-states", "1000000", "--keep-checkpoint"]);
    assert_eq!(kept["checkpoint"]["folder"], place);
    assert_eq!(lasting(&json(&["resume", place, "--max-states", "1000000"])), lasting(&kept));
    let own = folder.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("notes"), "mine").unwrap();
    json(&["check", &name, "--checkpoint", own.to_str().unwrap()]);
    assert_eq!(fs::read_dir(&own).unwrap().count(), 1);
}

/// Files cannot become larger than some limit: writing fails, for real, at one place after the other.
#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_one_before() {
    let lift = model("dve/lift.dve");
    let whole = json(&["check", &lift, "--no-deadlock"]);
    let (mut failed, mut stood) = (0, 0);
    for blocks in [0, 1, 2, 3, 60, 120, 200, 300, 400] {
        let (_folder, place) = place();
        let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, PROGRAM, "check", &lift, "--no-deadlock", "--json", "--max-states", "40000"]);
        let output = command.args(["--checkpoint", &place, "--checkpoint-every", "0s"]).output().unwrap();
        let cut = report(&output);
        assert_eq!(cut["verdict"], "unknown", "{blocks}");
        let notes = cut["notes"].to_string();
        failed += notes.contains("a checkpoint could not be written") as u32;
        match cut["checkpoint"].is_null() {
            true => assert!(!Path::new(&place).exists() && notes.contains("there is no checkpoint"), "{notes}"),
            false => {
                stood += 1;
                let seen = json(&["resume", &place, "--max-states", "1000000"]);
                assert_eq!(lasting(&seen), lasting(&whole), "{blocks}");
            }
        }
    }
    assert!(failed > 2 && stood > 0, "{failed} failed, {stood} stood");
}

#[test]
fn checkpoints_count_against_the_disk_that_is_given() {
    let lift = model("dve/lift.dve");
    let (_folder, place) = place();
    let check = ["check", &lift, "--checkpoint", &place, "--max-states", "40000"];
    let small = json(&[&check[..], &["--disk", "100K"]].concat());
    assert!(small["notes"].to_string().contains("the disk budget is used up"), "{}", small["notes"]);
    assert!(small["checkpoint"].is_null() && !Path::new(&place).exists());
    let enough = json(&[&check[..], &["--disk", "1G"]].concat());
    let rows = enough["ledger"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "checkpoint" && row["medium"] == "disk").unwrap();
    assert_eq!(row["used"], enough["checkpoint"]["bytes"]);
}

#[test]
fn a_search_on_disk_goes_on_on_disk_and_in_memory() {
    let large = model("dve/sliding_window_large.dve");
    // Two and a half million states take more than the first of these leaves.
    let [scarce, little] = [11, 13].map(|megabytes| beside_process(&large, megabytes));
    for memory in [little.as_str(), "300M"] {
        let (_folder, place) = place();
        let first = ["check", &large, "--checkpoint", &place, "--disk", "1G", "--max-states", "2500000"];
        let cut = json(&[&first[..], &["--memory", &scarce]].concat());
        assert!(cut["layers"]["flushes"].as_u64().unwrap() > 0, "{}", cut["layers"]);
        assert!(cut["checkpoint"]["states"].as_u64().unwrap() >= 2_500_000, "{}", cut["notes"]);
        let whole = json(&["resume", &place, "--max-states", "9999999", "--memory", memory]);
        let counts = ["states", "transitions", "levels"].map(|name| whole[name].as_u64().unwrap());
        assert_eq!((&whole["verdict"], counts), (&Value::from("holds"), [3_833_172, 15_753_696, 226]), "{memory}");
        assert!(whole["peak_rss"].as_u64().unwrap() <= whole["memory_budget"].as_u64().unwrap());
    }
}

#[test]
fn folders_for_temporary_files_are_all_remembered_and_all_replaced() {
    let (folder, place) = place();
    let folders = ["one", "two", "three"].map(|name| folder.path().join(name).display().to_string());
    folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let [one, two, three] = &folders;
    let name = model("dve/lift.dve");
    let (spill_two, used) = (format!("--spill-dir={two}"), |report: &Value| report["plan"]["spill_dirs"].clone());
    let first = ["check", &name, "--checkpoint", &place, "--disk", "1G", "--spill-dir", one, &spill_two];
    let seen = json(&[&first[..], &["--max-states", "100"]].concat());
    assert_eq!(used(&seen), serde_json::json!([one, two]));
    let seen = json(&["resume", &place, "--max-states", "200"]);
    assert_eq!(used(&seen), serde_json::json!([one, two]));
    let seen = json(&["resume", &place, "--max-states", "300", "--spill-dir", three, "--spill-dir", one]);
    assert_eq!(used(&seen), serde_json::json!([three, one]));
    let seen = json(&["resume", &place, "--max-states", "1000000000"]);
    assert_eq!((used(&seen), &seen["verdict"]), (serde_json::json!([three, one]), &Value::from("holds")));
}
