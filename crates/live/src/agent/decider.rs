//! The decisions of an agent: reports and instants are the input, slots the output.
//!
//! It connects a policy to a real machine as the simulator connects it to a simulated one, with the same servers
//! and the same order of events at one instant; tests compare both. It reads no clock and makes no calls to the
//! machine.

mod job;
mod mutexes;
mod quanta;
mod reports;
mod requests;
mod resync;
mod task_state;
#[cfg(test)]
mod tests;
mod triggers;

use shiftwork_machine::{Mutexes, ServerRule, Timeline, TriggerQueue};
use shiftwork_model::{CpuId, CpuSet, Instant, Job, LinuxRules, Order, Span, Task, TaskId};
use shiftwork_policy::{Event as PolicyEvent, Policy, Switches};

use super::enactor::Slot;
use crate::Plan;
use crate::event::{Event, Kind};
use quanta::Quanta;
use task_state::{Stage, TaskState};

/// A CPU of the platform.
#[derive(Clone, Debug)]
struct CpuState {
    /// The machine's number.
    cpu: CpuId,
    /// The task that it is assigned and, as far as is known, runs or will run.
    slot: Option<TaskId>,
    /// Instant of the earliest event since the last decision that may change the slot; `None` if there is none.
    cause: Option<Instant>,
    /// The reasons for which the CPU is gone, one bit each.
    gone: u64,
    /// Reports until this instant are contained in the state.
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
    /// Of the tasks that others trigger.
    triggers: Vec<Option<TriggerQueue>>,
    /// Triggered tasks that have begun a job by an earlier trigger since this was last emptied.
    pub(super) begun: Vec<TaskId>,
    /// `None` if no task locks a mutex.
    mutexes: Option<Mutexes>,
    /// Tasks whose threads go on with a mutex that they requested, or after they unlocked some, once the slots are filled; since
    /// this was last emptied.
    pub(super) answered: Vec<TaskId>,
    /// Whether a job that is assigned to a CPU has to request a mutex.
    has_requests: bool,
    /// How the policy ranks jobs.
    order: Order,
    /// The rule of the servers.
    rule: ServerRule,
    /// First one timer per CPU: the end of a budget; then one per task: a release or replenishment; then one per task
    /// again: a release that may come before the present job is finished.
    timers: Timeline,
    /// `None` if the policy decides at events alone.
    quanta: Option<Quanta>,
    /// Jobs that become ready at one instant, while they are gathered.
    arrivals: Vec<Job>,
    gathering: bool,
    switches: Switches,
    /// Events to forward, in their order.
    pub(super) events: Vec<Event>,
    base_ns: u64,
    /// Instant of the event in progress.
    cause: Instant,
    /// Number of calls of `take_slots`.
    rounds: u64,
    /// Number of migrations of running jobs.
    pub(super) shifts: u64,
}

