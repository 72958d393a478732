//! Broken Promela of every kind: the front end answers with a model that verifies or with messages, and never panics.
//!
//! The seeds are fixed, so a failure repeats. `PLIMSOLL_FUZZ_SECONDS=60` goes on with other seeds for a minute.

use crate::common::Random;
use plimsoll_ir::PropertyKind;
use plimsoll_lang::{Language, LoadedModel, Options, load_bytes};
use std::time::{Duration, Instant};

const WORDS: [&str; 64] = [
    "atomic",
    "d_step",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "if",
    "fi",
    "do",
    "od",
    "::",
    "->",
    ";",
    ":",
    ",",
    ".",
    "!",
    "!!",
    "?",
    "??",
    "=",
    "==",
    "++",
    "run",
    "goto",
    "L:",
    "L",
    "else",
    "break",
    "skip",
    "unless",
    "timeout",
    "chan",
    "byte",
    "mtype",
    "typedef",
    "T",
    "inline",
    "f(",
    "select(",
    "for (",
    "in",
    "..",
    "x",
    "q",
    "0",
    "-1",
    "4294967296",
    "eval(",
    "_",
    "_pid",
    "P@L",
    "P[0]:x",
    "len(q)",
    "never {",
    "\n#define x x",
    "\n#if",
    "\n#endif\n",
    "\"",
    "/*",
    "provided",
    "é",
];

/// Cuts, doubles, swaps, and inserts words.
fn mutate(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = text.to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(out.len() + 1);
        let to = (at + random.below(20)).min(out.len());
        match random.below(5) {
            0 => drop(out.drain(at..to)),
            1 => {
                let part = out[at..to].to_vec();
                out.splice(at..at, part);
            }
            2 => {
                let word = format!(" {} ", WORDS[random.below(WORDS.len())]);
                out.splice(at..at, word.into_bytes());
            }
            3 => {
                let word = WORDS[random.below(WORDS.len())].as_bytes().to_vec();
                out.splice(at..to, word);
            }
            _ => {
                if let Some(byte) = out.get_mut(at) {
                    *byte = b' ' + random.below(95) as u8;
                }
            }
        }
    }
    out
}

fn feed(text: Vec<u8>) {
    let begin = Instant::now();
    let shown = String::from_utf8_lossy(&text).into_owned();
    match load_bytes("fuzz.pml", text, Language::Promela, &Options::default()) {
        Ok(loaded) => {
            if let LoadedModel::System { system, .. } = &loaded.model
                && let Err(flaws) = plimsoll_ir::verify(system)
            {
                panic!("{:?}\n{shown}", &flaws[..1]);
            }
            let _ = loaded.property("x == 1 && len(q) > 0", PropertyKind::Goal);
        }
        Err(error) => assert!(!error.render(false).is_empty()),
    }
    assert!(begin.elapsed() < Duration::from_secs(120), "slow:\n{shown}");
}

#[test]
fn broken_models_give_messages() {
    let cases: Vec<&str> = include_str!("promela_rules.txt")
        .split("## ")
        .skip(1)
        .map(|case| case.splitn(3, '\n').nth(2).unwrap())
        .collect();
    let seconds: u64 = std::env::var("PLIMSOLL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let begin = Instant::now();
    let mut random = Random::new(0);
    let mut round = 0;
    while round < 20 || begin.elapsed() < Duration::from_secs(seconds) {
        for case in &cases {
            feed(mutate(case.as_bytes(), &mut random));
        }
        round += 1;
    }
}

#[test]
fn hostile_nesting_is_refused() {
    let deep = 100_000;
    let cases = [
        format!("active proctype P() {{ x = {}1{} }}", "(".repeat(deep), ")".repeat(deep)),
        format!("active proctype P() {{ {} }}", "{".repeat(deep)),
        format!("active proctype P() {{ {} }}", "if :: ".repeat(deep)),
        format!("active proctype P() {{ {}skip }}", "L: ".repeat(deep)),
        format!("byte x; active proctype P() {{ x = {}1 }}", "- ".repeat(deep)),
        format!("byte x; active proctype P() {{ x = 1{} }}", " + 1".repeat(deep)),
        format!("byte x; active proctype P() {{ x = 1{} }}", " && x".repeat(deep)),
        format!("byte x; chan q = [1] of {{ byte }}; active proctype P() {{ q?{}x{} }}", "(".repeat(deep), ")".repeat(deep)),
        format!("#define f(x) x\nactive proctype P() {{ {}skip{} }}", "f(".repeat(deep), ")".repeat(deep)),
        format!("#if {}1\n#endif", "(".repeat(deep)),
        "typedef A { byte x[100000] }; typedef B { A a[100000] }; typedef C { B b[100000] }; C c; active proctype P() { skip }".into(),
        "byte x[1000000]; byte y[1000000]; byte z[1000000]; byte w[1000000]; byte v[1000000]; active proctype P() { skip }".into(),
        "chan q[1000] = [60000] of { int, int, int }; active proctype P() { q[0]!1,2,3 }".into(),
    ];
    for text in cases {
        let begin = Instant::now();
        match load_bytes("deep.pml", text.into_bytes(), Language::Promela, &Options::default()) {
            Ok(loaded) => {
                let LoadedModel::System { system, .. } = &loaded.model else { panic!() };
                let _ = plimsoll_ir::verify(system);
            }
            Err(error) => assert!(!error.render(false).is_empty()),
        }
        assert!(begin.elapsed() < Duration::from_secs(120));
    }
}
