use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Invariant, NotReadyReason, Order, RecordKind, Span, Work,
};
use shiftwork_trace::check::PolicyContract;
use shiftwork_trace::explain::{Steps, first_misses};

use super::*;
use crate::run_script::{self, RunScript};

fn explained(script: &RunScript, horizon_ms: u64, order: Order) -> Misses {
    packed(script, horizon_ms, order, None)
}

fn packed(
    script: &RunScript,
    horizon_ms: u64,
    order: Order,
    packing: Option<Vec<Affinity>>,
) -> Misses {
    let contract = PolicyContract {
        invariant: Invariant::Weak,
        order,
        packing,
        immediate: true,
    };
    let run = recording(script, horizon_ms, Some(&contract));
    let misses = all(run, 100, STEPS_MAX);
    assert_eq!(
        misses.total,
        script.summary(horizon_ms).deadline_misses,
        "counted alike"
    );
    assert_eq!(misses.explained, misses.total);
    misses
}

/// The misses of all late jobs.
fn all(run: Recording<'_>, keep: usize, steps_max: Steps) -> Misses {
    let late = first_misses(run.set, run.records, run.until, usize::MAX);
    find(run, &late, keep, steps_max)
}

fn recording<'a>(
    script: &'a RunScript,
    horizon_ms: u64,
    contract: Option<&'a PolicyContract>,
) -> Recording<'a> {
    Recording {
        set: &script.set,
        contract,
        records: (&script.records).into(),
        until: Instant::from_ns(horizon_ms * 1_000_000),
    }
}

/// The time in which the job would have run without the culprit, and the CPUs concerned.
fn delay(miss: &Miss, culprit: Culprit) -> Option<(u64, String)> {
    let delay = miss.late.delays.get(&culprit);
    delay.map(|(time, cpus)| (time.as_ns() / 1_000_000, cpus.to_string()))
}

/// All sentences of the only miss.
fn sentences(script: &RunScript, misses: &Misses) -> Vec<String> {
    let [miss] = &misses.first[..] else {
        panic!("one miss, not {}", misses.total)
    };
    let names = Names(&script.set);
    let losses = miss.losses.iter().map(|&loss| sentence(miss, loss, names));
    losses.chain(remedy_lines(miss, names)).collect()
}

fn kinds(miss: &Miss) -> Vec<(LossKind, u64)> {
    let ms = |span: Span| span.as_ns() / 1_000_000;
    miss.losses
        .iter()
        .map(|loss| (loss.kind, ms(loss.time)))
        .collect()
}

#[test]
fn miss_under_a_weak_policy_has_the_shift_as_remedy() {
    let script = run_script::fig_1_weak();
    let misses = explained(&script, 100, Order::FixedPriority);
    assert_eq!(
        sentences(&script, &misses),
        [
            "It waited 30 ms while more urgent jobs had every CPU it may use.",
            "For 30 ms of its wait, a shift would have made room: moving T1 #1 from CPU 0 to CPU 2 \
             (then running the less urgent T4 #1).",
            "For 30 ms of its wait, CPU 2 was idle or ran less urgent work: its affinity is too narrow to use it.",
        ]
    );
    let miss = &misses.first[0];
    assert_eq!(miss.late.tardiness(), Span::from_ms(11));
    assert!(miss.explained_by(miss.losses[0].time));
    let blockers = [(
        script.id("T1"),
        (Span::from_ms(30), CpuSet::single(CpuId::from_index(0))),
    )];
    assert_eq!(miss.late.blockers, blockers.into());
}

#[test]
fn strong_schedule_of_the_same_tasks_has_no_misses() {
    assert_eq!(
        explained(&run_script::fig_1_strong(), 100, Order::FixedPriority).total,
        0
    );
}

