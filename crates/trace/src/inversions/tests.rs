use super::*;
use crate::testing::{Script, at, cpu, job, noise, random_run, set};
use shiftwork_model::{Affinity, NotReadyReason, RandomStream, Record};

/// All inversions, and the summary.
fn found(set: &TaskSet, script: &Script, horizon: u64) -> (Vec<Inversion>, InversionSummary) {
    let mut inversions = Vec::new();
    let mut finder = Inversions::with_callback(set, Order::Edf, |one| inversions.push(*one));
    script.play(&mut finder);
    let summary = finder.finish(at(horizon));
    (inversions, summary)
}

fn inversion(
    waits: (usize, u64),
    between: (u64, u64),
    kind: InversionKind,
    in_the_way: Option<(usize, u64)>,
) -> Inversion {
    Inversion {
        job: job(waits.0, waits.1),
        from: at(between.0),
        to: at(between.1),
        kind,
        in_the_way: in_the_way.map(|(task, number)| job(task, number)),
    }
}

/// Task 0 is bound to CPU 0, task 2 to CPU 1, and task 1 may use both.
fn bound_and_free() -> TaskSet {
    set(2, &[("bound", "0"), ("free", "0-1"), ("later", "1")])
}

/// The free task runs on the CPU for which the bound one waits; the other CPU runs a job with a later deadline.
fn shift_would_help() -> Script {
    Script::default()
        .at(0)
        .release(1, 1, 20)
        .switch(0, Some((1, 1)))
        .release(2, 1, 90)
        .switch(1, Some((2, 1)))
        .at(3)
        .release(0, 1, 30)
}

#[test]
fn waiting_for_a_job_that_could_shift_is_an_affinity_related_inversion() {
    let script = shift_would_help()
        .at(10)
        .complete(1, 1)
        .switch(0, Some((0, 1)));
    let (inversions, summary) = found(&bound_and_free(), &script, 50);
    let expected = inversion(
        (0, 1),
        (3, 10),
        InversionKind::AffinityRelated,
        Some((1, 1)),
    );
    assert_eq!(inversions, [expected]);
    let counts = InversionStatistics {
        count: 1,
        total_ns: 7,
        p99_ns: Some(7),
        longest_ns: Some(7),
    };
    assert_eq!(summary.run.affinity_related, counts);
    assert_eq!(summary.run.direct.count, 0);
    assert_eq!(summary.tasks[0].all, counts);
    assert_eq!(summary.tasks[1].all.count + summary.tasks[2].all.count, 0);
}

#[test]
fn chain_that_ends_at_a_more_urgent_job_is_no_inversion() {
    let script = Script::default()
        .at(0)
        .release(1, 1, 20)
        .switch(0, Some((1, 1)))
        .release(2, 1, 30)
        .switch(1, Some((2, 1)))
        .at(3)
        .release(0, 1, 30);
    assert_eq!(found(&bound_and_free(), &script, 50).0, []);
}

#[test]
fn less_urgent_job_on_a_cpu_of_the_affinity_is_a_direct_inversion() {
    let script = Script::default()
        .at(0)
        .release(1, 1, 40)
        .switch(0, Some((1, 1)))
        .at(3)
        .release(0, 1, 30)
        .at(5)
        .switch(0, Some((0, 1)));
    let (inversions, summary) = found(&bound_and_free(), &script, 50);
    let late = inversion((0, 1), (3, 5), InversionKind::Direct, Some((1, 1)));
    let idle = inversion((1, 1), (5, 50), InversionKind::Direct, None);
    assert_eq!(inversions, [late, idle]);
    assert_eq!((summary.run.all.count, summary.run.direct.count), (2, 2));
    assert_eq!(summary.run.all.total_ns, 47);
}

#[test]
fn chain_that_ends_at_an_idle_cpu_is_an_inversion() {
    let set = set(3, &[("a", "0-1"), ("b", "1-2"), ("c", "0")]);
    let script = Script::default()
        .at(1)
        .release(0, 1, 9)
        .switch(0, Some((0, 1)))
        .release(1, 1, 9)
        .switch(1, Some((1, 1)))
        .release(2, 1, 90)
        .at(4)
        .complete(0, 1)
        .switch(0, Some((2, 1)));
    let expected = inversion((2, 1), (1, 4), InversionKind::AffinityRelated, Some((0, 1)));
    assert_eq!(found(&set, &script, 9).0, [expected]);
}

