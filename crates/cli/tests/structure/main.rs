//! How production code is laid out: no circles between files, and one place for each thing of which more may be added; and that
//! the faults which tests must find can still be put back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod circles;
mod faults;
mod one_place;

use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of production code: its path below `crates`, and its text without comments and unit tests.
struct Source {
    path: String,
    code: String,
}

/// All production code, but for the crates that test on real kernels.
fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("live-tests") {
            collect(&path.join("src"), &mut found);
        }
    }
    assert!(found.len() > 400, "{}", found.len());
    found
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if ["tests", "testing"].contains(&stem) {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(crates()).unwrap();
            found.push(Source {
                path: path.to_str().unwrap().to_owned(),
                code: production(&text),
            });
        }
    }
}

/// The text without comments and without the tests at its end.
fn production(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {");
    let lines = text[..end.unwrap_or(text.len())].lines();
    let code = lines.map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}
