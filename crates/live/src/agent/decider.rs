//! What an agent decides: reports and instants go in, slots come out.
//!
//! It joins a policy to a real machine as the simulator joins it to a simulated one, by the same servers
//! and the same order of things; that both do the same is tested. It reads no clock and calls nobody.

mod actor;
mod missed;
#[cfg(test)]
mod tests;

use shiftwork_machine::{Admission, Spent, Timeline};
use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Job, Priority, Span, Task, TaskId};
use shiftwork_policy::registry::OrderName;
use shiftwork_policy::{Event as PolicyEvent, Policy, Switches};

use super::enactor::{Level, Slot};
use crate::Plan;
use crate::event::{Event, Kind};
use crate::machine::Parameters;
use actor::{Actor, Budget, Running, Stage};

/// A CPU of the platform.
#[derive(Clone, Debug)]
struct Place {
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
    actors: Vec<Actor>,
    places: Vec<Place>,
    /// By what the policy ranks jobs.
    order: OrderName,
    /// Of the CPUs: budgets to be looked at; after them of the tasks: releases and replenishments.
    timers: Timeline,
    /// What becomes ready at one instant, while it is gathered.
    arrivals: Vec<Job>,
    gathers: bool,
    switches: Switches,
    /// What is to be told, in its order.
    pub(super) told: Vec<Event>,
    base_ns: u64,
    /// When what is being handled happened.
    cause: Instant,
    /// How many jobs were moved in the middle.
    pub(super) shifts: u64,
}

impl Decider {
    /// The decisions of this policy about the plan. Nothing after `span` matters.
    pub(super) fn new(plan: &Plan<'_>, policy: Box<dyn Policy>, base_ns: u64, span: Span) -> Self {
        let (set, cpus) = (plan.set, &plan.cpus);
        let priorities = set.priorities();
        let actors = set
            .iter()
            .map(|(id, _)| Actor::new(priorities[id.index()], !set.enters_later(id)));
        let place = |&cpu| Place {
            cpu,
            slot: None,
            cause: None,
            gone: 0,
            known_until: Instant::ZERO,
        };
        let actors: Vec<Actor> = actors.collect();
        Self {
            policy,
            tasks: set.tasks.clone(),
            order: plan.order,
            timers: Timeline::new(cpus.len() + actors.len(), Instant::ZERO + span),
            arrivals: Vec::with_capacity(actors.len()),
            gathers: false,
            actors,
            places: cpus.iter().map(place).collect(),
            // A job that gets another deadline may leave and arrive: a CPU may then switch more than once.
            switches: Switches::with_capacity(4 * cpus.len()),
            told: Vec::with_capacity(4096),
            base_ns,
            cause: Instant::ZERO,
            shifts: 0,
        }
    }

    /// How many tasks there are, whether or not they take part.
    pub(super) fn task_count(&self) -> usize {
        self.actors.len()
    }

    /// Whether no CPU has anything to run, and nothing that is known of will happen before `until_ns`.
    pub(super) fn is_idle(&self, until_ns: u64) -> bool {
        let sleeps = |actor: &Actor| match actor.stage {
            Stage::Unreleased(release) => release > self.instant(until_ns),
            _ => true,
        };
        let empty = |place: &Place| place.slot.is_none();
        self.next_ns() > until_ns && self.places.iter().all(empty) && self.actors.iter().all(sleeps)
    }

    /// When [`pass`](Self::pass) is due, on the monotonic clock; `u64::MAX` if never.
    pub(super) fn next_ns(&self) -> u64 {
        match self.timers.first() {
            Instant::NEVER => u64::MAX,
            at => self.base_ns.saturating_add(at.as_ns()),
        }
    }

    /// Lets the policy know of all that is due by now: what is due at one instant in the order of the
    /// simulator, budgets first, then arrivals, the most urgent first.
    pub(super) fn pass(&mut self, now_ns: u64) {
        let now = self.instant(now_ns);
        while self.timers.first() <= now {
            let due = self.timers.first();
            self.cause = due;
            self.gathers = true;
            while self.timers.first() == due {
                let at = self.timers.first_place();
                self.timers.set(at, Instant::NEVER);
                match at.checked_sub(self.places.len()) {
                    Some(index) => self.timer_ended(now, due, TaskId::from_index(index)),
                    None => self.look_at_budget(now, at),
                }
            }
            self.gathers = false;
            self.let_arrive();
        }
    }