#[test]
fn urgency_goes_by_scheduling_deadlines() {
    let script = shift_would_help()
        .at(6)
        .record(RecordKind::Replenished {
            task: TaskId::from_index(0),
            budget: Span::from_ns(1),
            deadline: at(95),
        })
        .at(8)
        .record(RecordKind::Replenished {
            task: TaskId::from_index(2),
            budget: Span::from_ns(1),
            deadline: at(96),
        })
        .at(9)
        .not_ready(0, 1, NotReadyReason::Throttled);
    let arpi = |from, to| {
        inversion(
            (0, 1),
            (from, to),
            InversionKind::AffinityRelated,
            Some((1, 1)),
        )
    };
    assert_eq!(
        found(&bound_and_free(), &script, 50).0,
        [arpi(3, 6), arpi(8, 9)]
    );
}

#[test]
fn change_of_kind_ends_an_inversion_and_begins_another() {
    let script = shift_would_help()
        .at(5)
        .complete(1, 1)
        .switch(0, None)
        .at(7)
        .switch(0, Some((0, 1)));
    let first = inversion((0, 1), (3, 5), InversionKind::AffinityRelated, Some((1, 1)));
    let second = inversion((0, 1), (5, 7), InversionKind::Direct, None);
    assert_eq!(found(&bound_and_free(), &script, 50).0, [first, second]);
}

#[test]
fn inversion_resolved_within_an_instant_does_not_count() {
    let script = shift_would_help()
        .switch(1, Some((1, 1)))
        .switch(0, Some((0, 1)));
    let (inversions, summary) = found(&bound_and_free(), &script, 20);
    assert_eq!((inversions.len(), summary.run.all.count), (0, 0));
    assert_eq!(summary.run.all.longest_ns, None);
}

#[test]
fn inversion_ends_at_the_horizon() {
    let arpi = |to| {
        inversion(
            (0, 1),
            (3, to),
            InversionKind::AffinityRelated,
            Some((1, 1)),
        )
    };
    let script = shift_would_help();
    assert_eq!(found(&bound_and_free(), &script, 8).0, [arpi(8)]);
    assert_eq!(found(&bound_and_free(), &script, 3).0, []);
    let finished = script.at(8).complete(1, 1);
    assert_eq!(found(&bound_and_free(), &finished, 8).0, [arpi(8)]);
}

#[test]
fn cpu_that_is_away_causes_no_inversion() {
    for gone in [
        RecordKind::CpuOffline { cpu: cpu(1) },
        RecordKind::BackgroundStarted { cpu: cpu(1) },
    ] {
        let script = Script::default()
            .at(0)
            .record(gone)
            .release(1, 1, 20)
            .switch(0, Some((1, 1)))
            .release(0, 1, 30);
        assert_eq!(found(&bound_and_free(), &script, 9).0, []);
    }
}

#[test]
fn inversions_of_random_runs_equal_the_definitions() {
    for seed in 1..=400 {
        let mut random = RandomStream::new(seed, 7, 0);
        let masks = ["0", "1", "2", "0-1", "1-2", "0,2", "0-2"];
        let names = ["a", "b", "c", "d"];
        let tasks = names.map(|name| (name, masks[random.below(masks.len() as u64) as usize]));
        let set = set(3, &tasks);
        let mut script = random_run(&mut random, 4, 3, 120);
        for record in &mut script.records {
            if let RecordKind::Ready { deadline, .. } = &mut record.kind {
                *deadline = at(random.below(6));
            }
        }
        add_changes(&mut random, &mut script, &masks);
        let horizon = script.records.last().map_or(1, |last| last.at.as_ns() + 1);
        let (inversions, summary) = found(&set, &script, horizon);
        let sum: u64 = inversions.iter().map(|one| one.length().as_ns()).sum();
        assert_eq!(summary.run.all.total_ns, sum, "seed {seed}");
        for now in 0..horizon {
            let mut inverted: Vec<_> = inversions
                .iter()
                .filter(|one| one.from <= at(now) && at(now) < one.to)
                .map(|one| (one.job, one.kind))
                .collect();
            inverted.sort_by_key(|&(job, _)| job.task);
            let expected = plain::inverted(&set, &script, at(now));
            assert_eq!(inverted, expected, "seed {seed}, at {now}");
        }
    }
}

