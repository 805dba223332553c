//! Larger costs with which the criterion is still met (`--scale`), and other affinities with which it is (`--assign`).

use super::{file, json, tasks, three_of_two_thirds};

#[test]
fn costs_may_grow_exactly_until_the_cpus_are_full() {
    let text = tasks(
        3,
        "strong-edf",
        &[
            ("1ms", "3ms", "3ms", "0-2"),
            ("1ms", "4ms", "4ms", "0"),
            ("2ms", "4ms", "4ms", "0-1"),
        ],
    );
    let (value, _) = json(
        &file("scale", &text),
        &[
            "--scale",
            "--criterion",
            "soft",
            "--policy",
            "strong-edf,p-edf",
        ],
    );
    let scale = value["scale"].as_array().unwrap();
    // A CPU each, of which the third is full first.
    assert_eq!(scale[0]["factor"], "2");
    assert_eq!(scale[1]["policy"], "p-edf");
    let full = file("scale-full", &three_of_two_thirds("g-edf"));
    let options = ["--scale", "--policy", "g-edf,pd2"];
    let (value, _) = json(&full, &[&options[..], &["--criterion", "soft"]].concat());
    assert_eq!(value["scale"][0]["factor"], "1");
    assert_eq!(value["scale"][1]["criterion"], "soft");
    // Without being asked for another one, by deadlines: three of a half each are shown, and no more.
    let (value, _) = json(&full, &options);
    assert_eq!(value["scale"][0]["criterion"], "hard");
    assert_eq!(value["scale"][0]["factor"], "3/4");
    assert_eq!(value["scale"][1]["factor"], "1");
}

/// What is proposed is accepted when it is put into the file.
#[test]
fn proposed_affinities_are_admitted() {
    let lines = [("6ms", "10ms", "10ms", "0-1"); 3];
    let text = tasks(3, "p-edf", &lines);
    let (value, status) = json(&file("assign", &text), &["--assign"]);
    assert_eq!(status, 1, "two of them share a CPU");
    let assignment = &value["assignment"];
    assert_eq!(assignment["guarantee"], "hard", "{assignment}");
    assert_eq!(assignment["wider"], true);
    let proposed = assignment["tasks"].as_array().unwrap();
    let lines: Vec<(&str, &str, &str, &str)> = proposed
        .iter()
        .map(|task| ("6ms", "10ms", "10ms", task["affinity"].as_str().unwrap()))
        .collect();
    let (value, status) = json(&file("assigned", &tasks(3, "p-edf", &lines)), &[]);
    assert_eq!(status, 0);
    assert_eq!(value["admission"]["guarantee"], "hard");
}

/// What is said of the changed file is what the change promises.
#[test]
fn affinity_loss_names_the_bottleneck_and_a_change_that_reaches_its_factor() {
    let loss = |affinity: &str| {
        let lines = [
            ("2ms", "4ms", "4ms", "0"),
            ("3ms", "4ms", "4ms", affinity),
            ("1ms", "4ms", "4ms", "1-2"),
        ];
        let text = tasks(3, "strong-edf", &lines);
        json(&file("loss", &text), &["--assign"]).0["affinity_loss"].clone()
    };
    let found = loss("0");
    // 95 of 100 of a CPU for 5/4; without affinities a whole CPU for 3/4.
    assert_eq!(found["factor"], "19/25");
    assert_eq!(found["factor_without"], "4/3");
    assert_eq!(found["bottleneck"]["cpus"], "0");
    assert_eq!(found["bottleneck"]["tasks"][1], "b");
    let changes = found["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "one task is enough: {found}");
    assert_eq!(changes[0]["tasks"][0], "b");
    assert_eq!(changes[0]["cpu"], 1);
    assert_eq!(changes[0]["factor"], "4/3");
    let after = loss("0-1");
    assert_eq!(after["factor"], "4/3");
    assert!(after["bottleneck"].is_null() && after["changes"] == serde_json::json!([]));
}
