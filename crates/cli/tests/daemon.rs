//! The output and exit status of the verbs that call the daemon, with a daemon that gives prepared answers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use serde_json::Value;
use shiftwork_client::{
    Admitted, Answer, Call, Cpu, Dismiss, Dismissed, Error, Explained, GotRecord, GotStatus,
    Observation, ObservationEnded, Observing, Reservation, Room, State, Status, Task,
};
use shiftwork_daemon::clock::now;
use shiftwork_daemon::socket::{Access, Peer, Server, Service, SocketLimits};
use shiftwork_model::{Instant, Span};
use tempfile::TempDir;

/// Admits costs of at most a millisecond.
struct PreparedService {
    /// The folder of the recordings.
    records: PathBuf,
    /// The thread that was admitted last, and its task's name.
    last: Option<(u32, String)>,
}

impl Service for PreparedService {
    fn call(&mut self, _: &Peer<'_>, call: Call) -> Result<Answer, Error> {
        match call {
            Call::Admit(admit) if admit.reservation.cost > Span::from_ms(1) => {
                Err(Error::Refused {
                    reason: "there is room for 1ms only".into(),
                })
            }
            Call::Admit(admit) => {
                let guarantee = match admit.name.as_str() {
                    "unguaranteed" => "none".into(),
                    _ => "hard".into(),
                };
                self.last = admit.thread.map(|thread| (thread, admit.name));
                Ok(Answer::Admit(Admitted { task: 7, guarantee }))
            }
            Call::GetStatus(_) => {
                let mut status = status();
                if let Some((thread, name)) = &self.last {
                    status.tasks[0].thread = *thread;
                    status.tasks[0].misses = u64::from(name != "punctual");
                }
                Ok(Answer::GetStatus(GotStatus { status }))
            }
            Call::Observe(_) => Ok(Answer::Observe(Observing { task: 3 })),
            Call::EndObservation(_) => Ok(Answer::EndObservation(ObservationEnded {
                observation: observation(),
            })),
            Call::GetRecord(_) => Ok(Answer::GetRecord(GotRecord {
                record: b"a trace".to_vec(),
                folder: self.records.to_str().map(str::to_owned),
            })),
            Call::Explain(_) => Ok(Answer::Explain(Explained {
                explanations: vec!["job 1 of control missed its deadline\n".to_owned()],
            })),
            Call::Dismiss(Dismiss { task: 7 }) => Ok(Answer::Dismiss(Dismissed {})),
            _ => Err(Error::Broken {
                reason: "not implemented by this test".into(),
            }),
        }
    }
}

fn status() -> Status {
    let cpu = |cpu, online, running| Cpu {
        cpu,
        online,
        running,
        load: 0.25,
        share: 0.5,
        reserve: 0.05,
    };
    Status {
        version: "1.2.3".into(),
        policy: "strong-edf".into(),
        guarantee: "hard".into(),
        cpus: vec![cpu(1, true, Some(7)), cpu(2, false, None)],
        rooms: vec![Room {
            cpus: "1-2".into(),
            reserved: 0.1,
            free: 0.85,
        }],
        tasks: vec![Task {
            task: 7,
            name: "control".into(),
            process: 100,
            thread: 101,
            // No user of a machine where this is tested.
            user: 7_654_321,
            cgroup: "/user.slice".into(),
            reservation: Reservation {
                cpus: Some("1-2".into()),
                ..Reservation::new(Span::from_ms(1), Span::from_ms(10))
            },
            state: State::Admitted,
            guarantee: "hard".into(),
            cpu: Some(1),
            jobs: 40,
            misses: 1,
            overruns: 2,
            tardiness_max: Span::from_us(20),
            response_max: Span::from_us(10_020),
            ran: Span::from_ms(30),
            load: 0.043,
        }],
        misses: 1,
        since: Instant::from_ns(1_000_000_000),
        now: Instant::from_ns(62_500_000_000),
        lost: 0,
        problems: Vec::new(),
    }
}

fn observation() -> Observation {
    Observation {
        observed: Span::from_s(2),
        jobs: 200,
        cost_p50: Span::from_us(900),
        cost_p99: Span::from_us(980),
        cost_max: Span::from_us(1_000),
        period_min: Span::from_us(9_950),
        period_p50: Span::from_us(10_000),
        ran: Span::from_ms(180),
    }
}

