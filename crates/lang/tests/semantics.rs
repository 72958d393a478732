//! The meaning of DVE, one rule per case: small models whose reachable states show which rule applies.

use plimsoll_ir::PropertyKind;
use plimsoll_lang::{Language, Loaded, LoadedModel, Options, Overflow, Source, load_text};
use plimsoll_model::{Interp, Model, Successors};
use std::collections::HashSet;

fn load(text: &str, overflow: Overflow) -> Loaded {
    let source = Source { name: "test.dve".into(), text: text.into() };
    let options = Options { overflow, ignore_property: true, ..Options::default() };
    load_text(source, Language::Dve, &options).unwrap_or_else(|error| panic!("{}", error.render(false)))
}

/// Counts as the original tools do: all faults lead to one more state without successors.
#[derive(Debug, PartialEq, Eq)]
struct Count {
    states: usize,
    edges: usize,
    deadlocks: usize,
}

struct Explored {
    count: Count,
    faults: usize,
    /// The state violates (or reaches) the first property.
    found: bool,
}

fn explore(interp: &Interp) -> Explored {
    let mut out = Successors::new(interp.width());
    interp.initial(&mut out);
    let mut open: Vec<Vec<u32>> = out.iter().map(|(state, _)| state.to_vec()).collect();
    let mut seen: HashSet<Vec<u32>> = open.iter().cloned().collect();
    let (mut edges, mut deadlocks, mut faults, mut found) = (0, 0, 0, false);
    while let Some(state) = open.pop() {
        found |= interp.violated(&state).is_some();
        out.clear();
        interp.successors(&state, &mut out);
        edges += out.len();
        deadlocks += out.is_empty() as usize;
        for (next, step) in out.iter() {
            if step.is_fault() {
                faults += 1;
            } else if seen.insert(next.to_vec()) {
                open.push(next.to_vec());
            }
        }
    }
    let error_state = (faults > 0) as usize;
    Explored {
        count: Count { states: seen.len() + error_state, edges, deadlocks: deadlocks + error_state },
        faults,
        found,
    }
}

fn interp(loaded: &Loaded) -> Interp {
    let LoadedModel::System { system, .. } = &loaded.model else { panic!("not a system") };
    plimsoll_ir::verify(system).unwrap();
    Interp::new(system.clone())
}

fn count(text: &str, overflow: Overflow) -> (usize, usize, usize) {
    let Count { states, edges, deadlocks } = explore(&interp(&load(text, overflow))).count;
    (states, edges, deadlocks)
}

fn reaches(text: &str, goal: &str) -> bool {
    let loaded = load(text, Overflow::Wrap);
    let property = loaded.property(goal, PropertyKind::Goal).unwrap_or_else(|errors| panic!("{goal}: {errors:?}"));
    let LoadedModel::System { system, .. } = &loaded.model else { panic!("not a system") };
    let mut system = system.clone();
    system.properties = vec![property];
    plimsoll_ir::verify(&system).unwrap();
    explore(&Interp::new(system)).found
}

/// The first goal is reached, the second is not.
#[track_caller]
fn decides(text: &str, yes: &str, no: &str) {
    assert!(reaches(text, yes), "`{yes}` is not reached");
    assert!(!reaches(text, no), "`{no}` is reached");
}

#[test]
fn effects_run_one_after_the_other() {
    let text =
        "byte a = 1, b = 2; process P { state s, t; init s; trans s -> t { effect a = b, b = a; }; } system async;";
    decides(text, "P.t && a == 2 && b == 2", "P.t && b == 1");
}

#[test]
fn every_transition_is_an_edge_even_to_the_same_state() {
    let text = "process P { state s, t; init s; trans s -> t {}, s -> t {}, t -> t {}; } system async;";
    assert_eq!(count(text, Overflow::Wrap), (2, 3, 0));
}

#[test]
fn a_rendezvous_needs_two_processes() {
    let alone =
        "channel c; process P { state s, t; init s; trans s -> t { sync c!; }, s -> t { sync c?; }; } system async;";
    assert_eq!(count(alone, Overflow::Wrap), (1, 0, 1));
    let three = "channel c;
        process S { state s, t; init s; trans s -> t { sync c!; }, s -> t { sync c!; }; }
        process R1 { state s, t; init s; trans s -> t { sync c?; }; }
        process R2 { state s, t; init s; trans s -> t { guard S.t; sync c?; }; } system async;";
    // Guards are tried in the state before: R2 never hears S.
    assert_eq!(count(three, Overflow::Wrap), (2, 2, 1));
}

