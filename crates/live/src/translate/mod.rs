//! What happened, in everybody's words: makes records of the events that the kernel tells.
//!
//! The kernel knows tasks and when they run; jobs, their numbers and their releases are known here.
//! What the records say a CPU runs is what it did run, not what was decided.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Happening, Instant, JobId, NotReadyReason, Priority, Recorder, Span,
    TaskId,
};

use crate::Plan;
use crate::event::{Event, Kind, why};
use crate::run::on_machine;
use crate::work::Jobs;

/// A job that is released and not finished.
#[derive(Clone, Copy, Debug)]
struct Pending {
    job: JobId,
    release: Instant,
    /// Whether it was ready once.
    is_known: bool,
}

/// What is known of a task.
struct TaskState {
    /// The releases to come; `None` for a program, whose jobs begin when it wakes up.
    jobs: Option<Jobs>,
    next_release: Option<Instant>,
    released: u64,
    pending: VecDeque<Pending>,
    /// Whether its first pending job may run.
    ready: bool,
    /// It is out of budget and still on its CPU.
    stops_soon: bool,
    /// Its job was released before the one before it was finished.
    goes_on: bool,
    present: bool,
    /// The last job that was released before it was heard that the task takes part: to enter, and to
    /// release a job at that instant, are two facts that are told by two.
    early: Option<Pending>,
    /// The CPUs that it may use, in the machine's numbers, and those on which the kernel holds it for a while.
    cpus: CpuSet,
    held_on: Option<CpuSet>,
    /// Where it is, whether or not a job of it is there.
    on: Option<usize>,
    /// Until when it was told what of its time there was its own; the monotonic clock.
    measured_ns: u64,
    cost: Span,
    deadline: Span,
    priority: Priority,
}

/// Less is not told: whoever measures reads two clocks, one after the other.
const INTERRUPTED_MIN: Span = Span::from_us(1);

/// What is known of a CPU.
#[derive(Clone, Copy, Default)]
struct CpuState {
    shown: Option<JobId>,
    gone: u64,
    /// What was decided and is not yet done: for whom, and when.
    awaited: Option<(TaskId, u64)>,
}

/// Turns events into records.
pub(crate) struct EventTranslator {
    origin_ns: u64,
    horizon: Instant,
    tasks: Vec<TaskState>,
    cpus: Vec<CpuState>,
    /// The file's number of each CPU of the machine.
    file_cpu: Vec<Option<usize>>,
    /// The next release of each task that has one.
    releases: BinaryHeap<Reverse<(Instant, usize)>>,
    now: Instant,
    /// From a decision to the CPU that carries it out.
    pub(crate) reactions: Vec<Span>,
    /// From a release to the kernel's knowing of it.
    pub(crate) lateness: Vec<Span>,
    /// How many events there were that a policy would have been told.
    pub(crate) decisions: u64,
    /// Tasks that asked for CPUs that they were not admitted for, and which, in the machine's numbers.
    pub(crate) asking: Vec<(TaskId, CpuSet)>,
    /// Tasks that have used up a budget of which they only want to be told.
    pub(crate) overran: Vec<TaskId>,
}

impl EventTranslator {
    /// A translator for this plan, before its first event. `jobs` are those of the tasks that threads do.
    pub(crate) fn planned(plan: &Plan<'_>, jobs: Vec<Option<Jobs>>, horizon: Instant) -> Self {
        let priorities = plan.set.priorities();
        let mut file_cpu = Vec::new();
        for (index, cpu) in plan.cpus.iter().enumerate() {
            let number = cpu.index();
            file_cpu.resize(file_cpu.len().max(number + 1), None);
            file_cpu[number] = Some(index);
        }
        let tasks = plan
            .set
            .iter()
            .zip(jobs)
            .map(|((id, task), jobs)| TaskState {
                jobs,
                next_release: None,
                released: 0,
                pending: VecDeque::new(),
                ready: false,
                stops_soon: false,
                goes_on: false,
                present: !plan.set.enters_later(id),
                early: None,
                cpus: on_machine(plan, plan.bound[id.index()].cpus()),
                held_on: None,
                on: None,
                measured_ns: 0,
                cost: task.cost,
                deadline: task.deadline,
                priority: priorities[id.index()],
            });
        let mut translator = Self {
            origin_ns: u64::MAX,
            horizon,
            tasks: tasks.collect(),
            cpus: vec![CpuState::default(); plan.cpus.len()],
            file_cpu,
            releases: BinaryHeap::new(),
            now: Instant::ZERO,
            reactions: Vec::new(),
            lateness: Vec::new(),
            decisions: 0,
            asking: Vec::new(),
            overran: Vec::new(),
        };
        for index in 0..translator.tasks.len() {
            translator.plan_release(index);
        }
        translator
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
        task_state.next_release = next.map(|job| job.release);
        if let Some(release) = task_state.next_release {
            self.releases.push(Reverse((release, index)));
        }
    }

