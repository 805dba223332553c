//! What the simulated machine knows of each task and each CPU.

use shiftwork_machine::{
    ReleasePattern, Server, ServerParameters, ServerRule, WorkSource, may_be_throttled,
};
use shiftwork_model::{
    Arrival, Change, CpuId, Instant, JobId, Priority, Span, Task, TaskId, TaskSet,
};

use crate::speed::{Begun, Speed};

/// Where the first unfinished job of a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The task takes no part.
    Absent,
    /// There is no unfinished job.
    Idle,
    /// The job is ready, or becomes so at the present instant.
    Ready,
    /// It has suspended itself.
    Suspended,
    /// It waits for its budget.
    Throttled,
}

/// The state of a task that every job of it touches; small, so that it stays in the cache.
///
/// Invariant: the jobs `1..number` are done; `number` is the first unfinished job, or the last done
/// one if the task is idle; `number..=released` are pending. Only the count of pending jobs is kept,
/// whatever the overload: their releases are computed again when their turn comes.
#[derive(Clone, Debug)]
pub(crate) struct TaskState {
    pub(crate) number: u64,
    pub(crate) released: u64,
    /// When job `number` was released.
    pub(crate) release: Instant,
    /// By which job `number` is scheduled.
    pub(crate) deadline: Instant,
    /// Work left to the next suspension or to the end, as of the last time that the job stopped.
    pub(crate) remaining: Span,
    /// Declared, for jobs released from now on.
    pub(crate) attributes: ServerParameters,
    pub(crate) priority: Priority,
    /// Where the job runs now.
    pub(crate) cpu: Option<CpuId>,
    pub(crate) stage: Stage,
    pub(crate) kind: TaskKind,
    /// The job was stopped by others, and its caches with it.
    pub(crate) interrupted: bool,
}

/// Which tasks need no more than the state above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskKind {
    /// Periodic, runs for its cost, and no action ever changes that.
    Plain,
    /// Anything else.
    General,
}

/// What is needed of a task only now and then, or only of some tasks.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The task with all changes so far.
    pub(crate) task: Task,
    pub(crate) pattern: ReleasePattern,
    /// The release of the job after `number`, while there is one; unused for periodic tasks.
    pub(crate) lagging: ReleasePattern,
    pub(crate) work: WorkSource,
    /// Which stretch of its work the job is in.
    pub(crate) stretch: usize,
    /// `None` where nothing is enforced, or nothing can be exceeded.
    pub(crate) server: Option<Server>,
    /// Whether the job has been admitted by the server.
    pub(crate) admitted: bool,
    /// From which job on which attributes hold; one entry, and one for each change that mattered.
    pub(crate) history: Vec<(u64, ServerParameters)>,
    /// Where the task last ran, or starts.
    pub(crate) last_cpu: Option<CpuId>,
}

impl Plan {
    /// The attributes that held when this job was released.
    pub(crate) fn attributes_of(&self, number: u64) -> ServerParameters {
        let later = self.history.partition_point(|&(first, _)| first <= number);
        self.history[later.max(1) - 1].1
    }
}

/// The state of a CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuState {
    /// What it runs since the last instant.
    pub(crate) running: Option<JobId>,
    /// What the policy wants it to run.
    pub(crate) assigned: Option<TaskId>,
    /// When that job will have done what it was granted; never once it has. Zero before the first.
    pub(crate) stop: Instant,
    /// How much work the job was given when it started here, less what it was charged for since.
    pub(crate) granted: Span,
    /// How much of that work the CPU does in a nanosecond; it is always full for plain tasks.
    pub(crate) speed: Speed,
    /// What the job had done of the first nanosecond of that work.
    pub(crate) begun: Begun,
    /// Until when scheduling itself keeps it busy.
    pub(crate) free_at: Instant,
    /// How much of the time until then is not its job's own, since that came there.
    pub(crate) interrupted: Span,
    /// Whether the present instant may change what it runs.
    pub(crate) touched: bool,
}

/// Which attributes a task has at first.
fn attributes(task: &Task) -> ServerParameters {
    ServerParameters {
        cost: task.cost,
        period: task.period,
        deadline: task.deadline,
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
    let unit = set.platform.tick_unit;
    let pattern = ReleasePattern::new(task, id, seed, Instant::ZERO).in_units(unit);
    let work = WorkSource::new(task, id, seed).in_units(unit);
    // Linux gives everybody a server, also those who never need one to be held back.
    let is_linux = rule != ServerRule::Releases;
    let enforced = is_linux || may_be_throttled(set, id);
    let plain = !is_linux
        && matches!(task.arrival, Arrival::Periodic)
        && work.is_cost()
        && !is_changed(set, id);
    let state = TaskState {
        number: 0,
        released: 0,
        release: Instant::ZERO,
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
