use shiftwork_model::{Affinity, CpuId, Instant, Span};
use shiftwork_trace::RunSummary;
use shiftwork_trace::agreement::{Agreement, Basis, Reactions, compare};
use shiftwork_trace::check::{Facts, Invariant, Order};

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

/// Two runs of the same three tasks: as simulated, and as a machine does it that needs 50 us to
/// react, if `b` gets its CPU at `b_starts_ns`.
fn simulated_and_measured(b_starts_ns: u64) -> [Story; 2] {
    let entries = [("a", 2, 10, "0"), ("b", 5, 20, "0-1"), ("c", 4, 40, "1")];
    let run = |late_ns: u64, b_starts_ns: u64| {
        let mut story = Story::new(2, &entries);
        story.at(0).release("a").release("b").release("c");
        story.at_ns(late_ns).run(0, "a").run(1, "c");
        story.at_ns(2_000_000 + late_ns).complete("a").run(0, "");
        story.at_ns(b_starts_ns).run(0, "b");
        story.at_ns(4_000_000 + late_ns).complete("c").run(1, "");
        story
            .at_ns(b_starts_ns + 5_000_000)
            .complete("b")
            .run(0, "");
        story
    };
    [run(0, 2_000_000), run(50_000, b_starts_ns)]
}

/// How far the runs agree.
fn agree([simulated, measured]: &[Story; 2]) -> Agreement {
    let facts = Facts {
        invariant: Invariant::Strong,
        order: Order::Edf,
        packing: None,
        immediate: false,
    };
    let basis = Basis {
        facts: &facts,
        reaction: Span::from_us(60),
        horizon: Instant::from_ns(10_000_000),
    };
    let records = [&simulated.records, &measured.records];
    compare(&simulated.set, basis, records[0], records[1])
}

#[test]
fn simulated_and_measured_stand_side_by_side() {
    let runs = simulated_and_measured(2_100_000);
    let [simulated, measured] = runs.each_ref().map(|story| summary(story, 10));
    let table = side_by_side(&runs[0].set, &simulated, &measured, Colour::Never);
    let mut reactions = Reactions::default();
    for ns in [12_500, 13_700, 60_000] {
        reactions.add(Span::from_ns(ns));
    }
    let statistics = reactions.statistics();
    let text = agreement(&agree(&runs), statistics.as_ref(), Colour::Never);
    insta::assert_snapshot!(format!("{table}\n{text}"));
}

#[test]
fn disagreements_are_told_and_marked() {
    let mut runs = simulated_and_measured(4_000_000);
    runs[0].set.tasks[1].name = "\u{1b}[31mred".into();
    let text = agreement(&agree(&runs), None, Colour::Never);
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!(text);
}

#[test]
fn only_the_first_disagreements_are_told_one_by_one() {
    let mut runs = simulated_and_measured(2_100_000);
    for at in 9..20 {
        runs[1].at_ns(9_000_000 + at).release("a");
    }
    let found = agree(&runs);
    assert_eq!(found.disagreement_count, 11);
    let text = agreement(&found, None, Colour::Never);
    assert_eq!(text.matches('!').count(), 1 + 5 + 1, "{text}");
    assert!(text.ends_with("! and 6 more\n"), "{text}");
}

#[test]
fn a_run_with_fewer_tasks_leaves_its_cells_empty() {
    let [simulated, measured] = simulated_and_measured(2_100_000);
    let set = simulated.set.clone();
    let simulated = summary(&simulated, 10);
    let mut measured = summary(&measured, 10);
    measured.tasks.truncate(1);
    let text = side_by_side(&set, &simulated, &measured, Colour::Never);
    let line = text.lines().find(|line| line.starts_with('c')).unwrap();
    assert!(line.ends_with("0 |   -"), "{line}");
}
