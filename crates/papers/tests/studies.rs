//! The studies of the repository can be run, and are as large as their page says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;

use shiftwork_papers::outcome::{folder, plan};

#[test]
fn every_study_can_be_run_and_is_listed_with_its_size() {
    let listed = fs::read_to_string(folder().join("README.md")).unwrap();
    let mut sizes = BTreeMap::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // The example belongs to the documentation of study files.
        if name.ends_with(".toml") && name != "example.toml" {
            assert!(
                listed.contains(&format!("({name})")),
                "{name} is not listed"
            );
            let plan = plan(&name).unwrap();
            sizes.insert(name, plan.file.sets * plan.cells.len() as u64);
        }
    }
    let of = |name: &str| sizes[name];
    // In words: 8.5 million.
    assert_eq!(of("rtss-2008.toml") / 100_000, 85);
    for (name, words) in [
        ("rtss-2009.toml", "576,000 sets"),
        ("hpa-2016.toml", "200,000 sets"),
        ("affinities.toml", "24,000 sets"),
    ] {
        let digits = words.replace(|letter: char| !letter.is_ascii_digit(), "");
        assert_eq!(of(name).to_string(), digits, "{name}");
        assert!(listed.contains(words), "{name}: {words}");
    }
}
