//! The releases of the file, and any others: two questions, two answers.

use serde_json::{Value, json};

use super::{file, json, shown, three_of_two_thirds};

/// Three tasks of two thirds of a CPU on two CPUs, each released a millisecond after the one before: just in time.
fn apart(policy: &str) -> String {
    let mut text = three_of_two_thirds(policy);
    for (name, offset) in [("b", "1ms"), ("c", "2ms")] {
        let line = format!("name = \"{name}\"\n");
        text = text.replace(&line, &format!("{line}offset = \"{offset}\"\n"));
    }
    text
}

fn as_written<'a>(value: &'a Value, policy: &str) -> &'a Value {
    let known = value["as_written"].as_array().unwrap();
    known.iter().find(|one| one["policy"] == policy).unwrap()
}

#[test]
fn releases_of_the_file_have_a_line_of_their_own_and_do_not_count_by_default() {
    let path = file("apart", &apart("strong-edf"));
    let (lines, status) = shown(&path, &[]);
    assert_eq!(status, 1);
    assert_eq!(
        lines[0],
        "all deadlines are met under strong-edf: no, by simulation"
    );
    let line = "as the file says (periodic, with these offsets): all deadlines are met under strong-edf: yes, by \
                simulation of 0 to 5ms; other releases: no";
    assert!(lines.iter().any(|one| one == line), "{lines:#?}");
    let (value, _) = json(&path, &[]);
    let expected = json!({"policy": "strong-edf", "verdict": "schedulable", "by": ["simulation"],
        "until_ns": 5_000_000, "reason": null});
    assert_eq!(as_written(&value, "strong-edf"), &expected);
    assert_eq!(value["answer"]["releases"], "sporadic");
    assert_eq!(value["answer"]["verdict"], "unschedulable");
}

#[test]
fn releases_of_the_file_decide_if_they_are_asked_about() {
    let path = file("apart-asked", &apart("strong-edf"));
    let options = &["--releases", "as-written"];
    let (lines, status) = shown(&path, options);
    let answer =
        "as the file says, all deadlines are met under strong-edf: yes, by simulation of 0 to 5ms";
    assert_eq!((lines[0].as_str(), status), (answer, 0));
    assert_eq!(lines.last().unwrap(), answer);
    let line = "with any releases a period or more apart: all deadlines are met under strong-edf: no, by simulation";
    assert!(lines.iter().any(|one| one == line), "{lines:#?}");
    let (value, _) = json(&path, options);
    let answer = &value["answer"];
    assert_eq!(answer["releases"], "as-written");
    assert_eq!(answer["verdict"], "schedulable");
    assert_eq!(answer["remedies"], Value::Null);
    let expected = json!([{"policy": "strong-edf", "verdict": "schedulable", "by": ["simulation"],
        "tardiness_bounded": "schedulable", "latest": {"task": "a", "tardiness_ns": 0}}]);
    assert_eq!(answer["by_policy"], expected);
    let (lines, status) = shown(&path, &[options, &["--criterion", "soft"][..]].concat());
    let answer =
        "as the file says, tardiness is bounded under strong-edf: yes, by laminar, no job late";
    assert_eq!((lines[0].as_str(), status), (answer, 0));
}

/// Weak placement meets all deadlines in the simulation, which is no proof for shorter jobs; released together the
/// tasks miss deadlines.
#[test]
fn status_is_that_of_the_releases_that_are_asked_about() {
    let apart = |policy| file(&format!("apart-{policy}"), &apart(policy));
    let together = |policy| file(&format!("together-{policy}"), &three_of_two_thirds(policy));
    let options = &["--releases", "as-written"];
    for (path, reason, expected) in [
        (apart("g-edf"), None, 0),
        (apart("pd2"), None, 0),
        (apart("weak-edf"), Some("others may complete later"), 4),
        (
            together("g-edf"),
            Some("task `c` misses its deadline at 3ms"),
            1,
        ),
        (apart("p-edf"), Some("more than the CPUs provide"), 1),
    ] {
        let (lines, status) = shown(&path, options);
        assert_eq!(status, expected, "{}: {lines:#?}", path.display());
        let has = |reason| lines[0].contains(reason);
        assert!(reason.is_none_or(has), "{}", lines[0]);
    }
    // The line would repeat the example of the simulation.
    let (lines, _) = shown(&together("g-edf"), &[]);
    assert!(
        !lines
            .iter()
            .any(|line| line.starts_with("as the file says"))
    );
}

#[test]
fn overheads_are_not_covered() {
    let path = file("apart-overheads", &apart("g-edf"));
    let costs = file("apart-costs", "[worst.g-edf]\nschedule = \"1us\"\n");
    let options = [
        "--releases",
        "as-written",
        "--overheads",
        costs.to_str().unwrap(),
    ];
    let (value, status) = json(&path, &options);
    assert_eq!(status, 4);
    let known = as_written(&value, "g-edf");
    assert_eq!(known["reason"], "not covered by simulation: overheads");
    // Without a table the policy is judged without overheads, as by tests.
    assert_eq!(as_written(&value, "c-edf")["verdict"], "schedulable");
}
