//! Broken input of every kind: front ends answer with a model or with messages, quickly, and never panic.
//!
//! The seeds are fixed, so a failure repeats. `PLIMSOLL_FUZZ_SECONDS=60` goes on with other seeds for a
//! minute.

use crate::common::Random;
use plimsoll_ir::PropertyKind;
use plimsoll_lang::{Language, Loaded, LoadedModel, Options, Overflow, load_bytes};
use std::time::{Duration, Instant};

const MODELS: [&str; 5] = [
    "byte turn = 1; byte want[2] = {1, 0, 0}; // two rivals
process P0 { byte tries; state idle, wait, work; init idle; assert work: want[0] == 1;
trans idle -> wait { guard not want[1] and turn != 0; effect want[0] = 1, turn = (turn + 1) % 2; },
 wait -> work { guard P1.work == 0 && (turn == 0 || want[1] == 0) && tries < 200; effect tries = tries + 1; },
 -> wait { guard tries >> 2 == 0; }, work -> idle { effect want = 0; }; }
process P1 { state idle, work; init idle; trans idle -> work { guard want[turn] == 0 imply turn; }, work -> idle {}; }
system async;",
    "const int limit = 3 * 4 - 1; const byte table[4] = {9, 8, 7}; channel link; channel {byte, int} pair[0];
channel {int} queue[3], deep[12]; int sum = limit + table[1];
process Left { int x = -5; state a, b, c; init a; commit b;
trans a -> b { sync link!x * 2 + table[x & 3]; effect x = -x; }, b -> c { sync pair!{x, limit}; },
 c -> a { guard sum < 99; sync queue!x; effect x = x ^ ~sum, sum = sum / (x + 1); }; }
process Right { int y, z; byte got[3]; state a, b; init a; accept a;
trans a -> b { sync link?got[y]; }, b -> a { sync pair?{y, z}; }, a -> a { sync queue?y; effect got[y % 3] = z << y; },
 a -> a { sync deep!7; }, b -> b { sync deep?z; }; }
system async;",
    "byte x; process A { state s, t; init s; trans s -> t { effect x = x + 1; }, t -> s { guard x < 9; }; }
process B { byte n; state u, v; init v; trans v -> u { guard A.s; effect n = x; }, u -> v {}; } /* both */
system sync;",
    "byte x = 2; int y[3]; process Main { byte own; state q; init q; trans q -> q { guard x > 0 || y[x] == 1 && x < 3; effect x = x - 1; }; }
process Spec { byte seen; state one, two; init one; accept buchi two;
trans one -> one { guard Main->own == 0 or not Main.q; }, one -> two { guard x == 0; }, two -> two { }; }
system async property Spec;",
    "byte a,b,c; process Q { state s; init s; trans s -> s { guard ((a + b) * c - -1) % 7 <= (not a == b) + (c >= 2) | 4 & 2; }; }
system async;",
];

const PROPERTIES: [&str; 3] =
    ["P0.work && P1.work", "turn == 2 || want[turn] > 1 imply P0->tries < 5", "not (want == 1) and -turn < 3"];

const AUT: &str = "des (0, 4, 3)\n(0, \"push, pop\", 1)\n(1, i, 2)\n(2, tau, 0)\n(2, \"say \\\"x\\\"\", 2)\n";

const WORDS: [&str; 48] = [
    "guard",
    "sync",
    "async",
    "effect",
    "process",
    "state",
    "init",
    "accept",
    "commit",
    "trans",
    "system",
    "true",
    "and",
    "or",
    "not",
    "imply",
    "int",
    "byte",
    "const",
    "channel",
    "property",
    "genbuchi",
    "assert",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ";",
    ",",
    ":",
    ".",
    "->",
    "!",
    "?",
    "=",
    "==",
    "<",
    "<<",
    "+",
    "-",
    "%",
    "99999999999",
    "256",
    "0",
    "x",
    "P0",
];

/// One random change of bytes.
fn change_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    match random.below(6) {
        0 => bytes.insert(at, random.below(256) as u8),
        1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..(at + random.below(20)).min(bytes.len()))),
        4 => {
            let from = random.below(bytes.len());
            let piece = bytes[from..(from + random.below(60)).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => {
            let word = WORDS[random.below(WORDS.len())];
            bytes.splice(at..at, word.bytes());
        }
    }
}