    /// What was gathered becomes ready.
    fn let_arrive(&mut self) {
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
        let value = self.value(job.deadline);
        self.tell(self.cause, Kind::Ready, number(job.task), None, value);
        self.apply(PolicyEvent::Wake(job));
    }

    /// The timer of the task ends then, and at no other instant.
    fn set_timer(&mut self, id: TaskId, at: Instant) {
        self.timers.set(self.places.len() + id.index(), at);
    }

    /// Something happened. It is told on, with what comes of it.
    pub(super) fn report(&mut self, event: Event) {
        if event.kind == Kind::Probe {
            return;
        }
        self.told.push(event);
        let now = self.instant(event.at);
        self.cause = now;
        if event.task == 0 {
            self.cpu_reported(event);
            return;
        }
        let index = event.task as usize - 1;
        let is_news =
            |actor: &Actor| actor.is_present && now >= actor.since && now > actor.known_until;
        if self.actors.get(index).is_some_and(is_news) {
            self.task_reported(now, event, TaskId::from_index(index));
        }
    }

    /// The slots that changed since the last call, and the earliest thing that made one change.
    pub(super) fn take_slots(&mut self, slots: &mut Vec<Slot>) -> Option<u64> {
        let mut first = None;
        for index in 0..self.places.len() {
            let Some(cause) = self.places[index].cause.take() else {
                continue;
            };
            let task = self.policy.assigned(CpuId::from_index(index));
            if task == self.places[index].slot {
                continue;
            }
            first = Some(first.map_or(cause, |first: Instant| first.min(cause)));
            self.fill(index, task, cause);
            slots.push(Slot {
                cpu: self.places[index].cpu,
                task,
                stops: task.map_or(0, |task| self.actors[task.index()].stops),
            });
        }
        first.map(|first| self.base_ns.saturating_add(first.as_ns()))
    }

    fn fill(&mut self, index: usize, task: Option<TaskId>, cause: Instant) {
        if let Some(task) = task {
            let running = self.actors[task.index()].running;
            self.shifts += u64::from(running.is_some_and(|running| running.place != index));
            if let Some(left) = self.actors[task.index()].left() {
                // It may never have noticed that it was to leave: then it has run all the time.
                let since = match running {
                    Some(running) if running.place == index => running.since + running.charged,
                    _ => cause,
                };
                self.timers.set(index, since + left);
            }
        }
        self.places[index].slot = task;
        let number = task.map_or(0, number);
        let cpu = u16::try_from(self.places[index].cpu.index()).ok();
        self.tell(cause, Kind::Assigned, number, cpu, 0);
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
        let actor = &self.actors[id.index()];
        let comes_back = !actor.is_known && actor.stage != Stage::Idle;
        self.leave(id, false);
        let actor = &self.actors[id.index()];
        let task = &mut self.tasks[id.index()];
        let places = &self.places;
        if let Some(affinity) = Affinity::new(in_platform(places, &of.cpus)) {
            task.affinity = affinity;
        }
        if !actor.is_known {
            let enters = PolicyEvent::Enter(id, task);
            self.policy
                .accepts(&enters)
                .map_err(|error| error.to_string())?;
            self.switches.clear();
            self.policy.on_event(enters, &mut self.switches);
            self.note_switches();
        }
        let actor = &mut self.actors[id.index()];
        actor.is_known = true;
        actor.enter(of, is_awake, comes_back);
        actor.since = now;
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
        self.actors[id.index()].priority = priority;
        self.apply(PolicyEvent::SetPriority(id, priority));
        let value = u64::from(priority.number());
        self.tell(self.cause, Kind::Priority, number(id), None, value);
    }

    /// The jobs to come have other parameters.
    pub(super) fn set_server(&mut self, id: TaskId, of: &Parameters) {
        self.actors[id.index()].set_parameters(of);
    }

    /// The task may use these CPUs of the machine from now on.
    pub(super) fn set_affinity(&mut self, now_ns: u64, id: TaskId, cpus: &CpuSet) {
        self.cause = self.instant(now_ns);
        self.rebind(id, cpus);
        let value = cpus.words()[0];
        self.tell(self.cause, Kind::Affinity, number(id), None, value);
    }