#[test]
fn in_a_rendezvous_the_receiver_moves_first() {
    let text = "byte g = 1, seen; channel c;
        process S { state s, t; init s; trans s -> t { sync c!; effect g = 5; }; }
        process R { state s, t; init s; trans s -> t { sync c?; effect seen = g * 10 + S.s; }; } system async;";
    decides(text, "seen == 11", "seen == 50 || seen == 10");
}

#[test]
fn the_last_writer_of_a_rendezvous_is_the_sender() {
    let text = "byte g; channel c;
        process S { state s, t; init s; trans s -> t { sync c!; effect g = 5; }; }
        process R { state s, t; init s; trans s -> t { sync c?; effect g = 6; }; } system async;";
    decides(text, "g == 5", "g == 6");
}

#[test]
fn values_are_computed_before_any_effect() {
    let text = "byte i = 1, got[3]; channel c;
        process S { byte v = 3; state s, t; init s; trans s -> t { sync c!v; effect v = 9, i = 2; }; }
        process R { state s, t; init s; trans s -> t { sync c?got[i]; effect i = 0; }; } system async;";
    decides(text, "got[1] == 3", "got[0] != 0 || got[2] != 0 || got[1] == 9");
}

#[test]
fn several_values_pass_at_once() {
    let swap = "byte a = 1, b = 2; channel c;
        process S { state s, t; init s; trans s -> t { sync c!{a, b}; }; }
        process R { state s, t; init s; trans s -> t { sync c?{b, a}; }; } system async;";
    decides(swap, "R.t && a == 2 && b == 1", "R.t && a == b");
    let index = "byte i, d[3]; channel c;
        process S { state s, t; init s; trans s -> t { sync c!{2, 7}; }; }
        process R { state s, t; init s; trans s -> t { sync c?{i, d[i]}; }; } system async;";
    decides(index, "i == 2 && d[0] == 7", "d[2] == 7");
}

#[test]
fn a_typed_channel_converts() {
    let text = "int got; channel {byte} c[0];
        process S { int v = 300; state s, t; init s; trans s -> t { sync c!v; }; }
        process R { state s, t; init s; trans s -> t { sync c?got; }; } system async;";
    decides(text, "got == 44", "got == 300");
    assert_eq!(explore(&interp(&load(text, Overflow::Error))).faults, 1);
    let untyped = text.replace("{byte} c[0]", "c");
    decides(&untyped, "got == 300", "got == 44");
}

#[test]
fn the_location_changes_before_the_effects() {
    let text = "byte at; process P { state s, t; init s; trans s -> t { effect at = P.t + 2 * P.s; }; } system async;";
    decides(text, "at == 1", "at >= 2");
}

#[test]
fn committed_processes_go_first() {
    let text = "process P { state s, t, u; init s; commit t; trans s -> t {}, t -> u {}; }
        process Q { state s, t; init s; trans s -> t {}; } system async;";
    // (s,s) (t,s) (u,s) (s,t) (t,t) (u,t): from (t,s) only P moves.
    assert_eq!(count(text, Overflow::Wrap), (6, 6, 1));
}

#[test]
fn a_committed_process_that_cannot_move_stops_the_others() {
    let text = "byte go; process P { state s, t, u; init s; commit t; trans s -> t {}, t -> u { guard go; }; }
        process Q { state s, t; init s; trans s -> t { effect go = 1; }; } system async;";
    assert_eq!(count(text, Overflow::Wrap), (5, 4, 2));
}

#[test]
fn a_rendezvous_needs_both_or_none_committed() {
    let text = "channel c; process P { state t, u; init t; commit t; trans t -> u { sync c!; }; }
        process Q { state s, t; init s; COMMIT trans s -> t { sync c?; }; } system async;";
    assert!(!reaches(&text.replace("COMMIT", ""), "P.u"));
    assert!(reaches(&text.replace("COMMIT", "commit s;"), "P.u && Q.t"));
    assert!(reaches(&text.replace("COMMIT", "").replace("commit t;", ""), "P.u && Q.t"));
}

