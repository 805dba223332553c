//! `apply`, `change` and `release` with a daemon that decides as ever, and a scheduler that accepts everything: threads and
//! programs of these tests get reservations on paper.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../common/test_daemon.rs"]
mod test_daemon;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use test_daemon::{Sleepers, TestDaemon};

/// The name of this process.
fn process() -> String {
    let name = fs::read_to_string(format!("/proc/{}/comm", std::process::id())).unwrap();
    name.trim_end().to_owned()
}

/// A file with a task for each of these threads, with their costs of each 10 ms on CPU 1.
fn file(tasks: &[(&str, u64)]) -> String {
    let mut text = "name = \"rover\"\nplatform.cpus = 4\n".to_owned();
    let pid = process();
    for (name, cost_ms) in tasks {
        text += &format!(
            "[[task]]\nname = \"{name}\"\ncost = \"{cost_ms}ms\"\nperiod = \"10ms\"\naffinity = \"1\"\n\
             thread = {{ process = \"{pid}\", name = \"{name}\" }}\n"
        );
    }
    text
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What became of each task, in the order of the file, and of what ends.
fn what(applied: &Value) -> Vec<&str> {
    let tasks = applied["tasks"].as_array().unwrap().iter();
    tasks.map(|it| it["what"].as_str().unwrap_or("-")).collect()
}

/// Processes named as this one, of other tests that run at the same time, are not meant.
fn with_pid<'a>(args: &[&'a str], pid: &'a str) -> Vec<&'a str> {
    [args, &["--pid", pid]].concat()
}

