//! What an agent decides: reports and instants go in, slots come out.
//!
//! It joins a policy to a real machine as the simulator joins it to a simulated one, by the same servers
//! and the same order of things; that both do the same is tested. It reads no clock and calls nobody.

mod job;
mod quanta;
mod resync;
mod task_state;
#[cfg(test)]
mod tests;

use shiftwork_machine::{ServerRule, Timeline};
use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Job, Priority, Span, Task, TaskId};
use shiftwork_policy::registry::OrderName;
use shiftwork_policy::{AsLinux, Event as PolicyEvent, Policy, Switches};

use super::enactor::Slot;
use crate::Plan;
use crate::event::{Event, Kind};
use crate::machine::Parameters;
use quanta::Quanta;
use task_state::{Stage, TaskState};

/// A CPU of the platform.
#[derive(Clone, Debug)]
struct CpuState {
    /// The machine's number.
    cpu: CpuId,
    /// What it was told to run and, as far as is known, runs or will.
    slot: Option<TaskId>,
    /// What made another slot necessary; `None`: nothing has.
    cause: Option<Instant>,
    /// Why it is gone, a bit for each reason.
    gone: u64,
    /// What was reported of that until then is known.
    known_until: Instant,
}

/// The decisions of an agent.
///
/// Its instants are nanoseconds since `base_ns` of the monotonic clock.
pub(super) struct Decider {
    policy: Box<dyn Policy>,
    tasks: Vec<Task>,
    states: Vec<TaskState>,
    cpus: Vec<CpuState>,
    /// By what the policy ranks jobs.
    order: OrderName,
    /// By what servers keep time.
    rule: ServerRule,
    /// Of the CPUs: budgets to be looked at; after them of the tasks: releases and replenishments; after
    /// them again: releases that may come before the present job is finished.
    timers: Timeline,
    /// `None` if the policy decides at events alone.
    quanta: Option<Quanta>,
    /// What becomes ready at one instant, while it is gathered.
    arrivals: Vec<Job>,
    gathering: bool,
    switches: Switches,
    /// What is to be told, in its order.
    pub(super) events: Vec<Event>,
    base_ns: u64,
    /// When what is being handled happened.
    cause: Instant,
    /// How often slots were taken.
    rounds: u64,
    /// How many jobs were moved in the middle.
    pub(super) shifts: u64,
}

impl Decider {
    /// The decisions of this policy about the plan. Nothing after `span` matters.
    pub(super) fn new(plan: &Plan<'_>, policy: Box<dyn Policy>, base_ns: u64, span: Span) -> Self {
        let (set, cpus) = (plan.set, &plan.cpus);
        let priorities = set.priorities();
        let rule = match policy.as_linux() {
            Some(AsLinux { lagging, .. }) => ServerRule::Linux(lagging),
            None => ServerRule::Releases,
        };
        let states = set
            .iter()
            .map(|(id, _)| TaskState::new(priorities[id.index()], !set.enters_later(id), rule));
        let cpu_state = |&cpu| CpuState {
            cpu,
            slot: None,
            cause: None,
            gone: 0,
            known_until: Instant::ZERO,
        };
        let states: Vec<TaskState> = states.collect();
        let end = Instant::ZERO + span;
        let quanta = Quanta::new(policy.as_ref(), &set.tasks, end);
        // Where runs begin, too: see `run.rs`.
        let length = policy.quanta().map(|quanta| quanta.length);
        let base_ns = length.map_or(base_ns, |length| base_ns - base_ns % length.as_ns());
        Self {
            policy,
            quanta,
            tasks: set.tasks.clone(),
            order: plan.order,
            rule,
            timers: Timeline::new(cpus.len() + 2 * states.len(), end),
            arrivals: Vec::with_capacity(states.len()),
            gathering: false,
            states,
            cpus: cpus.iter().map(cpu_state).collect(),
            // A job that gets another deadline may leave and arrive: a CPU may then switch more than once.
            switches: Switches::with_capacity(4 * cpus.len()),
            events: Vec::with_capacity(4096),
            base_ns,
            cause: Instant::ZERO,
            rounds: 0,
            shifts: 0,
        }
    }

