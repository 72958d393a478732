//! Does a report agree with the reference? What must be equal depends on what the strategy promises.

use super::settings::Setting;
use crate::hunt::Hunt;
use crate::options::Order;
use crate::presets::Strategy;
use serde_json::Value;

/// How a run compares.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Agrees,
    /// It ran out of something, or may miss states and says so.
    Undecided(String),
    Differs(Vec<String>),
}

/// Counts that are those of the model when every state was visited once.
const COUNTS: [&str; 5] = ["states", "deadlocks", "faults", "failed_assertions", "property_hits"];
/// Where several workers search, all of these are as with one.
const REPEATED: [&str; 15] = [
    "verdict",
    "complete",
    "states",
    "transitions",
    "levels",
    "depth",
    "deadlocks",
    "faults",
    "failed_assertions",
    "property_hits",
    "widest_frontier",
    "matched",
    "forgotten",
    "distinct",
    "exit_code",
];

/// Compares a report under a setting with that of the reference.
pub fn judge(reference: &Value, report: &Value, setting: &Setting) -> Found {
    let strategy = setting.parts();
    let mut differences = Vec::new();
    let verdict = text(report, "verdict");
    let wrong = text(reference, "verdict") != "holds";
    match verdict {
        "unknown" | "holds to depth" => return Found::Undecided(text(report, "reason").into()),
        "holds" => {
            if wrong {
                differences.push(format!("holds instead of {}", text(reference, "verdict")));
            }
            if !strategy.is_complete() || report["complete"] != Value::Bool(true) {
                differences.push("holds, though states may have been missed".into());
            }
        }
        _ => differences.extend(violation(reference, report, setting, &strategy)),
    }
    if !setting.stops && !setting.merged && report["complete"] == Value::Bool(true) {
        differences.extend(counts(reference, report));
        // Steps that sleep are not taken.
        let all_steps = strategy.sleep.is_none() && number(report, "forgotten") == 0;
        let breadth_first = strategy.order == Order::Bfs && number(report, "forgotten") == 0;
        for (name, must) in [("transitions", all_steps), ("levels", breadth_first)] {
            let (wanted, got) = (number(reference, name), number(report, name));
            if must && wanted != got {
                differences.push(format!("{name} {got} instead of {wanted}"));
            }
        }
    }
    if differences.is_empty() { Found::Agrees } else { Found::Differs(differences) }
}

/// Compares two reports that should be the same.
pub fn repeats(one: &Value, other: &Value) -> Vec<String> {
    let unlike = |name: &&&str| one[**name] != other[**name];
    let mut differences: Vec<String> = REPEATED
        .iter()
        .filter(unlike)
        .map(|name| format!("{name} {} instead of {} with one worker", other[*name], one[*name]))
        .collect();
    if one["trace"]["positions"] != other["trace"]["positions"] {
        differences.push("another trace than with one worker".into());
    }
    differences
}

/// Something is wrong in the model: is there such a thing, and was the shortest way to it found?
fn violation(reference: &Value, report: &Value, setting: &Setting, strategy: &Strategy) -> Vec<String> {
    let mut differences = Vec::new();
    let verdict = text(report, "verdict");
    let count = match verdict {
        "deadlock" => "deadlocks",
        "error" => "faults",
        "assertion" => "failed_assertions",
        _ => "property_hits",
    };
    if text(reference, "verdict") == "holds" || number(reference, count) == 0 {
        differences.push(format!("{verdict} instead of {}", text(reference, "verdict")));
    }
    let (shortest, steps) = (steps(reference), steps(report));
    let finds_shortest = strategy.hunt.map_or(strategy.order == Order::Bfs, Hunt::finds_shortest);
    let finds_shortest = finds_shortest && strategy.is_complete();
    if !setting.merged && (steps < shortest || finds_shortest && steps != shortest) {
        differences.push(format!("a trace of {steps} steps instead of {shortest}"));
    }
    differences
}

