//! What README.md shows is what the command prints.

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
            .output()
            .unwrap();
        let expected = if line.contains("misspelt") { 2 } else { 0 };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{line}: {errors}");
        tried += 1;
    }
    assert!(tried >= 9, "{tried}");
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

#[test]
fn every_link_between_the_documents_leads_somewhere() {
    let mut files = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    files.extend(documents(&root().join("docs")));
    let mut followed = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for rest in text.split("](").skip(1) {
            let link = rest.split(')').next().unwrap();
            let path = link.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let target = file.parent().unwrap().join(path);
            assert!(target.exists(), "{}: {link}", file.display());
            followed += 1;
        }
    }
    assert!(followed >= 15, "{followed}");
}
