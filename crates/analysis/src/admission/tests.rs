//! Decisions and requests, and the sentences that go with them.

mod online;
mod sets;

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Priority, Share, Span, Task, TaskId, TaskSet,
};
use shiftwork_policy::registry;

use super::{Admitted, Claim, Decision, Guarantee, Loss, Terms, Verdict, admit, claims};
use crate::Witness;

/// Where nothing lingers.
const NOW: Instant = Instant::ZERO;

/// Tasks with names, costs, periods and deadlines in milliseconds, and CPUs.
fn set(cpus: usize, tasks: &[(&str, u64, u64, u64, &str)]) -> TaskSet {
    let tasks = tasks.iter().map(|&(name, cost, period, deadline, mask)| {
        let affinity = Affinity::new(mask.parse().unwrap()).unwrap();
        let mut task = Task::periodic(name, Span::from_ms(cost), Span::from_ms(period), affinity);
        task.deadline = Span::from_ms(deadline);
        task
    });
    TaskSet::new("test", cpus, tasks.collect())
}

fn terms(policy: &str) -> Terms {
    Terms::new(
        &registry::find(policy).unwrap().traits,
        Share::DEFAULT_RESERVE,
    )
    .unwrap()
}

fn decided(policy: &str, set: &TaskSet) -> Decision {
    admit(set, &[], terms(policy))
}

fn id(index: usize) -> TaskId {
    TaskId::from_index(index)
}

fn begun(policy: &str, set: &TaskSet) -> Admitted {
    let all = set.platform.all();
    Admitted::begin(all, terms(policy), claims(set, &[]))
        .unwrap()
        .0
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

fn mask(text: &str) -> CpuSet {
    text.parse().unwrap()
}
