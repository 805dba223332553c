//! The policies, affinities and costs that are named where the answer is not yes.

use super::{file, json, remediable, shown, tasks};

/// Every remedy that is named is tried: with it the answer is yes.
#[test]
fn what_is_named_as_a_remedy_makes_the_answer_yes() {
    let path = file("remedies", &remediable());
    let (value, status) = json(&path, &["--max-steps", "100000"]);
    assert_ne!(status, 0);
    let remedies = &value["answer"]["remedies"];
    let policies = remedies["policies"].as_array().unwrap();
    assert!(!policies.is_empty(), "{remedies:#}");
    for one in policies {
        let policy = one["policy"].as_str().unwrap();
        let (value, status) = json(&path, &["--policy", policy]);
        assert_eq!(status, 0, "{policy}");
        assert_eq!(value["admission"]["verdict"], one["admission"], "{policy}");
        assert!(value["answer"]["remedies"].is_null());
    }
    let change = &remedies["changes"][0];
    assert_eq!(change["policy"], "strong-edf");
    let assigned = change["assignment"]["tasks"].as_array().unwrap();
    assert_eq!(change["assignment"]["guarantee"], "hard");
    let lines: Vec<(&str, &str, &str, &str)> = assigned
        .iter()
        .map(|task| ("4ms", "10ms", "10ms", task["affinity"].as_str().unwrap()))
        .collect();
    let (_, status) = json(
        &file("remedies-assigned", &tasks(3, "strong-edf", &lines)),
        &[],
    );
    assert_eq!(status, 0);

    let factor = change["factor"].as_str().unwrap();
    let (numerator, denominator) = factor.split_once('/').unwrap();
    let numbers = [numerator, denominator].map(|text| text.parse::<u64>().unwrap());
    let scaled = |more: u64| {
        let cost = format!("{}ns", 4_000_000 * numbers[0] / numbers[1] + more);
        let text = remediable().replace("4ms", &cost);
        json(&file("remedies-scaled", &text), &[]).1
    };
    assert_eq!(scaled(0), 0);
    assert_ne!(scaled(1_000), 0, "it is the largest");

    // People read the same.
    let (lines, _) = shown(&path, &["--max-steps", "100000"]);
    let names: Vec<&str> = policies
        .iter()
        .filter(|one| one["admission"] == "admitted")
        .map(|one| one["policy"].as_str().unwrap())
        .collect();
    let named = format!(
        "all deadlines would be met under {} (--policy)",
        names.join(", ")
    );
    for wanted in [
        named.as_str(),
        "with other affinities: ",
        &format!("({factor}), as far as tests show (--scale)"),
    ] {
        assert!(
            lines.iter().any(|line| line.contains(wanted)),
            "{wanted}: {lines:#?}"
        );
    }
    // They come right before the last line.
    let place = lines
        .iter()
        .position(|line| line.contains("would be met"))
        .unwrap();
    let rest = &lines[place..lines.len() - 1];
    assert!(
        rest.iter().all(|line| line.contains("would be met")),
        "{rest:#?}"
    );
}

#[test]
fn remedies_are_the_same_whatever_the_machine_and_none_is_made_up() {
    let path = file("remedies-again", &remediable());
    assert_eq!(json(&path, &[]), json(&path, &[]));
    // Nothing helps a task that needs more than a CPU, but lower costs.
    let heavy = tasks(2, "g-edf", &[("30ms", "10ms", "30ms", "0-1")]);
    let (value, status) = json(&file("remedies-none", &heavy), &["--max-steps", "0"]);
    assert_eq!(status, 1);
    let remedies = &value["answer"]["remedies"];
    assert_eq!(remedies["policies"], serde_json::json!([]));
    assert!(remedies["changes"][0]["assignment"].is_null());
    // A thirtieth of its costs is no remedy for a program that exists.
    let hopeless = tasks(2, "g-edf", &[("300ms", "10ms", "300ms", "0-1")]);
    let (value, _) = json(
        &file("remedies-hopeless", &hopeless),
        &["--criterion", "soft"],
    );
    assert!(value["answer"]["remedies"]["changes"][0]["factor"].is_null());
    // Without a policy, those of the one that takes any affinities.
    let text =
        tasks(2, "g-edf", &[("6ms", "10ms", "10ms", "0"); 2]).replace("policy = \"g-edf\"", "");
    let (value, status) = json(&file("remedies-any", &text), &[]);
    assert_eq!(status, 1);
    assert_eq!(
        value["answer"]["remedies"]["changes"][0]["policy"],
        "strong-edf"
    );
}

/// What is named as an order of priorities is tried in the file.
#[test]
fn priorities_that_are_named_make_the_answer_yes() {
    let text = |first: u32, second: u32| {
        let lines = [("2ms", "10ms", "3ms", "0"), ("4ms", "10ms", "8ms", "0")];
        tasks(1, "p-fp", &lines)
            .replace("name = \"a\"", &format!("name = \"a\"\npriority = {first}"))
            .replace(
                "name = \"b\"",
                &format!("name = \"b\"\npriority = {second}"),
            )
    };
    let path = file("remedies-priorities", &text(2, 1));
    let (value, status) = json(&path, &[]);
    assert_eq!(status, 1, "a waits for b");
    let change = &value["answer"]["remedies"]["changes"][0];
    assert_eq!(change["priorities"], serde_json::json!(["a", "b"]));
    let (lines, _) = shown(&path, &[]);
    let wanted =
        "all deadlines would be met under p-fp with the priorities a, b (the most urgent first)";
    assert!(lines.iter().any(|line| line == wanted), "{lines:#?}");
    assert_eq!(
        json(&file("remedies-priorities-swapped", &text(1, 2)), &[]).1,
        0
    );
    // Nothing has to be changed where deadlines rank jobs.
    let (value, _) = json(&path, &["--policy", "g-edf"]);
    assert!(value["answer"]["remedies"].is_null());
    // A cost of 4 ms is due after 4 ms, and 2 ms of another task after 3 ms.
    let both = text(1, 2).replace("8ms", "4ms");
    let (value, _) = json(&file("remedies-no-priorities", &both), &[]);
    assert!(value["answer"]["remedies"]["changes"][0]["priorities"].is_null());
}
