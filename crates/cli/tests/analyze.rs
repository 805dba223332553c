//! The answers of `analyze` to task sets with known answers, and its exit status.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use shiftwork_analysis::verdicts::TESTS;
use shiftwork_cli::json::AnalyzeOutput;
use shiftwork_verbs::analyze;

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

#[test]
fn verdict_no_names_the_overloaded_tasks_and_cpus() {
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
    let path = file("odd-primes", &tasks(2, "g-edf", &lines));
    let (value, status) = json(&path, &["--criterion", "soft"]);
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
    // A yes to a set without tasks would say nothing.
    let none = analyze(&file("odd-none", "[platform]\ncpus = 2\n"), &["--json"]);
    assert_eq!((none.status.code(), none.stdout.len()), (Some(2), 0));
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
    let options = ["--max-steps", "200000", "--criterion", "soft"];
    let (value, status) = json(&file("many", &text), &options);
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

/// What is printed, line by line, and the exit status.
fn shown(path: &Path, options: &[&str]) -> (Vec<String>, i32) {
    let output = analyze(path, options);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(str::to_owned).collect();
    (lines, output.status.code().unwrap())
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
    let policies = analyze::all().into_iter().map(|entry| entry.name);
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

#[test]
fn bounds_above_the_deadline_are_marked() {
    let path = file("marked", &three_of_two_thirds("g-edf"));
    let (lines, _) = shown(&path, &[]);
    let rows: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("devi-anderson"))
        .collect();
    let marked = rows.iter().filter(|row| row.contains("2 ms !")).count();
    assert_eq!(marked, 3, "{lines:#?}");
    let legend = "! marks bounds above the deadline: jobs may be late by that tardiness";
    assert!(lines.iter().any(|line| line == legend), "{lines:#?}");
    let (lines, _) = shown(&path, &["--policy", "pd2"]);
    assert!(!lines.iter().any(|line| line.contains('!')), "{lines:#?}");
}

/// A set for which every kind of remedy exists: three heavy tasks, one of which is confined.
fn remediable() -> String {
    tasks(
        3,
        "strong-edf",
        &[
            ("6ms", "10ms", "10ms", "0-1"),
            ("6ms", "10ms", "10ms", "1-2"),
            ("6ms", "10ms", "10ms", "0,2"),
        ],
    )
}

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
        .map(|task| ("6ms", "10ms", "10ms", task["affinity"].as_str().unwrap()))
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
        let cost = format!("{}ns", 6_000_000 * numbers[0] / numbers[1] + more);
        let text = remediable().replace("6ms", &cost);
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