    /// Tells everything up to this instant of the monotonic clock that is known without an event: the
    /// releases.
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

    /// Tells what an event says.
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

    fn place(&self, event: Event) -> Option<usize> {
        let cpu = usize::from(event.cpu?);
        self.file_cpu.get(cpu).copied().flatten()
    }

    /// Records do not go back in time, not by the nanosecond that two CPUs' clocks may differ.
    fn record<R: Recorder>(&mut self, at: Instant, what: Happening, recorder: &mut R) {
        self.now = self.now.max(at);
        recorder.record(self.now, &what);
    }

    fn measure(&mut self, event: Event) {
        let Some(place) = self.place(event) else {
            return;
        };
        let task = self.task(event.task);
        match event.kind {
            Kind::Assigned => {
                let there = task.is_some_and(|id| self.tasks[id.index()].on == Some(place));
                let awaited = task.filter(|_| !there).map(|id| (id, event.at));
                self.cpus[place].awaited = awaited;
            }
            Kind::Running => {
                if let Some((awaited, since)) = self.cpus[place].awaited
                    && Some(awaited) == task
                {
                    self.cpus[place].awaited = None;
                    if since >= self.origin_ns {
                        let span = Span::from_ns(event.at.saturating_sub(since));
                        self.reactions.push(span);
                    }
                }
            }
            _ => {}
        }
    }

    fn release<R: Recorder>(&mut self, index: usize, release: Instant, recorder: &mut R) {
        let task_state = &mut self.tasks[index];
        task_state.released += 1;
        let job = JobId {
            task: TaskId::from_index(index),
            number: task_state.released,
        };
        let pending = Pending {
            job,
            release,
            is_known: false,
        };
        match task_state.present {
            true => self.note_released(release, pending, recorder),
            false => task_state.early = Some(pending),
        }
    }

    fn note_released<R: Recorder>(&mut self, at: Instant, pending: Pending, recorder: &mut R) {
        let Pending { job, release, .. } = pending;
        let task_state = &mut self.tasks[job.task.index()];
        task_state.pending.push_back(pending);
        let deadline = release + task_state.deadline;
        self.record(at, Happening::Released { job, deadline }, recorder);
    }

    fn take_cpu_event<R: Recorder>(&mut self, event: Event, recorder: &mut R) {
        let Some(place) = self.place(event) else {
            return;
        };
        if matches!(event.kind, Kind::CpuLost | Kind::CpuBack) {
            self.decisions += 1;
            let lost = event.kind == Kind::CpuLost;
            self.set_gone(self.instant(event.at), place, event.value, lost, recorder);
        }
    }

    fn set_gone<R: Recorder>(
        &mut self,
        at: Instant,
        place: usize,
        reason: u64,
        lost: bool,
        recorder: &mut R,
    ) {
        let cpu = CpuId::from_index(place);
        let before = self.cpus[place].gone;
        let after = match lost {
            true => before | reason,
            false => before & !reason,
        };
        self.cpus[place].gone = after;
        if lost && let Some(job) = self.cpus[place].shown {
            // It is on its way out: the kernel has switched already, or is about to.
            self.show(at, place, None, recorder);
            self.tasks[job.task.index()].on = None;
        }
        let reasons = [
            (
                why::OFFLINE,
                Happening::CpuOffline { cpu },
                Happening::CpuOnline { cpu },
            ),
            (
                why::TAKEN,
                Happening::CpuTaken { cpu },
                Happening::CpuReturned { cpu },
            ),
            (
                why::BACKGROUND,
                Happening::BackgroundStarted { cpu },
                Happening::BackgroundEnded { cpu },
            ),
        ];
        for (reason, begins, ends) in reasons {
            match (before & reason != 0, after & reason != 0) {
                (false, true) => self.record(at, begins, recorder),
                (true, false) => self.record(at, ends, recorder),
                _ => {}
            }
        }
    }

    /// The CPU is shown with this job from now on.
    fn show<R: Recorder>(
        &mut self,
        at: Instant,
        place: usize,
        to: Option<JobId>,
        recorder: &mut R,
    ) {
        let from = self.cpus[place].shown;
        if from == to {
            return;
        }
        self.cpus[place].shown = to;
        let cpu = CpuId::from_index(place);
        self.record(at, Happening::Switched { cpu, from, to }, recorder);
    }

    /// The first pending job of the task.
    fn current(&self, id: TaskId) -> Option<JobId> {
        self.tasks[id.index()]
            .pending
            .front()
            .map(|pending| pending.job)
    }

