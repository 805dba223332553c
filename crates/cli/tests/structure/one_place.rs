//! What one change touches: where production code may speak of a single order, placement, schedulability test, verb,
//! key of tasks, or metric. docs/walks.md goes through such changes.
//!
//! Each list below is complete. A file that is missing from it, or need not be on it any more, fails the test: either
//! the code asks for a property instead, or the list, and what a newcomer has to change, grows by a file.

use std::collections::BTreeSet;
use std::fs;

use clap::CommandFactory as _;
use shiftwork_analysis::verdicts::TESTS;
use shiftwork_cli::args::Cli;
use shiftwork_taskset::{Kind, schema};

use crate::{Source, crates, production, sources};

/// A thing of which one more may be added, and the code that may speak of a single one.
struct Thing {
    what: &'static str,
    words: Vec<String>,
    /// Where the words mean this thing: the beginnings of paths below `crates`.
    within: &'static [&'static str],
    /// The files that may have them: whole paths, or beginnings of some.
    places: &'static [&'static str],
}

fn assert_places(thing: Thing) {
    let Thing {
        what,
        words,
        within,
        places,
    } = thing;
    assert!(!words.is_empty(), "there is no {what}");
    let is_permitted = |path: &str| places.iter().any(|place| path.starts_with(place));
    let speaks = |source: &&Source| {
        within.iter().any(|start| source.path.starts_with(start))
            && words.iter().any(|word| has_word(&source.code, word))
    };
    let sources = sources();
    let found: BTreeSet<&str> = sources.iter().filter(speaks).map(|it| &*it.path).collect();
    let others: Vec<_> = found.iter().filter(|path| !is_permitted(path)).collect();
    assert!(others.is_empty(), "{what}: also named in {others:?}");
    let is_unused = |place: &&&str| !found.iter().any(|path| path.starts_with(**place));
    let unused: Vec<_> = places.iter().filter(is_unused).collect();
    assert!(unused.is_empty(), "{what}: no longer named in {unused:?}");
}

/// Whether the word is in the code, not as the beginning of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    code.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| code.as_bytes().get(at));
        let after = code.as_bytes().get(at + word.len());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// The variants of an enum of `policy_traits.rs`, as other files name them.
fn variants(name: &str) -> Vec<String> {
    let text = fs::read_to_string(crates().join("model/src/policy_traits.rs")).unwrap();
    let body = text.split(&format!("pub enum {name} {{")).nth(1).unwrap();
    let body = production(body.split("\n}").next().unwrap());
    let variants = body.lines().map(str::trim).filter(|line| !line.is_empty());
    variants
        .map(|line| format!("{name}::{}", line.trim_end_matches(',')))
        .collect()
}

fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let quoted = words.into_iter().map(|word| format!("\"{word}\""));
    quoted.collect()
}

#[test]
fn an_order_is_a_variant_its_file_and_its_registry_lines() {
    assert_places(Thing {
        what: "an order",
        words: variants("Order"),
        within: &[""],
        places: &[
            // Which theory speaks of it, and by which theory packing goes.
            "analysis/src/policy.rs",
            "analysis/src/speedup.rs",
            "analysis/src/verdicts/ask.rs",
            // The core in the kernel knows two orders, and so do hints in errors.
            "kernel-core/src/native.rs",
            // Papers that compare policies of one order.
            "papers/src/schedule.rs",
            "papers/src/tang_2021/evaluation.rs",
            "policy/src/error.rs",
            "policy/src/order/",
            // Pfair has one order only.
            "policy/src/placement/pfair/mod.rs",
            "policy/src/registry",
            // Linux has scheduling classes for two orders.
            "taskset/src/export/mod.rs",
            // The definitions of priority points and laxities, by which runs are judged.
            "trace/src/check/laxity.rs",
            "trace/src/check/scheduling_deadline.rs",
        ],
    });
}

#[test]
fn a_placement_is_a_variant_its_registry_lines_and_its_theory() {
    assert_places(Thing {
        what: "a placement",
        words: variants("Placement"),
        within: &[""],
        places: &[
            // What is guaranteed under it, and which affinities make that more.
            "analysis/src/admission/advice.rs",
            "analysis/src/admission/decide.rs",
            "analysis/src/admission/lingering.rs",
            "analysis/src/packing/assign.rs",
            "analysis/src/policy.rs",
            "analysis/src/verdicts/catalogue/domain.rs",
            // Whether affinities may change during a run.
            "live/src/changes.rs",
            "policy/src/registry",
            // Onto what studies pack.
            "study/src/binding.rs",
        ],
    });
}