#[test]
fn a_chain_of_shifts_ends_on_an_idle_cpu() {
    let entries = [
        ("a", 7, 100, "0-1"),
        ("b", 7, 100, "1-2"),
        ("c", 6, 10, "0"),
    ];
    let mut script = RunScript::new(3, &entries);
    script
        .at(0)
        .release("a")
        .release("b")
        .run(0, "a")
        .run(1, "b");
    script.at(1).release("c");
    script
        .at(7)
        .complete("a")
        .complete("b")
        .run(0, "c")
        .run(1, "");
    script.at(13).complete("c").run(0, "");
    // By their longer deadlines a and b are less urgent than c; they are made more urgent, so that only the
    // idle CPU is a remedy.
    for (index, priority) in [1, 2, 3].into_iter().enumerate() {
        script.set.tasks[index].priority = shiftwork_model::Priority::new(priority);
    }
    let retold = with_current_priorities(&script);
    let misses = explained(&retold, 20, Order::FixedPriority);
    assert_eq!(
        sentences(&retold, &misses),
        [
            "It waited 6 ms while more urgent jobs had every CPU it may use.",
            "For 6 ms of its wait, a shift would have made room: moving b #1 from CPU 1 to CPU 2 \
             (then idle), and a #1 from CPU 0 to CPU 1.",
            "For 6 ms of its wait, CPU 2 was idle or ran less urgent work: its affinity is too narrow to use it.",
        ]
    );
}

/// The same script with the current priorities of its task set.
fn with_current_priorities(script: &RunScript) -> RunScript {
    let mut retold = RunScript::of(script.set.clone());
    let priorities = script.set.priorities();
    for record in &script.records {
        let mut kind = record.kind.clone();
        if let RecordKind::Ready { job, priority, .. } = &mut kind {
            *priority = priorities[job.task.index()];
        }
        retold.at_ns(record.at.as_ns()).record(kind);
    }
    retold
}

#[test]
fn idle_cpu_outside_the_affinity_is_a_remedy() {
    let mut script = RunScript::new(2, &[("a", 8, 10, "0"), ("b", 5, 11, "0")]);
    script.at(0).release("a").release("b").run(0, "a");
    script.at(8).complete("a").run(0, "b");
    script.at(13).complete("b").run(0, "");
    let misses = explained(&script, 14, Order::Edf);
    let due = misses
        .first
        .iter()
        .find(|miss| miss.late.job.task == script.id("b"))
        .unwrap();
    assert_eq!(kinds(due), [(LossKind::MoreUrgent, 8)]);
    assert_eq!(delay(due, Culprit::NarrowAffinity), Some((8, "1".into())));
    assert_eq!(delay(due, Culprit::NarrowPacking), None);
}

#[test]
fn remedies_distinguish_partition_and_affinity() {
    let mut script = RunScript::new(2, &[("a", 8, 10, "0-1"), ("b", 5, 11, "0-1")]);
    script.at(0).release("a").release("b").run(0, "a");
    script.at(8).complete("a").run(0, "b");
    script.at(13).complete("b").run(0, "");
    let packing = vec![Affinity::pinned(CpuId::from_index(0)); 2];
    let misses = packed(&script, 14, Order::Edf, Some(packing));
    let b = misses
        .first
        .iter()
        .find(|miss| miss.late.job.task == script.id("b"))
        .unwrap();
    assert_eq!(delay(b, Culprit::NarrowPacking), Some((8, "1".into())));
    assert_eq!(delay(b, Culprit::NarrowAffinity), None);
    // Without the packing the same records show an idle CPU of the affinity.
    let misses = explained(&script, 14, Order::Edf);
    let b = misses
        .first
        .iter()
        .find(|miss| miss.late.job.task == script.id("b"))
        .unwrap();
    assert_eq!(kinds(b), [(LossKind::Stalled, 8)]);
}

#[test]
fn overrun_is_relative_to_the_declared_cost_at_the_release() {
    let mut script = RunScript::new(1, &[("a", 5, 10, "0")]);
    script.set.tasks[0].work = Work::Uniform(Span::from_ms(1), Span::from_ms(20));
    script.at(0).release("a").run(0, "a");
    script.at(12).complete("a").run(0, "");
    let overran = "It overran: it executed 7 ms more than its declared cost.";
    assert_eq!(
        sentences(&script, &explained(&script, 15, Order::Edf)),
        [overran]
    );
    let mut changed = RunScript::of(script.set.clone());
    let (task, cost, ms) = (script.id("a"), Span::from_ms(9), Span::from_ms(10));
    changed.record(RecordKind::AttributesSet {
        task,
        cost,
        period: ms,
        deadline: ms,
    });
    changed.records.append(&mut script.records);
    let overran = "It overran: it executed 3 ms more than its declared cost.";
    assert_eq!(
        sentences(&changed, &explained(&changed, 15, Order::Edf)),
        [overran]
    );
}

