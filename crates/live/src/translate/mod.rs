//! Translates events of the kernel, or of an agent, into records. There is no other translation.
//!
//! The kernel knows tasks and when they run; jobs, their numbers and their releases are known here.
//! What the records say a CPU runs is what it did run, not what was decided.
//! [`EventTranslator::planned`] is for a run: its tasks come from a plan with known releases.
//! [`EventTranslator::standing`] is for tasks that are admitted meanwhile: their jobs begin when
//! their threads wake up.

mod cpus;
mod jobs;
mod mutexes;
mod observed;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use shiftwork_model::{
    CpuSet, Instant, JobId, NotReadyReason, Priority, RecordKind, Recorder, Span, TaskId,
};

use crate::Plan;
use crate::event::{Event, Kind};
use crate::work::Jobs;
use cpus::{CpuNumbers, CpuState};
pub use observed::{Activity, Observed};

/// A job that is released and not finished.
#[derive(Clone, Copy, Debug)]
struct Pending {
    job: JobId,
    release: Instant,
    deadline: Instant,
    /// Whether it was ready once.
    is_known: bool,
}

/// What is known of a task.
#[derive(Default)]
struct TaskState {
    /// The releases to come; `None` for a program: its jobs begin when it wakes up.
    jobs: Option<Jobs>,
    /// Whether jobs of other tasks release its jobs.
    is_triggered: bool,
    last_completed: Option<JobId>,
    next_release: Option<Instant>,
    released: u64,
    pending: VecDeque<Pending>,
    /// Whether its first pending job may run.
    ready: bool,
    /// It has used up its budget, and its next period has not begun.
    is_throttled: bool,
    /// It is out of budget and still on its CPU.
    stops_soon: bool,
    /// Its job was released before the one before it was finished.
    goes_on: bool,
    present: bool,
    /// The last job that was released before the event that the task takes part: the entry, and a
    /// release at the same instant, come from two sources.
    early: Option<Pending>,
    /// The CPUs that it may use, in the machine's numbers, and those on which the kernel holds it for a while.
    cpus: CpuSet,
    held_on: Option<CpuSet>,
    /// Where it is, whether or not a job of it is there.
    on: Option<usize>,
    /// Until when its execution time has been measured; of the monotonic clock.
    measured_ns: u64,
    /// Cost, period and relative deadline.
    attributes: [Span; 3],
    priority: Option<Priority>,
    /// What it has from when it enters next.
    admitted: Option<Admitted>,
    /// The number is that of a thread that is observed and no task.
    is_observed: bool,
}

/// Attributes and priority of a reservation.
type Admitted = ([Span; 3], Priority);

/// Turns events into records.
pub(crate) struct EventTranslator {
    origin_ns: u64,
    horizon: Instant,
    tasks: Vec<TaskState>,
    cpus: Vec<CpuState>,
    numbers: CpuNumbers,
    /// The next release of each task that has one.
    releases: BinaryHeap<Reverse<(Instant, usize)>>,
    now: Instant,
    /// From a decision to the CPU that carries it out.
    pub(crate) reactions: Vec<Span>,
    /// From a release to the kernel's knowing of it.
    pub(crate) lateness: Vec<Span>,
    /// How many events a policy would have received.
    pub(crate) decisions: u64,
    /// Tasks that asked for CPUs that they were not admitted for, and which, in the machine's numbers.
    pub(crate) asking: Vec<(TaskId, CpuSet)>,
    /// Tasks that have used up their budget and are only warned of it.
    pub(crate) overran: Vec<TaskId>,
    /// What observed threads did.
    pub(crate) observed: Vec<Observed>,
}

impl EventTranslator {
    /// A translator for this plan, before its first event. `jobs` are those of the tasks that threads do.
    pub(crate) fn planned(plan: &Plan<'_>, jobs: Vec<Option<Jobs>>, horizon: Instant) -> Self {
        let priorities = plan.set.priorities();
        let tasks = plan
            .set
            .iter()
            .zip(jobs)
            .map(|((id, task), jobs)| TaskState {
                jobs,
                is_triggered: task.trigger().is_some(),
                present: !plan.set.enters_later(id),
                cpus: plan.cpus_of(id),
                attributes: [task.cost, task.period, task.deadline],
                priority: Some(priorities[id.index()]),
                ..TaskState::default()
            });
        let mut translator = Self::new(tasks.collect(), CpuNumbers::of_plan(plan), horizon);
        for index in 0..translator.tasks.len() {
            translator.plan_release(index);
        }
        translator
    }

    /// A translator for tasks that are [admitted](Self::admit), with numbers below `tasks_max`. CPUs are in the
    /// machine's numbers, instants of the monotonic clock, and `cpus` those that tasks may have.
    pub(crate) fn standing(cpus: &CpuSet, tasks_max: usize) -> Self {
        let tasks = (0..tasks_max).map(|_| TaskState::default());
        let mut translator = Self::new(
            tasks.collect(),
            CpuNumbers::of_machine(cpus),
            Instant::NEVER,
        );
        translator.begin(0);
        translator
    }

