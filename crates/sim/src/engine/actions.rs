//! Timed changes of the task set.

use shiftwork_machine::{Cpusets, Server, ServerRule};
use shiftwork_model::{
    Affinity, Change, CpuId, Instant, LinuxRules, Priority, RecordKind, Recorder, Span, TaskId,
    TaskSet,
};
use shiftwork_policy::Event;

use super::Engine;
use super::requests::Granted;
use crate::state::{Stage, changed_attributes};

/// The progress of the timed changes, and the CPUs that they took offline.
pub(crate) struct Actions {
    /// Indices of the task set's actions, by time; at one instant in the file's order.
    order: Vec<usize>,
    done: usize,
    offline: Vec<bool>,
    /// Admission of changes, under the policies that model Linux.
    pub(crate) cpusets: Option<Cpusets>,
}

impl Actions {
    pub(crate) fn new(set: &TaskSet, as_linux: Option<LinuxRules>) -> Self {
        let mut order: Vec<usize> = (0..set.actions.len()).collect();
        order.sort_by_key(|&index| set.actions[index].at);
        Self {
            order,
            done: 0,
            offline: vec![false; set.platform.cpus],
            cpusets: as_linux.map(|rules| Cpusets::new(set, rules.repairs)),
        }
    }

    pub(crate) fn next(&self, set: &TaskSet) -> Instant {
        self.order
            .get(self.done)
            .map_or(Instant::NEVER, |&index| set.actions[index].at)
    }

    pub(crate) fn is_offline(&self, cpu: CpuId) -> bool {
        self.offline[cpu.index()]
    }
}

