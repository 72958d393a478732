//! Trails in SPIN's format: the ones we write have the numbers that SPIN gives the statements (checked with SPIN when
//! they were written down), and those of SPIN's checker are understood, merged statements and claims included.

use crate::common::run::{code, run};
use std::path::Path;

const MEETING: &str = "byte x;
chan c = [0] of { byte };
chan d = [2] of { byte };
active proctype A() {
  byte y;
  if
  :: x == 0 -> c!3
  :: c!4; d!1
  fi;
  atomic { x++; x = x + 1; d!7 };
  d_step { x = 1; x = 2 };
  run B(x)
}
active proctype R() {
  byte z;
  do
  :: c?z;
  :: d?z -> break
  od;
  L: z = z + 1;
  assert(z == 2)
}
proctype B(byte k) { printf(\"k\") ; x = k }
";

const CLAIM: &str = "byte x;
chan c = [0] of { byte };
active proctype A() { c!3; x = 5; atomic { x = 6; x = 7 } }
active proctype R() { byte z; c?z; x = z }
never {
  do
  :: x < 4
  :: x >= 4 -> break
  od;
  skip
}
";

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn trails_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("meeting.pml", MEETING, "1:0:0 2:0:1 3:1:15 4:0:6 5:0:7 6:0:8 7:1:16 8:1:21 9:1:22", "a failed assertion"),
        ("claim.pml", CLAIM, "-2:2:-2 1:0:9 2:1:0 3:2:6 4:0:9 5:1:1 6:0:10 7:1:2 8:1:3 9:0:15 10:2:7", "never claim"),
    ];
    for (name, model, wanted, end) in cases {
        let (path, trail) = (folder.path().join(name), folder.path().join(format!("{name}.trail")));
        std::fs::write(&path, model).unwrap();
        let (path, trail_name) = (path.to_str().unwrap(), trail.to_str().unwrap());
        run(&["check", path, "--no-deadlock", "--trace", trail_name]);
        assert_eq!(text(&trail), wanted, "{name}");
        let replayed = run(&["replay", path, trail_name, "--quiet"]);
        let said = String::from_utf8_lossy(&replayed.stdout);
        assert!(code(&replayed) == 0 && said.contains(end), "{name}: {said}");
    }
}

#[test]
fn trails_of_others_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.pml");
    let trail = folder.path().join("m.pml.trail");
    let replay = |model: &str, lines: &str| {
        std::fs::write(&path, model).unwrap();
        std::fs::write(&trail, lines.replace(' ', "\n")).unwrap();
        let output = run(&["replay", path.to_str().unwrap(), trail.to_str().unwrap(), "--quiet"]);
        (
            code(&output),
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        )
    };
    let merged = replay(MEETING, "-4:-4:-4 1:0:0 2:0:1 3:1:15 4:0:6 5:0:8 6:1:16 7:1:21 8:1:22");
    assert!(merged.0 == 0 && merged.1.contains("a failed assertion"), "{}", merged.1);
    // The failing statement itself was merged with the one before.
    let rest = replay("byte x; active proctype P() { x = 1; x = 2; assert(x == 1) }", "-4:-4:-4 1:0:0");
    assert!(rest.0 == 0 && rest.1.contains("a failed assertion"), "{}", rest.1);
    let early =
        replay(CLAIM, "-2:2:-2 1:0:9 2:1:0 3:2:6 4:0:9 5:2:7 6:0:9 7:2:8 8:0:9 9:1:1 10:0:10 11:1:2 12:1:3 13:0:15");
    assert!(early.0 == 0 && early.1.contains("never claim"), "{}", early.1);
    let more =
        "proctype P() { skip } init { run P(); run P(); run P(); do :: _nr_pr < 3 -> assert(false) :: run P() od }";
    let (status, said) = replay(more, "1:0:2 2:0:3 3:0:4 4:0:7 5:0:7");
    assert!(status == 2 && said.contains("nothing is wrong"), "{said}");
    for (lines, wanted) in [("1:1:0", "cannot take step 1"), ("1:0", "not a trail"), ("a:b:c", "not a trail")] {
        let (status, said) = replay(MEETING, lines);
        assert!(status == 2 && said.contains(wanted), "{said}");
    }
}
