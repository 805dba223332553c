//! The loop over instants, and the machine's state as a whole.

mod actions;
mod arrivals;
mod costs;
mod dispatch;
mod jobs;
mod laxity;
mod locks;
mod requests;
mod reserve;
mod speeds;
mod ticks;
mod triggers;

use shiftwork_machine::{Mutexes, ServerRule, Ticks, Timeline};
use shiftwork_model::{
    CpuId, Instant, Job, LinuxRules, Order, PolicyTraits, RecordKind, Recorder, TaskId, TaskSet,
};
use shiftwork_policy::{Event, Policy, Switch, Switches};

use crate::options::Options;
use crate::state::{CpuState, Plan, Stage, TaskState, initial};
use actions::Actions;
pub(crate) use costs::Costs;
pub use costs::QueueUse;
use laxity::Laxities;
use reserve::Reserve;
use speeds::Speeds;
use ticks::ticks;
use triggers::Triggers;

/// The input of a run: the tasks, and the policy that schedules them.
pub(crate) struct Workload<'a> {
    /// The tasks, the platform and the timed changes.
    pub(crate) set: &'a TaskSet,
    /// The policy, built for this task set, with no job ready.
    pub(crate) policy: Box<dyn Policy>,
    /// The properties of the policy. Arrivals at one instant are passed to it in its order.
    pub(crate) traits: PolicyTraits,
}

/// The result of a run beyond its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of events that were passed to the policy.
    pub events: u64,
}

/// A run in progress.
///
/// Between two instants the running jobs do not change. `releases`, `timers` (ends of suspensions and
/// throttling) and `stops` (ends of a job's work or budget) have the next instants; `rare` covers all events
/// that most runs do not have.
pub(crate) struct Engine<'a, R> {
    pub(crate) set: &'a TaskSet,
    pub(crate) recorder: &'a mut R,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) order: Order,
    /// The rule of all servers.
    pub(crate) rule: ServerRule,
    horizon: Instant,
    events: u64,
    pub(crate) tasks: Vec<TaskState>,
    pub(crate) plans: Vec<Plan>,
    pub(crate) cpus: Vec<CpuState>,
    pub(crate) releases: Timeline,
    pub(crate) timers: Timeline,
    pub(crate) stops: Timeline,
    /// The earliest of the actions, the ticks, the reserve's timers and the ends of activity.
    rare: Instant,
    pub(crate) actions: Actions,
    pub(crate) costs: Option<Costs>,
    pub(crate) reserve: Option<Reserve>,
    /// `None` if there are no ticks.
    pub(crate) ticks: Option<Ticks>,
    /// Whether the policy decides at ticks.
    pub(crate) in_quanta: bool,
    /// `None` if the policy ranks no jobs by laxity.
    pub(crate) laxities: Option<Laxities>,
    /// `None` if no task locks a mutex. Boxed, since every request takes it out for a moment.
    pub(crate) locks: Option<Box<Mutexes>>,
    /// `None` if no task triggers another.
    pub(crate) triggers: Option<Triggers>,
    /// `None` if every CPU is always at full speed.
    pub(crate) speeds: Option<Speeds>,
    /// Tasks with a job that becomes, or has become, ready at the present instant.
    pub(crate) arrivals: Vec<TaskId>,
    /// Tasks with a timer that expires at the present instant, unless that completes their job.
    pub(crate) waking: Vec<TaskId>,
    /// CPUs whose job may change at the present instant.
    pub(crate) touched: Vec<CpuId>,
    switches: Switches,
}

