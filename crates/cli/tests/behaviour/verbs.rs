//! Every verb has help, a man page, completions and a schema.

use std::fs;

use serde_json::Value;

use super::{folder, shiftwork, stderr, stdout};

const VERBS: [&str; 20] = [
    "init",
    "analyze",
    "simulate",
    "daemon",
    "exec",
    "apply",
    "change",
    "release",
    "status",
    "top",
    "record",
    "scenario",
    "generate",
    "convert",
    "export",
    "calibrate",
    "policies",
    "report",
    "schema",
    "doctor",
];

#[test]
fn every_verb_has_help_a_man_page_and_completions() {
    let pages = folder("man");
    let written = shiftwork(&["man", "--out-dir", &pages.display().to_string()]);
    assert!(written.status.success(), "{}", stderr(&written));
    for verb in VERBS {
        let help = shiftwork(&[verb, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{verb}");
        assert!(stdout(&help).contains("--json"), "{verb} --help");
        let page = fs::read_to_string(pages.join(format!("shiftwork-{verb}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
        assert_eq!(page, stdout(&shiftwork(&["man", verb])), "{verb}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&shiftwork(&["completions", shell]));
        for verb in VERBS {
            assert!(script.contains(verb), "{shell} completes {verb}");
        }
    }
}

/// `shiftwork-study.1` names those of `study run` and `study plot`.
#[test]
fn every_man_page_that_another_one_names_is_written() {
    let pages = folder("man-pages");
    let written = shiftwork(&["man", "--out-dir", &pages.display().to_string()]);
    let mut named = 0;
    for path in stdout(&written).lines() {
        let page = fs::read_to_string(path).unwrap();
        for line in page.lines().filter_map(|line| line.strip_suffix("(1)")) {
            let name = line.replace("\\-", "-");
            named += 1;
            assert!(
                name.ends_with("-help") || pages.join(format!("{name}.1")).exists(),
                "{path} names {name}"
            );
        }
    }
    assert!(named >= VERBS.len(), "{named}");
}

#[test]
fn verb_agent_is_an_alias_of_daemon() {
    let help = stdout(&shiftwork(&["agent", "--help"]));
    assert_eq!(help, stdout(&shiftwork(&["daemon", "--help"])));
    assert!(!stdout(&shiftwork(&["--help"])).contains("  agent "));
}

#[test]
fn every_verb_that_prints_json_has_a_schema() {
    let schemas: Value = serde_json::from_str(&stdout(&shiftwork(&["schema"]))).unwrap();
    for verb in VERBS {
        let has = schemas["schemas"].get(verb).is_some();
        assert_eq!(has, !["daemon", "schema"].contains(&verb), "{verb}");
    }
}
