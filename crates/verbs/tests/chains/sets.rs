//! Random task sets with chains, some of them triggered along one.

use shiftwork_model::{
    Affinity, Arrival, Chain, CpuSet, Join, OnOverrun, Phase, Priority, RandomStream, Span, Task,
    TaskId, TaskSet, Trigger, Work,
};

pub fn random_set(random: &mut RandomStream) -> TaskSet {
    let cpus = 1 + random.below(3) as usize;
    let count = 2 + random.below(4);
    let is_global = random.below(2) == 0;
    let load = 1 + random.below(3);
    let task = |place: u64| {
        let period = [8, 10, 12, 20, 30][random.below(5) as usize] * 10;
        let cost = 1 + random.below(load * period / (2 + count));
        let most = match is_global {
            true => cpus,
            false => 1 + random.below(cpus as u64) as usize,
        };
        let affinity = Affinity::new(CpuSet::first(most)).unwrap();
        let [cost_ns, period_ns] = [cost, period].map(Span::from_ns);
        let mut task = Task::periodic(&format!("t{place}"), cost_ns, period_ns, affinity);
        task.offset = Span::from_ns(match random.below(8) {
            0 => random.below(9 * period),
            _ => random.below(period),
        });
        task.deadline = Span::from_ns(match random.below(4) {
            0 => (cost + random.below(period)).min(period),
            1 => period + random.below(2 * period),
            _ => period,
        });
        task.priority = Priority::new(1 + random.below(4) as u32);
        if random.below(3) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        if random.below(5) == 0 && cost >= 2 {
            let first = 1 + random.below(cost - 1);
            let phases = [
                Phase::Run(Span::from_ns(first)),
                Phase::Sleep(Span::from_ns(1 + random.below(period / 4))),
                Phase::Run(Span::from_ns(cost - first)),
            ];
            task.work = Work::Phases(phases.to_vec());
        } else if random.below(2) == 0 {
            task.work = Work::Uniform(Span::from_ns(1), cost_ns);
        }
        task
    };
    let tasks: Vec<Task> = (0..count).map(task).collect();
    let mut set = TaskSet::new("", cpus, tasks);
    for number in 0..3 {
        let mut path: Vec<TaskId> = set.iter().map(|(id, _)| id).collect();
        for place in (1..path.len()).rev() {
            path.swap(place, random.below(place as u64 + 1) as usize);
        }
        path.truncate(2 + random.below(count - 1) as usize);
        set.chains.push(Chain {
            name: format!("c{number}"),
            tasks: path,
            reaction: None,
            age: None,
            latency: None,
        });
    }
    if random.below(2) == 0 {
        trigger_along(random, &mut set);
    }
    set
}

/// Lets tasks of the first chain trigger the next, most of them all along.
fn trigger_along(random: &mut RandomStream, set: &mut TaskSet) {
    let path = set.chains[0].tasks.clone();
    let always = random.below(2) == 0;
    for pair in path.windows(2) {
        let (source, target) = (pair[0], pair[1]);
        if !always && random.below(2) == 0 {
            continue;
        }
        let run = set.tasks[source.index()].cost;
        if random.below(4) == 0 {
            let phases = vec![Phase::Run(run), Phase::Trigger(target), Phase::Run(run)];
            set.tasks[source.index()].cost = run + run;
            set.tasks[source.index()].work = Work::Phases(phases);
        }
        // Sometimes together with the first of all.
        let mut sources = vec![source];
        if source != path[0] && random.below(6) == 0 {
            sources.push(path[0]);
        }
        let trigger = Trigger {
            sources,
            join: [Join::Any, Join::All][random.below(2) as usize],
            queue: (random.below(8) == 0).then_some(1),
        };
        let task = &mut set.tasks[target.index()];
        task.offset = Span::ZERO;
        task.arrival = Arrival::Triggered(trigger);
        set.tasks[target.index()].period = set.triggered_period(target).unwrap();
    }
    for task in &mut set.tasks {
        task.deadline = task.deadline.max(task.cost);
        task.on_overrun = OnOverrun::Continue;
    }
}