    fn take_task_event<R: Recorder>(&mut self, event: Event, id: TaskId, recorder: &mut R) {
        let at = self.instant(event.at);
        let index = id.index();
        match event.kind {
            Kind::Ready => {
                self.decisions += 1;
                self.ready(at, event, id, recorder);
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
                // It leaves because it is done: nothing to tell.
                self.tasks[index].present = false;
            }
            Kind::Yielded => self.complete(at, id, recorder),
            Kind::Woken => {
                if self.tasks[index].jobs.is_none() && self.current(id).is_none() {
                    self.release(index, at, recorder);
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
                if let Some(job) = self.current(id).filter(|_| self.tasks[index].ready) {
                    self.record(at, Happening::BudgetSpent { job }, recorder);
                    match self.tasks[index].on {
                        Some(_) => self.tasks[index].stops_soon = true,
                        None => self.not_ready(at, id, NotReadyReason::Throttled, recorder),
                    }
                }
            }
            Kind::Overrun => {
                self.overran.push(id);
                if let Some(job) = self.current(id) {
                    self.record(at, Happening::BudgetSpent { job }, recorder);
                }
            }
            Kind::Replenished => {
                let budget = self.tasks[index].cost;
                let deadline = self.instant(event.value);
                let what = Happening::Replenished {
                    task: id,
                    budget,
                    deadline,
                };
                self.record(at, what, recorder);
            }
            Kind::Running => self.running(at, event, id, recorder),
            Kind::Stopped => self.stopped(at, event, id, recorder),
            Kind::Entered => {
                let task_state = &mut self.tasks[index];
                task_state.held_on = None;
                if !std::mem::replace(&mut task_state.present, true) {
                    let early = task_state.early.take();
                    self.record(at, Happening::Entered { task: id }, recorder);
                    if let Some(early) = early {
                        self.note_released(at, early, recorder);
                    }
                }
            }
            Kind::Left => self.leave(at, id, recorder),
            Kind::Demoted => {
                let cpus = CpuSet::from_bits(event.value);
                self.asking.push((id, cpus));
                self.affinity(at, id, cpus, recorder);
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
                    self.tasks[index].priority = priority;
                    let what = Happening::PrioritySet { task: id, priority };
                    self.record(at, what, recorder);
                }
            }
            Kind::Assigned
            | Kind::CpuLost
            | Kind::CpuBack
            | Kind::Told
            | Kind::Dispatched
            | Kind::Decided
            | Kind::Concluded
            | Kind::Probe => {}
            Kind::Ran => self.measure_own(event, id, recorder),
        }
    }

    fn ready<R: Recorder>(&mut self, at: Instant, event: Event, id: TaskId, recorder: &mut R) {
        let index = id.index();
        if self.current(id).is_none() {
            // A program's next job may begin with a new period instead of a wake-up.
            if self.tasks[index].jobs.is_some() || !self.tasks[index].present {
                return;
            }
            self.release(index, at, recorder);
        }
        if self.tasks[index].stops_soon {
            self.stop_now(at, id, recorder);
        }
        let task_state = &mut self.tasks[index];
        let is_thread = task_state.jobs.is_some();
        let Some(first) = task_state.pending.front_mut() else {
            return;
        };
        // A job that begins late because the one before it was late is not the timer's fault.
        let is_new = !std::mem::replace(&mut first.is_known, true);
        let first = *first;
        if is_new && is_thread && !task_state.goes_on && event.at >= self.origin_ns {
            let late = at.since(first.release).unwrap_or(Span::ZERO);
            self.lateness.push(late);
        }
        let task_state = &mut self.tasks[index];
        task_state.ready = true;
        let (priority, on) = (task_state.priority, task_state.on);
        let deadline = self.instant(event.value);
        let job = first.job;
        let what = Happening::Ready {
            job,
            deadline,
            priority,
        };
        self.record(at, what, recorder);
        // It need not have left its CPU between two jobs.
        if let Some(place) = on {
            self.show(at, place, Some(job), recorder);
        }
    }

    fn not_ready<R: Recorder>(
        &mut self,
        at: Instant,
        id: TaskId,
        reason: NotReadyReason,
        recorder: &mut R,
    ) {
        let task_state = &mut self.tasks[id.index()];
        if !std::mem::take(&mut task_state.ready) {
            return;
        }
        if let Some(job) = self.current(id) {
            self.record(at, Happening::NotReady { job, reason }, recorder);
        }
    }

    /// It was out of budget when it was told to stop, and has stopped now.
    fn stop_now<R: Recorder>(&mut self, at: Instant, id: TaskId, recorder: &mut R) {
        self.tasks[id.index()].stops_soon = false;
        if let Some(place) = self.tasks[id.index()].on {
            self.show(at, place, None, recorder);
        }
        self.not_ready(at, id, NotReadyReason::Throttled, recorder);
    }

