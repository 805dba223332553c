//! How the command behaves as a program among others: pipes, signals, files, exit status, and that
//! the same input always gives the same bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use shiftwork_cli::json::{CalibrateOutput, LiveOutput, RunOutput};

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
    command
        .env_remove("NO_COLOR")
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn shiftwork(arguments: &[&str]) -> Output {
    command().args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// An empty folder of this test, under the build folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

const GOOD: &str = "tests/command/files/good.toml";
const SERVER: &str = "../../examples/server/server.toml";

const VERBS: [&str; 15] = [
    "analyze",
    "simulate",
    "daemon",
    "exec",
    "status",
    "top",
    "record",
    "scenario",
    "generate",
    "convert",
    "calibrate",
    "policies",
    "report",
    "schema",
    "doctor",
];

#[test]
fn every_verb_has_help_a_man_page_and_completions() {
    let pages = folder("man");
    let written = shiftwork(&["man", "--out-dir", &pages.display().to_string()]);
    assert!(written.status.success(), "{}", stderr(&written));
    for verb in VERBS {
        let help = shiftwork(&[verb, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{verb}");
        assert!(stdout(&help).contains("--json"), "{verb} --help");
        let page = fs::read_to_string(pages.join(format!("shiftwork-{verb}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
        assert_eq!(page, stdout(&shiftwork(&["man", verb])), "{verb}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&shiftwork(&["completions", shell]));
        for verb in VERBS {
            assert!(script.contains(verb), "{shell} completes {verb}");
        }
    }
}

#[test]
fn verb_agent_is_an_alias_of_daemon() {
    let help = stdout(&shiftwork(&["agent", "--help"]));
    assert_eq!(help, stdout(&shiftwork(&["daemon", "--help"])));
    assert!(!stdout(&shiftwork(&["--help"])).contains("  agent "));
}

#[test]
fn every_verb_that_prints_json_has_a_schema() {
    let schemas: Value = serde_json::from_str(&stdout(&shiftwork(&["schema"]))).unwrap();
    for verb in VERBS {
        let has = schemas["schemas"].get(verb).is_some();
        assert_eq!(has, !["daemon", "schema"].contains(&verb), "{verb}");
    }
}

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
    let run = |json: &[&str]| {
        let file = "tests/command/files/overrun.toml";
        let asked = ["simulate", file, "--for", "30ms", "--policy", "g-edf"];
        let rest = ["--explain", "--trace", &trace];
        let run = shiftwork(&[&asked[..], &rest, json].concat());
        let report = shiftwork(&[&["report", &trace, "--explain"], json].concat());
        [run, report].map(|output| {
            assert!(output.status.success(), "{}", stderr(&output));
            stdout(&output)
        })
    };
    let [simulated, reported] = run(&[]);
    assert!(reported.contains("cause: overrun of hog"), "{reported}");
    assert!(simulated.ends_with(&reported), "{simulated}");
    let [simulated, reported] = run(&["--json"]).map(|text| {
        let value: Value = serde_json::from_str(&text).unwrap();
        let known: RunOutput = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(known).unwrap(), value);
        value["explanations"].clone()
    });
    assert_eq!(simulated.as_array().map(Vec::len), Some(1));
    assert_eq!(simulated, reported);
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

/// A run says what a simulation says, and what was promised.
#[test]
fn a_run_on_the_simulated_machine_is_the_simulation() {
    let common = [GOOD, "--for", "1s", "--json"];
    let run = shiftwork(&[&["run", "--machine", "sim"], &common[..]].concat());
    let text = stdout(&run);
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let known: LiveOutput = serde_json::from_str(&text).unwrap();
    assert!(matches!(known, LiveOutput::Ran(_)), "{text}");
    assert_eq!(serde_json::to_value(known).unwrap(), value);
    let object = value.as_object_mut().unwrap();
    assert_eq!(object.remove("machine").unwrap(), "sim");
    let admission = object.remove("admission").unwrap();
    assert_eq!(admission["verdict"], "admitted");
    let guarantee = object.remove("guarantee").unwrap();
    assert_eq!(guarantee["kept"], true);
    let simulated: Value =
        serde_json::from_str(&stdout(&shiftwork(&[&["simulate"], &common[..]].concat()))).unwrap();
    assert_eq!(value, simulated);
}

/// A task set that is not admitted replaces no scheduler: the machine is not even asked.
#[test]
fn what_is_not_admitted_is_not_run() {
    let crowded = "tests/command/files/crowded.toml";
    let output = shiftwork(&["run", crowded, "--machine", "kernel", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let known: LiveOutput = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(matches!(known, LiveOutput::Refused(_)), "{known:?}");
}

/// Where nothing can be guaranteed, every verb refuses, in the same words.
#[test]
fn a_set_without_a_guarantee_is_refused_in_the_same_words_by_every_verb() {
    let starving = "../../examples/dubey-2021/starvation.toml";
    for (file, policy) in [
        (starving, "weak-fp"),
        (starving, "strong-fp"),
        ("../../examples/tang-2021/example-5.toml", "dl-linux"),
        ("../../examples/brandenburg-2008/medium.toml", "CQm"),
        ("tests/command/files/crowded.toml", "hpa-edf"),
    ] {
        let common = [file, "--policy", policy];
        let analyzed = stdout(&shiftwork(&[&["analyze"], &common[..]].concat()));
        let begins = format!("admission under {policy}: ");
        let words = analyzed.lines().find(|line| line.starts_with(&begins));
        let words = words.unwrap_or_else(|| panic!("{analyzed}"));
        assert!(words.starts_with(&format!("{begins}refused: ")), "{words}");

        let run = [
            &["run"],
            &common[..],
            &["--machine", "sim", "--for", "10ms"],
        ]
        .concat();
        let refused = shiftwork(&run);
        assert_eq!(refused.status.code(), Some(1));
        assert_eq!(stdout(&refused).lines().next(), Some(words));
        let forced = shiftwork(&[&run[..], &["--best-effort"]].concat());
        assert_eq!(stdout(&forced).lines().next(), Some(words));
        assert_eq!(
            stdout(&forced).lines().nth(1),
            Some("run all the same, as --best-effort asks")
        );

        let json = |arguments: &[&str]| -> Value {
            let output = shiftwork(&[arguments, &["--json"]].concat());
            serde_json::from_str(&stdout(&output)).unwrap()
        };
        let of_analyze = json(&[&["analyze"], &common[..]].concat())["admission"].clone();
        assert_eq!(of_analyze["verdict"], "refused");
        assert_eq!(of_analyze["guarantee"], "none");
        assert_eq!(json(&run)["admission"], of_analyze);
        let mut of_forced = json(&[&run[..], &["--best-effort"]].concat())["admission"].take();
        let best_effort = of_forced.as_object_mut().unwrap().remove("best_effort");
        assert_eq!(
            (best_effort, of_forced),
            (Some(Value::Bool(true)), of_analyze)
        );
    }
    // The same for what is admitted.
    let common = [GOOD, "--policy", "hpa-edf"];
    let analyzed = stdout(&shiftwork(&[&["analyze"], &common[..]].concat()));
    let run = shiftwork(
        &[
            &["run"],
            &common[..],
            &["--machine", "sim", "--for", "10ms"],
        ]
        .concat(),
    );
    let words = stdout(&run).lines().next().unwrap().to_owned();
    assert!(words.starts_with("admission under hpa-edf: admitted, guarantee bounded-tardiness: "));
    assert!(analyzed.lines().any(|line| line == words), "{analyzed}");
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

#[test]
fn a_task_set_can_come_from_stdin() {
    let mut child = command()
        .args(["simulate", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(GOOD)).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.stdout,
        shiftwork(&["simulate", GOOD, "--json"]).stdout
    );
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let path = folder("binary").join("noise.toml").display().to_string();
    fs::write(&path, [b'a', 0xff, 0xfe]).unwrap();
    for verb in ["simulate", "scenario", "convert", "report"] {
        let output = shiftwork(&[verb, &path]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert!(
            stderr(&output).contains("byte"),
            "{verb}: {}",
            stderr(&output)
        );
    }
}

/// The overhead file that a task-set file names lies beside it, wherever the command runs.
#[test]
fn files_named_by_a_file_are_found_from_anywhere() {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join(SERVER);
    let output = command()
        .current_dir(folder("elsewhere"))
        .args([
            "simulate",
            &server.display().to_string(),
            "--for",
            "10ms",
            "--json",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn output_is_coloured_only_on_a_terminal_or_on_request() {
    let late = "tests/command/files/late.toml";
    let escapes = |output: Output| output.stdout.contains(&0x1b);
    assert!(!escapes(shiftwork(&["simulate", late])), "not a terminal");
    assert!(escapes(shiftwork(&["simulate", late, "--color", "always"])));
    assert!(!escapes(shiftwork(&["simulate", late, "--color", "never"])));
    // Colour only repeats: a miss is marked without it, too.
    assert!(stdout(&shiftwork(&["simulate", late])).contains('!'));
}

#[test]
fn a_closed_pipe_is_met_in_silence() {
    for arguments in [
        &["generate", "--count", "3000", "--json"][..],
        &["simulate", GOOD, "--json"],
        &["schema"],
        &["man"],
        &["--help"],
    ] {
        let mut child = command()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(stderr(&output), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

/// Starts what would take hours, and sends a signal once it runs.
fn interrupted(arguments: &[&str], signal: &str) -> Output {
    let child: Child = command()
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    child.wait_with_output().unwrap()
}

#[test]
fn an_interrupted_simulation_shows_what_was_simulated_and_ends_with_130() {
    let hours = ["--for", "1000000s", "--json"];
    for (verb, signal) in [
        (&["simulate", GOOD, "--strict"][..], "-INT"),
        (&["simulate", GOOD], "-TERM"),
        (&["simulate", GOOD, "--policy", "weak-edf,p-edf"], "-INT"),
        (&["run", GOOD, "--machine", "sim"], "-TERM"),
    ] {
        let output = interrupted(&[verb, &hours].concat(), signal);
        let value: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(value["interrupted"], true, "{verb:?}");
        let horizon = value["horizon_ns"].as_u64().unwrap();
        assert!(horizon > 0 && horizon < 1_000_000_000_000_000, "{horizon}");
        // Two tasks, a job each every 10 ms.
        assert_eq!(
            value["jobs"].as_u64().unwrap(),
            2 * horizon.div_ceil(10_000_000)
        );
        assert_eq!(output.status.code(), Some(130), "{verb:?}");
        assert!(
            stderr(&output).contains("interrupted"),
            "{}",
            stderr(&output)
        );
    }
}

/// Two tasks of which one CPU can serve one.
const OVERLOADED: &str = r#"
[platform]
cpus = 1
[[task]]
name = "a"
cost = "8ms"
period = "10ms"
[[task]]
name = "b"
cost = "8ms"
period = "10ms"
"#;

#[test]
fn a_missed_deadline_is_a_no_under_strict_and_under_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("overloaded.toml");
    std::fs::write(&file, OVERLOADED).unwrap();
    let file = file.to_str().unwrap();
    let on = [file, "--policy", "g-edf", "--for", "100ms"];
    let status = |arguments: &[&str]| {
        let output = shiftwork(&[&arguments[..1], &on, &arguments[1..]].concat());
        (output.status.code(), stdout(&output))
    };
    assert_eq!(status(&["simulate"]).0, Some(0));
    assert_eq!(status(&["simulate", "--strict"]).0, Some(1));
    let run = ["run", "--machine", "sim", "--best-effort"];
    let (code, text) = status(&run);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("deadlines missed, no guarantee was given"),
        "{text}"
    );
    let (code, text) = status(&[&run[..], &["--json"]].concat());
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, Some(1));
    assert_eq!(value["guarantee"]["promised"], "none");
    assert_eq!(value["guarantee"]["kept"], true);
    assert_eq!(value["guarantee"]["misses"], value["deadline_misses"]);
}

#[test]
fn a_full_disk_loses_the_file_and_not_the_result() {
    for option in ["--trace", "--jobs", "--report"] {
        // A page shows inversions, and so they are counted where there is one.
        let simulate = ["simulate", GOOD, "--json", "--inversions"];
        let output = shiftwork(&[&simulate[..], &[option, "/dev/full"]].concat());
        assert_eq!(
            output.status.code(),
            Some(3),
            "{option}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("/dev/full"),
            "{option}: {}",
            stderr(&output)
        );
        assert_eq!(output.stdout, shiftwork(&simulate).stdout, "{option}");
    }
}

/// Everything that one simulation writes, by file name.
fn written(name: &str, seed: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = folder(name);
    let path = |file: &str| folder.join(file).display().to_string();
    let policies = "p-edf,weak-edf,hpa-edf";
    let mut arguments = vec![
        "simulate", SERVER, "--for", "500ms", "--json", "--seed", seed,
    ];
    let (jobs, trace, report) = (path("jobs.csv"), path("run.pftrace"), path("page.html"));
    arguments.extend(["--policy", policies, "--jobs", &jobs, "--trace", &trace]);
    arguments.extend(["--report", &report]);
    let output = shiftwork(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut files: BTreeMap<String, Vec<u8>> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.insert("stdout".into(), output.stdout);
    files
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_every_file() {
    let (first, second) = (written("seed-a", "7"), written("seed-b", "7"));
    let other = written("seed-c", "8");
    assert_eq!(first.len(), 3 + 3 + 1 + 1, "{:?}", first.keys());
    for (name, bytes) in &first {
        assert!(second[name] == *bytes, "{name} differs between two runs");
        assert!(other[name] != *bytes, "{name} does not depend on the seed");
    }
}

#[test]
fn a_page_is_made_of_traces_as_of_simulations() {
    let folder = folder("pages");
    let path = |file: &str| folder.join(file).display().to_string();
    let (trace, page) = (path("run.pftrace"), path("simulated.html"));
    let starvation = "../../examples/dubey-2021/starvation.toml";
    let mut arguments = vec![
        "simulate",
        starvation,
        "-p",
        "weak-fp,strong-fp",
        "--for",
        "100ms",
    ];
    arguments.extend(["--trace", &trace, "--report", &page]);
    assert_eq!(shiftwork(&arguments).status.code(), Some(0));
    let (weak, strong) = (path("run.weak-fp.pftrace"), path("run.strong-fp.pftrace"));
    let reported = stdout(&shiftwork(&["report", &weak, &strong]));
    let simulated = fs::read_to_string(&page).unwrap();
    // All but where it comes from.
    let body = |page: &str| {
        let lines = page.lines().filter(|line| !line.starts_with("<dt>"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(body(&reported), body(&simulated));
    assert!(reported.len() > 10_000 && reported.contains("motor-control"));
}

#[test]
fn generated_task_sets_do_not_depend_on_the_threads() {
    let generate = |name: &str, threads: &str| {
        let folder = folder(name);
        let arguments = [
            "generate",
            "--cpus",
            "8",
            "--tasks",
            "20",
            "--utilization",
            "6",
            "--affinities",
            "laminar",
            "--feasible",
            "--count",
            "600",
            "--threads",
            threads,
            "--quiet",
            "--out-dir",
        ];
        let output = command().args(arguments).arg(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let mut files: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                (
                    path.file_name().unwrap().to_owned(),
                    fs::read(&path).unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    };
    let one = generate("threads-1", "1");
    assert_eq!(one.len(), 600);
    assert!(one == generate("threads-2", "2"));
    assert!(one == generate("threads-5", "5"));
}

#[test]
fn generated_files_are_read_back() {
    let folder = folder("read-back");
    let path = folder.display().to_string();
    shiftwork(&[
        "generate",
        "-n",
        "3",
        "-a",
        "arbitrary",
        "--deadlines",
        "constrained",
        "-o",
        &path,
    ]);
    for number in 0..3 {
        let file = folder
            .join(format!("set-000{number}.toml"))
            .display()
            .to_string();
        let output = shiftwork(&["simulate", &file, "-p", "strong-edf", "--for", "100ms"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

/// docs/formats.md names these keys, and others rely on them.
#[test]
fn the_table_of_jobs_has_its_header_and_a_line_for_each_job() {
    let jobs = folder("jobs").join("jobs.csv").display().to_string();
    shiftwork(&["simulate", GOOD, "--for", "25ms", "--jobs", &jobs]);
    let text = fs::read_to_string(&jobs).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let header = "task,job,release_ns,deadline_ns,start_ns,finish_ns,response_ns,tardiness_ns";
    assert_eq!(lines.remove(0), header);
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "a,1,0,10000000,0,2000000,2000000,0",
            "a,2,10000000,20000000,10000000,12000000,2000000,0",
            "a,3,20000000,30000000,20000000,22000000,2000000,0",
            "b,1,0,10000000,0,5000000,5000000,0",
            "b,2,10000000,20000000,10000000,15000000,5000000,0",
            "b,3,20000000,30000000,20000000,25000000,5000000,0",
        ]
    );
}