impl<'a, R: Recorder> Engine<'a, R> {
    pub(crate) fn new(workload: Workload<'a>, options: Options, recorder: &'a mut R) -> Self {
        let Workload {
            set,
            policy,
            traits,
        } = workload;
        let priorities = set.priorities();
        let cpu_count = set.platform.cpus;
        let as_linux = traits.budgets.linux_rules(&set.scheduler);
        let rule = match as_linux {
            Some(LinuxRules { lagging, .. }) => ServerRule::Linux(lagging),
            None => ServerRule::Releases,
        };
        let mut releases = Timeline::new(set.tasks.len(), options.horizon);
        let (mut tasks, mut plans) = (Vec::new(), Vec::new());
        for (id, _) in set.iter() {
            let (state, plan) = initial(set, id, priorities[id.index()], rule, options.seed);
            if state.stage != Stage::Absent {
                releases.set(id.index(), plan.pattern.next());
            }
            tasks.push(state);
            plans.push(plan);
        }
        let speeds = Speeds::new(set, traits.budgets, &tasks);
        let mut cpus = vec![CpuState::default(); cpu_count];
        if let Some(speeds) = &speeds {
            for (index, cpu) in cpus.iter_mut().enumerate() {
                cpu.speed = speeds.capacity(CpuId::from_index(index));
            }
        }
        let costs = Costs::new(set, (policy.as_ref(), &traits), options.overheads.as_ref());
        let mut engine = Self {
            ticks: ticks(set, policy.as_ref(), costs.as_ref()),
            in_quanta: policy.quanta().is_some(),
            laxities: policy.next_decision().map(|_| Laxities::new(&tasks)),
            costs,
            locks: Mutexes::new(set, &traits).map(Box::new),
            triggers: Triggers::new(set),
            set,
            recorder,
            policy,
            order: traits.order,
            rule,
            horizon: options.horizon,
            events: 0,
            releases,
            timers: Timeline::new(tasks.len(), options.horizon),
            arrivals: Vec::with_capacity(tasks.len()),
            waking: Vec::with_capacity(tasks.len()),
            tasks,
            plans,
            cpus,
            stops: Timeline::new(cpu_count, options.horizon),
            rare: Instant::NEVER,
            actions: Actions::new(set, as_linux),
            reserve: options
                .reserve_server
                .then(|| Reserve::new(set, options.horizon)),
            speeds,
            touched: Vec::with_capacity(cpu_count),
            switches: Switches::with_capacity(cpu_count),
        };
        engine.plan_rare();
        engine
    }

    /// A function of its own, so that the code of the loop does not depend on that of the caller.
    #[inline(never)]
    pub(crate) fn run(&mut self) -> Outcome {
        self.run_while(|_| true).0
    }

    /// Runs to the horizon, or to the first instant at which `go_on` is false, which then is the horizon;
    /// returns the horizon.
    pub(crate) fn run_while(
        &mut self,
        mut go_on: impl FnMut(Instant) -> bool,
    ) -> (Outcome, Instant) {
        loop {
            let now = self.next_instant();
            if now >= self.horizon {
                break;
            }
            if !go_on(now) {
                self.horizon = now;
                break;
            }
            self.instant(now);
        }
        self.finish();
        (
            Outcome {
                events: self.events,
            },
            self.horizon,
        )
    }

    fn next_instant(&self) -> Instant {
        let planned = self.releases.first().min(self.timers.first());
        let planned = match &self.laxities {
            Some(laxities) => planned.min(laxities.next),
            None => planned,
        };
        planned.min(self.rare).min(self.stops.first())
    }

    /// Handles all events of one instant, in the order of docs/architecture.md: completions and budget ends,
    /// then departures and changes, then arrivals. Policies that decide at the end of an instant decide after
    /// them. The CPUs switch last.
    fn instant(&mut self, now: Instant) {
        while self.stops.first() == now {
            self.stop_reached(now);
        }
        if self.timers.first() == now {
            self.complete_sleepers(now);
        }
        if self.rare == now {
            self.rare_instant(now);
        }
        self.arrive(now);
        if self.laxities.is_some() {
            self.send_latest_starts(now);
        }
        self.end_instant();
        if self.speeds.is_some() {
            self.follow_load(now);
        }
        self.commit(now);
    }

    /// The actions in the file's order, then background work and ticks.
    #[inline(never)]
    fn rare_instant(&mut self, now: Instant) {
        self.act(now);
        self.switch_background(now);
        self.tick(now);
        self.plan_rare();
    }

    /// Computes the next rare instant.
    #[inline(never)]
    pub(crate) fn plan_rare(&mut self) {
        let ticks = self.ticks.as_ref().map_or(Instant::NEVER, Ticks::next);
        let reserve = self.reserve.as_ref().map_or(Instant::NEVER, Reserve::next);
        let speeds = self.speeds.as_ref().map_or(Instant::NEVER, Speeds::next);
        self.rare = self
            .actions
            .next(self.set)
            .min(ticks)
            .min(reserve)
            .min(speeds);
    }

