use shiftwork_model::{CpuSet, Invariant, NotReadyReason, RandomStream, RecordKind, Span};

use super::*;
use crate::check::testing::edf;
use crate::testing::{Script, at, cpu, job, noise, random_run, set};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn explained(
    set: &TaskSet,
    contract: PolicyContract,
    script: &Script,
    job: JobId,
    until: u64,
) -> Explanation {
    let explanation = explain(set, &contract, &script.records, job, at(until)).unwrap();
    let sum = explanation
        .parts
        .iter()
        .fold(Span::ZERO, |sum, &(_, time)| sum + time);
    assert_eq!(sum, explanation.until.late_since(explanation.release));
    explanation
}

/// Reactions take time, as on a real machine.
fn live(invariant: Invariant) -> PolicyContract {
    PolicyContract {
        immediate: false,
        ..edf(invariant)
    }
}

fn parts(explanation: &Explanation) -> Vec<(Part, u64)> {
    let parts = explanation.parts.iter();
    parts.map(|&(part, time)| (part, time.as_ns())).collect()
}

/// Job 1 of a is released at 0 and due at 10, runs from 0 to 4 and from 9 to 12; meanwhile something.
fn away_from_4_to_9(begins: RecordKind, ends: RecordKind) -> Script {
    Script::default()
        .at(0)
        .release(0, 1, 10)
        .switch(0, Some((0, 1)))
        .at(4)
        .switch(0, None)
        .record(begins)
        .at(9)
        .record(ends)
        .switch(0, Some((0, 1)))
        .at(12)
        .complete(0, 1)
        .switch(0, None)
}

#[test]
fn cpu_that_is_away_is_the_cause_by_its_use() {
    let set = set(1, &[("a", "0")]);
    let cpu = cpu(0);
    for (begins, ends, part, culprit, occupant) in [
        (
            RecordKind::CpuTaken { cpu },
            RecordKind::CpuReturned { cpu },
            Part::Taken,
            Culprit::CpuTaken,
            Occupant::Taken,
        ),
        (
            RecordKind::CpuOffline { cpu },
            RecordKind::CpuOnline { cpu },
            Part::Offline,
            Culprit::CpuOffline,
            Occupant::Offline,
        ),
        (
            RecordKind::BackgroundStarted { cpu },
            RecordKind::BackgroundEnded { cpu },
            Part::Background,
            Culprit::Reserve,
            Occupant::Background,
        ),
    ] {
        let script = away_from_4_to_9(begins, ends);
        let why = explained(&set, live(Invariant::Strong), &script, job(0, 1), 20);
        assert_eq!(parts(&why), [(Part::Executing, 7), (part, 5)]);
        assert_eq!(why.cause, Cause::One(culprit));
        assert_eq!(why.share(culprit).unwrap().cpus, CpuSet::single(cpu));
        assert_eq!(why.timeline[1].occupant, occupant);
    }
}

#[test]
fn missing_decision_is_a_stall() {
    let set = set(2, &[("a", "0-1"), ("b", "0")]);
    // CPU 1 is idle all the time.
    let script = Script::default()
        .at(0)
        .release(1, 1, 5)
        .switch(0, Some((1, 1)))
        .release(0, 1, 10)
        .at(8)
        .switch(1, Some((0, 1)))
        .at(11)
        .complete(0, 1)
        .switch(1, None);
    let why = explained(&set, live(Invariant::Weak), &script, job(0, 1), 20);
    assert_eq!(parts(&why), [(Part::Executing, 3), (Part::Stalled, 8)]);
    assert_eq!(why.cause, Cause::One(Culprit::Stall));
    // Where quanta decide, that is as it should be.
    let why = explained(&set, live(Invariant::Quanta), &script, job(0, 1), 20);
    assert_eq!(why.cause, Cause::One(Culprit::Rule));
}