#[test]
fn file_is_reserved_as_a_whole_and_again_where_it_differs() {
    let daemon = TestDaemon::start();
    let sleepers = Sleepers::start(&["w-camera", "w-control", "w-logger"]);
    let [camera, control, logger] = sleepers.threads[..] else {
        panic!("three threads");
    };
    let pid = std::process::id().to_string();
    let apply = |more: &[&'static str]| {
        with_pid(&[&["apply", "rover.toml"], more].concat(), &pid)
            .iter()
            .map(|it| (*it).to_owned())
            .collect::<Vec<_>>()
    };
    let run = |more: &[&'static str]| {
        let args = apply(more);
        daemon.json(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    daemon.write(
        "rover.toml",
        &file(&[("w-camera", 2), ("w-control", 3), ("w-logger", 1)]),
    );
    let (status, dry) = run(&["--dry-run"]);
    assert_eq!(
        (status, &dry["applied"]),
        (Some(0), &Value::Bool(true)),
        "{dry}"
    );
    assert_eq!(daemon.held(), []);

    let args = apply(&[]);
    let applied = daemon.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let (own, table) = (process(), stdout(&applied));
    let thread = format!("{own}/w-control");
    let row = format!("{pid}/{control}  3ms     10ms    1         bounded-tardiness  admitted");
    let line = table.lines().find(|line| line.contains(&thread));
    assert!(
        line.is_some_and(|line| line.starts_with("w-control ") && line.ends_with(&row)),
        "{table}"
    );
    assert!(table.starts_with("task       thread"), "{table}");
    let all = |costs: [u64; 3]| {
        [
            ("rover/w-camera", camera),
            ("rover/w-control", control),
            ("rover/w-logger", logger),
        ]
        .iter()
        .zip(costs)
        .map(|((name, thread), cost)| ((*name).to_owned(), *thread, cost))
        .collect::<Vec<_>>()
    };
    assert_eq!(daemon.held(), all([2, 3, 1]));

    let (status, again) = run(&[]);
    assert_eq!((status, what(&again)), (Some(0), vec!["unchanged"; 3]));
    daemon.write("rover.toml", &file(&[("w-camera", 2), ("w-control", 4)]));
    let (_, edited) = run(&[]);
    assert_eq!(what(&edited), ["unchanged", "changed"]);
    assert_eq!(edited["kept"][0], "rover/w-logger");
    assert_eq!(daemon.held(), all([2, 4, 1]));
    let (_, pruned) = run(&["--prune"]);
    assert_eq!(what(&pruned), ["unchanged", "unchanged", "released"]);
    assert_eq!(daemon.held(), all([2, 4, 1])[..2]);
    let released = daemon.run(&["release", "--file", "rover.toml"]);
    assert_eq!(
        stdout(&released),
        "2 reservations released: rover/w-camera, rover/w-control\n"
    );
    assert_eq!(daemon.held(), []);
}

/// What one task had goes to another: at the end of its period.
#[test]
fn capacity_goes_from_one_task_to_another() {
    let daemon = TestDaemon::start();
    let _sleepers = Sleepers::start(&["x-large", "x-small"]);
    let pid = std::process::id().to_string();
    let apply = with_pid(&["apply", "rover.toml"], &pid);
    for costs in [[7, 2], [2, 7], [8, 1]] {
        daemon.write(
            "rover.toml",
            &file(&[("x-large", costs[0]), ("x-small", costs[1])]),
        );
        let (status, applied) = daemon.json(&apply);
        assert_eq!(status, Some(0), "{applied}");
        let held: Vec<u64> = daemon.held().iter().map(|it| it.2).collect();
        assert_eq!(held, costs);
    }
}

#[test]
fn refused_task_is_named_and_nothing_is_changed() {
    let daemon = TestDaemon::start();
    let sleepers = Sleepers::start(&["r-a", "r-b", "r-c"]);
    let pid = std::process::id().to_string();
    let apply = with_pid(&["apply", "rover.toml"], &pid);
    daemon.write("rover.toml", &file(&[("r-a", 2)]));
    assert_eq!(daemon.json(&apply).0, Some(0));
    daemon.write("rover.toml", &file(&[("r-a", 3), ("r-b", 3), ("r-c", 9)]));
    let held = daemon.held();
    for more in [&[][..], &["--dry-run"]] {
        let args = [&apply[..], more].concat();
        let refused = daemon.run(&args);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(stdout(&refused).is_empty());
        let thread = sleepers.threads[2];
        let says = format!("task `r-c` (thread {thread}) is refused, nothing is changed: ");
        assert!(
            said.contains(&says) && said.contains("of which there are 0.95"),
            "{said}"
        );
        let (status, output) = daemon.json(&args);
        assert_eq!(
            (status, what(&output)),
            (Some(1), vec!["-", "-", "refused"])
        );
        assert_eq!(daemon.held(), held);
    }
    // A wrong value is no refusal.
    daemon.write("rover.toml", &file(&[("r-a", 3)]).replace("10ms", "20s"));
    let invalid = daemon.run(&apply);
    assert_eq!(invalid.status.code(), Some(2));
    assert!(
        stderr(&invalid).contains("rover.toml: task `r-a` (thread "),
        "{}",
        stderr(&invalid)
    );
    daemon.write("rover.toml", &file(&[("r-a", 3), ("r-d", 3), ("r-e", 3)]));
    let missing = stderr(&daemon.run(&apply));
    assert_eq!(missing.lines().count(), 2, "{missing}");
    assert!(
        missing.contains("has no thread named `r-d`; it has ") && missing.contains("`r-a`"),
        "{missing}"
    );
    assert_eq!(daemon.held(), held);
}

#[test]
fn one_reservation_is_changed_and_given_back_by_thread_or_name() {
    let daemon = TestDaemon::start();
    let sleepers = Sleepers::start(&["c-a", "c-b"]);
    let pid = std::process::id().to_string();
    daemon.write("rover.toml", &file(&[("c-a", 2), ("c-b", 3)]));
    assert_eq!(
        daemon.json(&with_pid(&["apply", "rover.toml"], &pid)).0,
        Some(0)
    );
    let thread = sleepers.threads[0].to_string();
    let changed = daemon.run(&["change", &thread, "--cost", "4ms"]);
    let expected = format!(
        "`rover/c-a` (thread {thread}): 4ms in 10ms on CPUs 1: admitted, guarantee bounded-tardiness\n"
    );
    assert_eq!(stdout(&changed), expected, "{}", stderr(&changed));
    let (status, dry) = daemon.json(&["change", "c-b", "-T", "20ms", "--dry-run"]);
    assert_eq!(
        (status, dry["deadline_ns"].as_u64(), &dry["applied"]),
        (Some(0), Some(20_000_000), &Value::Bool(true))
    );
    assert_eq!(daemon.held()[1].2, 3);
    let refused = daemon.run(&["change", "rover/c-b", "-C", "9ms"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("is refused, and as before: "),
        "{}",
        stderr(&refused)
    );
    let (_, same) = daemon.json(&["change", "c-b", "-C", "3ms"]);
    assert_eq!(same["changed"], false);
    for (which, says) in [
        (pid.as_str(), "several threads of process"),
        (
            "c-d",
            "there is no reservation named `c-d`; there are `rover/c-a`",
        ),
        ("7", "no thread of process 7"),
    ] {
        let wrong = daemon.run(&["change", which, "-C", "1ms"]);
        assert_eq!(wrong.status.code(), Some(2));
        assert!(stderr(&wrong).contains(says), "{}", stderr(&wrong));
    }
    assert_eq!(daemon.run(&["change", "c-a"]).status.code(), Some(2));
    let released = daemon.run(&["release", "rover/c-b"]);
    assert_eq!(stdout(&released), "1 reservation released: rover/c-b\n");
    assert_eq!(daemon.held().len(), 1);
}

/// Ends the program, and what it started.
fn kill(process: u64) {
    let group = i32::try_from(process).ok().and_then(Pid::from_raw).unwrap();
    kill_process_group(group, Signal::KILL).unwrap();
}

#[test]
fn programs_are_started_once_and_only_if_they_are_admitted() {
    let daemon = TestDaemon::start();
    let program = |cost_ms: u64| {
        format!(
            "name = 'programs'\nplatform.cpus = 4\n[[task]]\nname = 'looper'\ncost = '{cost_ms}ms'\nperiod = '10ms'\naffinity = '2'\n\
             command = ['sh', '-c', 'echo $$ >> started; while :; do sleep 0.05; done']\n"
        )
    };
    let started = || fs::read_to_string(daemon.folder.path().join("started")).unwrap_or_default();
    daemon.write("p.toml", &program(10));
    let refused = daemon.run(&["apply", "p.toml"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("task `looper` is refused, nothing is changed"),
        "{}",
        stderr(&refused)
    );
    daemon.write("p.toml", &program(2));
    let (status, dry) = daemon.json(&["apply", "p.toml", "--dry-run"]);
    assert_eq!((status, what(&dry)), (Some(0), vec!["admitted"]));
    assert_eq!(
        (dry["tasks"][0]["thread"].as_u64(), started().as_str()),
        (None, "")
    );
    let (status, applied) = daemon.json(&["apply", "p.toml"]);
    let process = applied["tasks"][0]["process"].as_u64().unwrap();
    assert_eq!(status, Some(0), "{applied}");
    assert_eq!(daemon.held(), [("programs/looper".to_owned(), process, 2)]);
    assert_eq!(started(), format!("{process}\n"));
    daemon.write("p.toml", &program(3));
    let (_, again) = daemon.json(&["apply", "p.toml"]);
    assert_eq!(what(&again), ["changed"]);
    assert_eq!(started(), format!("{process}\n"), "it is not started again");
    kill(process);
    for (command, says) in [
        (
            "['sh', '-c', 'exit 3']",
            "ended by itself before it had a reservation",
        ),
        (
            "['/no/such/program']",
            "`/no/such/program` cannot be started",
        ),
    ] {
        let text = program(1).replace("'looper'", "'other'");
        let (head, _) = text.split_once("command").unwrap();
        daemon.write("q.toml", &format!("{head}command = {command}\n"));
        let failed = daemon.run(&["apply", "q.toml"]);
        assert_eq!(failed.status.code(), Some(2));
        assert!(stderr(&failed).contains(says), "{}", stderr(&failed));
    }
}

#[test]
fn set_needs_a_name_without_a_separator() {
    let daemon = TestDaemon::start();
    let path: PathBuf = daemon.folder.path().join("a.toml");
    let text =
        "name = 'a/b'\nplatform.cpus = 1\n[[task]]\nname = 'x'\ncost = '1ms'\nperiod = '10ms'\n";
    fs::write(&path, text).unwrap();
    let wrong = daemon.run(&["apply", "a.toml"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("has the name \"a/b\"; write a name without `/`"),
        "{}",
        stderr(&wrong)
    );
    fs::write(&path, text.replace("name = 'a/b'\n", "")).unwrap();
    let nothing = daemon.run(&["apply", "a.toml"]);
    assert!(
        stderr(&nothing).contains("a.toml: task `x`: has neither `thread` nor `command`"),
        "{}",
        stderr(&nothing)
    );
}