#[test]
fn recorded_interruptions_are_overhead_and_other_time_beyond_the_cost_is_overrun() {
    let mut script = RunScript::new(1, &[("a", 8, 10, "0")]);
    script.at(0).release("a").run(0, "a");
    let (task, number) = (script.id("a"), 1);
    let (job, time) = (JobId { task, number }, Span::from_ms(4));
    let mut without = RunScript::of(script.set.clone());
    without.at(0).release("a").run(0, "a");
    without.at(11).complete("a").run(0, "");
    script.at(11).record(RecordKind::Interrupted { job, time });
    script.complete("a").run(0, "");
    let misses = explained(&script, 15, Order::Edf);
    assert_eq!(kinds(&misses.first[0]), [(LossKind::Overheads, 4)]);
    let misses = explained(&without, 15, Order::Edf);
    assert_eq!(kinds(&misses.first[0]), [(LossKind::Overrun, 3)]);
}

#[test]
fn cost_above_the_deadline_is_a_loss_of_its_own() {
    let mut script = RunScript::new(1, &[("a", 8, 20, "0")]);
    script.set.tasks[0].deadline = Span::from_ms(5);
    script.at(0).release("a").run(0, "a");
    script.at(8).complete("a").run(0, "");
    let misses = explained(&script, 15, Order::Edf);
    assert_eq!(kinds(&misses.first[0]), [(LossKind::TooLong, 3)]);
}

#[test]
fn suspension_and_throttling_are_separate_losses() {
    let mut script = RunScript::new(1, &[("a", 5, 10, "0")]);
    script.at(0).release("a").run(0, "a");
    script.at(1).stop("a", NotReadyReason::Suspended).run(0, "");
    script.at(3).wake("a").run(0, "a");
    script.at(6).stop("a", NotReadyReason::Throttled).run(0, "");
    script.at(12).wake("a").run(0, "a");
    script.at(13).complete("a").run(0, "");
    let misses = explained(&script, 15, Order::Edf);
    assert_eq!(
        kinds(&misses.first[0]),
        [(LossKind::Throttled, 6), (LossKind::Suspended, 2)]
    );
    assert_eq!(misses.first[0].executed(), Span::from_ms(5));
    assert_eq!(misses.first[0].waited(), Span::ZERO);
}

#[test]
fn late_predecessor_is_named_with_the_start_of_the_row() {
    let mut script = RunScript::new(1, &[("a", 10, 10, "0")]);
    script.set.tasks[0].work = Work::Trace(vec![Span::from_ms(15), Span::from_ms(10)]);
    script.at(0).release("a").run(0, "a");
    script.at(10).release("a");
    script.at(15).complete("a").run(0, "a");
    script.at(20).release("a");
    script.at(25).complete("a").run(0, "a");
    script.at(30).release("a");
    script.at(35).complete("a").run(0, "a");
    script.at(40).complete("a").run(0, "");
    let misses = explained(&script, 41, Order::Edf);
    let sentences: Vec<String> = misses
        .first
        .iter()
        .flat_map(|miss| {
            miss.losses
                .iter()
                .map(|&loss| sentence(miss, loss, Names(&script.set)))
        })
        .collect();
    assert_eq!(
        sentences,
        [
            "It overran: it executed 5 ms more than its declared cost.",
            "It started late: a #1 was still unfinished for 5 ms.",
            "It started late: a #2 was still unfinished for 5 ms; every job since #1 was late.",
        ]
    );
    let groups: Vec<_> = misses
        .tally
        .groups()
        .iter()
        .map(|(_, kind, group)| (*kind, group.misses))
        .collect();
    assert_eq!(
        groups,
        [
            (Some(LossKind::LatePredecessor), 2),
            (Some(LossKind::Overrun), 1)
        ]
    );
}

#[test]
fn less_urgent_job_on_its_cpu_is_a_stall() {
    let mut script = RunScript::new(1, &[("long", 9, 100, "0"), ("short", 2, 5, "0")]);
    script.at(0).release("long").run(0, "long");
    script.at(1).release("short");
    script.at(9).complete("long").run(0, "short");
    script.at(11).complete("short").run(0, "");
    let misses = explained(&script, 12, Order::Edf);
    assert_eq!(kinds(&misses.first[0]), [(LossKind::Stalled, 8)]);
    let unranked = all(recording(&script, 12, None), 1, STEPS_MAX);
    assert_eq!(kinds(&unranked.first[0]), [(LossKind::OtherWork, 8)]);
}

