//! Random systems with random overheads, in units in which much happens soon.

use shiftwork_model::{
    Affinity, Arrival, CpuId, LinearCost, OnOverrun, Overheads, Placement, RandomStream, Span,
    Task, TaskSet,
};
use shiftwork_policy::registry;

use crate::NS;

/// A few tasks on up to four CPUs, in clusters of two, with ticks every 500 ns. Under policies that know
/// affinities some sets are bound to CPUs or clusters.
pub fn system(policy: &str, stream: &mut RandomStream) -> TaskSet {
    let cpus = 1 + stream.below(4) as usize;
    let count = 1 + stream.below(7) as usize;
    let is_implicit = stream.below(2) == 0;
    let share = 1 + 130 * cpus as u64 / count as u64;
    let traits = &registry::find(policy).unwrap().traits;
    let knows_affinities = traits.placement == Placement::Weak || traits.placement.shifts();
    let in_quanta = traits.preemption.alignment().is_some();
    let width = match knows_affinities {
        true => [1, 2, cpus][stream.below(3) as usize],
        false => cpus,
    };
    let task = |index: usize| {
        let period = 1_000 + stream.below(9_000);
        let cost = (period * (1 + stream.below(share)) / 100).clamp(1, period);
        let low = stream.below(cpus.div_ceil(width) as u64) as usize * width;
        let bound = (low..cpus.min(low + width)).map(CpuId::from_index);
        let affinity = Affinity::new(bound.collect()).unwrap();
        let mut task = Task::periodic(&format!("T{index}"), NS(cost), NS(period), affinity);
        if !is_implicit {
            task.deadline = NS(cost + stream.below(period - cost + 1));
        }
        task.on_overrun = OnOverrun::Continue;
        if in_quanta {
            // Periodic releases where quanta begin are seen at once; no others are.
            task.arrival = Arrival::Sporadic;
        }
        task
    };
    let tasks = (0..count).map(task).collect();
    let mut set = TaskSet::new("random", cpus, tasks);
    set.scheduler.quantum = Some(NS(500));
    let pairs = (0..cpus).step_by(2).map(|low| {
        let pair = [low, low + 1].into_iter().filter(|&cpu| cpu < cpus);
        pair.map(CpuId::from_index).collect()
    });
    set.platform.clusters = pairs.collect();
    set.platform.caches = set.platform.clusters.clone();
    set
}

/// Overheads of up to 40 ns each, some of them none.
pub fn overheads(stream: &mut RandomStream) -> Overheads {
    let mut any = || match stream.below(4) {
        0 => LinearCost::default(),
        _ => LinearCost {
            base: NS(stream.below(30)),
            per_task: NS(stream.below(2)),
        },
    };
    Overheads {
        release: any(),
        schedule: any(),
        switch: any(),
        tick: any(),
        ipi: any(),
        enqueue: any(),
        dequeue: any(),
        preemption: vec![any()],
        migration: vec![any(), any()],
    }
}

/// The same with costs times `sixteenths` / 16, at least 1 and at most the deadline and the period.
pub fn scaled(set: &TaskSet, sixteenths: u64) -> TaskSet {
    let mut scaled = set.clone();
    for task in &mut scaled.tasks {
        let most = task.deadline.min(task.period).as_ns();
        let cost = task.cost.as_ns() * sixteenths / 16;
        task.cost = Span::from_ns(cost.clamp(1, most));
    }
    scaled
}