#[test]
fn unnoticed_release_is_a_stall() {
    let set = set(1, &[("a", "0")]);
    let script = Script::default()
        .at(0)
        .record(RecordKind::Released {
            job: job(0, 1),
            deadline: at(10),
        })
        .at(9)
        .ready(0, 1, 10)
        .switch(0, Some((0, 1)))
        .at(12)
        .complete(0, 1);
    let why = explained(&set, live(Invariant::Strong), &script, job(0, 1), 20);
    assert_eq!(parts(&why), [(Part::Executing, 3), (Part::Stalled, 9)]);
    // A machine that hears at once has no other reason than the budget.
    let why = explained(&set, edf(Invariant::Strong), &script, job(0, 1), 20);
    assert_eq!(parts(&why), [(Part::Executing, 3), (Part::Throttled, 9)]);
}

#[test]
fn missing_shift_is_a_stall_only_under_the_strong_invariant() {
    // b could have moved to the idle CPU 1 to make room for a.
    let set = set(2, &[("a", "0"), ("b", "0-1")]);
    let script = Script::default()
        .at(0)
        .release(1, 1, 5)
        .switch(0, Some((1, 1)))
        .release(0, 1, 10)
        .at(8)
        .complete(1, 1)
        .switch(0, Some((0, 1)))
        .at(11)
        .complete(0, 1);
    let why = explained(&set, live(Invariant::Strong), &script, job(0, 1), 20);
    assert_eq!(why.cause, Cause::One(Culprit::Stall));
    let why = explained(&set, live(Invariant::Weak), &script, job(0, 1), 20);
    assert_eq!(why.cause, Cause::One(Culprit::NoShift));
    let narrow = why.share(Culprit::NarrowAffinity).unwrap();
    assert!(narrow.suffices, "it would have helped as well");
}

#[test]
fn interrupts_count_at_the_begin_of_their_stretch() {
    let set = set(1, &[("a", "0")]);
    let script = Script::default()
        .at(0)
        .release(0, 1, 10)
        .switch(0, Some((0, 1)))
        .at(13)
        .record(RecordKind::Interrupted {
            job: job(0, 1),
            time: Span::from_ns(4),
        })
        .complete(0, 1)
        .switch(0, None);
    let why = explained(&set, live(Invariant::Strong), &script, job(0, 1), 20);
    assert_eq!(parts(&why), [(Part::Executing, 9), (Part::Interrupted, 4)]);
    assert_eq!(why.cause, Cause::One(Culprit::Interrupts));
}

/// The cost of every task is 10; b overruns by 3, and after that the CPU is taken for 4.
fn two_culprits(deadline: u64) -> Explanation {
    let set = set(1, &[("a", "0"), ("b", "0")]);
    let cpu = cpu(0);
    let script = Script::default()
        .at(0)
        .release(1, 1, 5)
        .switch(0, Some((1, 1)))
        .release(0, 1, deadline)
        .at(13)
        .complete(1, 1)
        .switch(0, None)
        .record(RecordKind::CpuTaken { cpu })
        .at(17)
        .record(RecordKind::CpuReturned { cpu })
        .switch(0, Some((0, 1)))
        .at(27)
        .complete(0, 1)
        .switch(0, None);
    explained(&set, live(Invariant::Strong), &script, job(0, 1), 40)
}

#[test]
fn cause_is_the_smallest_sufficient_fault_or_all_needed_together() {
    let overrun = Culprit::Overrun(TaskId::from_index(1));
    let cause = |deadline| two_culprits(deadline).cause;
    // It lacks 27 - deadline; the overrun took 3, the CPU was away for 4, and b had its cost of 10.
    let load = Cause::Several(vec![overrun, Culprit::Overload]);
    for deadline in 10..13 {
        // What b still has to do beyond its cost by then is in the way of the job's own 10, too.
        assert_eq!(cause(deadline), load, "{deadline}");
    }
    for deadline in 13..20 {
        assert_eq!(cause(deadline), Cause::One(Culprit::Overload), "{deadline}");
    }
    let both = Cause::Several(vec![Culprit::CpuTaken, overrun]);
    for deadline in 20..23 {
        assert_eq!(cause(deadline), both, "{deadline}");
    }
    assert_eq!(cause(23), Cause::One(Culprit::CpuTaken));
    for deadline in 24..27 {
        assert_eq!(cause(deadline), Cause::One(overrun), "{deadline}");
    }
    assert_eq!(cause(9), Cause::OwnDemand);
}

