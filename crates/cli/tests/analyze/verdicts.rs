//! Verdicts, witnesses and bounds on sets with known ones.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{file, json, shown, tasks, three_of_two_thirds, verdict};

fn test_of(verdict: &Value, test: &str) -> Value {
    let tests = verdict["tests"].as_array().unwrap();
    let found = tests.iter().find(|one| one["test"] == test);
    found.map_or(Value::Null, |one| one["verdict"].clone())
}

#[test]
fn verdict_no_names_the_overloaded_tasks_and_cpus() {
    let crowded = tasks(
        2,
        "strong-edf",
        &[("6ms", "10ms", "10ms", "0"), ("5ms", "10ms", "10ms", "0")],
    );
    let (value, _) = json(&file("witness", &crowded), &[]);
    let words = "tasks `a` and `b` need 1.10 of CPU {0}, which is 1.00";
    assert_eq!(value["feasible"]["verdict"], "no");
    assert_eq!(value["feasible"]["witness"], words);
    assert_eq!(verdict(&value, "hpa-fp", "hard")["witness"], words);
    assert_eq!(
        verdict(&value, "hpa-fp", "soft")["verdict"],
        "unschedulable"
    );
    assert_eq!(value["admission"]["verdict"], "refused");
}

#[test]
fn every_kind_of_verdict_occurs() {
    let text = tasks(
        2,
        "strong-edf",
        &[("1ms", "10ms", "9ms", "0-1"), ("1ms", "10ms", "10ms", "0")],
    );
    let path = file("kinds", &text);
    let (value, _) = json(&path, &["--max-steps", "1"]);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let (all, _) = json(&path, &[]);
    let (late, _) = json(&file("kinds-late", &three_of_two_thirds("g-edf")), &[]);
    for value in [&value, &all, &late] {
        for verdict in value["verdicts"].as_array().unwrap() {
            seen.insert(verdict["verdict"].as_str().unwrap().to_owned());
            for test in verdict["tests"].as_array().unwrap() {
                seen.insert(test["verdict"].as_str().unwrap().to_owned());
            }
        }
    }
    let expected = [
        "fail",
        "not-applicable",
        "pass",
        "schedulable",
        "step-limit",
        "unknown",
        "unschedulable",
    ];
    assert_eq!(
        seen.iter().map(String::as_str).collect::<Vec<_>>(),
        expected
    );
}

/// The bound of Devi and Anderson 2005: x is 0, so jobs are late by their cost at most.
#[test]
fn published_bounds_are_shown() {
    let (value, _) = json(&file("bounds", &three_of_two_thirds("g-edf")), &[]);
    let bounds = value["bounds"].as_array().unwrap();
    let of_test = |policy: &str, test: &str| {
        let found = bounds
            .iter()
            .find(|one| one["policy"] == policy && one["test"] == test);
        found.unwrap()["tasks"].clone()
    };
    for task in of_test("g-edf", "devi-anderson").as_array().unwrap() {
        assert_eq!(task["tardiness_ns"], 2_000_000);
        assert_eq!(task["response_ns"], 5_000_000);
        assert_eq!(task["slack_ns"], 0);
    }
    assert_eq!(test_of(verdict(&value, "g-edf", "soft"), "gel"), "pass");
    assert_eq!(verdict(&value, "pd2", "hard")["by"][0], "pfair");
}

#[test]
fn bounds_above_the_deadline_are_marked() {
    let path = file("marked", &three_of_two_thirds("g-edf"));
    let (lines, _) = shown(&path, &[]);
    let rows: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("devi-anderson"))
        .collect();
    let marked = rows.iter().filter(|row| row.contains("2 ms !")).count();
    assert_eq!(marked, 3, "{lines:#?}");
    let legend = "! marks bounds above the deadline: jobs may be late by that tardiness";
    assert!(lines.iter().any(|line| line == legend), "{lines:#?}");
    let (lines, _) = shown(&path, &["--policy", "pd2"]);
    assert!(!lines.iter().any(|line| line.contains('!')), "{lines:#?}");
}