#[test]
fn stores_wrap_or_go_wrong() {
    let byte = "byte x = 254; process P { state s; init s; trans s -> s { effect x = x + 1; }; } system async;";
    assert_eq!(count(byte, Overflow::Wrap), (256, 256, 0));
    assert_eq!(count(byte, Overflow::Error), (3, 2, 1));
    let int =
        "int x = -32767; process P { state s; init s; trans s -> s { guard x < 0; effect x = x - 1; }; } system async;";
    decides(int, "x == 32767", "x < -32768");
    assert_eq!(count(int, Overflow::Error), (3, 2, 1));
    let received = "byte x; channel c; process S { state s, t; init s; trans s -> t { sync c!-1; }; }
        process R { state s, t; init s; trans s -> t { sync c?x; }; } system async;";
    decides(received, "x == 255", "x < 0");
    assert_eq!(count(received, Overflow::Error), (2, 1, 1));
}

#[test]
fn expressions_have_32_bits() {
    let text = "byte x = 200, r; int big = 20000; process P { state s, t, u; init s;
        trans s -> t { effect r = (x + x) / 2; }, t -> u { guard big * big * big < 0 && big * big == 400000000; }; } system async;";
    decides(text, "r == 200 && P.u", "r == 72");
}

#[test]
fn division_truncates_towards_zero() {
    let text =
        "int q, r; process P { state s, t; init s; trans s -> t { effect q = -7 / 2, r = -7 % 3; }; } system async;";
    decides(text, "q == -3 && r == -1", "q == -4 || r == 2");
}

#[test]
fn faults_lead_to_one_error_state_and_a_faulty_guard_counts_as_enabled() {
    let frame = |part: &str| {
        format!(
            "byte a[2], z, i = 2; process P {{ state s, t; init s; trans s -> t {{ {part} }}; }}
            process Q {{ state s, t; init s; trans s -> t {{}}; }} system async;"
        )
    };
    for part in [
        "guard a[i] == 1;",
        "guard a[i - 3];",
        "effect z = a[i];",
        "effect a[i] = 1;",
        "effect z = 1 / z;",
        "effect z = 1 % z;",
        "guard i / z > 0;",
    ] {
        // Q's two states, the error state; two faulting edges and Q's own.
        assert_eq!(count(&frame(part), Overflow::Wrap), (3, 3, 1), "{part}");
    }
    // Short-circuit keeps the fault away.
    assert_eq!(count(&frame("guard z != 0 && a[i];"), Overflow::Wrap), (2, 1, 1));
    assert_eq!(count(&frame("guard z == 0 || a[i];"), Overflow::Wrap), (4, 4, 1));
    assert_eq!(count(&frame("guard z imply a[i];"), Overflow::Wrap), (4, 4, 1));
}

#[test]
fn initial_values() {
    let text =
        "const int k = 2 * 3; byte x = k - 1, y = x + k; byte s[4] = {7, y}; byte l[2] = {1, 2, 300}; int m = -s[1];
        process P { byte own = l[1] + 1; state a, b; init b; trans a -> a {}; } system async;";
    decides(text, "y == 11 && s == 7 && s[1] == 11 && s[3] == 0 && l[1] == 2 && m == -11 && P->own == 3 && P.b", "P.a");
}

#[test]
fn a_bare_array_is_its_first_element() {
    let text = "byte e[3] = {4, 5, 6}, copy; process P { state s, t; init s;
        trans s -> t { guard e == 4; effect copy = e, e = 9; }; } system async;";
    decides(text, "copy == 4 && e[0] == 9 && e[1] == 5", "P.t && e[0] == 4");
}

#[test]
fn constant_arrays_can_be_indexed() {
    let text = "const byte t[3] = {5, 6, 7}; byte i, sum; process P { const int k = 1; state s; init s;
        trans s -> s { guard i < 3; effect sum = sum + t[i], i = i + k; }; } system async;";
    decides(text, "sum == 18 && t[2] == 7 && P->k == 1", "sum > 18");
}

#[test]
fn locals_hide_globals() {
    let text =
        "byte x = 1; process P { byte x = 2; state s, t; init s; trans s -> t { effect x = x + 1; }; } system async;";
    decides(text, "P->x == 3 && x == 1", "x != 1");
}

#[test]
fn an_omitted_source_is_the_one_before() {
    let text = "process P { state s, t, u; init s; trans s -> t {}, -> u {}; } system async;";
    assert_eq!(count(text, Overflow::Wrap), (3, 2, 2));
}