    /// Holds everybody to the budget to the nanosecond, where Linux's servers keep it: on a perfect machine
    /// nobody needs more.
    #[cfg(test)]
    fn without_grace(mut self) -> Self {
        for state in &mut self.states {
            state.tolerance = |_| Span::ZERO;
        }
        self
    }

    /// How many tasks there are, whether or not they take part.
    pub(super) fn task_count(&self) -> usize {
        self.states.len()
    }

    /// Whether no CPU has anything to run, and nothing that is known of will happen before `until_ns`.
    pub(super) fn is_idle(&self, until_ns: u64) -> bool {
        let sleeps = |state: &TaskState| match state.stage {
            Stage::Unreleased(release) => release > self.instant(until_ns),
            _ => true,
        };
        let empty = |cpu: &CpuState| cpu.slot.is_none();
        self.next_ns() > until_ns && self.cpus.iter().all(empty) && self.states.iter().all(sleeps)
    }

    /// When [`pass`](Self::pass) is due, on the monotonic clock; `u64::MAX` if never.
    pub(super) fn next_ns(&self) -> u64 {
        match self.next_instant() {
            Instant::NEVER => u64::MAX,
            at => self.base_ns.saturating_add(at.as_ns()),
        }
    }

    fn next_instant(&self) -> Instant {
        let begins = self.quanta.as_ref().map_or(Instant::NEVER, Quanta::next);
        self.timers.first().min(begins)
    }