fn counts(reference: &Value, report: &Value) -> Vec<String> {
    let once = number(report, "forgotten") == 0;
    let compared = COUNTS.map(|name| (name, number(reference, name), number(report, name)));
    let differ = |wanted: u64, got: u64| {
        if once { wanted != got } else { got < wanted || (wanted == 0) != (got == 0) }
    };
    let different = compared.into_iter().filter(|&(_, wanted, got)| differ(wanted, got));
    different.map(|(name, wanted, got)| format!("{name} {got} instead of {wanted}")).collect()
}

fn text<'a>(report: &'a Value, name: &str) -> &'a str {
    report[name].as_str().unwrap_or("")
}

fn number(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or(0)
}

fn steps(report: &Value) -> u64 {
    report["trace"]["positions"].as_array().map_or(0, Vec::len).saturating_sub(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reference() -> Value {
        json!({"verdict": "deadlock", "complete": true, "states": 10, "transitions": 20, "levels": 4, "deadlocks": 2,
               "faults": 0, "failed_assertions": 0, "property_hits": 1, "forgotten": 0, "trace": {"positions": [0, 1, 1]}})
    }

    fn with(changes: Value) -> Value {
        let mut report = reference();
        for (name, value) in changes.as_object().unwrap() {
            report[name] = value.clone();
        }
        report
    }

    fn differences(report: Value, setting: &Setting) -> Vec<String> {
        match judge(&reference(), &report, setting) {
            Found::Differs(differences) => differences,
            _ => Vec::new(),
        }
    }

    #[test]
    fn what_a_strategy_promises_is_held_against_it() {
        let of = |strategy, order| Setting { strategy: Some(strategy), order: Some(order), ..Setting::default() };
        let (plain, deep) = (of("full", Order::Bfs), of("full", Order::Dfs));
        assert_eq!(judge(&reference(), &reference(), &plain), Found::Agrees);
        assert_eq!(differences(with(json!({"states": 9})), &plain), ["states 9 instead of 10"]);
        assert_eq!(differences(with(json!({"levels": 5})), &plain).len(), 1);
        assert_eq!(differences(with(json!({"levels": 0})), &deep).len(), 0);
        let longer = json!({"trace": {"positions": [0, 1, 1, 1]}});
        assert_eq!(differences(with(longer.clone()), &plain), ["a trace of 3 steps instead of 2"]);
        assert_eq!(differences(with(longer), &deep).len(), 0);
        assert_eq!(differences(with(json!({"trace": {"positions": [0, 1]}})), &deep).len(), 1);
        assert_eq!(differences(with(json!({"verdict": "reached"})), &deep).len(), 0, "there is such a state too");
        assert_eq!(differences(with(json!({"verdict": "assertion"})), &deep).len(), 1);
        assert_eq!(differences(with(json!({"verdict": "holds"})), &plain).len(), 1);
        assert_eq!(differences(with(json!({"transitions": 12})), &of("sleep", Order::Dfs)).len(), 0);
        assert_eq!(differences(with(json!({"transitions": 12})), &deep).len(), 1);
    }

    #[test]
    fn what_forgets_counts_visits_and_who_gives_up_is_not_wrong() {
        let cached = Setting { strategy: Some("cache:LRU"), order: Some(Order::Dfs), ..Setting::default() };
        assert_eq!(differences(with(json!({"forgotten": 3, "states": 14, "deadlocks": 3})), &cached).len(), 0);
        assert_eq!(differences(with(json!({"forgotten": 3, "states": 9})), &cached).len(), 1);
        let unknown = with(json!({"verdict": "unknown", "complete": false, "reason": "memory: all"}));
        assert_eq!(judge(&reference(), &unknown, &cached), Found::Undecided("memory: all".into()));
        let lossy = Setting { strategy: Some("sleep-1992"), ..Setting::default() };
        let holds = judge(&with(json!({"verdict": "holds"})), &with(json!({"verdict": "holds"})), &lossy);
        assert_eq!(holds, Found::Differs(vec!["holds, though states may have been missed".into()]));
    }

    #[test]
    fn workers_repeat_everything() {
        assert!(repeats(&reference(), &reference()).is_empty());
        assert_eq!(repeats(&reference(), &with(json!({"matched": 4}))).len(), 1);
        assert_eq!(repeats(&reference(), &with(json!({"trace": {"positions": [0, 1, 2]}}))).len(), 1);
    }
}