#[test]
fn background_work_and_offline_cpus_do_not_count_as_idle() {
    let cpu = CpuId::from_index(0);
    let mut script = RunScript::new(1, &[("a", 2, 5, "0")]);
    script
        .at(0)
        .record(RecordKind::BackgroundStarted { cpu })
        .release("a");
    script
        .at(3)
        .record(RecordKind::BackgroundEnded { cpu })
        .record(RecordKind::CpuOffline { cpu });
    script.at(4).record(RecordKind::CpuOnline { cpu });
    script.at(5).run(0, "a");
    script.at(7).complete("a").run(0, "");
    let misses = explained(&script, 8, Order::Edf);
    assert_eq!(
        kinds(&misses.first[0]),
        [(LossKind::CpuAway, 4), (LossKind::Stalled, 1)]
    );
}

#[test]
fn explanations_of_an_overload_end_at_the_maximum_of_steps() {
    let script = run_script::crowd(24, 4, 400);
    let run = recording(&script, 400, None);
    let whole = all(run, 3, STEPS_MAX);
    let few = Steps {
        others: 50,
        ..STEPS_MAX
    };
    let part = all(run, 3, few);
    assert_eq!((whole.explained, part.total), (whole.total, whole.total));
    assert!(0 < part.explained && part.explained < part.total);
    assert_eq!((whole.first.len(), part.first.len()), (3, 3));
    let none = all(
        run,
        3,
        Steps {
            explained: 5,
            ..STEPS_MAX
        },
    );
    assert!(none.first.len() < 3 && none.explained > 3);
}

#[test]
fn job_dropped_with_its_task_has_its_own_sentence() {
    let mut script = RunScript::new(1, &[("a", 4, 10, "0"), ("b", 4, 10, "0")]);
    script.at(0).release("a").release("b").run(0, "a");
    let task = script.id("b");
    script.at(1).record(RecordKind::Left { task });
    script.at(4).complete("a").run(0, "");
    let misses = explained(&script, 20, Order::Edf);
    assert_eq!(
        kinds(&misses.first[0]),
        [(LossKind::TaskLeft, 9), (LossKind::MoreUrgent, 1)]
    );
    assert_eq!(
        miss_line(&misses.first[0]),
        "dropped when its task left, and never finished"
    );
    // It had 4 ms left to execute: 9 ms would have sufficed for that, 1 ms not.
    let enough = misses.first[0]
        .losses
        .iter()
        .map(|loss| misses.first[0].explained_by(loss.time));
    assert_eq!(enough.collect::<Vec<_>>(), [true, false]);
}

#[test]
fn unfinished_job_is_a_miss_only_if_due_by_the_horizon() {
    let mut script = RunScript::new(1, &[("a", 9, 10, "0"), ("b", 9, 20, "0")]);
    script.at(0).release("b").run(0, "b");
    script.at(10).release("a");
    let misses = explained(&script, 20, Order::Edf);
    let lines: Vec<String> = misses.first.iter().map(miss_line).collect();
    assert_eq!(lines, ["unfinished at its deadline, where the run ends"; 2]);
    assert_eq!(explained(&script, 19, Order::Edf).total, 0);
}

#[test]
fn losses_of_every_missed_job_add_up() {
    let scripts = [
        (run_script::crowd(24, 4, 400), 400),
        (run_script::everything(), 50),
        (run_script::fig_1_weak(), 100),
    ];
    for (script, horizon) in scripts {
        let misses = explained(&script, horizon, Order::Edf);
        assert!(
            misses.total > 0,
            "the script {} has misses",
            script.set.name
        );
        for miss in &misses.first {
            let outside = [
                LossKind::Overrun,
                LossKind::Overheads,
                LossKind::TooLong,
                LossKind::TaskLeft,
            ];
            let lost = miss
                .losses
                .iter()
                .filter(|loss| !outside.contains(&loss.kind));
            let lost = lost.fold(Span::ZERO, |sum, loss| sum + loss.time);
            let lifetime = miss.late.until.since(miss.late.release).unwrap();
            assert_eq!(lost + miss.executed(), lifetime, "{:?}", miss.late.job);
        }
    }
}
