//! What is printed as JSON has the keys of its schema and no others.

use std::fs;

use serde_json::Value;
use shiftwork_cli::json::{CalibrateOutput, RunOutput};

use super::{GOOD, SERVER, folder, shiftwork, stderr, stdout};

/// What is printed has the keys of the schema and no others.
#[test]
fn the_json_of_a_run_is_as_its_schema_says() {
    let folder = folder("schema");
    let trace = folder.join("run.pftrace").display().to_string();
    let run = shiftwork(&[
        "simulate",
        SERVER,
        "--for",
        "1s",
        "--json",
        "--inversions",
        "--trace",
        &trace,
    ]);
    let report = shiftwork(&["report", &trace, "--json"]);
    for output in [&run, &report] {
        let text = stdout(output);
        assert_eq!(text.lines().count(), 1);
        let value: Value = serde_json::from_str(&text).unwrap();
        let known: RunOutput = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(known).unwrap(), value);
    }
    let mut simulated: Value = serde_json::from_str(&stdout(&run)).unwrap();
    let reported: Value = serde_json::from_str(&stdout(&report)).unwrap();
    assert!(
        simulated
            .as_object_mut()
            .unwrap()
            .remove("events")
            .is_some()
    );
    assert_eq!(
        simulated, reported,
        "a trace holds everything that is counted"
    );
}

/// A trace explains what the run explained, and the JSON of both is as the schema says.
#[test]
fn misses_are_explained_from_a_trace_as_from_the_run() {
    let trace = folder("explain").join("run.pftrace").display().to_string();
    let run = |file: &str, policy: &str, json: &[&str]| {
        let asked = ["simulate", file, "--for", "30ms", "--policy", policy];
        let rest = ["--explain", "--trace", &trace];
        let run = shiftwork(&[&asked[..], &rest, json].concat());
        let report = shiftwork(&[&["report", &trace, "--explain"], json].concat());
        [run, report].map(|output| {
            assert!(output.status.success(), "{}", stderr(&output));
            stdout(&output)
        })
    };
    let late_chain = ("late_chain.toml", "p-fp", "missed its latency of 20ms");
    for ((file, policy, says), key, count) in [
        (
            ("overrun.toml", "g-edf", "cause: overrun of hog"),
            "explanations",
            1,
        ),
        (
            ("late_trigger.toml", "p-fp", "It was triggered late"),
            "explanations",
            1,
        ),
        (late_chain, "chain_explanations", 1),
        (late_chain, "explanations", 0),
    ] {
        let file = format!("tests/command/files/{file}");
        let [simulated, reported] = run(&file, policy, &[]);
        assert!(reported.contains(says), "{reported}");
        assert!(simulated.ends_with(&reported), "{simulated}");
        let [simulated, reported] = run(&file, policy, &["--json"]).map(|text| {
            let value: Value = serde_json::from_str(&text).unwrap();
            let known: RunOutput = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_value(known).unwrap(), value);
            value[key].clone()
        });
        assert_eq!(simulated.as_array().map(Vec::len), Some(count), "{file}");
        assert_eq!(simulated, reported);
    }
}

#[test]
fn the_json_of_a_record_is_as_its_schema_says() {
    let output = shiftwork(&["record", "tests/command/files/miss.pftrace", "--json"]);
    let text = stdout(&output);
    let value: Value = serde_json::from_str(&text).unwrap();
    let known: RunOutput = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(known).unwrap(), value);
}

/// What a calibration writes is what simulations read, and its JSON is as its schema says.
#[test]
fn a_calibration_leaves_what_others_read() {
    let folder = folder("calibrate");
    let path = |name: &str| folder.join(name).display().to_string();
    let (overheads, page, before) = (path("o.toml"), path("o.html"), path("before.json"));
    let short = [
        "calibrate",
        "--machine",
        "in-kernel",
        "--policy",
        "weak-edf,P-FP,FE1,S-CQ1",
        "--json",
    ];
    let short = [
        &short[..],
        &["--quick", "--for", "600ms", "--largest-set", "16KiB"],
    ]
    .concat();
    let first = shiftwork(&[&short[..], &["--output", &overheads, "--report", &page]].concat());
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let text = stdout(&first);
    let known: CalibrateOutput = serde_json::from_str(&text).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(known).unwrap(), value);
    let sizes = value["quantities"].as_array().unwrap().iter();
    let sizes = sizes
        .filter(|it| it["kind"] == "preemption")
        .map(|it| it["at"].as_u64());
    assert_eq!(sizes.collect::<Vec<_>>(), [Some(4 << 10), Some(16 << 10)]);
    for (policy, set) in [
        ("weak-edf", SERVER),
        ("p-fp", SERVER),
        ("FE1", GOOD),
        ("s-cq1", GOOD),
    ] {
        for purpose in ["worst", "average"] {
            let usual = ["simulate", set, "--for", "100ms", "--policy", policy];
            let with = ["--overheads", &overheads, "--overheads-use", purpose];
            let simulated = shiftwork(&[&usual[..], &with].concat());
            assert_eq!(simulated.status.code(), Some(0), "{}", stderr(&simulated));
        }
    }
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .contains("Delays by working set")
    );
    let calls = value["queue_fits"].as_array().unwrap();
    assert_eq!(calls.len(), 4 * 4 * 2, "{calls:?}");
    let file =
        shiftwork_taskset::overheads::read(&fs::read_to_string(&overheads).unwrap()).unwrap();
    for (_, table) in file
        .tables
        .iter()
        .filter(|((_, policy), _)| policy == "fe1")
    {
        assert!(
            table.enqueue.base.as_ns() + table.dequeue.base.as_ns() > 0,
            "{table:?}"
        );
    }
    fs::write(&before, &text).unwrap();
    let again = shiftwork(
        &[
            &short[..],
            &["--measure", "caches,decide", "--check", &before],
        ]
        .concat(),
    );
    let value: Value = serde_json::from_str(&stdout(&again)).unwrap();
    let differing = value["agreement"]["differing"].as_array().unwrap();
    let compared = value["agreement"]["compared"].as_u64().unwrap() as usize;
    assert!(compared > 10, "{compared}");
    let differ = differing.len() * 20 > compared;
    assert_eq!(
        again.status.code(),
        Some(i32::from(differ)),
        "{differing:?}"
    );
}

#[test]
fn several_policies_are_one_line_of_json_each() {
    let output = shiftwork(&[
        "simulate", GOOD, "-p", "weak-edf", "-p", "hpa-edf", "--json",
    ]);
    let policies: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["policy"].clone())
        .collect();
    assert_eq!(policies, ["weak-edf", "hpa-edf"]);
}