/// A daemon that serves until it is dropped.
struct TestDaemon {
    folder: TempDir,
    should_stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestDaemon {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let access = Access {
            mode: 0o600,
            group: None,
        };
        let path = folder.path().join("socket");
        let records = folder.path().join("records");
        fs::create_dir(&records).unwrap();
        let mut server = Server::bind(&path, access, SocketLimits::default()).unwrap();
        let should_stop = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&should_stop);
        let thread = spawn(move || {
            let mut service = PreparedService {
                records,
                last: None,
            };
            while !stop.load(Ordering::Relaxed) {
                server.serve(now(), &mut service).unwrap();
                sleep(Duration::from_millis(1));
            }
        });
        Self {
            folder,
            should_stop,
            thread: Some(thread),
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn run(&self, args: &[&str]) -> Output {
        shiftwork(&self.socket(), args)
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        self.should_stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn shiftwork(socket: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
    command.args(args).env("SHIFTWORK_SOCKET", socket);
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The printed JSON lines, checked for the keys of the verb's schema.
fn lines(verb: &str, output: &Output) -> Vec<Value> {
    let schema = shiftwork(Path::new("/"), &["schema", verb]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let text = stdout(output);
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    for line in &lines {
        let errors: Vec<String> = missing_or_extra(&schema, line);
        assert!(errors.is_empty(), "{verb}: {errors:?} in {line}");
    }
    lines
}

/// The keys of the line if they are not those of the schema, at the top level.
fn missing_or_extra(schema: &Value, line: &Value) -> Vec<String> {
    let keys = |value: &Value| -> Vec<String> {
        let keys = value["properties"].as_object().unwrap().keys();
        let mut keys: Vec<String> = keys.cloned().collect();
        keys.sort();
        keys
    };
    // One of several shapes, or a single one.
    let shapes: Vec<Vec<String>> = match schema["anyOf"].as_array() {
        Some(shapes) => {
            let of = |shape: &Value| {
                let name = shape["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
                keys(&schema["$defs"][name])
            };
            shapes.iter().map(of).collect()
        }
        None => vec![keys(schema)],
    };
    let mut found: Vec<String> = line.as_object().unwrap().keys().cloned().collect();
    found.sort();
    match shapes.contains(&found) {
        true => Vec::new(),
        false => found,
    }
}

#[test]
fn status_shows_cpus_capacity_and_tasks() {
    let daemon = TestDaemon::start();
    let shown = daemon.run(&["status"]);
    let expected = "\
strong-edf for 61s, guarantee hard; 1 task, 1 deadline missed !

CPU  running  load   available
1    control  25.0%  50.0%
2    offline  25.0%  50.0%

CPUs  reserved  free for one task
1-2   0.100     0.850

PID/TID owner   name    guarantee CPUs budget used jobs missed   response
100/101 7654321 control hard      1-2  1/10ms  43%   40    1 ! 10.02/10ms
";
    assert_eq!(stdout(&shown), expected);
    let json = &lines("status", &daemon.run(&["status", "--json"]))[0];
    assert_eq!(json["tasks"][0]["deadline_ns"], 10_000_000);
    assert_eq!(json["tasks"][0]["load"], 0.043);
    assert_eq!(json["up_ns"], 61_500_000_000_u64);
}

#[test]
fn release_ends_reservations_of_process_or_all() {
    let daemon = TestDaemon::start();
    for which in ["101", "100", "--all"] {
        let released = daemon.run(&["release", which]);
        assert_eq!(
            stdout(&released),
            "1 reservation released: control\n",
            "{which}"
        );
    }
    let json = &lines("release", &daemon.run(&["release", "--all", "--json"]))[0];
    assert_eq!(json["released"][0]["task"], 7);
    let none = daemon.run(&["release", "4711"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(
        stderr(&none).contains("no thread of process 4711 has a reservation that you may release"),
        "{}",
        stderr(&none)
    );
    assert_eq!(daemon.run(&["release"]).status.code(), Some(2));
}

#[test]
fn top_shows_status_count_times() {
    let daemon = TestDaemon::start();
    let shown = daemon.run(&["top", "--count", "3", "--interval", "1ms", "--json"]);
    assert_eq!(lines("top", &shown).len(), 3);
}

#[test]
fn admitted_program_runs_in_same_process() {
    let daemon = TestDaemon::start();
    let run = ["exec", "--cost", "1ms", "--period", "10ms", "--"];
    let ran = daemon.run(&[&run[..], &["sh", "-c", "echo here; exit 42"]].concat());
    assert_eq!(
        (stdout(&ran).as_str(), ran.status.code()),
        ("here\n", Some(42))
    );
    let none = daemon.run(&[&run[..], &["/no/such/program"]].concat());
    assert_eq!(none.status.code(), Some(127));
    let folder = daemon.run(&[&run[..], &["/"]].concat());
    assert_eq!(folder.status.code(), Some(126));
}

#[test]
fn strict_returns_1_for_missed_deadline_unless_program_fails() {
    let daemon = TestDaemon::start();
    let status = |name: &str, code: &str| {
        let program = format!("sleep 0.3; exit {code}");
        let exec = [
            "exec", "--strict", "-C", "1ms", "-T", "10ms", "--name", name, "--",
        ];
        let ran = daemon.run(&[&exec[..], &["sh", "-c", &program]].concat());
        (ran.status.code(), stderr(&ran))
    };
    assert_eq!(status("punctual", "0"), (Some(0), String::new()));
    let (code, said) = status("late", "0");
    assert_eq!(code, Some(1));
    assert!(said.contains("1 deadline missed"), "{said}");
    assert_eq!(status("late", "42").0, Some(42));
}

#[test]
fn refused_program_does_not_run() {
    let daemon = TestDaemon::start();
    let refused = daemon.run(&["exec", "-C", "2ms", "-T", "10ms", "--", "echo", "here"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(stdout(&refused), "");
    assert!(stderr(&refused).contains("room for 1ms only"));
}

#[test]
fn all_threads_prints_result_for_each_thread() {
    let daemon = TestDaemon::start();
    let own = std::process::id().to_string();
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    let all = ["exec", "--pid", &own, "--all-threads", "--period", "10ms"];
    let admitted = daemon.run(&[&all[..], &["--cost", "1ms", "--json"]].concat());
    let lines_of = lines("exec", &admitted);
    // Other tests create and end threads meanwhile.
    assert!(!lines_of.is_empty() && threads > 0);
    assert!(
        lines_of
            .iter()
            .all(|line| line["task"] == 7 && line["refused"].is_null())
    );
    let refused = daemon.run(&[&all[..], &["--cost", "2ms", "--json"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    let line = &lines("exec", &refused)[0];
    assert!(line["task"].is_null() && line["refused"].as_str().unwrap().contains("1ms"));
}

/// The verdicts of `analyze` and `run`; a daemon that is configured for best effort gives no verdict.
#[test]
fn exec_says_admitted_only_with_a_guarantee() {
    let daemon = TestDaemon::start();
    let own = std::process::id().to_string();
    let options = ["exec", "--pid", &own, "--period", "10ms", "--cost"];
    let admitted = daemon.run(&[&options[..], &["1ms"]].concat());
    assert_eq!(
        stdout(&admitted),
        format!("thread {own} is task 7: admitted, guarantee hard\n")
    );
    let refused = daemon.run(&[&options[..], &["2ms"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains(": refused: there is room for 1ms only"));
    let unguaranteed = [&options[..], &["1ms", "--name", "unguaranteed"]].concat();
    let accepted = daemon.run(&unguaranteed);
    assert_eq!(accepted.status.code(), Some(0));
    assert_eq!(
        stdout(&accepted),
        format!(
            "thread {own} is task 7: best effort: the daemon guarantees nothing (`guarantee = \"none\"` in its \
             configuration)\n"
        )
    );
    let verdict = |options: &[&str]| {
        let output = daemon.run(&[options, &["--json"]].concat());
        lines("exec", &output)[0]["verdict"].clone()
    };
    assert_eq!(verdict(&[&options[..], &["1ms"]].concat()), "admitted");
    assert_eq!(verdict(&[&options[..], &["2ms"]].concat()), "refused");
    assert!(verdict(&unguaranteed).is_null());

    let program = [
        "exec",
        "--name",
        "unguaranteed",
        "-C",
        "1ms",
        "-T",
        "10ms",
        "--",
        "true",
    ];
    let ran = daemon.run(&program);
    assert_eq!(ran.status.code(), Some(0));
    assert!(stderr(&ran).contains("best effort: "), "{}", stderr(&ran));
}

#[test]
fn measure_proposes_reservation() {
    let daemon = TestDaemon::start();
    let seen = daemon.run(&["exec", "--measure", "--", "sleep", "1"]);
    let expected = "\
200 jobs in 2 s: CPU time 900 us (median), 980 us (99%), 1 ms (max)
period 10 ms (median), 9.95 ms (min)
proposed: --cost 1.2ms --period 10ms; the cost is the measured maximum plus 20%, which is no bound on the worst case
";
    assert_eq!(stdout(&seen), expected);
    let json = &lines(
        "exec",
        &daemon.run(&["exec", "--measure", "--json", "--", "sleep", "1"]),
    )[0];
    assert_eq!(json["source"], "daemon");
    assert_eq!(json["threads"][0]["name"], "sleep");
    assert_eq!(json["threads"][0]["proposed"]["cost_ns"], 1_200_000);
}

/// Also what is left behind by a process that has ended.
#[test]
fn all_that_a_program_starts_is_measured() {
    let daemon = TestDaemon::start();
    let script = "sh -c 'sleep 2 & exit 0'; sleep 2";
    let seen = daemon.run(&["exec", "--measure", "--", "sh", "-c", script]);
    let shown = stdout(&seen);
    assert!(shown.starts_with("busiest: "), "{shown}");
    assert_eq!(shown.matches("\nsleep (thread ").count(), 2, "{shown}");
    assert_eq!(
        shown.matches("200 jobs in 2 s").count(),
        shown.matches(" (thread ").count()
    );
    assert!(shown.contains("sudo shiftwork init --pid "), "{shown}");
}

/// By the kernel's trace where that may be used, otherwise by counters.
#[test]
fn program_is_measured_without_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("missing.sock");
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 0.1; done";
    let program = ["exec", "--measure", "--json", "--", "sh", "-c", script];
    let output = shiftwork(&socket, &program);
    assert!(stderr(&output).contains("no daemon"), "{}", stderr(&output));
    let json = &lines("exec", &output)[0];
    assert!(json["source"] == "trace" || json["source"] == "counters");
    let threads = json["threads"].as_array().unwrap();
    let shell = threads
        .iter()
        .find(|it| it["process"] == json["process"])
        .unwrap();
    // It sleeps for each of its children, once or twice.
    assert!(shell["jobs"].as_u64().unwrap() >= 3, "{shell}");
    assert_eq!(
        (&shell["name"], &shell["process_name"]),
        (&"sh".into(), &"sh".into())
    );
    let has_proposal = threads.iter().any(|it| !it["proposed"].is_null());
    assert_eq!(output.status.code(), Some(i32::from(!has_proposal)));
}

#[test]
fn program_that_ends_at_once_is_not_measured() {
    let daemon = TestDaemon::start();
    let seen = daemon.run(&["exec", "--measure", "--", "true"]);
    let expected = "nothing was measured: no thread was there for long enough\n";
    assert_eq!((seen.status.code(), &*stdout(&seen)), (Some(1), expected));
}

#[test]
fn saved_recordings_are_listed() {
    let daemon = TestDaemon::start();
    let records = daemon.folder.path().join("records");
    let none = stdout(&daemon.run(&["record", "--list"]));
    assert_eq!(none, format!("no recordings in {}\n", records.display()));
    let kept = records.join("2026-11-18T11-06-40.123Z-calm.pftrace");
    let miss = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/files/miss.pftrace");
    fs::copy(miss, &kept).unwrap();
    let shown = stdout(&daemon.run(&["record", "--list"]));
    for part in ["2026-11-18T11:06:40.123Z", "CPU went offline"] {
        assert!(shown.contains(part), "{shown}");
    }
    let json = &lines("record", &daemon.run(&["record", "--list", "--json"]))[0];
    assert_eq!(json["files"][0]["path"], kept.display().to_string());
    assert_eq!(json["files"][0]["span_ns"], 30_000_000);
    assert_eq!(json["files"][0]["task"], "calm");
}

#[test]
fn recording_is_written_unchanged() {
    let daemon = TestDaemon::start();
    assert_eq!(stdout(&daemon.run(&["record"])), "a trace");
    let path = daemon.folder.path().join("now.pftrace");
    let written = daemon.run(&["record", "--output", path.to_str().unwrap()]);
    assert_eq!(stdout(&written), "");
    assert_eq!(fs::read(&path).unwrap(), b"a trace");
}

#[test]
fn last_misses_are_explained() {
    let daemon = TestDaemon::start();
    let shown = stdout(&daemon.run(&["record", "--explain"]));
    assert!(
        shown.starts_with("job 1 of control missed its deadline\n"),
        "{shown}"
    );
    let json = &lines("record", &daemon.run(&["record", "--explain", "--json"]))[0];
    assert_eq!(json["explanations"].as_array().map(Vec::len), Some(1));
}

#[test]
fn verbs_without_daemon_name_command_to_start_it() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("missing.sock");
    for verb in [
        &["status"][..],
        &["top"],
        &["record"],
        &["exec", "-C", "1ms", "-T", "2ms", "--", "true"],
    ] {
        let output = shiftwork(&socket, verb);
        assert_eq!(output.status.code(), Some(3), "{verb:?}");
        assert!(
            stderr(&output).contains("systemctl start shiftwork"),
            "{verb:?}"
        );
    }
}
