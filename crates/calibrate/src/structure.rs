//! How the implementation that a policy stands for is built, as far as its overheads depend on it.

use shiftwork_model::ReadyQueue;
use shiftwork_policy::registry::Entry;
use shiftwork_queue::QueueKind as Queue;

/// What the overheads of an implementation depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Implementation {
    /// Its ready queue.
    pub(crate) queue: Queue,
    /// Whether jobs that are released together are put in as one.
    pub(crate) merges: bool,
    /// Whether ticks look at the queue.
    pub(crate) is_in_quanta: bool,
}

/// How this policy is built; `None` if nothing is known of that.
pub(crate) fn structure(entry: &Entry) -> Option<Implementation> {
    let queue = entry.traits.structure?.queue;
    Some(Implementation {
        queue: match queue {
            ReadyQueue::Coarse => Queue::Coarse,
            ReadyQueue::Hierarchical => Queue::Hierarchical,
            ReadyQueue::Fine => Queue::Fine,
        },
        merges: queue != ReadyQueue::Fine,
        is_in_quanta: entry.traits.preemption.alignment().is_some(),
    })
}

#[cfg(test)]
mod tests {
    use shiftwork_policy::registry::POLICIES;

    use super::*;

    #[test]
    fn nine_implementations_say_how_they_are_built() {
        let known = POLICIES.iter().filter_map(|entry| {
            let it = structure(entry)?;
            Some((entry.name, it.queue.name(), it.merges, it.is_in_quanta))
        });
        let wanted = [
            ("CEm", "coarse", true, false),
            ("CQm", "coarse", true, true),
            ("S-CQm", "coarse", true, true),
            ("HEm", "hierarchical", true, false),
            ("FEm", "fine", false, false),
            ("CE1", "coarse", true, false),
            ("CQ1", "coarse", true, true),
            ("S-CQ1", "coarse", true, true),
            ("FE1", "fine", false, false),
        ];
        assert_eq!(known.collect::<Vec<_>>(), wanted);
    }
}