    /// Lets the policy know of all that is due by now: what is due at one instant in the order of the
    /// simulator, budgets first, then arrivals, the most urgent first.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let now = self.instant(now_ns);
        if let Some(quanta) = &mut self.quanta {
            quanta.skip_to(now);
        }
        let mut is_first = true;
        while self.next_instant() <= now {
            if !std::mem::replace(&mut is_first, false) && self.quanta.is_some() {
                // Whoever decides about a quantum knows what there was when it began.
                self.end_instant();
            }
            let due = self.next_instant();
            self.cause = due;
            self.gathering = true;
            while self.timers.first() == due {
                let at = self.timers.first_place();
                self.timers.set(at, Instant::NEVER);
                match at.checked_sub(self.cpus.len()) {
                    Some(index) if index < self.states.len() => {
                        self.timer_expired(now, due, TaskId::from_index(index));
                    }
                    Some(index) => {
                        let id = TaskId::from_index(index - self.states.len());
                        self.on_predicted_release(due, id);
                    }
                    None => self.check_budget(now, at),
                }
            }
            self.gathering = false;
            self.tick(due);
            self.apply_arrivals();
        }
    }

    /// The policy has heard of all that happened at this instant. A CPU to which nothing happened gets a job
    /// because that became ready, or because a quantum began.
    fn end_instant(&mut self) {
        self.switches.clear();
        self.policy.end_instant(&mut self.switches);
        for switch in &self.switches {
            let arrival = switch.to.map(|task| self.states[task.index()].arrival);
            let is_news =
                |&(round, _): &(u64, Instant)| round == self.rounds && self.quanta.is_none();
            let cause = arrival
                .filter(is_news)
                .map_or(self.cause, |(_, cause)| cause);
            let cpu = &mut self.cpus[switch.cpu.index()];
            cpu.cause = cpu.cause.or(Some(cause));
        }
    }

    /// What was gathered becomes ready.
    fn apply_arrivals(&mut self) {
        match self.order {
            OrderName::Edf => self
                .arrivals
                .sort_unstable_by_key(|job| (job.deadline, job.task)),
            OrderName::FixedPriority => {
                self.arrivals
                    .sort_unstable_by_key(|job| (job.priority, job.task));
            }
        }
        for at in 0..self.arrivals.len() {
            self.arrive(self.arrivals[at]);
        }
        self.arrivals.clear();
    }

    fn arrive(&mut self, job: Job) {
        self.states[job.task.index()].arrival = (self.rounds, self.cause);
        self.emit_ready(job);
        self.apply(PolicyEvent::Wake(job));
    }

    fn emit_ready(&mut self, job: Job) {
        let value = self.value(job.deadline);
        self.emit(self.cause, Kind::Ready, number(job.task), None, value);
    }

    /// The timer of the task ends then, and at no other instant.
    fn set_timer(&mut self, id: TaskId, at: Instant) {
        self.timers.set(self.cpus.len() + id.index(), at);
    }

    /// Something happened. It is told on, with what comes of it.
    pub(super) fn report(&mut self, event: Event) {
        if event.kind == Kind::Probe {
            return;
        }
        self.events.push(event);
        let now = self.instant(event.at);
        self.cause = now;
        if event.task == 0 {
            self.cpu_reported(event);
            return;
        }
        let index = event.task as usize - 1;
        let is_news =
            |state: &TaskState| state.is_present && now >= state.since && now > state.known_until;
        if self.states.get(index).is_some_and(is_news) {
            self.task_reported(now, event, TaskId::from_index(index));
        }
    }

    /// The slots that changed since the last call, and the earliest thing that made one change.
    ///
    /// All that was reported and due since then counts as one instant: nothing of it has been carried out,
    /// so a policy that does not preempt gives a free CPU to the most urgent job that waits by now, even if
    /// the CPU was free a moment before the job was released.
    pub(super) fn take_slots(&mut self, slots: &mut Vec<Slot>) -> Option<u64> {
        self.end_instant();
        self.rounds += 1;
        let mut first = None;
        for index in 0..self.cpus.len() {
            let Some(cause) = self.cpus[index].cause.take() else {
                continue;
            };
            let task = self.policy.assigned(CpuId::from_index(index));
            if task == self.cpus[index].slot {
                continue;
            }
            first = Some(first.map_or(cause, |first: Instant| first.min(cause)));
            self.fill(index, task, cause);
            slots.push(Slot {
                cpu: self.cpus[index].cpu,
                task,
                stops: task.map_or(0, |task| self.states[task.index()].stops),
            });
        }
        first.map(|first| self.base_ns.saturating_add(first.as_ns()))
    }

    fn fill(&mut self, index: usize, task: Option<TaskId>, cause: Instant) {
        if let Some(task) = task {
            let running = self.states[task.index()].running;
            self.shifts += u64::from(running.is_some_and(|running| running.cpu_index != index));
            if let Some(left) = self.states[task.index()].left() {
                // It may never have noticed that it was to leave: then it has run all the time.
                let since = match running {
                    Some(running) if running.cpu_index == index => running.since + running.charged,
                    _ => cause,
                };
                self.timers.set(index, since + left);
            }
        }
        self.cpus[index].slot = task;
        let number = task.map_or(0, number);
        let cpu = u16::try_from(self.cpus[index].cpu.index()).ok();
        self.emit(cause, Kind::Assigned, number, cpu, 0);
    }

    /// The task takes part from now on; `comes_back` after having lost that.
    ///
    /// # Errors
    /// If the policy does not take it, in its words.
    pub(super) fn admit(
        &mut self,
        now_ns: u64,
        id: TaskId,
        of: &Parameters,
        is_awake: bool,
    ) -> Result<(), String> {
        let now = self.instant(now_ns);
        self.cause = now;
        let state = &self.states[id.index()];
        let comes_back = !state.in_policy && state.stage != Stage::Idle;
        self.leave(id, false);
        let state = &self.states[id.index()];
        let task = &mut self.tasks[id.index()];
        let platform = &self.cpus;
        if let Some(affinity) = Affinity::new(in_platform(platform, &of.cpus)) {
            task.affinity = affinity;
        }
        if !state.in_policy {
            let enters = PolicyEvent::Enter(id, task);
            self.policy
                .accepts(&enters)
                .map_err(|error| error.to_string())?;
            self.switches.clear();
            self.policy.on_event(enters, &mut self.switches);
            self.note_switches();
        }
        let state = &mut self.states[id.index()];
        state.in_policy = true;
        state.enter(of, is_awake, comes_back);
        state.since = now;
        if !of.follows && is_awake {
            self.begin(now, now, now, id);
        }
        Ok(())
    }

    /// The task's first job is released then.
    pub(super) fn first_job(&mut self, now_ns: u64, id: TaskId, release_ns: u64) {
        let now = self.instant(now_ns);
        self.cause = now;
        self.next_job(now, id, self.instant(release_ns));
    }

    /// The task takes no part any more.
    pub(super) fn dismiss(&mut self, now_ns: u64, id: TaskId) {
        self.cause = self.instant(now_ns);
        self.leave(id, false);
    }

    /// The task has another priority.
    pub(super) fn set_priority(&mut self, now_ns: u64, id: TaskId, priority: Priority) {
        self.cause = self.instant(now_ns);
        self.states[id.index()].priority = priority;
        self.apply(PolicyEvent::SetPriority(id, priority));
        let value = u64::from(priority.number());
        self.emit(self.cause, Kind::Priority, number(id), None, value);
    }

    /// The jobs to come have other parameters.
    pub(super) fn set_server(&mut self, id: TaskId, of: &Parameters) {
        self.states[id.index()].set_parameters(of);
        let task = &mut self.tasks[id.index()];
        (task.cost, task.period, task.deadline) = (of.cost, of.period, of.deadline);
        if self.states[id.index()].is_present {
            self.switches.clear();
            let attributes = PolicyEvent::SetAttributes(id, &self.tasks[id.index()]);
            self.policy.on_event(attributes, &mut self.switches);
            self.note_switches();
        }
    }

    /// The task may use these CPUs of the machine from now on.
    pub(super) fn set_affinity(&mut self, now_ns: u64, id: TaskId, cpus: &CpuSet) {
        self.cause = self.instant(now_ns);
        self.rebind(id, cpus);
        let value = cpus.words()[0];
        self.emit(self.cause, Kind::Affinity, number(id), None, value);
    }

    fn instant(&self, at_ns: u64) -> Instant {
        Instant::from_ns(at_ns.saturating_sub(self.base_ns))
    }

    fn emit(&mut self, at: Instant, kind: Kind, task: u32, cpu: Option<u16>, value: u64) {
        self.events.push(Event {
            at: self.base_ns.saturating_add(at.as_ns()),
            value,
            task,
            cpu,
            kind,
        });
    }

    /// An instant as the value of an event.
    fn value(&self, at: Instant) -> u64 {
        self.base_ns.saturating_add(at.as_ns())
    }

    fn cpu_index(&self, machine_cpu: usize) -> Option<usize> {
        let mut cpus = self.cpus.iter();
        cpus.position(|cpu| cpu.cpu.index() == machine_cpu)
    }

    /// Lets the policy know, if it takes that.
    fn apply(&mut self, event: PolicyEvent<'_>) {
        self.switches.clear();
        self.policy.on_event(event, &mut self.switches);
        self.note_switches();
    }

    /// A job follows one of its task at once. Whether the policy decides about both together.
    fn offer(&mut self, next: Job) -> bool {
        self.switches.clear();
        let taken = self.policy.succeed(next, &mut self.switches);
        if taken {
            self.emit_ready(next);
            self.note_switches();
        }
        taken
    }

    fn note_switches(&mut self) {
        for switch in &self.switches {
            let cpu = &mut self.cpus[switch.cpu.index()];
            cpu.cause = cpu.cause.or(Some(self.cause));
        }
    }

    fn cpu_reported(&mut self, event: Event) {
        let Some(index) = event.cpu.and_then(|cpu| self.cpu_index(usize::from(cpu))) else {
            return;
        };
        if self.instant(event.at) < self.cpus[index].known_until {
            return;
        }
        let before = self.cpus[index].gone;
        let after = match event.kind {
            Kind::CpuLost => before | event.value,
            Kind::CpuBack => before & !event.value,
            _ => return,
        };
        self.cpus[index].gone = after;
        let cpu = CpuId::from_index(index);
        if event.kind == Kind::CpuLost {
            self.cpus[index].slot = None;
        }
        match (before == 0, after == 0) {
            (true, false) => self.apply(PolicyEvent::CpuOffline(cpu)),
            (false, true) => {
                let state = &mut self.cpus[index];
                state.cause = state.cause.or(Some(self.cause));
                self.apply(PolicyEvent::CpuOnline(cpu));
            }
            _ => {}
        }
    }

    fn task_reported(&mut self, now: Instant, event: Event, id: TaskId) {
        match event.kind {
            Kind::NextJob => {
                self.states[id.index()].finished += 1;
                self.count_stop(id);
                self.next_job(now, id, self.instant(event.value));
            }
            Kind::Yielded => {
                self.count_stop(id);
                let next = self.states[id.index()].next_period();
                self.next_job(now, id, next);
            }
            Kind::LastJob => self.complete(id),
            Kind::Blocked => {
                self.count_stop(id);
                self.suspend(id);
            }
            Kind::Woken => self.wake(now, id),
            Kind::Running => self.start_running(now, event, id),
            Kind::Stopped => {
                self.charge(now, event, id);
                self.states[id.index()].running = None;
            }
            Kind::Ran => self.charge(now, event, id),
            Kind::Left => self.leave(id, false),
            Kind::Demoted => self.leave(id, true),
            Kind::Affinity => self.rebind(id, &CpuSet::from_bits(event.value)),
            _ => {}
        }
    }

    /// It emptied its slot.
    fn count_stop(&mut self, id: TaskId) {
        self.states[id.index()].stops = self.states[id.index()].stops.wrapping_add(1);
        self.vacate(id);
    }

    fn vacate(&mut self, id: TaskId) {
        for cpu in &mut self.cpus {
            if cpu.slot == Some(id) {
                cpu.slot = None;
                cpu.cause = cpu.cause.or(Some(self.cause));
            }
        }
    }

    /// It takes no part any more; `demoted`: until it is admitted again.
    fn leave(&mut self, id: TaskId, demoted: bool) {
        let state = &mut self.states[id.index()];
        // Anything but idle says that it comes back.
        let after = match demoted {
            true => Stage::Suspended,
            false => Stage::Idle,
        };
        if !std::mem::take(&mut state.is_present) {
            state.stage = after;
            return;
        }
        state.stage = after;
        // What it runs from now on is its own affair, and the report of what it ran comes later.
        state.charge_until(self.cause);
        state.running = None;
        state.in_policy = false;
        self.vacate(id);
        self.set_timer(id, Instant::NEVER);
        self.states[id.index()].predicted_release = Instant::ZERO;
        if self.policy.accepts(&PolicyEvent::Leave(id)).is_ok() {
            self.apply(PolicyEvent::Leave(id));
        }
    }

    fn rebind(&mut self, id: TaskId, cpus: &CpuSet) {
        let Some(affinity) = Affinity::new(in_platform(&self.cpus, cpus)) else {
            return;
        };
        let event = PolicyEvent::SetAffinity(id, &affinity);
        if self.policy.accepts(&event).is_ok() {
            self.tasks[id.index()].affinity = affinity;
            let home = self.policy.queue_of(id);
            if home.is_some_and(|home| !affinity.cpus().contains(home))
                && let Some(deadline) = self.states[id.index()].renew_if_late(self.cause)
            {
                self.emit_replenished(id, deadline);
                self.apply(PolicyEvent::SetDeadline(id, deadline));
            }
            self.apply(PolicyEvent::SetAffinity(id, &affinity));
        }
    }
}

/// The CPUs of the platform among these of the machine, in the platform's numbers.
fn in_platform(platform: &[CpuState], cpus: &CpuSet) -> CpuSet {
    let among = |state: &CpuState| cpus.contains(state.cpu);
    (0..platform.len())
        .filter(|&index| among(&platform[index]))
        .map(CpuId::from_index)
        .collect()
}

/// The number of a task in events.
fn number(task: TaskId) -> u32 {
    u32::try_from(task.index() + 1).unwrap_or(u32::MAX)
}