#[test]
fn text_has_the_cause_the_paragraph_and_the_shifts() {
    let set = set(2, &[("a", "0"), ("b", "0-1"), ("c", "1")]);
    let script = Script::default()
        .at(0)
        .release(2, 1, 6)
        .switch(1, Some((2, 1)))
        .release(1, 1, 9)
        .switch(0, Some((1, 1)))
        .release(0, 1, 20)
        .at(12)
        .complete(2, 1)
        .switch(1, Some((1, 1)))
        .switch(0, Some((0, 1)))
        .at(15)
        .complete(1, 1)
        .switch(1, None)
        .at(21)
        .complete(0, 1)
        .switch(0, None);
    let why = explained(&set, edf(Invariant::Strong), &script, job(0, 1), 30);
    assert_eq!(
        why.text(&NAMES),
        "job 1 of a missed its deadline; cause: overrun of b\n  \
         job 1 of a, released at 0ns and due at 20ns, finished at 21ns, 1ns late. Of the 21ns from its \
         release it spent 9ns executing, 2ns waiting for b beyond its cost, 10ns waiting for the more \
         urgent b. Without 2ns of overrun of b (CPU 0) it would have met its deadline.\n  \
         CPU 0:\n    \
         0ns - 12ns: job 1 of b\n    \
         12ns - 21ns: job 1 of a\n"
    );
    let b = explained(&set, edf(Invariant::Strong), &script, job(1, 1), 30);
    assert!(
        b.text(&NAMES)
            .contains("12ns - 15ns: job 1 of b (shifted from CPU 0)"),
        "{}",
        b.text(&NAMES)
    );
    let json = why.to_json(&NAMES);
    assert_eq!(json["cause"][0]["kind"], "overrun");
    assert_eq!(json["cause"][0]["task"], "b");
    assert_eq!(json["parts"][1]["time_ns"], 2);
    assert_eq!(json["timeline"][1]["from_ns"], 12);
}

#[test]
fn long_spans_are_rounded_to_microseconds() {
    for (ns, text) in [
        (0, "0ns"),
        (9_999, "9.999us"),
        (10_000, "10us"),
        (18_600, "19us"),
        (1_500_000, "1.5ms"),
        (19_000_000, "19ms"),
        (4_812_345_678, "4.812346s"),
        (2_000_000_000, "2s"),
        (999_999_999, "1s"),
        (u64::MAX, "18446744073.709551615s"),
    ] {
        assert_eq!(readable(Span::from_ns(ns)), text);
    }
}

#[test]
fn job_that_is_unknown_or_in_time_is_refused() {
    let set = set(1, &[("a", "0")]);
    let script = Script::default().at(0).release(0, 1, 10);
    let refused = |number, until| {
        let contract = edf(Invariant::Weak);
        let answer = explain(&set, &contract, &script.records, job(0, number), at(until));
        answer.unwrap_err().to_string()
    };
    assert!(refused(2, 20).starts_with("job 2 of the task T0 is not released within the records"));
    assert!(refused(1, 9).starts_with("job 1 of the task T0, due at 10ns, has missed no deadline"));
}

#[test]
fn first_misses_are_ordered_by_deadline() {
    let set = set(1, &[("a", "0"), ("b", "0")]);
    let script = Script::default()
        .at(0)
        .release(0, 1, 10)
        .release(1, 1, 5)
        .at(12)
        .complete(1, 1)
        .release(1, 2, 50);
    let late = |most| first_misses(&set, &script.records, at(20), most);
    assert_eq!(late(9), [job(1, 1), job(0, 1)]);
    assert_eq!(late(1), [job(1, 1)]);
}

