//! The events of a run: a small event-driven simulation that records the events it gives the
//! policy.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use shiftwork_model::{CpuId, Instant, Invariant, Job, Order, Priority, Span, TaskId, TaskSet};
use shiftwork_policy::registry::Entry;
use shiftwork_policy::{Event, Policy, Switches};

/// An event given to a policy.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Wake(Job),
    Complete(TaskId),
}

impl Step {
    pub fn event(&self) -> Event<'static> {
        match *self {
            Self::Wake(job) => Event::Wake(job),
            Self::Complete(task) => Event::Complete(task),
        }
    }
}

/// A stretch of a run.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What leads a fresh policy to its beginning.
    pub before: Vec<Step>,
    pub steps: Vec<Step>,
    /// What leads from its end to no job ready, if the same policy can then be brought to the
    /// beginning again.
    pub after: Option<Vec<Step>>,
    /// Scheduled jobs that moved to another CPU.
    pub shifts: u64,
    /// Mean number of ready jobs that wait.
    pub backlogged: f64,
}

/// Runs `set` under `policy` and keeps `steps` events after the first `warm_up`.
///
/// Jobs are released periodically; a task that is late releases its next job when the one before
/// is finished, so that an overloaded run is stationary.
///
/// Under weak placement only the same events lead to the same state. Elsewhere it depends on the
/// ready jobs alone, if those that run are woken first (which matters without preemption).
pub fn record(set: &TaskSet, policy: &Entry, warm_up: usize, steps: usize) -> Recording {
    let mut run = Run::new(set, policy);
    run.play(warm_up);
    let steps_so_far = core::mem::take(&mut run.steps);
    let depends_on_history = policy.traits.invariant == Invariant::Weak;
    let before = if depends_on_history {
        steps_so_far
    } else {
        run.ready_jobs().into_iter().map(Step::Wake).collect()
    };
    run.shifts = 0;
    run.waiting = 0;
    run.play(steps);
    let finish = |job: Job| Step::Complete(job.task);
    let after = run.ready_jobs().into_iter().rev().map(finish).collect();
    Recording {
        before,
        after: (!depends_on_history).then_some(after),
        shifts: run.shifts,
        backlogged: run.waiting as f64 / run.steps.len() as f64,
        steps: run.steps,
    }
}

#[derive(Clone, Copy, Debug)]
struct TaskState {
    job: Option<Job>,
    left: Span,
    cpu: Option<CpuId>,
    since: Instant,
    /// Counts the times the task got or lost a CPU; a completion of another time is void.
    turn: u32,
}

struct Run<'a> {
    set: &'a TaskSet,
    order: Order,
    policy: Box<dyn Policy>,
    priorities: Vec<Priority>,
    tasks: Vec<TaskState>,
    releases: BinaryHeap<Reverse<(Instant, TaskId)>>,
    completions: BinaryHeap<Reverse<(Instant, TaskId, u32)>>,
    out: Switches,
    steps: Vec<Step>,
    shifts: u64,
    ready: usize,
    running: usize,
    waiting: usize,
}

impl<'a> Run<'a> {
    fn new(set: &'a TaskSet, entry: &Entry) -> Self {
        let idle = TaskState {
            job: None,
            left: Span::ZERO,
            cpu: None,
            since: Instant::ZERO,
            turn: 0,
        };
        let release = |(id, task): (TaskId, &shiftwork_model::Task)| {
            Reverse((Instant::ZERO + task.offset, id))
        };
        Self {
            set,
            order: entry.traits.order,
            policy: entry.build(set).expect("the policy takes this task set"),
            priorities: set.priorities(),
            tasks: vec![idle; set.tasks.len()],
            releases: set.iter().map(release).collect(),
            completions: BinaryHeap::new(),
            out: Switches::with_capacity(4 * set.platform.cpus),
            steps: Vec::new(),
            shifts: 0,
            ready: 0,
            running: 0,
            waiting: 0,
        }
    }

    /// Goes on until so many events are recorded, and finishes that instant.
    fn play(&mut self, steps: usize) {
        while self.steps.len() < steps {
            let release = self.releases.peek().map(|next| next.0.0);
            let completion = self.completions.peek().map(|next| next.0.0);
            let now = release
                .into_iter()
                .chain(completion)
                .min()
                .expect("periodic tasks never end");
            self.complete_at(now);
            self.release_at(now);
        }
    }

    fn complete_at(&mut self, now: Instant) {
        while let Some(&Reverse((at, id, turn))) = self.completions.peek()
            && at == now
        {
            self.completions.pop();
            let task = &mut self.tasks[id.index()];
            if task.turn != turn {
                continue;
            }
            let released = task
                .job
                .take()
                .expect("a task that completes has a job")
                .ready;
            task.turn += 1;
            self.ready -= 1;
            let due = released + self.set.tasks[id.index()].period;
            self.releases.push(Reverse((due.max(now), id)));
            self.apply(now, Step::Complete(id));
        }
    }

    fn release_at(&mut self, now: Instant) {
        let mut jobs = Vec::new();
        while let Some(&Reverse((at, id))) = self.releases.peek()
            && at == now
        {
            self.releases.pop();
            let task = &self.set.tasks[id.index()];
            jobs.push(Job {
                task: id,
                ready: now,
                deadline: now + task.deadline,
                priority: self.priorities[id.index()],
            });
        }
        jobs.sort_by_key(|job| self.rank(job));
        for job in jobs {
            let task = &mut self.tasks[job.task.index()];
            task.job = Some(job);
            task.left = self.set.tasks[job.task.index()].cost;
            self.ready += 1;
            self.apply(now, Step::Wake(job));
        }
    }

    fn rank(&self, job: &Job) -> (u64, TaskId) {
        (self.order.rank(job.deadline, job.priority), job.task)
    }

    fn ready_jobs(&self) -> Vec<Job> {
        let mut ready: Vec<&TaskState> = self.tasks.iter().filter(|t| t.job.is_some()).collect();
        ready.sort_by_key(|task| (task.cpu.is_none(), task.job.map(|job| self.rank(&job))));
        ready.into_iter().filter_map(|task| task.job).collect()
    }

    fn apply(&mut self, now: Instant, step: Step) {
        self.out.clear();
        self.policy.on_event(step.event(), &mut self.out);
        self.steps.push(step);
        let switches = core::mem::take(&mut self.out);
        // First the tasks that lost a CPU: in between, a task may seem to be on two.
        let mut moved = Vec::new();
        for from in switches.iter().filter_map(|switch| switch.from) {
            if self.stop(now, from) {
                moved.push(from);
            }
        }
        for switch in &switches {
            if let Some(task) = switch.to {
                self.shifts += u64::from(moved.contains(&task));
                self.start(now, task, switch.cpu);
            }
        }
        self.out = switches;
        self.waiting += self.ready - self.running;
    }

    /// Whether the task goes on being ready.
    fn stop(&mut self, now: Instant, id: TaskId) -> bool {
        let task = &mut self.tasks[id.index()];
        if task.cpu.take().is_none() {
            return false;
        }
        self.running -= 1;
        task.turn += 1;
        task.left = task.left.saturating_sub(now.late_since(task.since));
        task.job.is_some()
    }

    fn start(&mut self, now: Instant, id: TaskId, cpu: CpuId) {
        let task = &mut self.tasks[id.index()];
        assert!(task.cpu.is_none(), "{id:?} is already on a CPU");
        self.running += 1;
        task.cpu = Some(cpu);
        task.since = now;
        task.turn += 1;
        self.completions
            .push(Reverse((now + task.left, id, task.turn)));
    }
}
