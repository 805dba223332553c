//! The command as a process: stdin, terminals, pipes, signals, the folder that it runs in.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{GOOD, SERVER, command, folder, shiftwork, stderr, stdout};

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
