//! What README.md and docs/sched-deadline.md show is what the command prints.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The sessions of README.md: one command each, and what it prints.
fn sessions(text: &str) -> Vec<(String, String)> {
    text.split("```console\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .filter(|block| block.matches("$ ").count() == 1)
        .map(|block| {
            let (command, output) = block.split_once('\n').unwrap();
            (
                command.trim_start_matches("$ ").to_owned(),
                output.to_owned(),
            )
        })
        .collect()
}

#[test]
fn the_sessions_of_the_readme_are_real() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let sessions = sessions(&text);
    assert!(sessions.len() >= 2, "{sessions:?}");
    for (line, expected) in sessions {
        let mut words = line.split_whitespace();
        assert!(words.next().unwrap().ends_with("shiftwork"), "{line}");
        let output = Command::new(env!("CARGO_BIN_EXE_shiftwork"))
            .args(words)
            .current_dir(root())
            .output()
            .unwrap();
        let found = [output.stdout, output.stderr].concat();
        assert_eq!(String::from_utf8(found).unwrap(), expected, "{line}");
    }
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
            // They need an agent, which they say.
            Some("exec" | "apply" | "status" | "record") => 3,
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

/// All pages in a folder and in those inside it.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let entries = entries.map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let inside = folders.iter().flat_map(|folder| documents(folder));
    let pages = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    files.into_iter().filter(pages).chain(inside).collect()
}

/// The anchors of a page, as GitHub makes them from its headings: lower-case letters, digits, `-` and `_`, spaces as `-`, and
/// a number behind one that was there before.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        // Of a link in a heading only the text counts.
        let mut words = String::new();
        for (index, part) in heading.trim().split("](").enumerate() {
            let part = match index {
                0 => part,
                _ => part.split_once(')').unwrap_or(("", part)).1,
            };
            words += part;
        }
        let kept = words.to_lowercase();
        let kept = kept
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let mut candidates = std::iter::once(anchor.clone()).chain(numbered);
        let free = candidates.find(|name| !anchors.contains(name)).unwrap();
        anchors.push(free);
    }
    anchors
}

#[test]
fn anchors_are_made_of_headings() {
    let text = "# A *b* `c-d`, e_f\n```\n# no\n```\n## [G](h.md#i) j!\n#no\n## A b c-d e_f\n";
    assert_eq!(anchors(text), ["a-b-c-d-e_f", "g-j", "a-b-c-d-e_f-1"]);
}

#[test]
fn every_link_between_the_documents_leads_somewhere() {
    let mut files = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    files.extend(documents(&root().join("docs")));
    let (mut followed, mut anchored) = (0, 0);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for rest in text.split("](").skip(1) {
            let link = rest.split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => file.clone(),
                path => file.parent().unwrap().join(path),
            };
            assert!(target.exists(), "{}: {link}", file.display());
            followed += 1;
            if anchor.is_empty() || target.extension().is_none_or(|it| it != "md") {
                continue;
            }
            let found = anchors(&fs::read_to_string(&target).unwrap());
            let is_there = found.iter().any(|name| name == anchor);
            assert!(is_there, "{}: {link} of {found:?}", file.display());
            anchored += 1;
        }
    }
    assert!(followed >= 15, "{followed}");
    assert!(anchored >= 100, "{anchored}");
}
