//! rt-app: an export that loses nothing is imported as the same task set.

use shiftwork_model::{
    Affinity, Arrival, CpuSet, Instant, OnOverrun, Order, Phase, Priority, RandomStream, Span,
    Task, Work,
};
use shiftwork_taskset::export::rt_app;
use shiftwork_taskset::import::{self, Options};

use super::{CPUS, G_EDF, G_FP, affinity, any_word, only_text, policy, set};

/// A task of which rt-app can say everything, or nearly.
fn any_task(random: &mut RandomStream, name: String, order: Order) -> Task {
    let us = |random: &mut RandomStream| Span::from_us(1 + random.below(2_000));
    let fine = |random: &mut RandomStream| Span::from_ns(1 + random.below(2_000_000));
    let span = |random: &mut RandomStream| match random.below(12) {
        0 => fine(random),
        _ => us(random),
    };
    let cost = span(random);
    let mut period = span(random);
    while period < cost {
        period = Span::from_ns(2 * period.as_ns());
    }
    let mut task = Task::periodic(&name, cost, period, affinity("0-2"));
    if random.below(3) == 0 {
        let bits = 1 + random.below((1 << CPUS) - 1);
        task.affinity = Affinity::new(CpuSet::from_bits(bits)).unwrap();
    }
    if random.below(6) == 0 {
        task.deadline = cost;
    }
    if random.below(3) == 0 {
        task.offset = span(random);
    }
    if random.below(3) == 0 {
        task.priority = Priority::new(1 + random.below(120) as u32);
    }
    task.on_overrun = match (random.below(5), order) {
        (0, _) => OnOverrun::Signal,
        (_, Order::FixedPriority) => OnOverrun::Continue,
        _ => OnOverrun::Throttle,
    };
    task.work = match random.below(8) {
        0 => Work::Constant(span(random)),
        1 => Work::Uniform(Span::from_us(1), cost),
        2 | 3 => {
            let lengths = (0..1 + random.below(3)).map(|_| match random.below(3) {
                0 => span(random),
                1 => Span::from_us(random.below(2)),
                _ => cost,
            });
            Work::Trace(lengths.collect())
        }
        4 | 5 => {
            let half = Span::from_ns(cost.as_ns() / 2);
            let rest = cost.saturating_sub(half);
            let mut phases = vec![
                Phase::Run(half),
                Phase::Sleep(span(random)),
                Phase::Run(rest),
            ];
            if random.below(4) == 0 {
                phases.push(Phase::Sleep(span(random)));
            }
            Work::Phases(phases)
        }
        _ => Work::Cost,
    };
    task.arrival = match random.below(6) {
        0 => Arrival::Sporadic,
        1 | 2 => {
            let gap = Span::from_ns(period.as_ns() + random.below(8) / 7);
            let release = |job| Instant::from_ns(job * gap.as_ns());
            Arrival::Releases((0..random.below(7)).map(release).collect())
        }
        _ => Arrival::Periodic,
    };
    task
}

/// Whether the jobs of the task, on their own, take longer than its periods.
fn is_later_every_time(task: &Task) -> bool {
    let length = |phases: &[Phase]| {
        let lengths = phases.iter().map(|phase| match phase {
            Phase::Run(length) | Phase::Sleep(length) => length.as_ns().div_ceil(1_000),
            Phase::Lock(_) | Phase::Unlock(_) | Phase::Trigger(_) => 0,
        });
        lengths.sum::<u64>()
    };
    let whole = |run: Span| length(&[Phase::Run(run)]);
    let (total, jobs) = match &task.work {
        Work::Cost => (whole(task.cost), 1),
        Work::Constant(run) | Work::Uniform(_, run) => (whole(*run), 1),
        Work::Trace(runs) => (runs.iter().map(|&run| whole(run)).sum(), runs.len() as u64),
        Work::Phases(phases) => (length(phases), 1),
    };
    total > task.period.as_ns() / 1_000 * jobs
}

/// What jobs do, written in one way only: work that is the same is equal.
fn same_work(task: &Task) -> Work {
    let constant = |length| match length == task.cost {
        true => Work::Cost,
        false => Work::Constant(length),
    };
    match &task.work {
        Work::Constant(length) => constant(*length),
        Work::Trace(lengths) if lengths.iter().all(|length| *length == lengths[0]) => {
            constant(lengths[0])
        }
        Work::Phases(phases) => {
            let is_empty =
                |phase: &Phase| matches!(phase, Phase::Run(Span::ZERO) | Phase::Sleep(Span::ZERO));
            let phases = phases.iter().filter(|phase| !is_empty(phase)).copied();
            match phases.collect::<Vec<_>>().as_slice() {
                [Phase::Run(first), Phase::Sleep(gap), Phase::Run(second)] => Work::Phases(vec![
                    Phase::Run(*first),
                    Phase::Sleep(*gap),
                    Phase::Run(*second),
                ]),
                [Phase::Run(length)] => constant(*length),
                other => Work::Phases(other.to_vec()),
            }
        }
        other => other.clone(),
    }
}

#[test]
fn rt_app_export_without_loss_is_imported_as_the_same_task_set() {
    let mut without_loss = [0; 2];
    for seed in 1..=6_000 {
        let mut random = RandomStream::new(seed, 0, 0);
        let (class, traits) = match seed % 2 {
            0 => (0, G_FP),
            _ => (1, G_EDF),
        };
        let tasks = (0..1 + random.below(3))
            .map(|number| {
                let name = format!("{number}{}", any_word(&mut random));
                any_task(&mut random, name, traits.order)
            })
            .collect();
        let mut original = set(tasks);
        let exported = rt_app(&original, policy(&traits));
        let text = only_text(&exported);
        let _: serde_json::Value = serde_json::from_str(text).unwrap();
        let options = Options {
            cpus: Some(CPUS),
            ..Options::default()
        };
        // Such a thread is written, but no task is like it to the importer: its backlog grows without end.
        if original.tasks.iter().any(is_later_every_time) {
            continue;
        }
        let imported = import::rt_app::read_with(text, &options);
        if !exported.left_out.is_empty() {
            continue;
        }
        let imported = imported.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        without_loss[class] += 1;
        let priorities = original.priorities();
        for (task, priority) in original.tasks.iter_mut().zip(priorities) {
            task.work = same_work(task);
            task.priority = (traits.order == Order::FixedPriority).then_some(priority);
        }
        original.name = String::new();
        let mut again = imported.set;
        for task in &mut again.tasks {
            task.work = same_work(task);
        }
        assert_eq!(again, original, "seed {seed}\n{text}");
        assert!(
            imported.left_out.is_empty(),
            "seed {seed}: {:?}",
            imported.left_out
        );
    }
    assert!(
        without_loss.iter().all(|&sets| sets > 100),
        "{without_loss:?}"
    );
}
