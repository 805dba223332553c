//! The pages that the repository has are those that come out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use shiftwork_papers::outcome::{csv_of_cell, plan};
use shiftwork_papers::tang_2021::evaluation_page;
use shiftwork_papers::{affinities, brandenburg_2008, pages};

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
        let mut kinds = ["/evaluation", "/overheads", "/schedulability"].iter();
        kinds.any(|kind| path.contains(kind))
    };
    let others: Vec<String> = files(&committed()).difference(&quick).cloned().collect();
    assert!(
        others.iter().all(slow_or_measured),
        "no code writes some of {others:?}"
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

/// Of studies with a page: how the lines of a cell begin, small in work, and how many sets the page has.
const CELLS: [(&str, &str, &str, u64); 2] = [
    (
        "rtss-2008.toml",
        "brandenburg-2008",
        "uniform-heavy,32,6,",
        brandenburg_2008::SETS,
    ),
    (
        "affinities.toml",
        "affinities",
        "bimodal-medium,32,4,",
        affinities::SETS,
    ),
];

#[test]
fn a_cell_of_a_study_comes_out_as_beside_its_page() {
    for (study, folder, start, sets) in CELLS {
        let plan = plan(study).unwrap();
        let path = committed().join(folder).join("schedulability.csv");
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(start));
        let lines: Vec<&str> = lines.collect();
        let family = start.split(',').next().unwrap();
        let cap: f64 = start.split(',').nth(2).unwrap().parse().unwrap();
        let cell = plan.cells.iter().find(|cell| {
            plan.family(cell).name == family && cell.load.cap(cell.cpus) == (cap * 1_000.0) as u64
        });
        let number = cell.unwrap().number;
        let ours = csv_of_cell(&plan, number, sets).unwrap();
        assert_eq!(
            ours.lines().collect::<Vec<_>>(),
            lines,
            "{study}: run `make papers`"
        );
    }
}
