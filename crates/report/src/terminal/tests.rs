use shiftwork_model::{Affinity, CpuId};
use shiftwork_trace::RunSummary;

use super::*;
use crate::story::{self, Story};

/// The summary, with percentiles that do not depend on how they are estimated.
fn summary(story: &Story, horizon_ms: u64) -> RunSummary {
    let mut summary = story.summary(horizon_ms);
    for response in summary
        .tasks
        .iter_mut()
        .filter_map(|task| task.response.as_mut())
    {
        response.p99_ns = response.max_ns - response.max_ns / 100;
    }
    summary
}

fn heading(policy: &str) -> Heading<'_> {
    Heading {
        policy,
        seed: Some(1),
    }
}

#[test]
fn a_run_is_told_in_a_table() {
    let story = story::fig_1_weak();
    let text = table(
        &story.set,
        heading("weak-fp"),
        &summary(&story, 100),
        Colour::Never,
    );
    insta::assert_snapshot!(text);
}

#[test]
fn a_busy_run_with_misses_is_told_in_a_table() {
    let story = story::crowd(10, 4, 300);
    let text = table(
        &story.set,
        heading("g-edf"),
        &summary(&story, 300),
        Colour::Never,
    );
    insta::assert_snapshot!(text);
}

#[test]
fn hostile_names_and_unfinished_jobs_keep_the_table_in_shape() {
    let mut story = story::everything();
    story.set.tasks[0].name = "\u{1b}[31mred\nalert".into();
    story.set.tasks[3].name = "a name that is much longer than any table should be wide".into();
    let text = table(
        &story.set,
        heading("strong-edf"),
        &summary(&story, 50),
        Colour::Never,
    );
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!(text);
}

#[test]
fn colour_changes_nothing_but_colour() {
    let story = story::crowd(10, 4, 300);
    let summary = summary(&story, 300);
    let plain = table(&story.set, heading("g-edf"), &summary, Colour::Never);
    let coloured = table(&story.set, heading("g-edf"), &summary, Colour::Always);
    assert_ne!(plain, coloured);
    assert_eq!(without_escapes(&coloured), plain);
}

fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap().to_string();
    for part in parts {
        plain += part.split_once('m').unwrap().1;
    }
    plain
}

#[test]
fn two_policies_are_compared_side_by_side() {
    let (weak, strong) = (story::fig_1_weak(), story::fig_1_strong());
    let (weak, strong) = (summary(&weak, 100), summary(&strong, 100));
    let runs = [("weak-fp", &weak), ("strong-fp", &strong)];
    insta::assert_snapshot!(comparison(&story::fig_1(), &runs, Colour::Never));
}

#[test]
fn a_packing_marks_what_its_cpus_cannot_carry() {
    let entries = [
        ("a", 5, 10, "0-1"),
        ("b", 5, 10, "0-1"),
        ("c", 3, 10, "1"),
        ("d", 8, 10, "0-1"),
    ];
    let set = story::tasks("", 2, &entries);
    let packing = [0, 0, 1, 1].map(|cpu| Affinity::pinned(CpuId::from_index(cpu)));
    insta::assert_snapshot!(super::packing(&set, &packing, Colour::Never));
}
