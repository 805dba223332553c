//! rt-app: an export that loses nothing is imported as the same task set.

use shiftwork_model::{
    Affinity, Arrival, CpuSet, Instant, Join, OnOverrun, Order, Phase, PolicyTraits, Priority,
    Protocol, RandomStream, Resource, ResourceId, Span, Task, TaskId, TaskSet, Trigger, Work,
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

/// Lets some of the tasks be triggered by those before them, now and then in the midst of a job, and some lock
/// mutexes.
fn connect(random: &mut RandomStream, set: &mut TaskSet) {
    for index in 1..set.tasks.len() {
        if random.below(3) == 0 {
            continue;
        }
        let id = TaskId::from_index(index);
        let mut sources: Vec<TaskId> = (0..index).map(TaskId::from_index).collect();
        sources.retain(|_| random.below(3) > 0);
        if sources.is_empty() {
            continue;
        }
        for source in &sources {
            let source = &mut set.tasks[source.index()];
            if let Work::Phases(phases) = &mut source.work
                && random.below(2) == 0
            {
                for _ in 0..1 + random.below(2) {
                    let place = random.below(phases.len() as u64 + 1) as usize;
                    phases.insert(place, Phase::Trigger(id));
                }
            }
        }
        let join = match random.below(3) {
            0 => Join::All,
            _ => Join::Any,
        };
        let queue = match random.below(8) {
            0 => Some(1 + random.below(3) as u32),
            1..=3 if join == Join::Any => Some(0),
            _ => None,
        };
        let task = &mut set.tasks[index];
        task.offset = Span::ZERO;
        task.arrival = Arrival::Triggered(Trigger {
            sources,
            join,
            queue,
        });
        let period = set.triggered_period(id).unwrap();
        let task = &mut set.tasks[index];
        task.period = period;
        task.deadline = period;
        if task.cost > period {
            task.cost = period;
            task.work = Work::Cost;
        }
    }
    let protocols = [Protocol::None, Protocol::Inheritance, Protocol::Ceiling];
    let protocol = protocols[random.below(9) as usize * 3 / 12];
    for (number, name) in ["m", "1"].into_iter().enumerate() {
        let resource = ResourceId::from_index(set.resources.len());
        let locks = |task: &Task| match &task.work {
            Work::Phases(phases) => phases.iter().position(|it| matches!(it, Phase::Run(_))),
            _ => None,
        };
        let users: Vec<usize> = (0..set.tasks.len())
            .filter(|task| locks(&set.tasks[*task]).is_some())
            .collect();
        if users.len() < 2 || random.below(2) == number as u64 {
            continue;
        }
        set.resources.push(Resource {
            name: name.to_string(),
            protocol,
        });
        for user in users {
            let place = locks(&set.tasks[user]).unwrap();
            if let Work::Phases(phases) = &mut set.tasks[user].work {
                phases.insert(place + 1, Phase::Unlock(resource));
                phases.insert(place, Phase::Lock(resource));
            }
        }
    }
}

/// Whether the jobs of the task, on their own, take longer than its periods.
fn is_later_every_time(task: &Task) -> bool {
    if task.trigger().is_some() {
        return false;
    }
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
            let mut written: Vec<Phase> = Vec::new();
            for phase in phases.iter().filter(|phase| !is_empty(phase)) {
                match (written.last_mut(), *phase) {
                    (Some(Phase::Run(before)), Phase::Run(more))
                    | (Some(Phase::Sleep(before)), Phase::Sleep(more)) => *before += more,
                    _ => written.push(*phase),
                }
            }
            // What is triggered last, and only once, is as well triggered by the completion.
            while let Some(last @ Phase::Trigger(_)) = written.last().copied()
                && written.iter().filter(|it| **it == last).count() == 1
            {
                written.pop();
            }
            match written.as_slice() {
                [Phase::Run(length)] => constant(*length),
                _ => Work::Phases(written),
            }
        }
        other => other.clone(),
    }
}

/// A task of which rt-app can say everything.
fn plain_task(random: &mut RandomStream, name: String, order: Order) -> Task {
    let us = |random: &mut RandomStream, most: u64| Span::from_us(1 + random.below(most));
    let cost = us(random, 500) + Span::from_us(2);
    let period = cost + cost + us(random, 3_000);
    let mut task = Task::periodic(&name, cost, period, affinity("0-2"));
    task.priority = Priority::new(1 + random.below(99) as u32);
    if order == Order::Edf {
        task.priority = None;
    } else {
        task.on_overrun = OnOverrun::Continue;
    }
    let first = us(random, cost.as_ns() / 1_000 - 1);
    task.work = match random.below(4) {
        0 => Work::Trace(vec![first, cost]),
        1 => Work::Cost,
        _ => {
            let rest = cost.saturating_sub(first);
            let sleep = Phase::Sleep(us(random, 200));
            let mut phases = vec![Phase::Run(first), sleep, Phase::Run(rest)];
            phases.rotate_left(random.below(3) as usize);
            Work::Phases(phases)
        }
    };
    task
}

