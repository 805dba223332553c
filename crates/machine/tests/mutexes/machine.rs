//! A machine that notes what mutexes make it do, and what a policy would be given, in the way of an agent.

use shiftwork_machine::{Handed, MutexMachine, Rank};
use shiftwork_model::{Affinity, ResourceId, TaskId, TaskSet};

/// What mutexes did to the machine, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Locked(TaskId, ResourceId),
    Unlocked(TaskId, ResourceId),
    Blocked(TaskId, ResourceId),
    Spins(TaskId, ResourceId),
    HandedOver(TaskId, Handed),
    Ranked(TaskId, Rank),
    /// The policy was given a new rank of a ready job.
    Reranked(TaskId, Rank),
    Affinity(TaskId, Affinity),
    /// The policy was given a job that became ready, with this rank.
    Woken(TaskId, Rank),
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Idle,
    Ready,
    Suspended,
    Blocked,
}

/// A task as an agent sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) rank: Rank,
    pub(crate) own_affinity: Affinity,
    /// Whether it is admitted; else its thread runs without the policy.
    pub(crate) is_present: bool,
    /// Whether its thread is awake, whatever its job waits for.
    pub(crate) is_awake: bool,
    pub(crate) stage: Stage,
}

/// All tasks, and what happened since the log was read last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) states: Vec<State>,
    /// Jobs that become ready at this instant.
    arrivals: Vec<TaskId>,
    pub(crate) log: Vec<Call>,
}

impl Machine {
    pub(crate) fn new(set: &TaskSet) -> Self {
        let tasks = set.tasks.iter().zip(set.priorities());
        let state = |(task, priority): (&shiftwork_model::Task, _)| State {
            rank: Rank {
                priority,
                deadline: shiftwork_model::Instant::ZERO + task.deadline,
            },
            own_affinity: task.affinity,
            is_present: true,
            is_awake: true,
            stage: Stage::Idle,
        };
        Self {
            states: tasks.map(state).collect(),
            arrivals: Vec::new(),
            log: Vec::new(),
        }
    }

    pub(crate) fn state(&mut self, task: TaskId) -> &mut State {
        &mut self.states[task.index()]
    }

    /// The policy is given all jobs that became ready.
    pub(crate) fn end_instant(&mut self) {
        for task in std::mem::take(&mut self.arrivals) {
            let rank = self.state(task).rank;
            self.log.push(Call::Woken(task, rank));
        }
    }
}

impl MutexMachine for Machine {
    fn rank(&self, task: TaskId) -> Rank {
        self.states[task.index()].rank
    }

    fn own_affinity(&self, task: TaskId) -> &Affinity {
        &self.states[task.index()].own_affinity
    }

    fn locked(&mut self, task: TaskId, resource: ResourceId) {
        self.log.push(Call::Locked(task, resource));
    }

    fn unlocked(&mut self, task: TaskId, resource: ResourceId) {
        self.log.push(Call::Unlocked(task, resource));
    }

    fn blocked(&mut self, task: TaskId, resource: ResourceId) {
        if self.state(task).is_present {
            self.state(task).stage = Stage::Blocked;
        }
        self.log.push(Call::Blocked(task, resource));
    }

    fn spins(&mut self, task: TaskId, resource: ResourceId) {
        self.log.push(Call::Spins(task, resource));
    }

    fn handed_over(&mut self, task: TaskId, handed: Handed) {
        let state = self.state(task);
        state.stage = match state.is_awake {
            true => Stage::Ready,
            false => Stage::Suspended,
        };
        self.log.push(Call::HandedOver(task, handed));
    }

    fn becomes_ready(&mut self, task: TaskId) {
        let state = self.state(task);
        if state.is_present && state.stage == Stage::Ready {
            self.arrivals.push(task);
        }
    }

    fn set_rank(&mut self, task: TaskId, rank: Rank) {
        self.state(task).rank = rank;
        self.log.push(Call::Ranked(task, rank));
        let state = &self.states[task.index()];
        let is_ready = state.is_present && state.stage == Stage::Ready;
        // A job that becomes ready at this instant brings its rank along.
        if is_ready && !self.arrivals.contains(&task) {
            self.log.push(Call::Reranked(task, rank));
        }
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity) {
        self.log.push(Call::Affinity(task, *affinity));
    }
}
