//! The answer to the question that was asked: the first and the last line, and the exit status.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{analyze, file, json, shown, tasks, three_of_two_thirds, verdict};

/// Each known answer, with its exit status.
#[test]
fn the_exit_status_is_the_answer() {
    let crowded = tasks(
        2,
        "strong-edf",
        &[("6ms", "10ms", "10ms", "0"), ("5ms", "10ms", "10ms", "0")],
    );
    // Dhall's effect: two light tasks, and one that is as heavy as can be.
    let dhall = tasks(
        2,
        "g-edf",
        &[
            ("1ms", "10ms", "10ms", "0-1"),
            ("1ms", "10ms", "10ms", "0-1"),
            ("10ms", "10500us", "10500us", "0-1"),
        ],
    );
    let open = tasks(2, "g-fp", &[("1ms", "10ms", "10ms", "0-1"); 4]);
    for (name, text, options, expected) in [
        ("easy", three_of_two_thirds("pd2"), &[][..], 0),
        ("late", three_of_two_thirds("p-edf"), &[], 1),
        (
            "soft",
            three_of_two_thirds("g-edf"),
            &["--criterion", "soft"],
            0,
        ),
        ("simulated", three_of_two_thirds("g-edf"), &[], 1),
        ("crowded", crowded.clone(), &[], 1),
        ("crowded", crowded, &["--criterion", "soft"], 1),
        ("dhall", dhall.clone(), &["--criterion", "hard"], 1),
        (
            "dhall",
            dhall.clone(),
            &["--policy", "p-edf,g-edf", "--criterion", "soft"],
            0,
        ),
        ("dhall", dhall, &["--policy", "p-edf,g-edf"], 1),
        ("open", open, &["--max-steps", "0"], 4),
    ] {
        let path = file(&format!("status-{name}"), &text);
        let output = analyze(&path, options);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{name} {options:?}: {shown}"
        );
    }
}

/// The case that was misread: deadlines are missed, tardiness is bounded, and only the latter was said in the end.
#[test]
fn first_and_last_line_and_the_status_say_whether_deadlines_are_met() {
    let path = file("misread", &three_of_two_thirds("strong-edf"));
    let (lines, status) = shown(&path, &[]);
    let answer = "all deadlines are met under strong-edf: no, by simulation";
    assert_eq!((lines[0].as_str(), status), (answer, 1));
    assert_eq!(lines.last().unwrap(), answer);
    let bounded = "tardiness is bounded under strong-edf: yes, by laminar, a up to 2 ms late";
    assert!(lines.iter().any(|line| line == bounded), "{lines:#?}");
    // What is asked for by name is answered, and the other is not hidden.
    let (lines, status) = shown(&path, &["--criterion", "soft"]);
    assert_eq!((lines[0].as_str(), status), (bounded, 0));
    assert_eq!(lines.last().unwrap(), bounded);
    assert!(lines.iter().any(|line| line == answer), "{lines:#?}");
}

/// By default `hard`, whatever the policy: the status is that of its hard verdict.
#[test]
fn the_default_criterion_is_hard_for_every_policy() {
    let late = file("default", &three_of_two_thirds("g-edf"));
    let light = tasks(2, "g-edf", &[("1ms", "10ms", "10ms", "0-1"); 4]);
    let light = file("default-light", &light);
    let mut seen = BTreeSet::new();
    let policies = shiftwork_verbs::analyze::all()
        .into_iter()
        .map(|entry| entry.name);
    let questions = policies.map(|policy| [(policy, &late, "1000000"), (policy, &light, "0")]);
    for (policy, path, steps) in questions.flatten() {
        let (value, status) = json(path, &["--policy", policy, "--max-steps", steps]);
        let hard = verdict(&value, policy, "hard");
        let expected = match hard["verdict"].as_str().unwrap() {
            "schedulable" => 0,
            "unschedulable" => 1,
            _ => 4,
        };
        assert_eq!(status, expected, "{policy}");
        assert_eq!(value["answer"]["criterion"], "hard");
        assert_eq!(value["answer"]["verdict"], hard["verdict"], "{policy}");
        let of_policy = &value["answer"]["by_policy"][0];
        assert_eq!(of_policy["policy"], policy);
        assert_eq!(of_policy["verdict"], hard["verdict"], "{policy}");
        assert_eq!(of_policy["by"], hard["by"], "{policy}");
        let soft = verdict(&value, policy, "soft");
        assert_eq!(of_policy["tardiness_bounded"], soft["verdict"], "{policy}");
        seen.insert(status);
    }
    assert_eq!(seen, BTreeSet::from([0, 1, 4]));
}

#[test]
fn several_policies_get_an_answer_each() {
    let path = file("each", &three_of_two_thirds("g-edf"));
    let (lines, status) = shown(&path, &["--policy", "pd2,p-edf,g-edf"]);
    let answer = "all deadlines are met under pd2: yes, by pfair; under p-edf: no, by feasibility; under g-edf: \
                  no, by simulation";
    assert_eq!((lines[0].as_str(), status), (answer, 1));
    assert_eq!(lines.last().unwrap(), answer);
    let (value, _) = json(&path, &["--policy", "pd2,p-edf,g-edf"]);
    let of_policy = value["answer"]["by_policy"].as_array().unwrap();
    let verdicts: Vec<&Value> = of_policy.iter().map(|one| &one["verdict"]).collect();
    assert_eq!(verdicts, ["schedulable", "unschedulable", "unschedulable"]);
    let latest = serde_json::json!({"task": "a", "tardiness_ns": 2_000_000});
    assert_eq!(of_policy[2]["latest"], latest);
    assert!(of_policy[1]["latest"].is_null());
}