    fn new(tasks: Vec<TaskState>, numbers: CpuNumbers, horizon: Instant) -> Self {
        Self {
            origin_ns: u64::MAX,
            horizon,
            tasks,
            cpus: vec![CpuState::default(); numbers.count()],
            numbers,
            releases: BinaryHeap::new(),
            now: Instant::ZERO,
            reactions: Vec::new(),
            lateness: Vec::new(),
            decisions: 0,
            asking: Vec::new(),
            overran: Vec::new(),
            observed: Vec::new(),
        }
    }

    /// The task has a reservation with this cost, period and deadline from when it next enters.
    pub(crate) fn admit(&mut self, task: TaskId, attributes: [Span; 3], priority: Priority) {
        if let Some(state) = self.tasks.get_mut(task.index()) {
            state.admitted = Some((attributes, priority));
            state.is_observed = false;
        }
    }

    /// Whether the number is that of an observed thread.
    pub(crate) fn set_observed(&mut self, task: TaskId, is_observed: bool) {
        if let Some(state) = self.tasks.get_mut(task.index()) {
            state.is_observed = is_observed;
        }
    }

    /// The run begins at this instant of the monotonic clock; what was before is not part of it.
    pub(crate) fn begin(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    /// The next release of the task goes into the heap.
    fn plan_release(&mut self, index: usize) {
        let task_state = &mut self.tasks[index];
        let next = task_state
            .jobs
            .as_mut()
            .and_then(|jobs| jobs.next(Instant::ZERO));
        task_state.next_release = next.and_then(|job| job.release);
        if let Some(release) = task_state.next_release {
            self.releases.push(Reverse((release, index)));
        }
    }

    /// Records everything up to this instant of the monotonic clock that is known without an event:
    /// the releases.
    pub(crate) fn advance<R: Recorder>(&mut self, now_ns: u64, recorder: &mut R) {
        let now = self.instant(now_ns).min(self.horizon);
        while let Some(&Reverse((release, index))) = self.releases.peek()
            && release <= now
            && release < self.horizon
        {
            self.releases.pop();
            self.release(index, release, recorder);
            self.plan_release(index);
        }
    }

    /// Records what an event says.
    pub(crate) fn take<R: Recorder>(&mut self, event: Event, recorder: &mut R) {
        if event.at >= self.origin_ns {
            self.advance(event.at, recorder);
        }
        self.measure(event);
        if self.instant(event.at) > self.horizon && event.at >= self.origin_ns {
            return;
        }
        if event.task == 0 {
            self.take_cpu_event(event, recorder);
        } else if let Some(id) = self.task(event.task) {
            self.take_task_event(event, id, recorder);
        }
    }

    fn task(&self, number: u32) -> Option<TaskId> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        (index < self.tasks.len()).then(|| TaskId::from_index(index))
    }

    /// In the run's time; what was before the run began counts as its beginning.
    fn instant(&self, at_ns: u64) -> Instant {
        Instant::from_ns(at_ns.saturating_sub(self.origin_ns))
    }

    /// Records do not go back in time, not by the nanosecond that two CPUs' clocks may differ.
    fn record<R: Recorder>(&mut self, at: Instant, kind: RecordKind, recorder: &mut R) {
        self.now = self.now.max(at);
        recorder.record(self.now, &kind);
    }

    /// The first pending job of the task.
    fn current(&self, id: TaskId) -> Option<JobId> {
        self.tasks[id.index()]
            .pending
            .front()
            .map(|pending| pending.job)
    }

    fn observe(&mut self, event: Event, id: TaskId) {
        let activity = match event.kind {
            Kind::Woken => Activity::Woken,
            Kind::Stopped => Activity::Ran(Span::from_ns(event.value)),
            Kind::Blocked => Activity::Blocked,
            Kind::Left => Activity::Ended,
            _ => return,
        };
        let at = self.instant(event.at);
        self.observed.push(Observed {
            at,
            task: id,
            activity,
        });
    }

