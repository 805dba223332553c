//! The answers of `analyze` to task sets with known answers, and its exit status.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answer;
mod changes;
mod inputs;
mod output;
mod overheads;
mod releases;
mod remedies;
mod verdicts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use shiftwork_cli::json::AnalyzeOutput;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A file with this text, of this test alone.
fn file(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("analyze");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{name}.toml"));
    fs::write(&path, text).unwrap();
    path
}

fn analyze(path: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shiftwork"))
        .arg("analyze")
        .arg(path)
        .args(options)
        .current_dir(root())
        .output()
        .unwrap()
}

/// Cost, period, deadline and CPUs of tasks named a, b, c, …
fn tasks(cpus: usize, policy: &str, lines: &[(&str, &str, &str, &str)]) -> String {
    let mut text = format!("[platform]\ncpus = {cpus}\n[scheduler]\npolicy = \"{policy}\"\n");
    for (index, (cost, period, deadline, affinity)) in lines.iter().enumerate() {
        let name = char::from(b'a' + index as u8);
        text += &format!(
            "[[task]]\nname = \"{name}\"\ncost = \"{cost}\"\nperiod = \"{period}\"\n\
             deadline = \"{deadline}\"\naffinity = \"{affinity}\"\n"
        );
    }
    text
}

/// What is printed, which has the keys of the schema and no others; and the exit status.
fn json(path: &Path, options: &[&str]) -> (Value, i32) {
    let output = analyze(path, &[options, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error} in {text}\n{errors}");
    });
    let known: AnalyzeOutput = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(known).unwrap(), value);
    (value, output.status.code().unwrap())
}

fn verdict<'a>(value: &'a Value, policy: &str, criterion: &str) -> &'a Value {
    let verdicts = value["verdicts"].as_array().unwrap();
    let wanted = |one: &&Value| one["policy"] == policy && one["criterion"] == criterion;
    verdicts.iter().find(wanted).unwrap()
}

/// The illustration of the studies from the University of North Carolina.
fn three_of_two_thirds(policy: &str) -> String {
    tasks(2, policy, &[("2ms", "3ms", "3ms", "0-1"); 3])
}

/// What is printed, line by line, and the exit status.
fn shown(path: &Path, options: &[&str]) -> (Vec<String>, i32) {
    let output = analyze(path, options);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(str::to_owned).collect();
    (lines, output.status.code().unwrap())
}

/// A set for which every kind of remedy exists: two tasks on each pair of three CPUs.
fn remediable() -> String {
    tasks(
        3,
        "strong-edf",
        &[
            ("4ms", "10ms", "10ms", "0-1"),
            ("4ms", "10ms", "10ms", "0-1"),
            ("4ms", "10ms", "10ms", "1-2"),
            ("4ms", "10ms", "10ms", "1-2"),
            ("4ms", "10ms", "10ms", "0,2"),
            ("4ms", "10ms", "10ms", "0,2"),
        ],
    )
}
