//! What each job of one run did, and how many reactions can have moved it.
//!
//! The reactions are counted as the [parent](super) defines; one pass over the records suffices,
//! since whoever waits takes over the counts of those that run meanwhile, as they are then.

use std::collections::BTreeMap;

use shiftwork_model::{CpuId, Happening, Instant, JobId, Record, Span, TaskId};

use super::replay::Replay;
use crate::running::Change;

/// What a job did in one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trail {
    pub release: Instant,
    pub deadline: Instant,
    pub finish: Option<Instant>,
    /// When its task left with the job unfinished.
    pub dropped: Option<Instant>,
    pub preemptions: u64,
    /// How many reactions can have moved it so far.
    pub reactions: u64,
    /// What it inherits from those that it waits for, taken over when it gets a CPU.
    inherits: u64,
    /// How many reactions there had been on its CPUs when its busy interval began.
    busy_since: u64,
    /// Since when it may run and does not.
    waits_since: Option<Instant>,
}

impl Trail {
    /// When the job finished or was dropped; the horizon if neither.
    pub fn end(&self, horizon: Instant) -> Instant {
        self.finish.or(self.dropped).unwrap_or(horizon)
    }
}

/// The jobs of a run.
pub(super) type Trails = BTreeMap<JobId, Trail>;

/// Which tasks are connected by CPUs that they use.
#[derive(Clone, Debug)]
pub(super) struct Connected {
    /// Per task, the number of its component.
    component: Vec<usize>,
}

impl Connected {
    /// By the CPUs that `tasks` tasks use in any of the runs.
    pub fn new(tasks: usize, cpus: usize, runs: [&[Record]; 2]) -> Self {
        // Nodes: first the tasks, then the CPUs; each points to another of its component.
        let mut parent: Vec<usize> = (0..tasks + cpus).collect();
        for record in runs.into_iter().flatten() {
            if let Happening::Switched {
                cpu, to: Some(job), ..
            } = record.what
                && job.task.index() < tasks
                && cpu.index() < cpus
            {
                let task = root(&mut parent, job.task.index());
                let cpu = root(&mut parent, tasks + cpu.index());
                parent[task] = cpu;
            }
        }
        let component = (0..tasks).map(|task| root(&mut parent, task)).collect();
        Self { component }
    }

    fn of(&self, task: TaskId) -> Option<usize> {
        self.component.get(task.index()).copied()
    }
}

fn root(parent: &mut [usize], mut node: usize) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

/// Follows the jobs of a run up to its horizon. Waiting for no longer than `window` is the job's
/// own reaction and inherits nothing.
///
/// # Cost
/// Per instant a step per task and CPU.
pub(super) fn follow(
    mut replay: Replay<'_>,
    connected: &Connected,
    window: Span,
    horizon: Instant,
) -> Trails {
    let nodes = replay.tasks.len() + replay.cpus();
    let mut follower = Follower {
        connected,
        window,
        trails: Trails::new(),
        reactions: vec![0; nodes],
        latest: vec![Lateness::NONE; nodes],
        predecessors: vec![None; replay.tasks.len()],
    };
    while let Some(now) = replay.next_at() {
        for record in replay.step() {
            follower.take(now, &record.what);
        }
        follower.switch(now, &replay);
        let until = replay.next_at().unwrap_or(horizon);
        follower.inherit(until, &replay);
    }
    follower.trails
}

/// How late a job may be at most: it is counted in reactions, and since when.
#[derive(Clone, Copy, Debug)]
struct Lateness {
    reactions: u64,
    busy_since: u64,
}

impl Lateness {
    const NONE: Self = Self {
        reactions: 0,
        busy_since: u64::MAX,
    };

    fn of(trail: &Trail) -> Self {
        Self {
            reactions: trail.reactions,
            busy_since: trail.busy_since,
        }
    }

    fn worst(self, other: Self) -> Self {
        Self {
            reactions: self.reactions.max(other.reactions),
            busy_since: self.busy_since.min(other.busy_since),
        }
    }
}

struct Follower<'a> {
    connected: &'a Connected,
    window: Span,
    trails: Trails,
    /// Per component, how many times a job was put on a CPU.
    reactions: Vec<u64>,
    /// Per component, the worst lateness of what runs now; kept between calls for its memory.
    latest: Vec<Lateness>,
    /// Per task, its last finished job.
    predecessors: Vec<Option<JobId>>,
}

