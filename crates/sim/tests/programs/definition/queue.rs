//! Which job is next of those that wait for a mutex: with OMLP they wait in a queue, or to join it.

use shiftwork_model::{CpuSet, Protocol, ResourceId};

use super::Definition;

impl Definition<'_> {
    /// To which of these jobs, which wait for the mutex, it passes.
    pub(super) fn next(&self, resource: ResourceId, waiters: &[usize]) -> Option<usize> {
        let mut queue = self.queues.get(&resource).into_iter().flatten();
        let by_rank = || waiters.iter().min_by_key(|&&task| self.rank(task));
        let next = match self.set.resources[resource.index()].protocol {
            Protocol::Spin | Protocol::Fmlp => waiters.first(),
            Protocol::Omlp => queue.next().or_else(by_rank),
            _ => by_rank(),
        };
        next.copied()
    }

    /// While fewer jobs hold a mutex with OMLP or are in its queue than there are CPUs that its users may use, the most urgent job
    /// that waits for it joins the queue.
    pub(super) fn fill_queue(&mut self, resource: ResourceId) {
        if self.set.resources[resource.index()].protocol != Protocol::Omlp {
            return;
        }
        let users = self.set.tasks.iter().filter(|it| it.locks_one(resource));
        let cpus = users.fold(CpuSet::EMPTY, |all, it| all | *it.affinity.cpus());
        loop {
            let queue = self.queues.get(&resource).map_or(&[][..], Vec::as_slice);
            let waiters = self.waiters.get(&resource).into_iter().flatten();
            let outside = waiters.filter(|task| !queue.contains(task));
            let next = outside.min_by_key(|&&task| self.rank(task)).copied();
            match next.filter(|_| queue.len() + 1 < cpus.len()) {
                Some(next) => self.queues.entry(resource).or_default().push(next),
                None => return,
            }
        }
    }
}
