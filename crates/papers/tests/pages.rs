//! The pages that the repository has are those that come out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use shiftwork_papers::pages;
use shiftwork_papers::tang_2021::evaluation_page;

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/papers")
}

/// The files below a folder, as paths from it.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for paper in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        for file in fs::read_dir(paper.path()).unwrap().map(Result::unwrap) {
            let [paper, file] =
                [&paper, &file].map(|entry| entry.file_name().into_string().unwrap());
            found.insert(format!("{paper}/{file}"));
        }
    }
    found
}

#[test]
fn the_quick_pages_are_those_of_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    for page in pages::quick().unwrap() {
        page.write(folder.path()).unwrap();
    }
    let quick = files(folder.path());
    for path in &quick {
        let [ours, theirs] =
            [folder.path(), &committed()].map(|folder| fs::read(folder.join(path)));
        assert!(
            ours.unwrap() == theirs.unwrap_or_default(),
            "{path}: run `make papers`"
        );
    }
    let slow_or_measured = |path: &String| {
        let mut kinds = ["/evaluation", "/overheads"].iter();
        kinds.any(|kind| path.contains(kind))
    };
    let others: Vec<String> = files(&committed()).difference(&quick).cloned().collect();
    assert!(
        others.iter().all(slow_or_measured),
        "nobody writes some of {others:?}"
    );
}

#[test]
fn whatever_differs_from_a_paper_says_why() {
    for path in files(&committed())
        .iter()
        .filter(|path| path.ends_with(".md"))
    {
        let text = fs::read_to_string(committed().join(path)).unwrap();
        for line in text.lines() {
            assert!(!line.contains("**differs**"), "{path}: {line}");
        }
    }
}

#[test]
fn a_set_of_the_evaluation_comes_out_as_on_its_page() {
    let text = fs::read_to_string(committed().join("tang-2021/evaluation.md")).unwrap();
    let line = evaluation_page::line(16, 3).unwrap();
    let is_there = text.lines().any(|other| other == line);
    assert!(is_there, "{line}: run `make papers`");
}