    fn take_task_event<R: Recorder>(&mut self, event: Event, id: TaskId, recorder: &mut R) {
        let at = self.instant(event.at);
        let index = id.index();
        if self.tasks[index].is_observed {
            return self.observe(event, id);
        }
        match event.kind {
            Kind::Ready => {
                self.decisions += 1;
                self.ready(at, event, id, recorder);
            }
            Kind::NextJob if self.tasks[index].is_triggered => {
                self.decisions += 1;
                self.complete(at, id, recorder);
            }
            Kind::Triggered => {
                self.decisions += 1;
                self.triggered(at, event, id, recorder);
            }
            Kind::NextJob => {
                self.decisions += 1;
                let release = self.instant(event.value);
                // After a time in the background the job that ends may be one that was dropped.
                let first = self.tasks[index].pending.front();
                if first.is_some_and(|first| first.release < release) {
                    self.complete(at, id, recorder);
                }
                self.tasks[index].goes_on = release <= at;
                // What was released before that and not begun has been dropped.
                let pending = &mut self.tasks[index].pending;
                while pending.front().is_some_and(|first| first.release < release) {
                    pending.pop_front();
                }
            }
            Kind::LastJob => {
                self.decisions += 1;
                self.complete(at, id, recorder);
                // It leaves because it is done: nothing to record.
                self.tasks[index].present = false;
            }
            Kind::Yielded => self.complete(at, id, recorder),
            Kind::Woken => {
                if self.tasks[index].jobs.is_none() && self.current(id).is_none() {
                    self.release(index, at, recorder);
                    self.hold_throttled(at, id, recorder);
                }
            }
            Kind::Blocked => {
                self.decisions += 1;
                if self.tasks[index].jobs.is_none() {
                    self.complete(at, id, recorder);
                } else {
                    self.not_ready(at, id, NotReadyReason::Suspended, recorder);
                }
            }
            Kind::Spent => {
                self.decisions += 1;
                self.tasks[index].is_throttled = true;
                self.hold_throttled(at, id, recorder);
                if let Some(job) = self.current(id).filter(|_| self.tasks[index].ready) {
                    self.record(at, RecordKind::BudgetSpent { job }, recorder);
                    match self.tasks[index].on {
                        Some(_) => self.tasks[index].stops_soon = true,
                        None => self.not_ready(at, id, NotReadyReason::Throttled, recorder),
                    }
                }
            }
            Kind::Overrun => {
                self.overran.push(id);
                if let Some(job) = self.current(id) {
                    self.record(at, RecordKind::BudgetSpent { job }, recorder);
                }
            }
            Kind::Replenished => {
                self.tasks[index].is_throttled = false;
                let [budget, ..] = self.tasks[index].attributes;
                let deadline = self.instant(event.value);
                let kind = RecordKind::Replenished {
                    task: id,
                    budget,
                    deadline,
                };
                self.record(at, kind, recorder);
            }
            Kind::Locked | Kind::Unlocked | Kind::AwaitsMutex | Kind::Spins => {
                self.decisions += 1;
                self.take_mutex_event(at, event, id, recorder);
            }
            Kind::RankPriority | Kind::RankDeadline => self.rank(at, event, id, recorder),
            Kind::Running => self.running(at, event, id, recorder),
            Kind::Stopped => self.stopped(at, event, id, recorder),
            Kind::Entered => self.enter(at, event, id, recorder),
            Kind::Left => self.leave(at, id, recorder),
            Kind::Demoted => {
                let cpus = CpuSet::from_bits(event.value);
                self.asking.push((id, cpus));
                self.tasks[index].cpus = cpus;
                self.affinity(at, id, cpus, recorder);
                let asked = Box::new(self.numbers.recorded(&cpus));
                self.record(at, RecordKind::Demoted { task: id, asked }, recorder);
                self.leave(at, id, recorder);
            }
            Kind::Affinity => {
                self.decisions += 1;
                let cpus = CpuSet::from_bits(event.value);
                self.tasks[index].cpus = cpus;
                if self.tasks[index].held_on.is_none() {
                    self.affinity(at, id, cpus, recorder);
                }
            }
            Kind::Narrowed => {
                // A decision is right only of the CPUs that were to be had when it was made.
                self.decisions += 1;
                let held_on = (event.value != 0).then(|| CpuSet::from_bits(event.value));
                let task_state = &mut self.tasks[index];
                task_state.held_on = held_on;
                let cpus = held_on.unwrap_or(task_state.cpus);
                self.affinity(at, id, cpus, recorder);
            }
            Kind::Priority => {
                self.decisions += 1;
                let number = u32::try_from(event.value).ok();
                if let Some(priority) = number.and_then(Priority::new) {
                    self.set_priority(at, id, priority, recorder);
                }
            }
            Kind::Assigned
            | Kind::CpuLost
            | Kind::CpuBack
            | Kind::SlotFilled
            | Kind::Dispatched
            | Kind::Decided
            | Kind::Concluded
            | Kind::Probe
            // For an agent alone, which says what followed.
            | Kind::LockRequested
            | Kind::UnlockRequested => {}
            Kind::Ran => self.measure_own(event, id, recorder),
        }
    }

    /// The attributes of the task's jobs that are released from now on.
    pub(crate) fn set_attributes<R: Recorder>(
        &mut self,
        at: Instant,
        id: TaskId,
        attributes: [Span; 3],
        recorder: &mut R,
    ) {
        // What was released before is due as it was.
        let before_ns = self.origin_ns.saturating_add(at.as_ns()).saturating_sub(1);
        self.advance(before_ns, recorder);
        self.tasks[id.index()].attributes = attributes;
        let [cost, period, deadline] = attributes;
        let kind = RecordKind::AttributesSet {
            task: id,
            cost,
            period,
            deadline,
        };
        self.record(at, kind, recorder);
    }

    fn set_priority<R: Recorder>(
        &mut self,
        at: Instant,
        task: TaskId,
        priority: Priority,
        recorder: &mut R,
    ) {
        self.tasks[task.index()].priority = Some(priority);
        self.record(at, RecordKind::PrioritySet { task, priority }, recorder);
    }

    /// What each CPU of the file is shown with.
    pub(crate) fn running_now(&self) -> impl Iterator<Item = Option<JobId>> + '_ {
        self.cpus.iter().map(|place| place.shown)
    }
}
