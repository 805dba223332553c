use shiftwork_model::{Affinity, CpuId, Instant, Order, Span};
use shiftwork_trace::comparison::compare;
use shiftwork_trace::replay::{Basis, Judge, Verdict, WINDOW, replay};
use shiftwork_trace::{ReactionStatistics, Reactions, RunSummary};

use super::*;
use crate::run_script::{self, RunScript};

/// The summary, with percentiles that do not depend on how they are estimated.
fn summary(script: &RunScript, horizon_ms: u64) -> RunSummary {
    let mut summary = script.summary(horizon_ms);
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
fn run_has_a_table() {
    let script = run_script::fig_1_weak();
    let text = table(
        &script.set,
        heading("weak-fp"),
        &summary(&script, 100),
        Colour::Never,
    );
    insta::assert_snapshot!(text);
}

#[test]
fn run_with_misses_has_a_table() {
    let script = run_script::crowd(10, 4, 300);
    let text = table(
        &script.set,
        heading("g-edf"),
        &summary(&script, 300),
        Colour::Never,
    );
    insta::assert_snapshot!(text);
}

#[test]
fn hostile_names_and_unfinished_jobs_keep_the_table_in_shape() {
    let mut script = run_script::everything();
    script.set.tasks[0].name = "\u{1b}[31mred\nalert".into();
    script.set.tasks[3].name = "a name that is much longer than any table should be wide".into();
    let text = table(
        &script.set,
        heading("strong-edf"),
        &summary(&script, 50),
        Colour::Never,
    );
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!(text);
}

#[test]
fn colour_does_not_change_the_text() {
    let script = run_script::crowd(10, 4, 300);
    let summary = summary(&script, 300);
    let plain = table(&script.set, heading("g-edf"), &summary, Colour::Never);
    let coloured = table(&script.set, heading("g-edf"), &summary, Colour::Always);
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
    let (weak, strong) = (run_script::fig_1_weak(), run_script::fig_1_strong());
    let (weak, strong) = (summary(&weak, 100), summary(&strong, 100));
    let runs = [("weak-fp", &weak), ("strong-fp", &strong)];
    insta::assert_snapshot!(comparison(&run_script::fig_1(), &runs, Colour::Never));
}

#[test]
fn packing_marks_overloaded_partitions() {
    let entries = [
        ("a", 5, 10, "0-1"),
        ("b", 5, 10, "0-1"),
        ("c", 3, 10, "1"),
        ("d", 8, 10, "0-1"),
    ];
    let set = run_script::tasks("", 2, &entries);
    let packing = [0, 0, 1, 1].map(|cpu| Affinity::pinned(CpuId::from_index(cpu)));
    insta::assert_snapshot!(super::packing(&set, &packing, Colour::Never));
}

/// Two runs of the same three tasks: simulated, and on a machine with a reaction time of 50 us, on which `b` gets
/// its CPU at `b_starts_ns`.
fn simulated_and_measured(b_starts_ns: u64) -> [RunScript; 2] {
    let entries = [("a", 2, 10, "0"), ("b", 5, 20, "0"), ("c", 4, 40, "1")];
    let run = |late_ns: u64, b_starts_ns: u64| {
        let mut script = RunScript::new(2, &entries);
        script.at(0).release("a").release("b").release("c");
        script.at_ns(late_ns).run(0, "a").run(1, "c");
        script.at_ns(2_000_000 + late_ns).complete("a").run(0, "");
        script.at_ns(b_starts_ns).run(0, "b");
        script.at_ns(4_000_000 + late_ns).complete("c").run(1, "");
        script
            .at_ns(b_starts_ns + 5_000_000)
            .complete("b")
            .run(0, "");
        script
    };
    [run(0, 2_000_000), run(50_000, b_starts_ns)]
}

const HORIZON: Instant = Instant::from_ns(10_000_000);

/// The second run checked by the weak invariant.
fn verdict([_, measured]: &[RunScript; 2]) -> Verdict {
    let basis = Basis {
        order: Order::Edf,
        packing: None,
        prompt: &[true; 3],
        window: WINDOW,
        horizon: HORIZON,
    };
    replay(
        &measured.set,
        &basis,
        Judge::WeakInvariant,
        &measured.records,
    )
}

fn in_words(
    runs: &[RunScript; 2],
    objection: Option<&str>,
    reactions: Option<&ReactionStatistics>,
) -> String {
    let [simulated, measured] = runs;
    let judgement = Judged {
        policy: "weak-edf",
        verdict: &verdict(runs),
        objection,
        alike: &["strong-edf".to_owned(), "weak-fp".to_owned()],
        distinguished: &["p-edf".to_owned()],
        finishes: Some(&compare(
            &simulated.set,
            HORIZON,
            &simulated.records,
            &measured.records,
        )),
    };
    judged(&judgement, reactions, Colour::Never)
}

#[test]
fn simulated_and_measured_stand_side_by_side() {
    let runs = simulated_and_measured(2_100_000);
    let [simulated, measured] = runs.each_ref().map(|script| summary(script, 10));
    let table = side_by_side(&runs[0].set, &simulated, &measured, Colour::Never);
    let mut reactions = Reactions::default();
    for ns in [12_500, 13_700, 60_000] {
        reactions.add(Span::from_ns(ns));
    }
    let statistics = reactions.statistics();
    let text = in_words(&runs, None, statistics.as_ref());
    insta::assert_snapshot!(format!("{table}\n{text}"));
}

#[test]
fn disagreements_are_listed_and_marked() {
    let mut runs = simulated_and_measured(4_000_000);
    for run in &mut runs {
        run.set.tasks[1].name = "\u{1b}[31mred".into();
    }
    let text = in_words(&runs, None, None);
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!(text);
}

#[test]
fn only_the_first_disagreements_are_listed() {
    let mut runs = simulated_and_measured(2_100_000);
    for job in 0..8 {
        // CPU 1 idles while each waits.
        runs[1].at_ns(9_000_000 + 30_000 * job).release("b");
    }
    let listed = |text: &str| text.lines().filter(|line| line.starts_with('!')).count();
    let text = in_words(&runs, None, None);
    let count = verdict(&runs).count as usize;
    assert!(count > 0, "{text}");
    assert_eq!(listed(&text), count.min(6), "{text}");
}

#[test]
fn run_with_a_broken_guarantee_does_not_agree() {
    let text = in_words(
        &simulated_and_measured(2_100_000),
        Some("2 deadlines missed"),
        None,
    );
    let first = "the run does not agree with its guarantee: 2 deadlines missed !: ";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn run_with_fewer_tasks_has_empty_cells() {
    let [simulated, measured] = simulated_and_measured(2_100_000);
    let set = simulated.set.clone();
    let simulated = summary(&simulated, 10);
    let mut measured = summary(&measured, 10);
    measured.tasks.truncate(1);
    let text = side_by_side(&set, &simulated, &measured, Colour::Never);
    let line = text.lines().find(|line| line.starts_with('c')).unwrap();
    assert!(line.ends_with("0 |   -"), "{line}");
}

/// The longest line.
fn width(text: &str) -> usize {
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn table_that_is_too_wide_leaves_out_columns_and_names_them() {
    let script = run_script::crowd(10, 4, 300);
    let summary = summary(&script, 300);
    let shown = |width| {
        let look = Look {
            width,
            ..Look::default()
        };
        table(&script.set, heading("g-edf"), &summary, look)
    };
    let whole = shown(None);
    assert_eq!(shown(Some(width(&whole))), whole);
    let mut before = 0;
    for limit in 60..width(&whole) {
        let text = shown(Some(limit));
        let (rows, verdict) = text.rsplit_once("no room for:").unwrap();
        assert!(width(rows) <= limit, "width {limit}:\n{text}");
        assert!(verdict.contains("migrated"), "{text}");
        let columns = rows.lines().nth(3).unwrap().split_whitespace().count();
        assert!(columns >= before.max(3), "width {limit}:\n{text}");
        before = columns;
    }
    insta::assert_snapshot!(shown(Some(60)));
}

#[test]
fn policies_are_compared_below_one_another_where_there_is_no_room() {
    let (weak, strong) = (run_script::fig_1_weak(), run_script::fig_1_strong());
    let (weak, strong) = (summary(&weak, 100), summary(&strong, 100));
    let runs = [("weak-fp", &weak), ("strong-fp", &strong)];
    let shown = |width| {
        let look = Look {
            width,
            ..Look::default()
        };
        comparison(&run_script::fig_1(), &runs, look)
    };
    let whole = shown(None);
    assert_eq!(shown(Some(80)), whole);
    let stacked = shown(Some(60));
    let tables: Vec<&str> = stacked.split("\n\n").collect();
    assert_eq!(tables.len(), 2, "{stacked}");
    assert!(tables[0].contains("weak-fp") && tables[1].contains("strong-fp"));
    for part in tables {
        assert!(
            part.contains("preemptions") && !part.contains("no room"),
            "{part}"
        );
    }
}
