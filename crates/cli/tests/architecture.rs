//! Permitted dependencies between crates: the manifests, the table in docs/architecture.md and the
//! rule agree.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each crate and the crates that it may depend on. A new crate is added here first; some are here
/// that do not exist yet.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("btf", &[]),
    ("taskset", &["model"]),
    ("analysis", &["model"]),
    ("policy", &["model"]),
    ("machine", &["model", "policy"]),
    ("sim", &["machine", "model", "policy"]),
    ("kernel-core", &["model", "policy"]),
    (
        "live",
        &[
            "analysis",
            "btf",
            "kernel-core",
            "machine",
            "model",
            "policy",
        ],
    ),
    ("observe", &["model", "taskset"]),
    ("queue", &[]),
    (
        "study",
        &[
            "analysis", "model", "policy", "report", "sim", "taskset", "trace",
        ],
    ),
    ("trace", &["model"]),
    ("report", &["analysis", "model", "trace"]),
    (
        "papers",
        &[
            "analysis", "model", "policy", "queue", "report", "sim", "study", "taskset", "trace",
        ],
    ),
    (
        "calibrate",
        &["live", "model", "policy", "queue", "report", "taskset"],
    ),
    ("client", &["model"]),
    ("c", &["client", "model"]),
    (
        "daemon",
        &[
            "analysis", "client", "live", "model", "policy", "taskset", "trace",
        ],
    ),
    ("emulator", &["btf"]),
    (
        "verbs",
        &[
            "analysis",
            "kernel-core",
            "machine",
            "model",
            "policy",
            "sim",
            "taskset",
            "trace",
        ],
    ),
    ("py", ALL_LIBRARIES),
    ("cli", ALL_LIBRARIES),
    ("live-tests", &["cli"]),
];

/// The command line and the Python package may depend on all libraries.
const ALL_LIBRARIES: &[&str] = &[
    "analysis",
    "calibrate",
    "client",
    "daemon",
    "kernel-core",
    "live",
    "machine",
    "model",
    "observe",
    "policy",
    "queue",
    "report",
    "sim",
    "study",
    "taskset",
    "trace",
    "verbs",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Our crates among the dependencies of a crate; those that only its tests need do not count.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut counts = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            let section = line.trim_matches(['[', ']']);
            counts = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
        } else if counts && let Some(rest) = line.strip_prefix("shiftwork-") {
            let name = rest
                .split(|c: char| !c.is_alphanumeric() && c != '-')
                .next();
            found.extend(name.map(str::to_owned));
        }
    }
    found
}

fn manifests() -> BTreeMap<String, String> {
    fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path.join("Cargo.toml")).unwrap())
        })
        .collect()
}

/// The crates that there are, with what each may know.
fn crates() -> Vec<(String, String, &'static [&'static str])> {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let place = |(name, manifest): (String, String)| {
        let arrows = allowed.get(name.as_str()).copied();
        let arrows = arrows.unwrap_or_else(|| panic!("`{name}` has no place among the arrows"));
        (name, manifest, arrows)
    };
    manifests().into_iter().map(place).collect()
}

#[test]
fn every_crate_depends_only_on_permitted_crates() {
    let crates = crates();
    assert!(crates.len() >= 8, "{}", crates.len());
    for (name, manifest, allowed) in crates {
        for dependency in dependencies(&manifest) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "`{name}` must not know `{dependency}`; it may know {allowed:?}"
            );
        }
    }
}

#[test]
fn a_forbidden_arrow_is_found_in_every_kind_of_section() {
    let found = |text: &str| dependencies(text).into_iter().collect::<Vec<_>>();
    assert_eq!(
        found("[dependencies]\nshiftwork-sim = { workspace = true }"),
        ["sim"]
    );
    assert_eq!(
        found("[build-dependencies]\nshiftwork-cli.workspace = true"),
        ["cli"]
    );
    assert_eq!(
        found("[target.'cfg(unix)'.dependencies]\nshiftwork-sim = \"1\""),
        ["sim"]
    );
    assert_eq!(found("[dev-dependencies]\nshiftwork-sim = \"1\""), [""; 0]);
}

#[test]
fn the_core_needs_no_operating_system() {
    for name in ["model", "policy"] {
        let path = root().join("crates").join(name).join("src/lib.rs");
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains("\n#![no_std]"), "`{name}` is no_std");
        assert!(!text.contains("extern crate std"), "`{name}` is no_std");
    }
}

/// Where the lint against `unsafe` may be switched off.
const UNSAFE: &[&str] = &[
    "c/src/boundary.rs",
    "kernel-core/src/native.rs",
    "live/src/sys/",
];

/// The files below that switch it off.
fn unsafe_files(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            unsafe_files(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // In two words, or this file would be one of them.
            if text.contains(concat!("(unsafe_", "code")) {
                let name = path.strip_prefix(root().join("crates")).unwrap();
                found.insert(name.to_str().unwrap().to_owned());
            }
        }
    }
}

#[test]
fn unsafe_code_stays_in_its_few_places() {
    let mut found = BTreeSet::new();
    unsafe_files(&root().join("crates"), &mut found);
    assert!(found.len() >= UNSAFE.len(), "{found:?}");
    let elsewhere = |file: &&String| !UNSAFE.iter().any(|place| file.starts_with(place));
    let elsewhere: Vec<_> = found.iter().filter(elsewhere).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?} are not in {UNSAFE:?}");
    // Everywhere else the manifests refuse it.
    for (name, manifest) in manifests() {
        let relaxed = manifest.contains("unsafe_code = \"deny\"");
        let strict = manifest.contains("[lints]\nworkspace = true")
            || manifest.contains("unsafe_code = \"forbid\"");
        let is_named = UNSAFE
            .iter()
            .any(|place| place.starts_with(&format!("{name}/")));
        assert_eq!(relaxed, is_named, "`{name}`");
        assert!(relaxed || strict, "`{name}`");
    }
}

#[test]
fn the_documentation_shows_the_same_arrows() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let crates = crates();
    let exists = |wanted: &&str| crates.iter().any(|(name, ..)| name == wanted);
    for (name, _, allowed) in &crates {
        let row = text
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("docs/architecture.md has no row for `{name}`"));
        let cells = row.trim_end_matches([' ', '|']);
        let last = cells.rsplit('|').next().unwrap().trim();
        let mut shown: Vec<&str> = match last {
            "none" => Vec::new(),
            "all" => ALL_LIBRARIES.iter().copied().filter(exists).collect(),
            names => names.split(", ").collect(),
        };
        shown.sort_unstable();
        let expected: Vec<&str> = allowed.iter().copied().filter(exists).collect();
        assert_eq!(shown, expected, "{row}");
    }
}
