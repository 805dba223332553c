//! What policies by laxity have to know: what is left of the costs of jobs.

use shiftwork_model::{Instant, Recorder, Span, TaskId};
use shiftwork_policy::Event;

use super::Engine;
use crate::state::{Stage, TaskKind, TaskState};

/// What is left of the costs of jobs.
#[derive(Clone, Debug)]
pub(crate) struct Laxities {
    /// By task what is left of the cost of its job, or since then of the last budget, as of the last time that
    /// it was charged. Plain tasks have nothing else left to execute.
    left: Vec<Span>,
    /// The latest starts that were sent last.
    starts: Vec<(TaskId, Instant)>,
    /// The next decision of the policy.
    pub(crate) next: Instant,
}

impl Laxities {
    pub(crate) fn new(tasks: &[TaskState]) -> Self {
        Self {
            left: vec![Span::ZERO; tasks.len()],
            starts: Vec::with_capacity(tasks.len()),
            next: Instant::NEVER,
        }
    }

    /// The task's job may execute for this long.
    pub(crate) fn grant(&mut self, id: TaskId, cost: Span) {
        self.left[id.index()] = cost;
    }

    /// The task's job has executed.
    pub(crate) fn charge(&mut self, id: TaskId, ran: Span) {
        let left = &mut self.left[id.index()];
        *left = left.saturating_sub(ran);
    }
}

impl<R: Recorder> Engine<'_, R> {
    /// Sends the latest starts of all ready jobs to the policy.
    #[inline(never)]
    pub(crate) fn send_latest_starts(&mut self, now: Instant) {
        let Some(mut laxities) = self.laxities.take() else {
            return;
        };
        laxities.starts.clear();
        for index in 0..self.tasks.len() {
            if self.tasks[index].stage == Stage::Ready {
                let id = TaskId::from_index(index);
                let left = self.left_of_cost(&laxities, now, id).as_ns();
                let start = self.tasks[index].deadline.as_ns().saturating_sub(left);
                laxities.starts.push((id, Instant::from_ns(start)));
            }
        }
        self.notify_policy(Event::LatestStarts(now, &laxities.starts), None);
        self.laxities = Some(laxities);
    }

    /// What is left of the cost of the task's ready job, which may be running.
    fn left_of_cost(&self, laxities: &Laxities, now: Instant, id: TaskId) -> Span {
        let task = &self.tasks[id.index()];
        let done = task.cpu.map_or(Span::ZERO, |cpu| {
            let on = &self.cpus[cpu.index()];
            let undone = on.stop.late_since(now.max(on.free_at));
            on.granted.saturating_sub(undone)
        });
        let left = match task.kind {
            TaskKind::Plain => task.remaining,
            TaskKind::General => laxities.left[id.index()],
        };
        left.saturating_sub(done)
    }
}