    /// How things stand with a task, after reports were lost.
    pub(super) fn sync(&mut self, id: TaskId, level: &Level) {
        let now = self.instant(level.at_ns);
        self.cause = now;
        if !self.actors[id.index()].is_present {
            return;
        }
        if !level.present {
            self.sync_absent(id, level);
            return;
        }
        self.sync_affinity(id, level);
        let is_same_run = !self.charge_unheard(now, id, level);
        let (stops, finished) = (
            self.actors[id.index()].stops,
            self.actors[id.index()].finished,
        );
        if level.finished != finished {
            self.emptied(id);
            self.next_job(now, id, self.instant(level.release_ns));
        } else if level.stops != stops {
            self.blocked(id);
        }
        let actor = &mut self.actors[id.index()];
        (actor.stops, actor.finished) = (level.stops, level.finished);
        actor.known_until = now;
        let place = level.cpu.and_then(|cpu| self.place_of(cpu.index()));
        let begun = place.map(|place| Running {
            place,
            since: now,
            charged: Span::ZERO,
        });
        let actor = &mut self.actors[id.index()];
        // What has been charged of a run that goes on is not charged again at its end.
        actor.running = actor.running.filter(|_| is_same_run).or(begun);
        match (self.actors[id.index()].is_awake, level.awake) {
            (false, true) => self.woken(now, id),
            (true, false) => self.fell_asleep(id),
            _ => {}
        }
    }

    /// Charges what it ran by reports that were lost. Whether there was any.
    fn charge_unheard(&mut self, now: Instant, id: TaskId, level: &Level) -> bool {
        let actor = &mut self.actors[id.index()];
        let unheard = Span::from_ns(level.ran_ns).saturating_sub(actor.ran);
        if unheard.is_zero() {
            return false;
        }
        if actor.charge(unheard, now) {
            self.tell(now, Kind::Overrun, number(id), None, 0);
        }
        true
    }

    fn instant(&self, at_ns: u64) -> Instant {
        Instant::from_ns(at_ns.saturating_sub(self.base_ns))
    }