/// One random change of a whole word or sign.
fn change_tokens(bytes: &mut Vec<u8>, random: &mut Random) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut pieces: Vec<&str> = Vec::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let wordy = |c: char| c.is_alphanumeric() || c == '_';
        let end = if wordy(first) { rest.find(|c| !wordy(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        pieces.push(&rest[..end]);
        rest = &rest[end..];
    }
    if pieces.is_empty() {
        return;
    }
    let at = random.below(pieces.len());
    let other = random.below(pieces.len());
    match random.below(5) {
        0 => drop(pieces.remove(at)),
        1 => pieces.swap(at, other),
        2 => pieces.insert(at, pieces[other]),
        3 => pieces[at] = pieces[other],
        _ => pieces[at] = WORDS[random.below(WORDS.len())],
    }
    *bytes = pieces.concat().into_bytes();
}

fn mutate(original: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = original.as_bytes().to_vec();
    for _ in 0..1 + random.below(6) {
        if random.below(2) == 0 {
            change_bytes(&mut bytes, random);
        } else {
            change_tokens(&mut bytes, random);
        }
    }
    bytes
}

/// Loads; says whether there is a model. What comes out must be usable.
fn check(bytes: Vec<u8>, language: Language, options: &Options) -> Option<Loaded> {
    match load_bytes("fuzz", bytes, language, options) {
        Ok(loaded) => {
            if let LoadedModel::System { system, .. } = &loaded.model
                && let Err(flaws) = plimsoll_ir::verify(system)
            {
                panic!("loaded, but {}:\n{}", flaws[0], loaded.source.text);
            }
            Some(loaded)
        }
        Err(error) => {
            let message = error.render(false);
            assert!(message.ends_with('\n') && message.len() < 100_000, "{message}");
            error.render(true);
            None
        }
    }
}

/// One round; returns how many models loaded.
fn round(random: &mut Random) -> u32 {
    let start = Instant::now();
    let options = Options {
        overflow: if random.below(2) == 0 { Overflow::Wrap } else { Overflow::Error },
        ignore_property: random.below(4) > 0,
        ..Options::default()
    };
    let model = MODELS[random.below(MODELS.len())];
    let bytes = mutate(model, random);
    let loaded = check(bytes.clone(), Language::Dve, &options);
    if random.below(4) == 0 {
        check(mutate(AUT, random), Language::Aut, &options);
    }
    if let Some(loaded) = &loaded {
        let text = String::from_utf8_lossy(&mutate(PROPERTIES[random.below(3)], random)).into_owned();
        let _ = loaded.property(&text, PropertyKind::Goal);
    }
    let elapsed = start.elapsed();
    assert!(elapsed < Duration::from_secs(120), "{elapsed:?} for\n{}", String::from_utf8_lossy(&bytes));
    loaded.is_some() as u32
}

#[test]
fn mutated_models_never_panic() {
    for model in MODELS {
        let options = Options { ignore_property: true, ..Options::default() };
        assert!(check(model.into(), Language::Dve, &options).is_some(), "{model}");
    }
    assert!(check(AUT.into(), Language::Aut, &Options::default()).is_some());
    let (mut loaded, rounds) = (0, 20_000);
    for seed in 1..=rounds {
        loaded += round(&mut Random::new(seed));
    }
    // Mutations that break everything, or nothing, would test little.
    assert!(loaded > 500 && u64::from(loaded) < rounds - 500, "{loaded} of {rounds} loaded");
}

#[test]
fn mutated_models_never_panic_for_longer() {
    let seconds = std::env::var("PLIMSOLL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let start = Instant::now();
    let mut random = Random::new(0);
    let mut rounds = 0u64;
    while rounds < 300 || start.elapsed() < Duration::from_secs(seconds) {
        round(&mut random);
        rounds += 1;
    }
    println!("{rounds} rounds");
}

#[test]
fn monstrous_texts_are_refused_quickly() {
    let size = 10_000_000;
    let frame = |expr: &str| {
        format!("byte a; process P {{ state s; init s; trans s -> s {{ guard {expr}; }}; }} system async;")
    };
    let cases = [
        ("(".repeat(size), false),
        ("not ".repeat(size / 4), false),
        ("-".repeat(size), false),
        ("a[".repeat(size / 2), false),
        (frame(&"(".repeat(size)), false),
        (frame(&format!("{}1", "not ".repeat(size / 4))), false),
        (frame(&format!("{}a", "a-".repeat(size / 2))), false),
        (frame(&format!("{}a", "a==".repeat(size / 3))), false),
        (frame(&format!("{}a", "a+".repeat(size / 20))), true),
        (frame(&format!("{}a", "a&&".repeat(size / 30))), true),
        (frame(&format!("{}b", "b||".repeat(size / 3))), false),
        (frame(&format!("{}1{}", "(a&&".repeat(290), ")".repeat(290))), true),
        (frame(&format!("{}1{}", "(a<<a-".repeat(140), ")".repeat(140))), true),
        (frame(&format!("{}1{}", "a[(a imply ".repeat(90), ")]".repeat(90))), false),
        (frame(&format!("{}1{}", "(a imply a||a&&a|a^a&a==a<a<<a+a*-".repeat(299), ")".repeat(299))), false),
        ("process P {".repeat(size / 11), false),
        ("byte x; ".repeat(size / 80), false),
        ("byte x = {".repeat(size / 10), false),
        ("/*".repeat(size / 2), false),
        ("@ ".repeat(size / 2), false),
        ("\\".repeat(size), false),
        ("x".repeat(size), false),
        (";".repeat(size), false),
    ];
    for (text, loads) in cases {
        let start = Instant::now();
        let beginning = text[..text.len().min(120)].to_string();
        let loaded = check(text.into_bytes(), Language::Dve, &Options::default());
        assert_eq!(loaded.is_some(), loads, "{beginning}");
        assert!(start.elapsed() < Duration::from_secs(120), "{:?} for {beginning}", start.elapsed());
    }
}
