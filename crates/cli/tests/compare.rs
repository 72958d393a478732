//! `plimsoll compare` on small folders made here.

use crate::common::run::{PROGRAM, code, run, said};
use std::path::Path;
use std::process::Command;

const COUNTER: &str = "var x: 0..3; startstate begin x := 0; end; rule begin x := (x + 1) % 4; end;";
const STUCK: &str = "var x: 0..3; startstate begin x := 0; end; rule x < 3 ==> begin x := x + 1; end;";
const PROMELA: &str = "byte x; active proctype P() { do :: x < N -> x++ od }";

/// A folder with three models and a table.
fn folder(table: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("counter.m", COUNTER);
    write("stuck.m", STUCK);
    write("broken.m", "var x: 0..;");
    write("count.pml", PROMELA);
    write("counts.csv", table);
    folder
}

fn compare(folder: &Path, more: &[&str]) -> (i32, String) {
    let output = run(&[&["compare", folder.to_str().unwrap()], more].concat());
    (code(&output), said(&output))
}

#[test]
fn counts_verdicts_and_refusals_of_murphi_models() {
    let head = "model,tool,options,states,rules_fired,levels,verdict,trace_len\n";
    let good = "counter,cmurphi,-nosym,4,4,4,ok,\nstuck,rumur,--symmetry-reduction off,2,2,,deadlock,3\n";
    let table = folder(&format!("{head}{good}broken,cmurphi,compile,,,,reject,\n"));
    let (code, said) = compare(table.path(), &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("2 equal, 0 different, 1 refused as elsewhere"), "{said}");

    let table = folder(&format!("{head}counter,cmurphi,-nosym,5,4,4,ok,\nstuck,cmurphi,-nosym,,,,deadlock,2\n"));
    let (code, said) = compare(table.path(), &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("states 4 instead of 5") && said.contains("trace 3 instead of 2"), "{said}");

    let table = folder(&format!(
        "{head}{good}broken,cmurphi,-nosym,5,4,4,ok,\ncounter,rumur,--symmetry-reduction off,90000000,1,,ok,\n"
    ));
    let (code, said) = compare(table.path(), &["--quiet"]);
    assert_eq!(code, 20, "{said}");
    assert!(said.contains("REFUSED    broken") && said.contains("1 skipped as too big"), "{said}");
}

#[test]
fn counts_of_promela_models() {
    let head = "model,options,states,transitions,depth,verdict,errors,status\n";
    let table =
        folder(&format!("{head}count.pml -DN=3,nr-o123,7,7,9,invalid end state,1,ok\ncount.pml,por,1,1,1,none,0,ok\n"));
    let (code, said) = compare(table.path(), &[]);
    assert_eq!((code, said.contains("1 equal, 0 different;")), (0, true), "{said}");
    let table = folder(&format!("{head}count.pml -DN=3,nr-o123,7,7,9,none,0,ok\n"));
    let (code, said) = compare(table.path(), &[]);
    assert_eq!((code, said.contains("errors 1 instead of 0")), (1, true), "{said}");
}

#[test]
fn an_oracle_that_is_not_installed_is_named() {
    let folder = folder("");
    let mut command = Command::new(PROGRAM);
    command.args(["compare", folder.path().to_str().unwrap(), "--oracle", "rumur"]).env("PATH", folder.path());
    let output = command.output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(said(&output).contains("`rumur` is not installed"), "{}", said(&output));
}

#[test]
fn an_oracle_is_asked_about_every_model_of_its_language() {
    // A stand-in that translates to a script which counts as Rumur would.
    let folder = folder("");
    let tools = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = tools.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    script("rumur", "case \"$*\" in *broken*) echo no; exit 1;; esac");
    script("gcc", "printf '#!/bin/sh\\necho \"4 states, 4 rules fired in 0s.\"\\n' > model; chmod +x model");
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(PROGRAM);
    command.args(["compare", folder.path().to_str().unwrap(), "--oracle", "rumur"]).env("PATH", path);
    let output = command.output().unwrap();
    let said = said(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("1 equal, 1 different, 1 refused as elsewhere"), "{said}");
    assert!(said.contains("verdict deadlock instead of holds"), "{said}");
}
