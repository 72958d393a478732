//! Every report fits the schema, which uses a small part of JSON Schema; the validator is below.

use crate::common::report::{report, root};
use serde_json::{Value, json};

fn schema() -> Value {
    let path = root().join("crates/cli/schema/report.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn check(model: &str, options: &[&str]) -> Value {
    let path = root().join("models/dve").join(model).display().to_string();
    let (code, report) = report(&[&[path.as_str()], options].concat());
    let schema = schema();
    let mut flaws = Vec::new();
    validate(&schema, &schema, &report, "report", &mut flaws);
    assert!(flaws.is_empty(), "{model} {options:?}: {flaws:#?}");
    assert_eq!(report["exit_code"], code);
    report
}

#[test]
fn reports_of_every_kind_fit_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let spill = folder.path().to_str().unwrap();
    for (model, options, verdict) in [
        ("dekker.dve", &[][..], "holds"),
        ("dekker.dve", &["--order", "dfs", "--executor", "interp", "--store", "plain"], "holds"),
        ("dekker.dve", &["--max-depth", "3"], "holds to depth"),
        ("dekker.dve", &["--store", "digest:64"], "holds unless collision"),
        ("dekker.dve", &["--store", "huffman:static"], "holds"),
        ("philosophers_5.dve", &[], "deadlock"),
        ("philosophers_5.dve", &["--order", "dfs"], "deadlock"),
        ("ring_buffer.dve", &[], "error"),
        ("mutex_broken.dve", &[], "invariant"),
        ("dekker.dve", &["--find", "P0.critical"], "reached"),
        ("sliding_window.dve", &["--max-states", "50"], "unknown"),
        ("sliding_window.dve", &["--disk", "1G", "--spill-dir", spill], "holds"),
    ] {
        let report = check(model, options);
        assert_eq!(report["verdict"], verdict, "{model} {options:?}");
        assert_eq!(
            report["trace"].is_null(),
            matches!(verdict, "holds" | "holds unless collision" | "holds to depth" | "unknown")
        );
    }
}

#[test]
fn numbers_of_a_report_belong_together() {
    let report = check("philosophers_5.dve", &["--memory", "100M"]);
    assert_eq!(report["memory_budget"], 100 << 20);
    let plan = &report["plan"];
    let parts: u64 = ["process_bytes", "buffer_bytes", "overhead_bytes", "pool_bytes"]
        .iter()
        .map(|name| plan[name].as_u64().unwrap())
        .sum();
    assert_eq!(parts, 100 << 20);
    let steps = report["trace"]["steps"].as_array().unwrap();
    assert_eq!(steps.len() + 1, report["trace"]["positions"].as_array().unwrap().len());
    assert!(steps.iter().all(|step| step["process"].is_string() && !step["changes"].as_array().unwrap().is_empty()));
}

#[test]
fn the_same_check_gives_the_same_report_but_for_times_and_resident_memory() {
    let mut reports = [check("mutex_broken.dve", &["--memory", "1G"]), check("mutex_broken.dve", &["--memory", "1G"])];
    for report in &mut reports {
        let object = report.as_object_mut().unwrap();
        for name in [
            "seconds",
            "cpu_seconds",
            "load_seconds",
            "total_seconds",
            "states_per_second",
            "peak_rss",
            "plan",
            "ledger",
        ] {
            object.remove(name).unwrap();
        }
    }
    assert_eq!(reports[0], reports[1]);
}

#[test]
fn the_validator_sees_what_is_wrong() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["a"], "properties": {
        "a": {"type": ["integer", "null"], "minimum": 0},
        "b": {"type": "array", "items": {"$ref": "#/$defs/word"}}},
        "$defs": {"word": {"enum": ["x", "y"]}}});
    let flaws = |value: Value| {
        let mut flaws = Vec::new();
        validate(&schema, &schema, &value, "v", &mut flaws);
        flaws.len()
    };
    assert_eq!(flaws(json!({"a": 1, "b": ["x", "y"]})), 0);
    assert_eq!(flaws(json!({"a": null})), 0);
    for bad in
        [json!({}), json!({"a": -1}), json!({"a": 1.5}), json!({"a": 1, "b": ["z"]}), json!({"a": 1, "c": 1}), json!(3)]
    {
        assert_eq!(flaws(bad.clone()), 1, "{bad}");
    }
}

/// Checks `value` against the keywords that our schema uses; any other keyword is a flaw of the schema.
fn validate(root: &Value, schema: &Value, value: &Value, place: &str, flaws: &mut Vec<String>) {
    if let Some(reference) = schema.get("$ref") {
        let pointer = reference.as_str().unwrap().trim_start_matches('#');
        return validate(root, root.pointer(pointer).expect("the reference leads somewhere"), value, place, flaws);
    }
    let mut wrong = |why: String| flaws.push(format!("{place}: {why}"));
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" | "items" | "properties" => {}
            "type" if !has_type(rule, value) => return wrong(format!("{value} is no {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => wrong(format!("{value} is not among {rule}")),
            "minimum" if value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()) => {
                wrong(format!("{value}"))
            }
            "required" => {
                let names = rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                names.filter(|name| value.is_object() && value.get(name).is_none()).for_each(|name| wrong(name.into()));
            }
            "type" | "enum" | "minimum" | "additionalProperties" => {}
            other => wrong(format!("unknown keyword {other}")),
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(items) = schema.get("items") {
            validate(root, items, item, &format!("{place}[{index}]"), flaws);
        }
    }
    for (name, part) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(rule) => validate(root, rule, part, &format!("{place}.{name}"), flaws),
            None => flaws.push(format!("{place}: {name} is not in the schema")),
        }
    }
}

fn has_type(rule: &Value, value: &Value) -> bool {
    let names = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
    names.iter().any(|name| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("unknown type {other}"),
    })
}
