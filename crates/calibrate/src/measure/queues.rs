//! Queues: what calls of ready queues take, by the number of tasks.
//!
//! One thread calls a queue in which so many jobs wait, so no lock is contended: a call takes about
//! as long as it keeps the queue locked, which is what `enqueue` and `dequeue` are in the
//! simulator. The simulator computes itself how long CPUs wait for each other.

use shiftwork_live::probe::monotonic_ns;
use shiftwork_model::CpuId;
use shiftwork_queue::QueueKind as Queue;
use shiftwork_queue::measure::{Operation, costs};

use super::{Batch, Measurement, Slice};
use crate::place::{Place, Rank, Urgency, join};
use crate::quantity::{Kind, Quantity};

/// Numbers of tasks.
const TASKS: [usize; 5] = [10, 30, 100, 300, 1_000];

/// Those that implementations of global EDF are built of, and the one that is better than these.
const QUEUES: [Queue; 4] = [
    Queue::Coarse,
    Queue::Hierarchical,
    Queue::Fine,
    Queue::Published,
];

pub(super) struct Queues {
    place: Place,
}

impl Queues {
    pub(super) fn new(cpu: CpuId, rank: Rank) -> Self {
        Self {
            place: Place {
                cpu,
                rank,
                urgency: Urgency::High,
            },
        }
    }
}

impl Measurement for Queues {
    fn name(&self) -> &'static str {
        "queues"
    }

    fn share(&self) -> u64 {
        2
    }

    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String> {
        let count = QUEUES.len() * TASKS.len();
        for number in 0..count {
            // Not always the same ones come first, if time does not suffice for all; in the first round it has to.
            let turn = (number + slice.round * TASKS.len()) % count;
            let (queue, tasks) = (QUEUES[turn / TASKS.len()], TASKS[turn % TASKS.len()]);
            if monotonic_ns() >= slice.until_ns && slice.round > 0 && number > 0 {
                break;
            }
            let (place, seed) = (self.place, slice.round as u64);
            // The thread that calls is started by the one in this place, and so is there, too.
            let samples = std::thread::scope(|scope| {
                join(place.spawn(scope, move || costs(queue, tasks, 1, seed, &monotonic_ns)))
            })?;
            for operation in OPERATIONS {
                let of = samples
                    .iter()
                    .filter(|sample| sample.operation == operation);
                let quantity = Quantity {
                    kind: kind(operation),
                    variant: queue.name(),
                    at: tasks as u64,
                };
                into.push((quantity, of.map(|sample| sample.ns as i64).collect(), 0));
            }
        }
        Ok(())
    }
}

const OPERATIONS: [Operation; 4] = [
    Operation::Insert,
    Operation::Merge,
    Operation::Take,
    Operation::Peek,
];

const fn kind(operation: Operation) -> Kind {
    match operation {
        Operation::Insert => Kind::QueueInsert,
        Operation::Merge => Kind::QueueMerge,
        Operation::Take => Kind::QueueTake,
        Operation::Peek => Kind::QueueLook,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use shiftwork_live::probe::usable_cpus;

    use super::*;

    #[test]
    fn each_call_of_each_queue_is_measured_with_each_number_of_tasks() {
        let cpu = usable_cpus().iter().next().unwrap();
        let mut queues = Queues::new(cpu, Rank::Ordinary);
        let mut batches = Vec::new();
        // It has no time, and takes what it needs.
        let slice = |round| Slice { round, until_ns: 0 };
        queues.take(&slice(0), &mut batches).unwrap();
        let by_quantity: BTreeMap<Quantity, usize> = batches
            .iter()
            .map(|(quantity, samples, _)| (*quantity, samples.len()))
            .collect();
        assert_eq!(by_quantity.len(), batches.len());
        assert_eq!(batches.len(), 4 * 4 * TASKS.len());
        for name in ["coarse", "hierarchical", "fine", "published"] {
            for at in TASKS.map(|tasks| tasks as u64) {
                for kind in crate::quantity::QUEUE {
                    let quantity = Quantity {
                        kind,
                        variant: name,
                        at,
                    };
                    assert!(by_quantity[&quantity] >= 100, "{quantity}");
                }
            }
        }
        // Later rounds end in time, and begin with another queue.
        let mut later = Vec::new();
        queues.take(&slice(1), &mut later).unwrap();
        assert_eq!(later.len(), 4);
        assert_ne!(later[0].0.variant, batches[0].0.variant);
    }
}
