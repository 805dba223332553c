//! Schemas of files and of outputs: those in the repository are those of the command, and every example and
//! every output for it is as they say.
//!
//! With `BLESS=1` in the environment the schemas of files are written into `schemas/`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod validator;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use shiftwork_taskset::{Kind, schema};
use validator::errors;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn shiftwork(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
    command
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap()
}

/// The schema of what a verb prints.
fn schema_of(verb: &str) -> Value {
    serde_json::from_slice(&shiftwork(&["schema", verb]).stdout).unwrap()
}

/// All files of a folder of the repository and of its folders, with this extension, by name.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The examples of a kind of file: those that name its schema in their first line.
fn examples(kind: Kind) -> Vec<PathBuf> {
    let all = ["examples", "studies", "tests/scenarios"].map(|folder| files(folder, "toml"));
    let suffix = format!("schemas/{}.json", kind.name());
    let names_it = |path: &PathBuf| {
        fs::read_to_string(path)
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .ends_with(&suffix)
    };
    all.concat().into_iter().filter(names_it).collect()
}

/// A TOML text as JSON, as editors see it.
fn as_json(text: &str) -> Value {
    fn convert(value: &toml::Value) -> Value {
        match value {
            toml::Value::String(text) => text.as_str().into(),
            toml::Value::Integer(number) => (*number).into(),
            toml::Value::Float(number) => (*number).into(),
            toml::Value::Boolean(value) => (*value).into(),
            toml::Value::Datetime(date) => date.to_string().into(),
            toml::Value::Array(items) => items.iter().map(convert).collect(),
            toml::Value::Table(table) => table
                .iter()
                .map(|(key, value)| (key.clone(), convert(value)))
                .collect(),
        }
    }
    convert(&toml::Value::Table(text.parse().unwrap()))
}

#[test]
fn schemas_of_files_in_the_repository_are_those_of_the_command() {
    for kind in Kind::ALL {
        let printed = shiftwork(&["schema", "--input", kind.name()]);
        let text = String::from_utf8(printed.stdout).unwrap();
        let path = root().join(format!("schemas/{}.json", kind.name()));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap();
        assert!(
            kept == text,
            "{} is not what `shiftwork schema --input {}` prints",
            path.display(),
            kind.name()
        );
    }
}

#[test]
fn every_example_names_the_schema_of_its_kind_and_is_valid() {
    let mut count = 0;
    for folder in ["examples", "studies", "tests/scenarios"] {
        for path in files(folder, "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let first = text.lines().next().unwrap_or_default();
            let named = first
                .strip_prefix("#:schema ")
                .unwrap_or_else(|| panic!("{}: {first}", path.display()));
            let schema = fs::read_to_string(path.parent().unwrap().join(named)).unwrap();
            let found = errors(&serde_json::from_str(&schema).unwrap(), &as_json(&text));
            assert!(found.is_empty(), "{}: {found:#?}", path.display());
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} examples");
}

/// Readers and schemas know the same keys and kinds of values: what a reader accepts is valid, and a file with a
/// key that there is not, or a number in place of a duration, is not.
#[test]
fn schemas_of_files_agree_with_the_readers() {
    let corpus = root().join("crates/taskset/tests");
    for kind in Kind::ALL {
        let schema = schema(kind);
        let name = if kind == Kind::TaskSet {
            "drone"
        } else {
            kind.name()
        };
        let good = fs::read_to_string(corpus.join(format!("good/{name}.toml"))).unwrap();
        assert_eq!(errors(&schema, &as_json(&good)), [""; 0], "{name}");
        let mut refused = 0;
        for entry in fs::read_dir(corpus.join("broken").join(kind.name())).unwrap() {
            let path = entry.unwrap().path();
            let expected = fs::read_to_string(path.with_extension("expected")).unwrap();
            let about_keys = [" has no key ", "without a unit; write a duration"];
            if path.extension().is_none_or(|extension| extension != "toml")
                || !about_keys.iter().any(|words| expected.contains(words))
            {
                continue;
            }
            let value = as_json(&fs::read_to_string(&path).unwrap());
            assert!(
                !errors(&schema, &value).is_empty(),
                "{} is valid",
                path.display()
            );
            refused += 1;
        }
        assert!(refused > 0, "{name}: no broken file is about keys");
    }
}

/// Every line that a verb prints with `--json` is as its schema says; how many lines there are.
fn valid_lines(verb: &str, arguments: &[&str]) -> usize {
    let schema = schema_of(verb);
    let output = shiftwork(&[arguments, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let found = errors(&schema, &value);
        assert!(found.is_empty(), "{arguments:?}: {found:#?}");
    }
    assert!(
        text.lines().count() > 0,
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.lines().count()
}

#[test]
fn outputs_for_every_task_set_are_valid() {
    for path in examples(Kind::TaskSet) {
        let path = path.display().to_string();
        valid_lines(
            "analyze",
            &["analyze", &path, "--max-steps", "20000", "--scale"],
        );
        valid_lines(
            "simulate",
            &[
                "simulate",
                &path,
                "--for",
                "200ms",
                "--policy",
                "strong-edf,weak-edf,dl-linux",
                "--explain",
                "--overheads",
                "none",
            ],
        );
        valid_lines(
            "run",
            &[
                "run",
                &path,
                "--for",
                "100ms",
                "--policy",
                "strong-edf",
                "--machine",
                "sim",
            ],
        );
    }
}

#[test]
fn outputs_for_every_scenario_are_valid() {
    for path in examples(Kind::Scenario) {
        valid_lines("scenario", &["scenario", &path.display().to_string()]);
    }
}

#[test]
fn outputs_of_studies_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let study = "name = \"small\"\nsets = 3\n[tasks]\ncpus = 2\ncaps = [1]\nutilizations = \"uniform-medium\"\n\
                 tardiness = true\n[[policy]]\nname = \"g-edf\"\nsimulate = \"20ms\"\n";
    fs::write(path("small.toml"), study).unwrap();
    assert_eq!(
        valid_lines("study", &["study", "run", &path("small.toml")]),
        3
    );
    assert!(valid_lines("study", &["study", "plot", &path("small")]) > 0);
}

#[test]
fn outputs_of_the_other_verbs_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("run.pftrace").display().to_string();
    shiftwork(&[
        "simulate",
        "examples/server/server.toml",
        "--for",
        "100ms",
        "--trace",
        &trace,
    ]);
    valid_lines("report", &["report", &trace, "--explain"]);
    let inversion = "examples/pathfinder/pathfinder.toml";
    valid_lines(
        "simulate",
        &["simulate", inversion, "--for", "200ms", "--explain"],
    );
    valid_lines("report", &["report", &trace]);
    valid_lines(
        "generate",
        &["generate", "--count", "3", "--affinities", "laminar"],
    );
    valid_lines("init", &["init"]);
    let own = std::process::id().to_string();
    valid_lines(
        "init",
        &["init", "--pid", &own, "--sampled", "--for", "50ms"],
    );
    valid_lines("convert", &["convert", "examples/drone/drone.json"]);
    for format in ["systemd", "chrt", "rt-app"] {
        valid_lines(
            "export",
            &["export", "examples/drone/drone.json", "--as", format],
        );
    }
    valid_lines("policies", &["policies"]);
    valid_lines("doctor", &["doctor"]);
    valid_lines(
        "record",
        &["record", "crates/cli/tests/command/files/miss.pftrace"],
    );
}