#[test]
fn negation_binds_tighter_than_comparison_and_conjunction_than_disjunction() {
    let text = "byte x = 2, one = 1, zero; process P { state s; init s; trans s -> s {}; } system async;";
    decides(text, "not x == 0", "not (x == 2)");
    decides(text, "one == 1 || zero && zero", "(one || zero) && zero");
    decides(text, "x - 1 - 1 == 0 && -1 < 0 && 1 + 2 * 3 == 7 && (6 & 3 | 8) == 10", "x - (1 - 1) == 0");
    decides(text, "x == 9 imply zero imply zero || one", "one imply zero");
}

#[test]
fn buffers_are_queues() {
    for capacity in [2, 11] {
        let text = format!(
            "channel {{byte}} c[{capacity}]; byte out[3], n;
            process S {{ byte v = 5; state s; init s; trans s -> s {{ guard v < 8; sync c!v; effect v = v + 1; }}; }}
            process R {{ state s; init s; trans s -> s {{ guard n < 3; sync c?out[n]; effect n = n + 1; }}; }} system async;"
        );
        decides(&text, "n == 3 && out[0] == 5 && out[1] == 6 && out[2] == 7", "n == 3 && out[0] != 5");
        // Sent minus received stays within the room; every such pair is one state: slots given free are cleared.
        let states = (0..=3).flat_map(|sent| (0..=sent).map(move |got| sent - got)).filter(|&used| used <= capacity);
        assert_eq!(count(&text, Overflow::Wrap).0, states.count());
    }
}

#[test]
fn buffered_messages_pass_before_the_effects() {
    let text = "channel {byte, int} c[1]; byte seen;
        process S { byte v = 3; state s, t; init s; trans s -> t { sync c!{v, -v}; effect v = 9; }; }
        process R { byte q = 7; int m; state s, t; init s; trans s -> t { sync c?{q, m}; effect seen = q; }; } system async;";
    decides(text, "seen == 3 && R->m == -3", "seen == 7 || R->q == 9");
}

#[test]
fn assertions_are_invariants_of_a_state() {
    let text = "byte x; process P { state s, t; init s; assert s: x < 2, t: x == 2;
        trans s -> s { guard x < LIMIT; effect x = x + 1; }, s -> t { guard x == 1; effect x = x + 1; }; } system async;";
    let broken = explore(&interp(&load(&text.replace("LIMIT", "2"), Overflow::Wrap)));
    let sound = explore(&interp(&load(&text.replace("LIMIT", "1"), Overflow::Wrap)));
    assert!(broken.found && !sound.found);
    let LoadedModel::System { system, .. } = load(text.replace("LIMIT", "2").as_str(), Overflow::Wrap).model else {
        panic!()
    };
    let names: Vec<&str> = system.properties.iter().map(|property| property.name.as_str()).collect();
    assert_eq!(names, ["assert at P.s", "assert at P.t"]);
}

#[test]
fn in_a_synchronous_system_all_processes_move() {
    let text = "byte x; process A { state s, t; init s; trans s -> t { effect x = x + 1; }, t -> s {}; }
        process B { state s, t, u; init s; trans s -> t {}, t -> u {}, u -> s { guard x < 4; }; } system sync;";
    // The cycles of length 2 and 3 turn together until x is 5, where B is stuck.
    assert_eq!(count(text, Overflow::Wrap), (9, 8, 1));
    let conflict = "byte x; process A { state s; init s; trans s -> s { effect x = 1; }; }
        process B { state s; init s; trans s -> s { effect x = 2; }; } system sync;";
    assert_eq!(count(conflict, Overflow::Wrap), (2, 1, 1));
}

#[test]
fn an_ignored_property_process_leaves_no_trace() {
    let with = "byte x; process Spec { byte n; state a; init a; accept a; trans a -> a { guard P->y == 0 && P.s; }; }
        process P { byte y; state s; init s; trans s -> s { guard x < 3; effect x = x + 1; }; } system async property Spec;";
    let LoadedModel::System { system, .. } = load(with, Overflow::Wrap).model else { panic!() };
    assert_eq!(system.processes.len(), 1);
    assert_eq!(system.vars.iter().map(|var| var.name.as_str()).collect::<Vec<_>>(), ["x", "P", "P->y"]);
    assert_eq!(count(with, Overflow::Wrap), (4, 3, 1));
}
