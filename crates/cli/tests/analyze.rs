//! What `analyze` says of task sets whose answers are known, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use shiftwork_analysis::verdicts::{POLICIES, TESTS};
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

fn test_of(verdict: &Value, test: &str) -> Value {
    let tests = verdict["tests"].as_array().unwrap();
    let found = tests.iter().find(|one| one["test"] == test);
    found.map_or(Value::Null, |one| one["verdict"].clone())
}

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

/// The illustration of the studies from the University of North Carolina.
fn three_of_two_thirds(policy: &str) -> String {
    tasks(2, policy, &[("2ms", "3ms", "3ms", "0-1"); 3])
}

#[test]
fn the_keys_that_others_rely_on_are_there() {
    let path = file("tang_5", &tang_5());
    let (value, status) = json(&path, &[]);
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
    for policy in POLICIES {
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
        ("soft", three_of_two_thirds("g-edf"), &[], 0),
        (
            "simulated",
            three_of_two_thirds("g-edf"),
            &["--criterion", "hard"],
            1,
        ),
        ("crowded", crowded.clone(), &[], 1),
        ("crowded", crowded, &["--criterion", "soft"], 1),
        ("dhall", dhall.clone(), &["--criterion", "hard"], 1),
        ("dhall", dhall.clone(), &["--policy", "p-edf,g-edf"], 0),
        (
            "dhall",
            dhall,
            &["--policy", "p-edf,g-edf", "--criterion", "hard"],
            1,
        ),
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

#[test]
fn a_no_says_who_needs_too_much_of_what() {
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
        &["--scale", "--policy", "strong-edf,p-edf"],
    );
    let scale = value["scale"].as_array().unwrap();
    // A CPU each, of which the third is full first.
    assert_eq!(scale[0]["factor"], "2");
    assert_eq!(scale[1]["policy"], "p-edf");
    let full = file("scale-full", &three_of_two_thirds("g-edf"));
    let (value, _) = json(&full, &["--scale", "--policy", "g-edf,pd2"]);
    assert_eq!(value["scale"][0]["factor"], "1");
    assert_eq!(value["scale"][1]["criterion"], "hard");
}

/// What is proposed is accepted when it is put into the file.
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

#[test]
fn bad_input_is_refused_with_a_reason() {
    let zero = tasks(1, "g-edf", &[("0ms", "3ms", "3ms", "0")]);
    let nowhere = tasks(1, "g-edf", &[("1ms", "3ms", "3ms", "")]);
    let endless = tasks(1, "g-edf", &[("1ms", "99999999999s", "99999999999s", "0")]);
    for (name, text) in [("zero", zero), ("nowhere", nowhere), ("endless", endless)] {
        let output = analyze(&file(&format!("bad-{name}"), &text), &[]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("line "), "{name}: {error}");
    }
    let path = file("bad-policy", &three_of_two_thirds("g-edf"));
    let output = analyze(&path, &["--policy", "fastest"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("there is no policy `fastest`") && error.contains("pd2"),
        "{error}"
    );
}

/// Whatever the numbers, there is an answer: more than a CPU, hyperperiods beyond 64 bits, deadlines far
/// beyond periods, long times.
#[test]
fn odd_numbers_are_answered() {
    let heavy = tasks(4, "strong-edf", &[("7ms", "3ms", "10ms", "0-3")]);
    let (value, status) = json(&file("odd-heavy", &heavy), &[]);
    assert_eq!(
        (status, value["feasible"]["verdict"].as_str()),
        (1, Some("no"))
    );
    let primes = [
        "1000000007ns",
        "1000000009ns",
        "1000000021ns",
        "1000000033ns",
        "1000000087ns",
    ];
    let lines: Vec<_> = primes
        .map(|period| ("300000001ns", period, period, "0-1"))
        .to_vec();
    let (value, status) = json(&file("odd-primes", &tasks(2, "g-edf", &lines)), &[]);
    assert_eq!(status, 0, "{value}");
    assert!(value["utilization"].as_str().unwrap().contains('/'));
    let long = tasks(
        2,
        "g-edf",
        &[
            ("1ns", "3000000000s", "3000000000s", "0-1"),
            ("30000000s", "60000000s", "3000000000s", "0-1"),
        ],
    );
    assert_eq!(json(&file("odd-long", &long), &[]).1, 0);
    let (value, status) = json(&file("odd-none", "[platform]\ncpus = 2\n"), &[]);
    assert_eq!((status, value["utilization"].as_str()), (0, Some("0")));
}

/// Ten thousand tasks are answered within the steps.
#[test]
fn very_many_tasks_are_answered() {
    let mut text = String::from("[platform]\ncpus = 64\n[scheduler]\npolicy = \"strong-edf\"\n");
    for index in 0..10_000u64 {
        let period = 1_000_003 + 7_919 * index;
        let mask = match index % 3 {
            0 => format!("{}", index % 64),
            1 => format!("{}-{}", index % 8 * 8, index % 8 * 8 + 7),
            _ => "0-63".to_owned(),
        };
        text += &format!(
            "[[task]]\nname = \"t{index}\"\ncost = \"{}ns\"\nperiod = \"{period}ns\"\naffinity = \"{mask}\"\n",
            period / 250
        );
    }
    let (value, status) = json(&file("many", &text), &["--max-steps", "200000"]);
    assert_eq!(status, 0);
    assert_eq!(value["affinity_kind"], "laminar");
    let utilization: f64 = value["utilization"].as_str().unwrap().parse().unwrap();
    assert!((39.9..40.0).contains(&utilization), "{utilization}");
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
