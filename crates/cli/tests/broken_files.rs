//! Every file of the corpus of broken files, as a user would meet it: exit status 2, the path, and
//! the expected message. The corpus belongs to `taskset`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../taskset/tests/broken")
}

/// The command that reads files of this kind.
fn arguments<'a>(kind: &str, file: &'a str, good: &'a str) -> Vec<&'a str> {
    match kind {
        "task-set" => vec!["simulate", file, "--policy", "strong-edf"],
        "scenario" => vec!["scenario", file],
        "overheads" => vec!["simulate", good, "--overheads", file],
        "study" => vec!["study", "run", file],
        "daemon" => vec!["daemon", "--config", file],
        "rt-app" => vec!["convert", "--from", "rt-app", file],
        "simso" => vec!["convert", "--from", "simso", file],
        "schedcat" => vec!["convert", "--from", "schedcat", file],
        _ => panic!("no verb reads {kind} files"),
    }
}

/// So many mistakes are shown, and then how many more there are.
const SHOWN_MAX: usize = 10;

#[test]
fn every_broken_file_is_refused_with_its_path_and_what_would_be_accepted() {
    let good = format!(
        "{}/tests/command/files/good.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut tried = 0;
    for kind in fs::read_dir(corpus()).unwrap() {
        let kind = kind.unwrap();
        for file in fs::read_dir(kind.path()).unwrap() {
            let file = file.unwrap().path();
            let expected = file.with_extension("expected");
            // A file of rt-app is no task set, but verbs import it.
            if file == expected || !expected.exists() || file.ends_with("of-rt-app.toml") {
                continue;
            }
            let name = file.display().to_string();
            let output = Command::new(env!("CARGO_BIN_EXE_shiftwork"))
                .args(arguments(&kind.file_name().to_string_lossy(), &name, &good))
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
            assert_eq!(output.stdout, b"", "{name}");
            let message = fs::read_to_string(&expected).unwrap();
            // Between two mistakes their lines are drawn.
            let shown = errors.lines().filter(|line| line.starts_with("error: "));
            let wanted = message.lines().map(|line| format!("error: {name}: {line}"));
            let (shown, mut wanted) = (shown.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
            if wanted.len() > SHOWN_MAX {
                let more = wanted.split_off(SHOWN_MAX).len();
                wanted.push(format!("error: and {more} more"));
            }
            assert_eq!(shown, wanted, "{errors}");
            tried += 1;
        }
    }
    assert!(tried >= 100, "only {tried} broken files");
}
