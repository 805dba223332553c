//! The state of each task and each CPU of the simulated machine.

use shiftwork_machine::{
    ReleasePattern, Server, ServerParameters, ServerRule, WorkSource, may_be_throttled,
};
use shiftwork_model::{
    Arrival, Change, CpuId, Instant, JobId, Priority, Span, Task, TaskId, TaskSet,
};

use crate::speed::{Begun, Speed};

/// The state of the first incomplete job of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The task is not present.
    Absent,
    /// There is no incomplete job.
    Idle,
    /// The job is ready, or becomes so at the present instant.
    Ready,
    /// It has suspended itself.
    Suspended,
    /// It waits for its budget.
    Throttled,
    /// It waits for a mutex.
    Blocked,
    /// It waits for a mutex, and is ready: it keeps its CPU.
    Spinning,
}

/// The state of a task that every job accesses; small, so that it stays in the cache.
///
/// Invariant: the jobs `1..number` have completed; `number` is the first incomplete job, or the last completed
/// one if the task is idle; `number..=released` are pending. Only the number of pending jobs is stored,
/// at any overload: their arrivals, which deadlines and budgets follow, are recomputed when they begin.
#[derive(Clone, Debug)]
pub(crate) struct TaskState {
    pub(crate) number: u64,
    pub(crate) released: u64,
    /// Arrival of job `number`: its release, or earlier where the task has jitter.
    pub(crate) arrival: Instant,
    /// Scheduling deadline of job `number`.
    pub(crate) deadline: Instant,
    /// Work left to the next suspension or to the end, as of the last time that the job stopped.
    pub(crate) remaining: Span,
    /// The declared attributes of jobs released from now on.
    pub(crate) attributes: ServerParameters,
    pub(crate) priority: Priority,
    /// The CPU on which the job runs now.
    pub(crate) cpu: Option<CpuId>,
    pub(crate) stage: Stage,
    pub(crate) kind: TaskKind,
    /// The job was preempted and must refill its caches.
    pub(crate) interrupted: bool,
}

/// Whether the state above suffices for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskKind {
    /// Periodic without jitter, executes for its cost, and no action changes it.
    Plain,
    /// Anything else.
    General,
}

/// The rest of the state of a task, which is needed rarely or only for some tasks.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The task with all changes so far.
    pub(crate) task: Task,
    pub(crate) pattern: ReleasePattern,
    /// The arrival of the job after `number`, while there is one; unused for periodic tasks.
    pub(crate) lagging: ReleasePattern,
    pub(crate) work: WorkSource,
    /// Index of the current stretch of the job's work.
    pub(crate) stretch: usize,
    /// `None` if no budget is enforced, or it cannot be exceeded.
    pub(crate) server: Option<Server>,
    /// Whether the job has been admitted by the server.
    pub(crate) admitted: bool,
    /// The attributes, each with the first job to which they apply; one entry, plus one per effective change.
    pub(crate) history: Vec<(u64, ServerParameters)>,
    /// The CPU on which the task ran last, or starts.
    pub(crate) last_cpu: Option<CpuId>,
}

impl Plan {
    /// The attributes of this job: those at its release.
    pub(crate) fn attributes_of(&self, number: u64) -> ServerParameters {
        if let [(_, only)] = self.history[..] {
            return only;
        }
        let later = self.history.partition_point(|&(first, _)| first <= number);
        self.history[later.max(1) - 1].1
    }
}

/// The state of a CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuState {
    /// The running job since the last instant.
    pub(crate) running: Option<JobId>,
    /// The task that the policy has assigned to it.
    pub(crate) assigned: Option<TaskId>,
    /// The instant at which the running job has executed its granted work; never afterwards. Zero before the
    /// first job.
    pub(crate) stop: Instant,
    /// Work granted to the job when it started here, less the work charged since.
    pub(crate) granted: Span,
    /// Work that the CPU executes in a nanosecond; always full for plain tasks.
    pub(crate) speed: Speed,
    /// Progress of the job within the first nanosecond of the granted work.
    pub(crate) begun: Begun,
    /// End of the scheduling overheads on this CPU.
    pub(crate) free_at: Instant,
    /// Overheads on this CPU until then, since its job started here.
    pub(crate) interrupted: Span,
    /// Whether the CPU may switch at the present instant.
    pub(crate) touched: bool,
}

/// The initial attributes of a task.
pub(crate) fn attributes(task: &Task) -> ServerParameters {
    ServerParameters {
        cost: task.cost,
        period: task.period,
        deadline: task.deadline,
    }
}

/// The old attributes, with the changed ones replaced.
pub(crate) fn changed_attributes(
    old: ServerParameters,
    [cost, period, deadline]: [Option<Span>; 3],
) -> ServerParameters {
    ServerParameters {
        cost: cost.unwrap_or(old.cost),
        period: period.unwrap_or(old.period),
        deadline: deadline.unwrap_or(old.deadline),
    }
}

/// Both states of a task at the start of a run.
pub(crate) fn initial(
    set: &TaskSet,
    id: TaskId,
    priority: Priority,
    rule: ServerRule,
    seed: u64,
) -> (TaskState, Plan) {
    let task = &set.tasks[id.index()];
    let absent = set.enters_later(id);
    let pattern = ReleasePattern::new(set, id, seed, Instant::ZERO);
    let work = WorkSource::new(task, id, seed).in_units(set.platform.tick_unit);
    // Linux gives every task a server, also those that are never throttled.
    let is_linux = rule != ServerRule::Releases;
    let enforced = is_linux || (may_be_throttled(set, id) && !task.locks());
    let plain = !is_linux
        && matches!(task.arrival, Arrival::Periodic)
        && task.jitter.is_zero()
        && work.is_cost()
        && !is_changed(set, id);
    let state = TaskState {
        number: 0,
        released: 0,
        arrival: Instant::ZERO,
        deadline: Instant::ZERO,
        remaining: Span::ZERO,
        attributes: attributes(task),
        priority,
        cpu: None,
        stage: if absent { Stage::Absent } else { Stage::Idle },
        kind: if plain {
            TaskKind::Plain
        } else {
            TaskKind::General
        },
        interrupted: false,
    };
    let plan = Plan {
        task: task.clone(),
        lagging: pattern.clone(),
        pattern,
        work,
        stretch: 0,
        server: enforced.then(|| Server::new(attributes(task), rule)),
        admitted: false,
        history: vec![(0, attributes(task))],
        last_cpu: task.start_cpu,
    };
    (state, plan)
}

fn is_changed(set: &TaskSet, id: TaskId) -> bool {
    let changes =
        |change: &Change| matches!(change, Change::SetAttributes { task, .. } if *task == id);
    set.actions.iter().any(|action| changes(&action.change))
}
