//! What README.md and the pages of docs/ show is what the command prints, and their links lead somewhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod guides;
mod links;
mod session;
#[path = "../common/test_daemon.rs"]
mod test_daemon;

use std::fs;
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_sessions_of_the_readme_are_real() {
    session::Session::new("readme").compare_outputs("README.md");
}

/// The commands that README.md only names are accepted, options and all.
#[test]
fn the_commands_of_the_readme_are_understood() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    fs::create_dir_all(&folder).unwrap();
    let toml = text
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    fs::write(folder.join("my.toml"), toml).unwrap();
    fs::write(folder.join("rover.toml"), toml).unwrap();
    // What an earlier version left is a study of its own.
    let _ = fs::remove_dir_all(folder.join("example"));
    let mut tried = 0;
    for line in text.lines().filter(|line| line.starts_with("$ shiftwork ")) {
        let line = line
            .split(" # ")
            .next()
            .unwrap()
            .trim_start_matches("$ shiftwork ");
        let words = line.split_whitespace().map(|word| match word {
            path if path.contains('/') => root().join(path).display().to_string(),
            word => word.to_owned(),
        });
        let output = Command::new(env!("CARGO_BIN_EXE_shiftwork"))
            .args(words)
            .current_dir(&folder)
            .env("SHIFTWORK_SOCKET", folder.join("missing.sock"))
            .output()
            .unwrap();
        let expected = match line.split_whitespace().next() {
            // There is no such program, which is started without a daemon, too.
            _ if line.contains("--measure") => 2,
            // They need the daemon, which they say.
            Some("exec" | "apply" | "status" | "top" | "record") => 3,
            _ if line.contains("misspelt") => 2,
            _ => 0,
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{line}: {errors}");
        tried += 1;
    }
    assert!(tried >= 9, "{tried}");
}

/// The lines of a page that begin like this: the command's arguments, and the remark behind them.
fn commands<'a>(text: &'a str, prompt: &str) -> Vec<(&'a str, &'a str)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(prompt));
    lines
        .map(|line| line.split_once(" # ").unwrap_or((line, "")))
        .map(|(arguments, remark)| (arguments.trim(), remark.trim()))
        .collect()
}

/// Runs the command with these arguments, among which those with a slash are files of the repository.
fn run_in(folder: &Path, arguments: &str) -> std::process::Output {
    let words = arguments.split_whitespace().map(|word| match word {
        path if path.contains('/') => root().join(path).display().to_string(),
        word => word.to_owned(),
    });
    Command::new(env!("CARGO_BIN_EXE_shiftwork"))
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn the_page_about_sched_deadline_says_what_its_commands_print() {
    let text = fs::read_to_string(root().join("docs/sched-deadline.md")).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sched-deadline");
    fs::create_dir_all(&folder).unwrap();
    let shown = commands(&text, "$ shiftwork ");
    assert!(shown.len() >= 20, "{shown:?}");
    for (arguments, remark) in shown {
        let output = run_in(&folder, arguments);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(!remark.is_empty(), "{arguments}");
        assert!(printed.contains(remark), "{arguments}: {printed}");
    }
}

/// What is run for real there is let in, as the simulated machine shows.
#[test]
fn the_page_about_sched_deadline_runs_what_is_admitted() {
    let text = fs::read_to_string(root().join("docs/sched-deadline.md")).unwrap();
    let live = commands(&text, "$ sudo shiftwork ");
    assert!(live.len() >= 3, "{live:?}");
    for (arguments, _) in live {
        let output = run_in(root(), &format!("{arguments} --machine sim --for 100ms"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments}: {errors}");
    }
}

/// Each defect has a file, and a command that shows it.
#[test]
fn every_defect_of_sched_deadline_can_be_seen() {
    let text = fs::read_to_string(root().join("docs/sched-deadline.md")).unwrap();
    let defects = text.lines().filter(|line| line.starts_with("| **"));
    let files = defects.map(|line| line.split('|').nth(3).unwrap().trim().trim_matches('`'));
    let files: Vec<String> = files
        .map(|name| format!("examples/tang-2021/{name}.toml"))
        .collect();
    assert_eq!(files.len(), 9, "{files:?}");
    for file in files {
        assert!(root().join(&file).exists(), "{file}");
        assert!(
            text.contains(&format!("$ shiftwork simulate {file} --for")),
            "{file}"
        );
    }
}
