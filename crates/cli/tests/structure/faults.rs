//! The faults of tests/faults, which `make faults` puts back: each can still be put back, and what is to find it exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::crates;

/// A file of tests/faults.
#[derive(Deserialize)]
struct Faults {
    fault: Vec<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    name: String,
    from: String,
    what: String,
    methods: Vec<String>,
    survives: Option<String>,
    edit: Vec<Edit>,
}

/// A text that is in the file exactly once, and what stands there instead with the fault.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    find: String,
    replace: String,
}

fn faults() -> Vec<Fault> {
    let folder = crates().join("../tests/faults");
    let paths = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let files: BTreeSet<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "toml"))
        .collect();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let faults = toml::from_str::<Faults>(&text);
        faults
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .fault
    };
    files.into_iter().flat_map(read).collect()
}

/// Whether `.ci/faults` can execute this method.
fn exists(method: &str) -> bool {
    let read = |path: &str| fs::read_to_string(crates().join(path)).unwrap();
    let (kind, what) = method.split_once(' ').unwrap_or((method, ""));
    match kind {
        "core" => {
            let tests = crates().join("kernel-core/tests");
            tests.join(format!("{what}.rs")).exists() || tests.join(what).join("main.rs").exists()
        }
        "model" => {
            let checks = read("live/models/checks");
            let mut faults = checks.lines().filter(|line| line.starts_with("fault"));
            faults.any(|line| line.split_whitespace().nth(3) == Some(what))
        }
        "live" => {
            let catalogue = read("live-tests/tests/catalogue.rs");
            what.split(' ').all(|test| {
                // Those on other kernels have its label behind their names.
                let name = test.split("_on_a_still_older_kernel").next().unwrap();
                catalogue.contains(&format!("::{name},"))
                    || catalogue.contains(&format!("::{name} within"))
            })
        }
        "soak" => what.split(' ').all(|number| number.parse::<u64>().is_ok()),
        "sanitized" => what.parse::<u64>().is_ok(),
        "unit" => !what.is_empty(),
        _ => false,
    }
}

#[test]
fn each_fault_can_be_put_back() {
    let faults = faults();
    assert_eq!(faults.len(), 30);
    let mut names = BTreeSet::new();
    for fault in &faults {
        let name = &fault.name;
        assert!(names.insert(name), "{name} is there twice");
        assert!(!fault.from.is_empty() && !fault.what.is_empty(), "{name}");
        assert!(!fault.edit.is_empty(), "{name} changes nothing");
        for Edit {
            file,
            find,
            replace,
        } in &fault.edit
        {
            let text = fs::read_to_string(crates().join("..").join(file)).unwrap();
            let count = text.matches(find.as_str()).count();
            assert_eq!(count, 1, "{name}: occurrences in {file} of\n{find}");
            assert_ne!(find, replace, "{name}");
        }
    }
}

#[test]
fn each_fault_has_methods_that_exist() {
    for fault in faults() {
        assert!(!fault.methods.is_empty(), "{}", fault.name);
        for method in &fault.methods {
            assert!(exists(method), "{}: there is no `{method}`", fault.name);
        }
        let reason = fault.survives.as_deref();
        assert!(reason.is_none_or(|it| it.len() > 20), "{}", fault.name);
    }
}
