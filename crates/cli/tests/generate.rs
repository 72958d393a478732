//! A generated graph, read back, has the counts of the model it came from.

#[path = "common/report.rs"]
mod common;

use common::{report, root};
use std::process::Command;

#[test]
fn graphs_have_the_counts_of_their_models() {
    let folder = tempfile::tempdir().unwrap();
    for model in ["dve/lift.dve", "promela/workers.pml", "murphi/election.m"] {
        let source = root().join("models").join(model);
        let graph = folder.path().join("graph.aut");
        let status = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["generate".as_ref(), source.as_os_str(), "--output".as_ref(), graph.as_os_str()])
            .output()
            .unwrap();
        assert!(status.status.success(), "{model}: {}", String::from_utf8_lossy(&status.stderr));
        let of = |path: &std::path::Path| {
            let (_, report) = report(&[path.to_str().unwrap(), "--keep-going", "--no-deadlock", "--merge", "off"]);
            [report["states"].clone(), report["transitions"].clone(), report["levels"].clone()]
        };
        assert_eq!(of(&graph), of(&source), "{model}");
    }
}