    /// Passes the event to the policy and notes the CPUs whose assignment changes.
    pub(crate) fn notify_policy(&mut self, event: Event<'_>, cause: Option<CpuId>) {
        self.events += 1;
        self.switches.clear();
        self.policy.on_event(event, &mut self.switches);
        self.note_switches(cause);
    }

    /// Ends the instant for the policy. A CPU that is assigned a job that has just become ready is notified by the
    /// CPU on which the job became ready. At the beginning of a quantum, and for a job that has waited, the CPU
    /// needs no notification.
    #[inline(always)]
    fn end_instant(&mut self) {
        self.switches.clear();
        self.policy.end_instant(&mut self.switches);
        for at in 0..self.switches.len() {
            let Switch { cpu, to, .. } = self.switches[at];
            let cause = to.and_then(|task| self.arrived_on(task));
            if let Some(costs) = &mut self.costs {
                costs.set_cause(cpu, cause);
            }
            self.cpus[cpu.index()].assigned = to;
            self.touch(cpu);
        }
        self.arrivals.clear();
        if let Some(laxities) = &mut self.laxities {
            laxities.next = self.policy.next_decision().unwrap_or(Instant::NEVER);
        }
    }

    /// The CPU on which the task's job became ready at this instant; `None` if it did not, if scheduling costs
    /// nothing, or in quanta.
    fn arrived_on(&self, task: TaskId) -> Option<CpuId> {
        let has_arrived = self.costs.is_some() && !self.in_quanta && self.arrivals.contains(&task);
        has_arrived.then(|| self.cause(task)).flatten()
    }

    /// Offers the policy the completion of a job and the arrival of the next job of its task as one event.
    /// Returns whether the policy took it.
    pub(crate) fn offer(&mut self, next: Job, cause: Option<CpuId>) -> bool {
        self.switches.clear();
        let taken = self.policy.succeed(next, &mut self.switches);
        if taken {
            self.events += 1;
            self.note_switches(cause);
        }
        taken
    }

    #[inline(always)]
    fn note_switches(&mut self, cause: Option<CpuId>) {
        // In quanta each CPU acts at its own ticks, without notification.
        let cause = cause.filter(|_| !self.in_quanta);
        for switch in &self.switches {
            let state = &mut self.cpus[switch.cpu.index()];
            state.assigned = switch.to;
            touch(&mut self.touched, state, switch.cpu);
            if let Some(costs) = &mut self.costs {
                costs.set_cause(switch.cpu, cause);
            }
        }
    }

    /// Whether the policy can apply the event; the error is its reason.
    pub(crate) fn accepts(&self, event: &Event<'_>) -> Result<(), String> {
        self.policy
            .accepts(event)
            .map_err(|reason| reason.to_string())
    }

    /// The CPU with the run queue in which the policy has the task's job.
    pub(crate) fn queue_of(&self, id: TaskId) -> Option<CpuId> {
        self.policy.queue_of(id)
    }

    /// Notes that the CPU may switch at this instant.
    pub(crate) fn touch(&mut self, cpu: CpuId) {
        touch(&mut self.touched, &mut self.cpus[cpu.index()], cpu);
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, now: Instant, kind: RecordKind) {
        self.recorder.record(now, &kind);
    }

    /// Records completions exactly at the horizon; no other event of that instant is part of the run.
    fn finish(&mut self) {
        let horizon = self.horizon;
        if horizon == Instant::NEVER {
            return;
        }
        while self.stops.first() == horizon {
            let cpu = CpuId::from_index(self.stops.first_place());
            self.stops.set(cpu.index(), Instant::NEVER);
            self.finish_at_horizon(horizon, cpu);
        }
        while self.timers.first() == horizon {
            let place = self.timers.first_place();
            self.timers.set(place, Instant::NEVER);
            let id = TaskId::from_index(place);
            if self.tasks[place].stage == Stage::Suspended && self.is_last_stretch(id) {
                let job = self.job(id);
                self.record(horizon, RecordKind::Completed { job });
            }
        }
    }
}

/// Notes, once, that the CPU with this state may switch.
#[inline]
fn touch(touched: &mut Vec<CpuId>, state: &mut CpuState, cpu: CpuId) {
    if !state.touched {
        state.touched = true;
        touched.push(cpu);
    }
}