impl Decider {
    /// Decisions of this policy for the plan. Nothing after `span` matters.
    pub(super) fn new(plan: &Plan<'_>, policy: Box<dyn Policy>, base_ns: u64, span: Span) -> Self {
        let (set, cpus) = (plan.set, &plan.cpus);
        let priorities = set.priorities();
        let rule = match plan.traits.budgets.linux_rules(&set.scheduler) {
            Some(LinuxRules { lagging, .. }) => ServerRule::Linux(lagging),
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
        // Runs begin at a multiple of the quantum, too: see `run.rs`.
        let length = policy.quanta().map(|quanta| quanta.length);
        let base_ns = length.map_or(base_ns, |length| base_ns - base_ns % length.as_ns());
        Self {
            policy,
            quanta,
            tasks: set.tasks.clone(),
            triggers: set
                .tasks
                .iter()
                .map(|task| task.trigger().map(TriggerQueue::new))
                .collect(),
            begun: Vec::with_capacity(set.tasks.len()),
            mutexes: Mutexes::new(set, &plan.traits),
            answered: Vec::with_capacity(2 * set.tasks.len()),
            has_requests: false,
            order: plan.traits.order,
            rule,
            timers: Timeline::new(cpus.len() + 2 * states.len(), end),
            arrivals: Vec::with_capacity(states.len()),
            gathering: false,
            states,
            cpus: cpus.iter().map(cpu_state).collect(),
            // A job that gets another deadline may leave and arrive again: a CPU may then switch more than once.
            switches: Switches::with_capacity(4 * cpus.len()),
            events: Vec::with_capacity(4096),
            base_ns,
            cause: Instant::ZERO,
            rounds: 0,
            shifts: 0,
        }
    }

    /// Enforces budgets to the nanosecond where Linux's servers keep them: an ideal machine needs no grace.
    #[cfg(test)]
    fn without_grace(mut self) -> Self {
        for state in &mut self.states {
            state.tolerance = |_| Span::ZERO;
        }
        self
    }

    /// Number of tasks, admitted or not.
    pub(super) fn task_count(&self) -> usize {
        self.states.len()
    }

    /// Whether all slots are empty and no known event is due before `until_ns`.
    pub(super) fn is_idle(&self, until_ns: u64) -> bool {
        let sleeps = |state: &TaskState| match state.stage {
            Stage::Unreleased(release) => release > self.instant(until_ns),
            _ => true,
        };
        let empty = |cpu: &CpuState| cpu.slot.is_none();
        self.next_ns() > until_ns && self.cpus.iter().all(empty) && self.states.iter().all(sleeps)
    }

    /// When [`advance`](Self::advance) is due, on the monotonic clock; `u64::MAX` if never.
    pub(super) fn next_ns(&self) -> u64 {
        match self.next_instant() {
            Instant::NEVER => u64::MAX,
            at => self.base_ns.saturating_add(at.as_ns()),
        }
    }

    fn next_instant(&self) -> Instant {
        match self.has_requests {
            true => Instant::ZERO,
            false => self.next_timer(),
        }
    }

    /// When the next timer expires or the next quantum begins.
    fn next_timer(&self) -> Instant {
        let begins = self.quanta.as_ref().map_or(Instant::NEVER, Quanta::next);
        self.timers.first().min(begins)
    }

    /// Passes everything that is due by now to the policy. Of one instant in the simulator's order: ends of budgets
    /// first, then arrivals, the most urgent first.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let now = self.instant(now_ns);
        self.apply_arrivals();
        if let Some(quanta) = &mut self.quanta {
            quanta.skip_to(now);
        }
        let mut is_first = true;
        while self.next_timer() <= now {
            if !std::mem::replace(&mut is_first, false) && self.quanta.is_some() {
                // A decision about a quantum knows the jobs at the beginning of that quantum.
                self.end_instant();
            }
            let due = self.next_timer();
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
        self.make_requests(now);
        self.apply_arrivals();
    }

    /// Ends an instant: the policy may assign CPUs now. A CPU that no event concerned gets a job because the job
    /// became ready, or because a quantum began.
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

    /// Passes the gathered jobs to the policy.
    fn apply_arrivals(&mut self) {
        let order = self.order;
        self.arrivals
            .sort_unstable_by_key(|job| (order.rank(job.deadline, job.priority), job.task));
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

    /// Sets the only timer of the task.
    fn set_timer(&mut self, id: TaskId, at: Instant) {
        self.timers.set(self.cpus.len() + id.index(), at);
    }

    /// Appends the slots that changed since the last call; the earliest cause of these changes.
    ///
    /// Everything that was reported and due since then counts as one instant, because nothing of it has been
    /// enacted: a policy that does not preempt gives a free CPU to the most urgent job that waits by now, even
    /// if the CPU became free before that job was released.
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
        self.find_requests();
        first.map(|first| self.base_ns.saturating_add(first.as_ns()))
    }

    fn fill(&mut self, index: usize, task: Option<TaskId>, cause: Instant) {
        if let Some(task) = task {
            let running = self.states[task.index()].running;
            self.shifts += u64::from(running.is_some_and(|running| running.cpu_index != index));
            if let Some(left) = self.states[task.index()].left() {
                // The task may not have left the CPU since it was assigned elsewhere: then its run goes on.
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

    /// Passes the event to the policy.
    fn apply(&mut self, event: PolicyEvent<'_>) {
        self.switches.clear();
        self.policy.on_event(event, &mut self.switches);
        self.note_switches();
    }

    /// A job follows the previous one of its task at once. Whether the policy decides about both together.
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
}

/// The platform's CPUs among these CPUs of the machine, in the platform's numbers.
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