/// Inserts changes of ranks and affinities, and of which CPUs are there.
fn add_changes(random: &mut RandomStream, script: &mut Script, masks: &[&str]) {
    let records = std::mem::take(&mut script.records);
    let mut offline = [false; 3];
    for record in records {
        let task = TaskId::from_index(random.below(4) as usize);
        let index = random.below(3) as usize;
        let kind = match random.below(20) {
            0..3 => RecordKind::Replenished {
                task,
                budget: Span::from_ns(1),
                deadline: at(random.below(6)),
            },
            3 => RecordKind::AffinitySet {
                task,
                affinity: Box::new(affinity(masks[random.below(masks.len() as u64) as usize])),
            },
            4 => {
                offline[index] = !offline[index];
                let cpu = cpu(index);
                match offline[index] {
                    true => RecordKind::CpuOffline { cpu },
                    false => RecordKind::CpuOnline { cpu },
                }
            }
            _ => {
                script.records.push(record);
                continue;
            }
        };
        let at = record.at;
        script.records.push(record);
        script.records.push(Record { at, kind });
    }
}

fn affinity(cpus: &str) -> Affinity {
    Affinity::new(cpus.parse().unwrap()).unwrap()
}

#[test]
fn random_records_never_panic() {
    for seed in 1..=300 {
        let mut random = RandomStream::new(seed, 0, 0);
        let set = set(4, &[("a", "0"), ("b", "0-1"), ("c", "2-3")]);
        let mut script = Script::default();
        script.records = noise(&mut random, 5, 9, 400);
        let (inversions, summary) = found(&set, &script, u64::MAX);
        assert_eq!(
            inversions.len() as u64,
            summary.run.all.count,
            "seed {seed}"
        );
    }
}

/// The definitions, executed directly.
mod plain {
    use super::*;

    /// The jobs that wait after this instant and should not, by task.
    pub fn inverted(set: &TaskSet, script: &Script, now: Instant) -> Vec<(JobId, InversionKind)> {
        let cpus = set.platform.cpus;
        let mut ready = vec![None; set.tasks.len()];
        let mut runs = vec![None; cpus];
        let mut offline = vec![false; cpus];
        let affinities = set.tasks.iter().map(|task| task.affinity);
        let mut affinities: Vec<Affinity> = affinities.collect();
        for record in script.records.iter().take_while(|record| record.at <= now) {
            match record.kind {
                RecordKind::Ready { job, deadline, .. } => {
                    ready[job.task.index()] = Some((job, deadline));
                }
                RecordKind::NotReady { job, .. } | RecordKind::Completed { job } => {
                    ready[job.task.index()] = None;
                }
                RecordKind::Left { task } => ready[task.index()] = None,
                RecordKind::Switched { cpu, to, .. } => runs[cpu.index()] = to,
                RecordKind::Replenished { task, deadline, .. } => {
                    if let Some((_, of_ready)) = &mut ready[task.index()] {
                        *of_ready = deadline;
                    }
                }
                RecordKind::AffinitySet { task, ref affinity } => {
                    affinities[task.index()] = **affinity;
                }
                RecordKind::CpuOffline { cpu } => offline[cpu.index()] = true,
                RecordKind::CpuOnline { cpu } => offline[cpu.index()] = false,
                _ => {}
            }
        }
        let may_use = |task: TaskId, on: usize| {
            !offline[on] && affinities[task.index()].cpus().contains(cpu(on))
        };
        let waiting = ready
            .iter()
            .flatten()
            .filter(|(job, _)| !runs.contains(&Some(*job)));
        let judged = waiting.filter_map(|&(job, deadline)| {
            let is_free = |on: usize| match runs[on] {
                None => true,
                Some(other) => deadlines(script, now, other) > deadline,
            };
            let own: Vec<usize> = (0..cpus).filter(|&on| may_use(job.task, on)).collect();
            let mut reached = own.clone();
            // As many rounds as a chain can have steps.
            for _ in 0..cpus {
                let jobs: Vec<JobId> = reached.iter().filter_map(|&on| runs[on]).collect();
                let leads_to = |on: &usize| jobs.iter().any(|job| may_use(job.task, *on));
                reached.extend((0..cpus).filter(leads_to));
            }
            if own.iter().any(|&on| is_free(on)) {
                Some((job, InversionKind::Direct))
            } else if reached.iter().any(|&on| is_free(on)) {
                Some((job, InversionKind::AffinityRelated))
            } else {
                None
            }
        });
        judged.collect()
    }

    /// The last scheduling deadline of this job's task.
    fn deadlines(script: &Script, now: Instant, of: JobId) -> Instant {
        let earlier = script
            .records
            .iter()
            .rev()
            .filter(|record| record.at <= now);
        let mut ready = earlier.filter_map(|record| match record.kind {
            RecordKind::Ready { job, deadline, .. } if job.task == of.task => Some(deadline),
            RecordKind::Replenished { task, deadline, .. } if task == of.task => Some(deadline),
            _ => None,
        });
        ready.next().unwrap_or(Instant::NEVER)
    }
}
