//! `docs/programs.md` shows the examples, which other tests compile and run.

use std::fs;

use crate::built::root;

#[test]
fn page_shows_examples_unchanged() {
    let page = fs::read_to_string(root().join("docs/programs.md")).unwrap();
    for (language, name) in [
        ("c", "control.c"),
        ("rust", "control.rs"),
        ("python", "control.py"),
    ] {
        let program = fs::read_to_string(root().join("examples/programs").join(name)).unwrap();
        let block = format!("```{language}\n{program}```\n");
        assert!(
            page.contains(&block),
            "docs/programs.md does not show {name} unchanged"
        );
    }
}

#[test]
fn page_names_every_failure() {
    let page = fs::read_to_string(root().join("docs/programs.md")).unwrap();
    let header = fs::read_to_string(root().join("crates/c/include/shiftwork.h")).unwrap();
    let codes: Vec<&str> = header
        .lines()
        .filter_map(|line| line.trim().split_once(" = -"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(codes.len(), 13);
    for code in codes {
        assert!(
            page.contains(&format!("`{code}`")),
            "docs/programs.md does not name {code}"
        );
    }
}
