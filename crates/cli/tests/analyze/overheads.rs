//! Overheads of the task-set file and of the command line.

use std::process::Command;

use serde_json::Value;

use super::{analyze, file, json, tasks, verdict};

#[test]
fn overheads_are_charged_where_the_file_has_them() {
    let text = tasks(
        2,
        "g-edf",
        &[
            ("5ms", "10ms", "10ms", "0-1"),
            ("4ms", "10ms", "10ms", "0-1"),
        ],
    );
    let path = file("overheads", &text);
    let costs = file(
        "overheads-costs",
        "[worst.g-edf]\nschedule = \"3ms\"\n[average.g-edf]\nschedule = \"500us\"\n\
         [average.np-g-edf]\nswitch = \"1ms\"\n[worst.p-edf]\nschedule = \"100us\"\n",
    );
    let costs = costs.to_str().unwrap();
    let (free, status) = json(&path, &["--criterion", "hard"]);
    assert_eq!(status, 0);
    assert_eq!(free["overheads"], Value::Null);
    assert_eq!(verdict(&free, "g-edf", "hard")["overheads"], Value::Null);
    assert_eq!(verdict(&free, "g-edf", "hard")["inflated"], Value::Null);

    let (value, status) = json(&path, &["--criterion", "hard", "--overheads", costs]);
    assert_eq!(status, 4);
    assert_eq!(value["overheads"], costs);
    let hard = verdict(&value, "g-edf", "hard");
    assert_eq!(
        (&hard["overheads"], &hard["verdict"]),
        (&"worst".into(), &"unknown".into())
    );
    let inflated = |name: &str, cost: u64, obstacle: Value| {
        serde_json::json!({"name": name, "cost_ns": cost, "period_ns": 10_000_000,
            "deadline_ns": 10_000_000, "obstacle": obstacle})
    };
    let too_much = "it costs more than its period or deadline".into();
    assert_eq!(
        hard["inflated"],
        serde_json::json!([
            inflated("a", 11_000_000, too_much),
            inflated("b", 10_000_000, Value::Null)
        ])
    );
    let soft = verdict(&value, "g-edf", "soft");
    assert_eq!(
        (&soft["overheads"], &soft["verdict"]),
        (&"average".into(), &"schedulable".into())
    );
    assert_eq!(soft["inflated"][0], inflated("a", 6_000_000, Value::Null));
    let of = |list: &str, policy: &str| {
        let entries = value[list].as_array().unwrap().iter();
        let of_policy = entries.filter(|entry| entry["policy"] == policy);
        of_policy
            .map(|entry| entry["overheads"].clone())
            .collect::<Vec<_>>()
    };
    assert!(of("bounds", "g-edf").contains(&"average".into()));
    assert_eq!(of("best", "g-edf"), ["worst"]);
    // Of np-g-edf there is only an average, of p-edf only a worst, of others nothing.
    assert_eq!(
        verdict(&value, "np-g-edf", "hard")["overheads"],
        Value::Null
    );
    assert_eq!(verdict(&value, "np-g-edf", "soft")["overheads"], "average");
    assert_eq!(
        verdict(&value, "np-g-edf", "soft")["inflated"][1]["cost_ns"],
        5_000_000
    );
    assert_eq!(verdict(&value, "p-edf", "hard")["overheads"], "worst");
    assert_eq!(verdict(&value, "p-edf", "soft")["overheads"], "worst");
    assert_eq!(verdict(&value, "g-fp", "soft")["overheads"], Value::Null);
}

#[test]
fn the_file_of_the_task_set_counts_unless_the_command_line_says_otherwise() {
    let costs = file("overheads-of-file", "[worst.g-edf]\nschedule = \"3ms\"\n");
    let text = tasks(2, "g-edf", &[("5ms", "10ms", "10ms", "0-1")]);
    let name = costs.file_name().unwrap().to_str().unwrap();
    let named = text.replace(
        "[scheduler]",
        &format!("[scheduler]\noverheads = \"{name}\""),
    );
    let path = file("overheads-named", &named);
    let status = |options: &[&str]| {
        let options = [&["--criterion", "hard"], options].concat();
        analyze(&path, &options).status.code()
    };
    assert_eq!(status(&[]), Some(4));
    assert_eq!(status(&["--overheads", "none"]), Some(0));
    assert_eq!(status(&["--overheads", "no-such-file"]), Some(2));
    let simulated = |option: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_shiftwork"))
            .args([
                "simulate",
                path.to_str().unwrap(),
                "--json",
                "--for",
                "100ms",
            ])
            .args(option)
            .output();
        let value: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        value["tasks"][0]["response_ns"]["max"].clone()
    };
    assert_eq!(simulated(&[]), 8_000_000);
    assert_eq!(simulated(&["--overheads", "none"]), 5_000_000);
}
