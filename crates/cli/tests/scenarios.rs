//! Runs every table in tests/scenarios with the policy that it names, and with every other that
//! promises the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use shiftwork_cli::catalogue::{find, policies};

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort();
    files
}

fn shiftwork(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shiftwork"))
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn every_table_holds_under_the_policy_that_it_names() {
    let files = scenarios();
    assert!(
        files.len() >= 8,
        "only {} tables in tests/scenarios",
        files.len()
    );
    for file in files {
        let output = shiftwork(&["scenario", &file.display().to_string()]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}: {errors}",
            file.display()
        );
    }
}

/// Policies with the same order and invariant schedule the same tasks; where they put them may
/// differ, so tables that say where anything is right are compared by their sets.
#[test]
fn policies_with_the_same_promise_run_the_same_tasks() {
    let mut compared = 0;
    for file in scenarios() {
        let text = fs::read_to_string(&file).unwrap();
        let scenario = shiftwork_taskset::scenario::read(&text).unwrap();
        let named = find(&scenario.policy).unwrap();
        let sets = |policy: &str| {
            let file = file.display().to_string();
            let output = shiftwork(&["scenario", &file, "--policy", policy, "--json", "--quiet"]);
            match output.status.code() {
                Some(0 | 1) => Some(running_sets(&output.stdout)),
                // The tasks, or a change of them, are outside its domain.
                Some(2) => None,
                other => panic!("{policy} on {file}: {other:?}"),
            }
        };
        let expected = sets(named.name);
        for entry in policies() {
            if entry.traits.invariant != named.traits.invariant
                || entry.traits.order != named.traits.order
            {
                continue;
            }
            if let Some(found) = sets(entry.name) {
                assert_eq!(
                    Some(found),
                    expected,
                    "{} on {}",
                    entry.name,
                    file.display()
                );
                compared += 1;
            }
        }
    }
    assert!(compared >= 12, "only {compared} comparisons");
}

fn running_sets(stdout: &[u8]) -> Vec<Vec<String>> {
    let step = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let running = value["running"].as_array().unwrap();
        let mut names: Vec<String> = running
            .iter()
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect();
        names.sort();
        names
    };
    String::from_utf8_lossy(stdout).lines().map(step).collect()
}