    fn tell(&mut self, at: Instant, kind: Kind, task: u32, cpu: Option<u16>, value: u64) {
        self.told.push(Event {
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

    fn place_of(&self, machine_cpu: usize) -> Option<usize> {
        let mut places = self.places.iter();
        places.position(|place| place.cpu.index() == machine_cpu)
    }

    /// Lets the policy know, if it takes that.
    fn apply(&mut self, event: PolicyEvent<'_>) {
        self.switches.clear();
        self.policy.on_event(event, &mut self.switches);
        self.note_switches();
    }

    fn note_switches(&mut self) {
        for switch in &self.switches {
            let place = &mut self.places[switch.cpu.index()];
            place.cause = place.cause.or(Some(self.cause));
        }
    }

    fn cpu_reported(&mut self, event: Event) {
        let Some(index) = event.cpu.and_then(|cpu| self.place_of(usize::from(cpu))) else {
            return;
        };
        if self.instant(event.at) < self.places[index].known_until {
            return;
        }
        let before = self.places[index].gone;
        let after = match event.kind {
            Kind::CpuLost => before | event.value,
            Kind::CpuBack => before & !event.value,
            _ => return,
        };
        self.places[index].gone = after;
        let cpu = CpuId::from_index(index);
        if event.kind == Kind::CpuLost {
            self.places[index].slot = None;
        }
        match (before == 0, after == 0) {
            (true, false) => self.apply(PolicyEvent::CpuOffline(cpu)),
            (false, true) => self.apply(PolicyEvent::CpuOnline(cpu)),
            _ => {}
        }
    }

    fn task_reported(&mut self, now: Instant, event: Event, id: TaskId) {
        match event.kind {
            Kind::NextJob => {
                self.actors[id.index()].finished += 1;
                self.stopped_itself(id);
                self.next_job(now, id, self.instant(event.value));
            }
            Kind::Yielded => {
                self.stopped_itself(id);
                let next = self.actors[id.index()].next_period();
                self.next_job(now, id, next);
            }
            Kind::LastJob => self.complete(id),
            Kind::Blocked => {
                self.stopped_itself(id);
                self.fell_asleep(id);
            }
            Kind::Woken => self.woken(now, id),
            Kind::Running => self.runs(now, event, id),
            Kind::Stopped => {
                self.charge(now, event, id);
                self.actors[id.index()].running = None;
            }
            Kind::Ran => self.charge(now, event, id),
            Kind::Left => self.leave(id, false),
            Kind::Demoted => self.leave(id, true),
            Kind::Affinity => self.rebind(id, &CpuSet::from_bits(event.value)),
            _ => {}
        }
    }

    /// It emptied its slot.
    fn stopped_itself(&mut self, id: TaskId) {
        self.actors[id.index()].stops = self.actors[id.index()].stops.wrapping_add(1);
        self.emptied(id);
    }

    fn emptied(&mut self, id: TaskId) {
        for place in &mut self.places {
            if place.slot == Some(id) {
                place.slot = None;
                place.cause = place.cause.or(Some(self.cause));
            }
        }
    }

    fn complete(&mut self, id: TaskId) {
        let actor = &mut self.actors[id.index()];
        let stage = std::mem::replace(&mut actor.stage, Stage::Idle);
        self.set_timer(id, Instant::NEVER);
        if stage == Stage::Ready {
            self.apply(PolicyEvent::Complete(id));
        }
    }

    /// The job is finished, if there is one, and the next is released then.
    fn next_job(&mut self, now: Instant, id: TaskId, release: Instant) {
        self.complete(id);
        if release <= now {
            self.begin(now, release, now, id);
        } else {
            self.actors[id.index()].stage = Stage::Unreleased(release);
            self.set_timer(id, release);
        }
    }

    /// The job that was released then begins, and has been ready since.
    fn begin(&mut self, now: Instant, release: Instant, ready: Instant, id: TaskId) {
        let admission = self.actors[id.index()].begin(release, now);
        self.go_on(admission, ready, id);
    }

    fn go_on(&mut self, admission: Admission, ready: Instant, id: TaskId) {
        match admission {
            Admission::Throttled(until) => {
                self.actors[id.index()].stage = Stage::Throttled(until);
                self.set_timer(id, until);
                self.tell(self.cause, Kind::Spent, number(id), None, 0);
            }
            Admission::Replenished(deadline) => {
                self.tell_replenished(id, deadline);
                self.make_ready(deadline, ready, id);
            }
            Admission::Ready(deadline) => self.make_ready(deadline, ready, id),
        }
    }

    fn tell_replenished(&mut self, id: TaskId, deadline: Instant) {
        let value = self.value(deadline);
        self.tell(self.cause, Kind::Replenished, number(id), None, value);
    }

    /// Its budget allows it to run, and it does if it wants to.
    fn make_ready(&mut self, deadline: Instant, ready: Instant, id: TaskId) {
        let actor = &mut self.actors[id.index()];
        actor.deadline = deadline;
        if !actor.is_awake {
            actor.stage = Stage::Suspended;
            return;
        }
        actor.stage = Stage::Ready;
        let job = Job {
            task: id,
            ready,
            deadline,
            priority: actor.priority,
        };
        match self.gathers {
            true => self.arrivals.push(job),
            false => self.arrive(job),
        }
    }

    fn blocked(&mut self, id: TaskId) {
        self.emptied(id);
        self.fell_asleep(id);
    }

    fn fell_asleep(&mut self, id: TaskId) {
        let actor = &mut self.actors[id.index()];
        actor.is_awake = false;
        if actor.stage != Stage::Ready {
            return;
        }
        if actor.follows {
            actor.stage = Stage::Suspended;
            self.apply(PolicyEvent::Block(id));
        } else {
            self.complete(id);
        }
    }

    fn woken(&mut self, now: Instant, id: TaskId) {
        let actor = &mut self.actors[id.index()];
        actor.is_awake = true;
        match actor.stage {
            Stage::Suspended => {
                let admission = actor.resume(now);
                self.go_on(admission, now, id);
            }
            Stage::Unreleased(release) if release <= now => {
                // Nobody has released a program's job before it woke up.
                let release = if actor.follows { release } else { now };
                self.set_timer(id, Instant::NEVER);
                self.begin(now, release, release, id);
            }
            // It woke early, and is heard of when its release is over: that counts now.
            Stage::Unreleased(release) => self.set_timer(id, release),
            Stage::Idle if !actor.follows => self.begin(now, now, now, id),
            _ => {}
        }
    }

    fn timer_ended(&mut self, now: Instant, due: Instant, id: TaskId) {
        let actor = &mut self.actors[id.index()];
        match actor.stage {
            // A thread that sleeps until its release wakes up by itself, and is ready only then.
            Stage::Unreleased(release) if actor.is_awake => self.begin(now, release, release, id),
            // A program's next job begins when it wakes up.
            Stage::Throttled(_) if !actor.follows && !actor.is_awake => actor.stage = Stage::Idle,
            Stage::Throttled(_) => {
                let Budget::Enforced(server) = &mut actor.budget else {
                    return;
                };
                let deadline = server.replenish();
                self.tell_replenished(id, deadline);
                self.make_ready(deadline, due, id);
            }
            _ => {}
        }
    }

    fn runs(&mut self, now: Instant, event: Event, id: TaskId) {
        let Some(place) = event.cpu.and_then(|cpu| self.place_of(usize::from(cpu))) else {
            return;
        };
        self.actors[id.index()].running = Some(Running {
            place,
            since: now,
            charged: Span::ZERO,
        });
        if let Some(left) = self.actors[id.index()].left() {
            self.timers.set(place, now + left);
        }
    }

    /// The machine says for how long it ran. Whoever has nothing left and would go on is found out where
    /// it does: most stop because their job is finished.
    fn charge(&mut self, now: Instant, event: Event, id: TaskId) {
        if self.actors[id.index()].charge(Span::from_ns(event.value), now) {
            self.tell(now, Kind::Overrun, number(id), None, 0);
        }
    }

    /// Whoever this CPU was told to run may have used up its budget.
    fn look_at_budget(&mut self, now: Instant, place: usize) {
        let Some(id) = self.places[place].slot else {
            return;
        };
        let actor = &mut self.actors[id.index()];
        let is_there = actor.running.is_some_and(|running| running.place == place);
        if is_there && actor.charge_until(now) {
            self.tell(now, Kind::Overrun, number(id), None, 0);
        }
        self.judge(now, id);
        if self.places[place].slot == Some(id)
            && let Some(left) = self.actors[id.index()].left()
        {
            self.timers.set(place, now + left.max(Span::from_ns(1)));
        }
    }

    /// Whether its budget lets the job go on.
    fn judge(&mut self, now: Instant, id: TaskId) {
        if self.actors[id.index()].stage != Stage::Ready {
            return;
        }
        match self.actors[id.index()].spent(now) {
            None => {}
            Some(Spent::Throttled(until)) => {
                self.actors[id.index()].stage = Stage::Throttled(until);
                self.set_timer(id, until);
                self.tell(now, Kind::Spent, number(id), None, 0);
                self.apply(PolicyEvent::BudgetSpent(id));
            }
            Some(Spent::Replenished(deadline)) => {
                self.actors[id.index()].deadline = deadline;
                self.tell_replenished(id, deadline);
                self.apply(PolicyEvent::SetDeadline(id, deadline));
            }
        }
    }

    /// It takes no part any more; `demoted`: until it is admitted again.
    fn leave(&mut self, id: TaskId, demoted: bool) {
        let actor = &mut self.actors[id.index()];
        // Anything but idle says that it comes back.
        let after = match demoted {
            true => Stage::Suspended,
            false => Stage::Idle,
        };
        if !std::mem::take(&mut actor.is_present) {
            actor.stage = after;
            return;
        }
        actor.stage = after;
        // What it runs from now on is its own affair, and the report of what it ran comes later.
        actor.charge_until(self.cause);
        actor.running = None;
        actor.is_known = false;
        self.emptied(id);
        self.set_timer(id, Instant::NEVER);
        if self.policy.accepts(&PolicyEvent::Leave(id)).is_ok() {
            self.apply(PolicyEvent::Leave(id));
        }
    }

    fn rebind(&mut self, id: TaskId, cpus: &CpuSet) {
        let Some(affinity) = Affinity::new(in_platform(&self.places, cpus)) else {
            return;
        };
        let event = PolicyEvent::SetAffinity(id, &affinity);
        if self.policy.accepts(&event).is_ok() {
            self.tasks[id.index()].affinity = affinity;
            self.apply(event);
        }
    }
}

/// The CPUs of the platform among these of the machine, in the platform's numbers.
fn in_platform(places: &[Place], cpus: &CpuSet) -> CpuSet {
    let among = |place: &Place| cpus.contains(place.cpu);
    (0..places.len())
        .filter(|&index| among(&places[index]))
        .map(CpuId::from_index)
        .collect()
}

/// The number of a task in events.
fn number(task: TaskId) -> u32 {
    u32::try_from(task.index() + 1).unwrap_or(u32::MAX)
}