impl Follower<'_> {
    fn take(&mut self, now: Instant, what: &Happening) {
        match *what {
            Happening::Released { job, deadline } => self.release(now, job, deadline),
            Happening::Ready { job, .. } => {
                if let Some(trail) = self.trails.get_mut(&job) {
                    trail.waits_since.get_or_insert(now);
                }
            }
            Happening::NotReady { job, .. } => {
                if let Some(trail) = self.trails.get_mut(&job) {
                    trail.waits_since = None;
                }
            }
            Happening::Completed { job } => self.complete(now, job),
            Happening::Left { task } => {
                let first = JobId { task, number: 0 };
                let last = JobId {
                    task,
                    number: u64::MAX,
                };
                // The unfinished jobs of a task are its last ones.
                let jobs = self.trails.range_mut(first..=last).rev();
                let unfinished = |(_, trail): &(&JobId, &mut Trail)| trail.finish.is_none();
                for (_, trail) in jobs.take_while(unfinished) {
                    trail.dropped.get_or_insert(now);
                    trail.waits_since = None;
                }
            }
            _ => {}
        }
    }

    fn release(&mut self, now: Instant, job: JobId, deadline: Instant) {
        let Some(component) = self.connected.of(job.task) else {
            return;
        };
        let trail = Trail {
            release: now,
            deadline,
            finish: None,
            dropped: None,
            preemptions: 0,
            reactions: 0,
            inherits: 0,
            busy_since: self.reactions[component],
            waits_since: None,
        };
        self.trails.entry(job).or_insert(trail);
    }

    fn complete(&mut self, now: Instant, job: JobId) {
        if let Some(trail) = self.trails.get_mut(&job) {
            trail.finish.get_or_insert(now);
            trail.waits_since = None;
            self.predecessors[job.task.index()] = Some(job);
        }
    }

    /// The instant is over: who got a CPU, and who lost one.
    fn switch(&mut self, now: Instant, replay: &Replay<'_>) {
        for job in replay.changes.iter().filter_map(|change| change.after) {
            let Some(component) = self.connected.of(job.task) else {
                continue;
            };
            self.reactions[component] += 1;
            let so_far = self.reactions[component];
            let before = self.lateness_of_predecessor(job);
            let Some(trail) = self.trails.get_mut(&job) else {
                continue;
            };
            if let Some(before) = before {
                trail.inherits = trail.inherits.max(before.reactions);
                trail.busy_since = trail.busy_since.min(before.busy_since);
            }
            let sum = trail.reactions.saturating_add(trail.inherits) + 1;
            trail.reactions = sum.min(so_far.saturating_sub(trail.busy_since).max(1));
            trail.inherits = 0;
            trail.waits_since = None;
        }
        for &Change { before, .. } in &replay.changes {
            if let Some(job) = before
                && replay.waiting(job.task) == Some(job)
                && let Some(trail) = self.trails.get_mut(&job)
            {
                trail.preemptions += 1;
                trail.waits_since = Some(now);
            }
        }
    }

    /// What a job that was released before its predecessor was finished inherits from it, when it
    /// first gets a CPU.
    fn lateness_of_predecessor(&self, job: JobId) -> Option<Lateness> {
        let trail = self.trails.get(&job).filter(|it| it.reactions == 0)?;
        let before = self.predecessors[job.task.index()]?;
        let before = self.trails.get(&before)?;
        let waited = before.finish?.late_since(trail.release) > self.window;
        waited.then(|| Lateness::of(before))
    }

    /// Nothing changes until then: whoever waits inherits from those that run.
    fn inherit(&mut self, until: Instant, replay: &Replay<'_>) {
        self.latest.fill(Lateness::NONE);
        for cpu in 0..replay.cpus() {
            let Some(job) = replay.on(CpuId::from_index(cpu)) else {
                continue;
            };
            if let (Some(component), Some(trail)) =
                (self.connected.of(job.task), self.trails.get(&job))
            {
                self.latest[component] = self.latest[component].worst(Lateness::of(trail));
            }
        }
        for task in (0..replay.tasks.len()).map(TaskId::from_index) {
            if let Some(job) = replay.waiting(task)
                && let Some(component) = self.connected.of(task)
                && let Some(trail) = self.trails.get_mut(&job)
                && let Some(since) = trail.waits_since
                && until > since + self.window
            {
                let latest = self.latest[component];
                trail.inherits = trail.inherits.max(latest.reactions);
                trail.busy_since = trail.busy_since.min(latest.busy_since);
            }
        }
    }
}
