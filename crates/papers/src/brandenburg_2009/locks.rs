//! How long the implementations hold and await the locks of their ready queues.
//!
//! Hold times are measured on this machine, without contention. Waiting times come from a simulated
//! machine of 32 CPUs, and in the worst case also from counting: until all other CPUs have done the
//! same once.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, LinearCost, Overheads, ReadyQueue, Span, TaskSet};
use shiftwork_policy::registry;
use shiftwork_queue::QueueKind;
use shiftwork_queue::measure::{Operation, costs};
use shiftwork_sim::{Options, Simulation};

use super::CPUS;
use super::variants::Variant;
use crate::clock::now;

/// Numbers of tasks for which everything is derived; in between it is interpolated.
pub const TASKS: [usize; 5] = [25, 50, 100, 200, 400];

/// The queues of the implementations.
pub const QUEUES: [ReadyQueue; 3] = [
    ReadyQueue::Coarse,
    ReadyQueue::Hierarchical,
    ReadyQueue::Fine,
];

/// How long operations on a queue hold its locks without contention, in tenths of a nanosecond:
/// means, the highest 1% of all samples left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// To put a job in.
    pub enqueue: u64,
    /// To take the most urgent one out.
    pub dequeue: u64,
}

/// The holds of a queue, by how many tasks there are.
pub type Holds = BTreeMap<(usize, usize), Hold>;

/// Measures all queues at all numbers of tasks; by the queue's place in [`QUEUES`] and the number of tasks.
pub fn measure() -> Holds {
    let mut holds = Holds::new();
    for (place, queue) in QUEUES.into_iter().enumerate() {
        for tasks in TASKS {
            let samples: Vec<_> = (0..SEEDS)
                .flat_map(|seed| costs(kind(queue), tasks, 1, seed, &|| now().as_ns()))
                .collect();
            let of = |operation| {
                let of_kind = samples.iter().filter(|one| one.operation == operation);
                mean_without_outliers(of_kind.map(|one| one.ns).collect())
            };
            let hold = Hold {
                enqueue: of(Operation::Insert),
                dequeue: of(Operation::Take),
            };
            holds.insert((place, tasks), hold);
        }
    }
    holds
}

const HEAD: &str = "queue,tasks,enqueue_tenths_ns,dequeue_tenths_ns";

/// The holds as lines of values that commas separate.
pub fn csv(holds: &Holds) -> String {
    let line = |(&(place, tasks), hold): (&(usize, usize), &Hold)| {
        format!("{place},{tasks},{},{}\n", hold.enqueue, hold.dequeue)
    };
    let lines: String = holds.iter().map(line).collect();
    format!("{HEAD}\n{lines}")
}

/// The holds that [`csv`] made this text of; `None` if it did not.
pub fn from_csv(text: &str) -> Option<Holds> {
    let lines = text.strip_prefix(HEAD)?.trim().lines();
    let hold = |line: &str| {
        let numbers: Option<Vec<u64>> = line.split(',').map(|one| one.parse().ok()).collect();
        let [place, tasks, enqueue, dequeue] = numbers?.try_into().ok()?;
        let at = (usize::try_from(place).ok()?, usize::try_from(tasks).ok()?);
        Some((at, Hold { enqueue, dequeue }))
    };
    lines.map(hold).collect()
}

/// How often each is measured.
const SEEDS: u64 = 8;

const fn kind(queue: ReadyQueue) -> QueueKind {
    match queue {
        ReadyQueue::Coarse => QueueKind::Coarse,
        ReadyQueue::Hierarchical => QueueKind::Hierarchical,
        ReadyQueue::Fine => QueueKind::Fine,
    }
}

/// In tenths; above zero.
fn mean_without_outliers(mut ns: Vec<u64>) -> u64 {
    ns.sort_unstable();
    ns.truncate(ns.len() - ns.len() / 100);
    (10 * ns.iter().sum::<u64>() / (ns.len() as u64).max(1)).max(1)
}

/// How long an implementation's operations take, waits and all, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// To enqueue released jobs.
    pub enqueue: f64,
    /// To take out the most urgent one.
    pub dequeue: f64,
}

/// At worst by counting: every other CPU that uses the queue does so once before, the longer of both operations. A heap whose
/// nodes have locks of their own lets the next one in as soon as the root is left.
pub fn counted(variant: &Variant, hold: Hold, tasks: usize) -> Taken {
    let levels = match variant.structure.queue {
        ReadyQueue::Fine => f64::from(tasks.max(1).ilog2() + 1),
        ReadyQueue::Coarse | ReadyQueue::Hierarchical => 1.0,
    };
    let [enqueue, dequeue] = [hold.enqueue, hold.dequeue].map(|tenths| tenths as f64 / 10.0);
    // With a dedicated CPU the others still enqueue the jobs that they preempt.
    let wait = (CPUS - 1) as f64 * enqueue.max(dequeue) / levels;
    Taken {
        enqueue: enqueue + wait,
        dequeue: dequeue + wait,
    }
}

/// In a simulation of these tasks in which operations hold locks for `scale` times the measured spans, and nothing else takes
/// time, in ns: on average, and at worst with the highest 1% left out.
///
/// # Errors
/// In words, if the implementation does not take the tasks.
pub fn simulated(
    set: &TaskSet,
    variant: &Variant,
    hold: Hold,
    scale: f64,
) -> Result<[Taken; 2], String> {
    let entry = registry::find(variant.name).map_err(|error| error.to_string())?;
    let policy = entry.build(set).map_err(|error| error.to_string())?;
    let scaled = |tenths: u64| LinearCost {
        base: Span::from_ns((tenths as f64 * scale / 10.0) as u64),
        per_task: Span::ZERO,
    };
    let options = Options {
        seed: 1,
        horizon: Instant::ZERO + LENGTH,
        overheads: Some(Overheads {
            enqueue: scaled(hold.enqueue),
            dequeue: scaled(hold.dequeue),
            ..Overheads::default()
        }),
        reserve_server: false,
    };
    let simulation = Simulation::new(set, policy, &entry.traits, options);
    let (_, used) = simulation.run_measuring_queue(&mut ());
    let used = used.ok_or("nothing was measured")?;
    let [enqueue, dequeue] = [used.enqueues, used.dequeues].map(mean_and_worst);
    Ok([0, 1].map(|which| Taken {
        enqueue: enqueue[which],
        dequeue: dequeue[which],
    }))
}

/// In ns; the highest 1% counts for the mean only.
fn mean_and_worst(mut spans: Vec<Span>) -> [f64; 2] {
    spans.sort_unstable();
    let sum: f64 = spans.iter().map(|span| span.as_ns() as f64).sum();
    let worst = spans.get((spans.len() - spans.len() / 100).saturating_sub(1));
    let worst = worst.map_or(0.0, |span| span.as_ns() as f64);
    [sum / (spans.len() as f64).max(1.0), worst]
}

/// For how long is simulated.
const LENGTH: Span = Span::from_s(2);