#[test]
fn an_analysis_test_is_its_file_and_its_entry() {
    assert_places(Thing {
        what: "a test",
        words: quoted(TESTS.iter().map(|test| test.name)),
        within: &[
            "analysis/src/admission/",
            "analysis/src/global_",
            "analysis/src/packing/",
            "analysis/src/response/",
            "analysis/src/uniprocessor/",
            "analysis/src/verdicts/",
            "cli/src/verb/analyze/",
            "papers/src/",
            "py/src/",
            "report/src/",
            "study/src/",
            "verbs/src/",
        ],
        places: &[
            "analysis/src/verdicts/catalogue",
            // The few that are asked later than their place in the catalogue says.
            "analysis/src/verdicts/decide.rs",
            // Those that take jitter and arrival curves into account.
            "analysis/src/verdicts/jitter.rs",
            // The one test that has bounds beside the reserve.
            "analysis/src/verdicts/reserved.rs",
        ],
    });
}

#[test]
fn a_verb_is_its_arguments_its_file_and_a_line_of_dispatch() {
    let command = Cli::command();
    let verbs = command.get_subcommands().map(|verb| {
        let mut name = verb.get_name().to_owned();
        name[..1].make_ascii_uppercase();
        format!("Verb::{name}")
    });
    assert_places(Thing {
        what: "a verb",
        words: verbs.collect(),
        within: &["cli/src/"],
        places: &["cli/src/lib.rs"],
    });
}

#[test]
fn a_key_of_tasks_is_named_where_tasks_are_read_and_written() {
    let schema = schema(Kind::TaskSet);
    let keys = schema["properties"]["task"]["items"]["properties"].as_object();
    assert_places(Thing {
        what: "a key of tasks",
        words: quoted(keys.unwrap().keys().map(String::as_str)),
        within: &["taskset/src/file/"],
        places: &[
            // Timed changes, chains and the file itself have keys of the same names.
            "taskset/src/file/action.rs",
            // When jobs arrive is read apart.
            "taskset/src/file/arrival.rs",
            "taskset/src/file/chain.rs",
            "taskset/src/file/resource.rs",
            "taskset/src/file/mod.rs",
            "taskset/src/file/task.rs",
            // The names of a thread are read apart, and rule out a command.
            "taskset/src/file/thread.rs",
            // Which keys are times, and have to be whole ticks.
            "taskset/src/file/ticks.rs",
            // What triggers a task is read apart, and rules out some keys.
            "taskset/src/file/trigger.rs",
            "taskset/src/file/write.rs",
        ],
    });
}

/// What a metric counts is in `statistics.rs`.
#[test]
fn a_metric_is_named_where_it_is_written() {
    let text = fs::read_to_string(crates().join("daemon/src/metrics.rs")).unwrap();
    let table = text.split("const TASK_METRICS").nth(1).unwrap();
    let table = table.split("\n];").next().unwrap();
    let words = table.split('"').skip(1).step_by(2);
    let names = words.filter(|word| word.ends_with("_total") || word.ends_with("_seconds"));
    let names: Vec<&str> = names.collect();
    assert!(names.len() >= 7, "{names:?}");
    assert_places(Thing {
        what: "a metric",
        words: quoted(names),
        within: &[""],
        places: &["daemon/src/metrics.rs"],
    });
}

/// All files but those that a walk makes.
#[test]
fn files_of_the_walks_exist() {
    let root = crates().join("..");
    let text = fs::read_to_string(root.join("docs/walks.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let files: Vec<&str> = cells
        .filter(|cell| !cell.contains("(new)"))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(files.len() > 15, "{files:?}");
    for file in files {
        assert!(root.join(file).is_file(), "docs/walks.md: {file}");
    }
}

#[test]
fn a_place_that_is_not_listed_is_found() {
    let code =
        production("let a = Order::Edf; // Order::Fp\n#[cfg(test)]\nmod tests {\nOrder::Lifo\n");
    assert!(has_word(&code, "Order::Edf"));
    for absent in ["Order::Ed", "rder::Edf", "Order::Fp", "Order::Lifo"] {
        assert!(!has_word(&code, absent), "{absent}");
    }
}

/// A verb that reads a file and writes another must not take the same for both.
#[test]
fn a_verb_that_writes_files_compares_them_with_what_it_reads() {
    // These read no file that the command line names, or do not write then.
    let exempt = ["init", "generate", "pages", "record"].map(|it| format!("cli/src/verb/{it}.rs"));
    let writes = |source: &&Source| {
        let calls = ["fs::write(", "File::create(", "OpenOptions::new("];
        source.path.starts_with("cli/src/verb/")
            && calls.iter().any(|call| source.code.contains(call))
    };
    let sources = sources();
    let checks = |source: &&Source| source.code.contains("output_files::check(");
    let (checking, others): (Vec<_>, Vec<_>) = sources.iter().filter(writes).partition(checks);
    assert!(checking.len() >= 5, "{}", checking.len());
    let others: BTreeSet<&str> = others.iter().map(|source| &*source.path).collect();
    assert_eq!(others, exempt.iter().map(String::as_str).collect());
}