#[test]
fn suspended_and_throttled_jobs_are_distinguished() {
    let set = set(1, &[("a", "0")]);
    for (reason, part) in [
        (NotReadyReason::Suspended, Part::Suspended),
        (NotReadyReason::Throttled, Part::Throttled),
    ] {
        let script = Script::default()
            .at(0)
            .release(0, 1, 5)
            .not_ready(0, 1, reason);
        let why = explained(&set, edf(Invariant::Weak), &script, job(0, 1), 9);
        assert_eq!(parts(&why), [(part, 9)]);
        assert_eq!(
            (why.end, why.remaining),
            (End::Unfinished, Span::from_ns(10))
        );
    }
}

/// However a machine may misbehave, and whatever the records say: the account adds up, and nothing
/// panics.
#[test]
fn parts_add_up_in_random_runs_and_random_records() {
    let set = set(3, &[("a", "0"), ("b", "0-1"), ("c", "1-2")]);
    let mut explanations = 0;
    for seed in 1..=60 {
        let mut random = RandomStream::new(seed, 0, 0);
        let script = random_run(&mut random, 3, 3, 120);
        let until = script.records.last().unwrap().at;
        let chaos = noise(&mut random, 3, 3, 200);
        for invariant in [
            Invariant::Strong,
            Invariant::Weak,
            Invariant::Quanta,
            Invariant::NonPreemptive,
        ] {
            for job in first_misses(&set, &script.records, until, 5) {
                let why = explained(&set, live(invariant), &script, job, until.as_ns());
                assert!(!why.text(&NAMES).is_empty(), "seed {seed}");
                assert_eq!(
                    why.to_json(&NAMES)["parts"].as_array().map(Vec::len),
                    Some(why.parts.len())
                );
                explanations += 1;
            }
            for job in first_misses(&set, &chaos, Instant::NEVER, 5) {
                if let Ok(why) = explain(&set, &live(invariant), &chaos, job, Instant::NEVER) {
                    assert!(!why.text(&NAMES).is_empty(), "seed {seed}");
                }
            }
        }
    }
    assert!(explanations > 200, "{explanations}");
}

#[test]
fn one_pass_over_a_run_agrees_with_the_explanation_of_each_job() {
    let set = set(3, &[("a", "0"), ("b", "0-1"), ("c", "1-2")]);
    let mut count = 0;
    for seed in 1..=40 {
        let script = random_run(&mut RandomStream::new(seed, 0, 0), 3, 3, 120);
        let until = script.records.last().unwrap().at;
        let late = first_misses(&set, &script.records, until, usize::MAX);
        let contract = live(Invariant::Weak);
        let run = Recording {
            set: &set,
            contract: Some(&contract),
            records: (&script.records).into(),
            until,
        };
        let visited = |steps| {
            let mut visited = Vec::new();
            run.late_jobs(&late, 3, steps, |job, why| visited.push((job, why)));
            visited.sort_by_key(|(found, _)| late.iter().position(|job| *job == found.job));
            visited
        };
        let all = visited(Steps::ALL);
        let jobs: Vec<JobId> = all.iter().map(|(job, _)| job.job).collect();
        assert_eq!(jobs, late, "seed {seed}");
        let explained_alone = visited(Steps {
            others: 0,
            ..Steps::ALL
        });
        assert!(explained_alone.starts_with(&all[..late.len().min(3)]));
        // What is there with fewer steps is the same.
        for explained in [0, 3, 12, 40] {
            let few = visited(Steps {
                explained,
                others: explained,
            });
            assert!(few.iter().all(|it| all.contains(it)), "seed {seed}");
        }
        for (index, (job, why)) in all.iter().enumerate() {
            let alone = explained(&set, contract.clone(), &script, job.job, until.as_ns());
            assert_eq!(
                (&job.parts, job.remaining, job.until, job.end),
                (&alone.parts, alone.remaining, alone.until, alone.end),
                "seed {seed}"
            );
            let undrawn = Explanation {
                timeline: Vec::new(),
                ..alone
            };
            assert_eq!(*why, (index < 3).then_some(undrawn), "seed {seed}");
            let shifts = job.delays.contains_key(&Culprit::NoShift);
            assert_eq!(job.chain.is_some(), shifts, "seed {seed}");
            count += 1;
        }
    }
    assert!(count > 200, "{count}");
}
