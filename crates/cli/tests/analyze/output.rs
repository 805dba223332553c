//! The keys that are printed are those of the schema and of the documentation.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;
use shiftwork_analysis::verdicts::TESTS;
use shiftwork_verbs::analyze;

use super::{file, json, remediable, root, tasks, verdict};

/// Example 5 of Tang et al. 2021.
fn tang_5() -> String {
    tasks(
        3,
        "strong-edf",
        &[
            ("2ms", "6ms", "6ms", "0"),
            ("2ms", "2ms", "2ms", "0-2"),
            ("1ms", "6ms", "6ms", "1"),
            ("2ms", "2ms", "2ms", "0-2"),
            ("2ms", "6ms", "6ms", "2"),
        ],
    )
}

#[test]
fn the_keys_that_others_rely_on_are_there() {
    let path = file("tang_5", &tang_5());
    let (value, status) = json(&path, &["--criterion", "soft"]);
    assert_eq!(status, 0);
    assert_eq!(value["schema_version"], 1);
    assert_eq!(value["cpus"], 3);
    assert_eq!(value["utilization"], "17/6");
    assert_eq!(value["affinity_kind"], "bi-level");
    assert_eq!(value["feasible"]["verdict"], "yes");
    assert_eq!(value["feasible"]["by"], "laminar");
    assert_eq!(value["feasible"]["witness"], Value::Null);
    assert_eq!(value["admission"]["verdict"], "admitted");
    assert_eq!(value["admission"]["guarantee"], "bounded-tardiness");
    for policy in analyze::all().into_iter().map(|entry| entry.name) {
        for criterion in ["hard", "soft"] {
            assert!(verdict(&value, policy, criterion)["tests"].is_array());
        }
    }
    let bounds = value["bounds"].as_array().unwrap();
    let ours = bounds
        .iter()
        .find(|one| one["policy"] == "hpa-edf" && one["test"] == "laminar-tardiness");
    let of_tasks = ours.unwrap()["tasks"].as_array().unwrap();
    assert_eq!(of_tasks.len(), 5);
    for task in of_tasks {
        assert!(task["name"].is_string());
        assert!(task["tardiness_ns"].is_u64() && task["response_ns"].is_u64());
    }
}

#[test]
fn every_test_is_in_the_documentation() {
    let text = fs::read_to_string(root().join("docs/analyse.md")).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    for test in TESTS {
        let name = format!("`{}`", test.name);
        let first = |row: &&&str| row.split('|').nth(1).unwrap().contains(&name);
        let row = rows.iter().find(first);
        let row = row.unwrap_or_else(|| panic!("docs/analyse.md has no row for {name}"));
        let shows = row.split('|').nth(2).unwrap();
        let shown = shows.contains(test.criterion.name()) || shows.contains("packing");
        assert!(shown, "{row}");
        assert!(row.contains(test.deadlines.name()), "{row}");
    }
}

/// What the schema says is what is printed, also of the keys inside the answer and of admission.
#[test]
fn the_schema_names_the_keys_of_the_answer_and_of_admission() {
    let schema = Command::new(env!("CARGO_BIN_EXE_shiftwork"))
        .args(["schema", "analyze"])
        .output()
        .unwrap();
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let keys = |value: &Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let of_schema = |name: &str| keys(&schema["$defs"][name]["properties"]);
    let (value, _) = json(&file("schema", &remediable()), &[]);
    let answer = &value["answer"];
    assert_eq!(of_schema("AnswerOutput"), keys(answer));
    assert_eq!(
        of_schema("PolicyAnswerOutput"),
        keys(&answer["by_policy"][0])
    );
    let remedies = &answer["remedies"];
    assert_eq!(of_schema("RemediesOutput"), keys(remedies));
    assert_eq!(
        of_schema("SubstituteOutput"),
        keys(&remedies["policies"][0])
    );
    assert_eq!(of_schema("ChangeOutput"), keys(&remedies["changes"][0]));
    let mut admission = keys(&value["admission"]);
    // Only `run` has it.
    admission.insert("best_effort".to_owned());
    assert_eq!(of_schema("AdmissionOutput"), admission);
}