impl<R: Recorder> Engine<'_, R> {
    /// Carries out the actions of this instant; a refused action changes nothing and is recorded.
    pub(crate) fn act(&mut self, now: Instant) {
        let set = self.set;
        while self.actions.next(set) == now {
            let action = self.actions.order[self.actions.done];
            self.actions.done += 1;
            if let Err(reason) = self.change(now, &set.actions[action].change) {
                let reason = reason.into_boxed_str();
                self.record(now, RecordKind::Refused { action, reason });
            }
        }
    }

    fn change(&mut self, now: Instant, change: &Change) -> Result<(), String> {
        match self.ask(now, change)? {
            Granted::AsAsked => self.carry_out(now, change),
            Granted::Affinities(affinities) => {
                if let Change::SetClusters(clusters) = change {
                    self.notify_policy(Event::SetClusters(clusters), None);
                }
                affinities
                    .iter()
                    .try_for_each(|(task, affinity)| self.set_affinity(now, *task, affinity))
            }
        }
    }

    fn carry_out(&mut self, now: Instant, change: &Change) -> Result<(), String> {
        self.check_locks(change)?;
        match change {
            Change::Enter(task) => self.enter(now, *task),
            Change::Leave(task) => self.leave(now, *task),
            Change::SetAttributes {
                task,
                cost,
                period,
                deadline,
            } => {
                self.set_attributes(now, *task, [*cost, *period, *deadline]);
                Ok(())
            }
            Change::SetAffinity(task, affinity) => self.set_affinity(now, *task, affinity),
            Change::SetPriority(task, priority) => self.set_priority(now, *task, *priority),
            Change::CpuOffline(cpu) => self.set_offline(now, *cpu, true),
            Change::CpuOnline(cpu) => self.set_offline(now, *cpu, false),
            Change::SetReserve(share) => {
                if let Some(reserve) = &mut self.reserve {
                    reserve.share = *share;
                }
                Ok(())
            }
            Change::Move(task, cluster) => Err(format!(
                "task `{}` cannot move to cluster {cluster}: this policy does not model moves \
                 between clusters; `set-affinity` changes where a task may run",
                self.plans[task.index()].task.name
            )),
            Change::SetClusters(_) => Err(String::from(
                "this policy does not model changes of the clusters; `set-affinity` changes where \
                 a task may run",
            )),
        }
    }

    /// What a task that locks mutexes is scheduled by, and that it takes part, is fixed: others may wait for it.
    fn check_locks(&self, change: &Change) -> Result<(), String> {
        if let Change::SetAffinity(task, _) = change
            && let Some(locks) = &self.locks
            && locks.fixes_cpus_of(&self.plans[task.index()].task)
        {
            return Err(format!(
                "task `{}` stays on its CPUs: mutexes change what CPUs jobs may use; their protocol `inheritance` does not",
                self.plans[task.index()].task.name
            ));
        }
        let (Change::Enter(task)
        | Change::Leave(task)
        | Change::SetAttributes { task, .. }
        | Change::SetPriority(task, _)) = change
        else {
            return Ok(());
        };
        let task = &self.plans[task.index()].task;
        match task.locks() {
            true => Err(format!(
                "task `{}` locks mutexes; such a task takes part throughout, with its priority and attributes, and only \
                 `set-affinity` may change it",
                task.name
            )),
            false => Ok(()),
        }
    }

    fn is_present(&self, id: TaskId) -> bool {
        self.tasks[id.index()].stage != Stage::Absent
    }

    fn enter(&mut self, now: Instant, id: TaskId) -> Result<(), String> {
        let task = self.plans[id.index()].task.clone();
        if self.is_present(id) {
            return Err(format!("task `{}` takes part already", task.name));
        }
        self.accepts(&Event::Enter(id, &task))?;
        self.record(now, RecordKind::Entered { task: id });
        self.notify_policy(Event::Enter(id, &task), None);
        self.tasks[id.index()].stage = Stage::Idle;
        let (attributes, rule) = (self.tasks[id.index()].attributes, self.rule);
        let plan = &mut self.plans[id.index()];
        plan.server = plan.server.map(|_| Server::new(attributes, rule));
        plan.pattern.restart(&task, now);
        self.releases.set(id.index(), plan.pattern.next());
        Ok(())
    }

    fn leave(&mut self, now: Instant, id: TaskId) -> Result<(), String> {
        if !self.is_present(id) {
            let name = &self.plans[id.index()].task.name;
            return Err(format!("task `{name}` takes no part"));
        }
        self.accepts(&Event::Leave(id))?;
        self.record(now, RecordKind::Left { task: id });
        self.note_leaving(now, id);
        self.notify_policy(Event::Leave(id), None);
        self.forget_queued(id);
        self.forget_triggers(id);
        let state = &mut self.tasks[id.index()];
        state.stage = Stage::Absent;
        state.number = state.released;
        self.releases.set(id.index(), Instant::NEVER);
        self.timers.set(id.index(), Instant::NEVER);
        self.arrivals.retain(|&other| other != id);
        self.waking.retain(|&other| other != id);
        if let Some(cpu) = self.tasks[id.index()].cpu.take() {
            self.touch(cpu);
        }
        Ok(())
    }

    /// Pending jobs keep the attributes of their release.
    fn set_attributes(&mut self, now: Instant, id: TaskId, changed: [Option<Span>; 3]) {
        let state = &mut self.tasks[id.index()];
        let attributes = changed_attributes(state.attributes, changed);
        state.attributes = attributes;
        let plan = &mut self.plans[id.index()];
        plan.task.cost = attributes.cost;
        plan.task.period = attributes.period;
        plan.task.deadline = attributes.deadline;
        plan.history.push((state.released + 1, attributes));
        if self.rule != ServerRule::Releases
            && let Some(server) = &mut plan.server
        {
            server.set_parameters(attributes);
        }
        let (cost, period, deadline) = (attributes.cost, attributes.period, attributes.deadline);
        if self.is_present(id) {
            let task = self.plans[id.index()].task.clone();
            self.notify_policy(Event::SetAttributes(id, &task), None);
        }
        self.record(
            now,
            RecordKind::AttributesSet {
                task: id,
                cost,
                period,
                deadline,
            },
        );
    }

    fn set_affinity(&mut self, now: Instant, id: TaskId, to: &Affinity) -> Result<(), String> {
        self.accepts(&Event::SetAffinity(id, to))?;
        self.plans[id.index()].task.affinity = *to;
        self.record(
            now,
            RecordKind::AffinitySet {
                task: id,
                affinity: Box::new(*to),
            },
        );
        if self.is_present(id) {
            self.renew_if_displaced(now, id, to);
            self.notify_policy(Event::SetAffinity(id, to), None);
        }
        Ok(())
    }

    /// Linux gives a ready task with an expired deadline that has to leave its run queue a new period that
    /// starts now (`enqueue_task_dl`), as if it had slept.
    fn renew_if_displaced(&mut self, now: Instant, id: TaskId, to: &Affinity) {
        let state = &mut self.tasks[id.index()];
        let is_late = state.stage == Stage::Ready && state.deadline <= now;
        let stays = |cpu: CpuId| to.cpus().contains(cpu);
        if self.rule == ServerRule::Releases
            || !is_late
            || self.queue_of(id).is_none_or(stays)
            || self.arrivals.contains(&id)
        {
            return;
        }
        self.charge_so_far(now, id);
        let Some(server) = &mut self.plans[id.index()].server else {
            return;
        };
        let deadline = server.renew(now);
        self.tasks[id.index()].deadline = deadline;
        self.record_replenished(now, id);
        self.notify_policy(Event::SetDeadline(id, deadline), None);
    }

    fn set_priority(&mut self, now: Instant, id: TaskId, to: Priority) -> Result<(), String> {
        self.accepts(&Event::SetPriority(id, to))?;
        self.plans[id.index()].task.priority = Some(to);
        self.tasks[id.index()].priority = to;
        self.record(
            now,
            RecordKind::PrioritySet {
                task: id,
                priority: to,
            },
        );
        if self.is_present(id) {
            self.notify_policy(Event::SetPriority(id, to), None);
        }
        Ok(())
    }

    fn set_offline(&mut self, now: Instant, cpu: CpuId, offline: bool) -> Result<(), String> {
        let cpu_count = self.cpus.len();
        if cpu.index() >= cpu_count {
            return Err(format!(
                "there is no CPU {cpu}; the CPUs are 0 to {}",
                cpu_count - 1
            ));
        }
        if self.actions.is_offline(cpu) == offline {
            let state = if offline { "offline" } else { "online" };
            return Err(format!("CPU {cpu} is {state} already"));
        }
        let (event, kind) = if offline {
            (Event::CpuOffline(cpu), RecordKind::CpuOffline { cpu })
        } else {
            (Event::CpuOnline(cpu), RecordKind::CpuOnline { cpu })
        };
        self.accepts(&event)?;
        self.actions.offline[cpu.index()] = offline;
        self.record(now, kind);
        // During background work the CPU is offline for the policy already.
        if !self
            .reserve
            .as_ref()
            .is_some_and(|reserve| reserve.is_in_background(cpu))
        {
            self.notify_policy(event, None);
        }
        Ok(())
    }
}