    fn complete<R: Recorder>(&mut self, at: Instant, id: TaskId, recorder: &mut R) {
        let task_state = &mut self.tasks[id.index()];
        task_state.stops_soon = false;
        task_state.ready = false;
        let Some(first) = task_state.pending.front().copied() else {
            return;
        };
        // A job is finished after its release, however short it is.
        if first.release > at {
            return;
        }
        task_state.pending.pop_front();
        let on = task_state.on;
        let job = first.job;
        self.record(at, Happening::Completed { job }, recorder);
        if let Some(place) = on
            && self.cpus[place].shown == Some(job)
        {
            self.show(at, place, None, recorder);
        }
    }

    fn running<R: Recorder>(&mut self, at: Instant, event: Event, id: TaskId, recorder: &mut R) {
        let Some(place) = self.place(event) else {
            return;
        };
        self.tasks[id.index()].on = Some(place);
        self.tasks[id.index()].measured_ns = event.at;
        if self.cpus[place].gone & why::TAKEN != 0 {
            // Whoever had taken it has let go; that is told after the next switch.
            self.set_gone(at, place, why::TAKEN, false, recorder);
        }
        let ready = self.tasks[id.index()].ready;
        if let Some(job) = self.current(id).filter(|_| ready) {
            self.show(at, place, Some(job), recorder);
        }
    }

    fn stopped<R: Recorder>(&mut self, at: Instant, event: Event, id: TaskId, recorder: &mut R) {
        let Some(place) = self.place(event) else {
            return;
        };
        self.measure_own(event, id, recorder);
        if self.cpus[place].shown.is_some_and(|job| job.task == id) {
            self.show(at, place, None, recorder);
        }
        if self.tasks[id.index()].stops_soon {
            self.stop_now(at, id, recorder);
        }
        self.tasks[id.index()].on = None;
    }

    /// It is told for how long the task ran, and that may be less than the time that it was there.
    fn measure_own<R: Recorder>(&mut self, event: Event, id: TaskId, recorder: &mut R) {
        let task_state = &mut self.tasks[id.index()];
        let since_ns = std::mem::replace(&mut task_state.measured_ns, event.at).max(self.origin_ns);
        let there_ns = event.at.saturating_sub(since_ns);
        let time = Span::from_ns(there_ns.saturating_sub(event.value));
        let shown = task_state.on.and_then(|place| self.cpus[place].shown);
        if let Some(job) = shown.filter(|job| job.task == id)
            && time >= INTERRUPTED_MIN
        {
            let at = self.instant(event.at);
            self.record(at, Happening::Interrupted { job, time }, recorder);
        }
    }

    fn leave<R: Recorder>(&mut self, at: Instant, id: TaskId, recorder: &mut R) {
        self.decisions += 1;
        let task_state = &mut self.tasks[id.index()];
        if !std::mem::take(&mut task_state.present) {
            return;
        }
        task_state.early = None;
        task_state.pending.clear();
        task_state.ready = false;
        task_state.stops_soon = false;
        self.record(at, Happening::Left { task: id }, recorder);
        if let Some(place) = self.tasks[id.index()].on {
            self.show(at, place, None, recorder);
        }
    }

    fn affinity<R: Recorder>(&mut self, at: Instant, id: TaskId, cpus: CpuSet, recorder: &mut R) {
        let in_file = cpus
            .iter()
            .filter_map(|cpu| self.file_cpu.get(cpu.index()).copied().flatten())
            .map(CpuId::from_index)
            .collect();
        if let Some(affinity) = Affinity::new(in_file) {
            let what = Happening::AffinitySet {
                task: id,
                affinity: Box::new(affinity),
            };
            self.record(at, what, recorder);
        }
    }

    /// The attributes of the task's jobs that are released from now on.
    pub(crate) fn set_attributes<R: Recorder>(
        &mut self,
        at: Instant,
        id: TaskId,
        [cost, period, deadline]: [Span; 3],
        recorder: &mut R,
    ) {
        // What was released before is due as it was.
        let before_ns = self.origin_ns.saturating_add(at.as_ns()).saturating_sub(1);
        self.advance(before_ns, recorder);
        let task_state = &mut self.tasks[id.index()];
        task_state.cost = cost;
        task_state.deadline = deadline;
        let what = Happening::AttributesSet {
            task: id,
            cost,
            period,
            deadline,
        };
        self.record(at, what, recorder);
    }

    /// What each CPU of the file is shown with.
    pub(crate) fn running_now(&self) -> impl Iterator<Item = Option<JobId>> + '_ {
        self.cpus.iter().map(|place| place.shown)
    }
}

#[cfg(test)]
mod tests;