/// Exports a set, and imports what is exported if nothing is lost. Returns what was exported then.
fn check(seed: u64, mut original: TaskSet, traits: &PolicyTraits) -> Option<TaskSet> {
    let exported = rt_app(&original, policy(traits));
    let text = only_text(&exported);
    let _: serde_json::Value = serde_json::from_str(text).unwrap();
    let options = Options {
        cpus: Some(CPUS),
        ..Options::default()
    };
    // Such a thread is written, but no task is like it to the importer: its backlog grows without end.
    if original.tasks.iter().any(is_later_every_time) {
        return None;
    }
    let imported = import::rt_app::read_with(text, &options);
    if !exported.left_out.is_empty() {
        return None;
    }
    let imported = imported.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
    assert!(
        imported.left_out.is_empty(),
        "seed {seed}: {:?}\n{text}",
        imported.left_out
    );
    let whole = original.clone();
    let priorities = original.priorities();
    for (task, priority) in original.tasks.iter_mut().zip(priorities) {
        task.priority = (traits.order == Order::FixedPriority).then_some(priority);
    }
    original.name = String::new();
    let mut again = imported.set;
    for task in again.tasks.iter_mut().chain(&mut original.tasks) {
        task.work = same_work(task);
        // All of one is any of it.
        if let Arrival::Triggered(trigger) = &mut task.arrival
            && trigger.sources.len() == 1
        {
            trigger.join = Join::Any;
        }
    }
    assert_eq!(again, original, "seed {seed}\n{text}");
    Some(whole)
}

#[test]
fn rt_app_export_without_loss_is_imported_as_the_same_task_set() {
    let mut without_loss = [0; 2];
    for seed in 1..=6_000 {
        let mut random = RandomStream::new(seed, 0, 0);
        let (class, traits) = [(0, G_FP), (1, G_EDF)][seed as usize % 2];
        let tasks = (0..1 + random.below(3))
            .map(|number| {
                let name = format!("{number}{}", any_word(&mut random));
                any_task(&mut random, name, traits.order)
            })
            .collect();
        without_loss[class] += u32::from(check(seed, set(tasks), &traits).is_some());
    }
    assert!(
        without_loss.iter().all(|&sets| sets > 100),
        "{without_loss:?}"
    );
}

#[test]
fn rt_app_export_of_triggers_and_mutexes_is_imported_as_the_same_task_set() {
    let [
        mut suspended,
        mut counted,
        mut for_all,
        mut locking,
        mut within,
    ] = [0; 5];
    for seed in 1..=6_000 {
        let mut random = RandomStream::new(seed, 5, 0);
        let traits = [G_FP, G_EDF][seed as usize % 2];
        let tasks = (0..2 + random.below(3))
            .map(|number| {
                // As a mutex is called, now and then.
                let name = match random.below(4) {
                    0 => number.to_string(),
                    _ => format!("{number}{}", any_word(&mut random)),
                };
                plain_task(&mut random, name, traits.order)
            })
            .collect();
        let mut original = set(tasks);
        connect(&mut random, &mut original);
        let Some(set) = check(seed, original, &traits) else {
            continue;
        };
        let triggers = || set.tasks.iter().filter_map(Task::trigger);
        suspended += u32::from(triggers().any(|it| it.queue == Some(0)));
        counted += u32::from(triggers().any(|it| it.queue.is_none()));
        for_all += u32::from(triggers().any(|it| it.join == Join::All && it.sources.len() > 1));
        locking += u32::from(set.tasks.iter().any(Task::locks));
        within += u32::from(set.tasks.iter().any(|it| it.triggers().next().is_some()));
    }
    let counts = [suspended, counted, for_all, locking, within];
    println!("suspended, counted, for all, locking, within jobs: {counts:?}");
    assert!(counts.iter().all(|&sets| sets > 200), "{counts:?}");
}

#[test]
fn rt_app_export_names_what_it_does_not_say_of_triggers() {
    let mut random = RandomStream::new(1, 6, 0);
    let names = ["camera", "detector"].map(str::to_string);
    let tasks = names.map(|name| plain_task(&mut random, name, Order::FixedPriority));
    let mut set = set(tasks.to_vec());
    set.tasks[1].arrival = Arrival::Triggered(Trigger {
        sources: vec![TaskId::from_index(0)],
        join: Join::Any,
        queue: Some(2),
    });
    set.tasks[1].period = set.tasks[0].period;
    set.tasks[1].deadline = set.tasks[0].period;
    let exported = rt_app(&set, policy(&G_FP));
    assert_eq!(
        exported.left_out,
        ["task `detector`: `queue` 2; any number of triggers wait at a semaphore"]
    );
    for (queue, events) in [
        (Some(0), ["\"resume", "\"suspend"]),
        (None, ["\"sem_post", "\"sem_wait"]),
    ] {
        set.tasks[1].arrival = Arrival::Triggered(Trigger {
            sources: vec![TaskId::from_index(0)],
            join: Join::Any,
            queue,
        });
        let exported = rt_app(&set, policy(&G_FP));
        let text = only_text(&exported);
        assert!(events.iter().all(|event| text.contains(event)), "{text}");
        assert_eq!(exported.left_out, [""; 0]);
    }
}
