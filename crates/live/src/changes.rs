//! Changes during a run: timed changes of the file, and requests of tasks.

use std::collections::BTreeSet;
use std::fs;

use shiftwork_analysis::admission::{Admitted, Claim, Refusal};
use shiftwork_analysis::suspensions::suspension;
use shiftwork_model::{
    Affinity, AffinityKind, Change, CpuId, CpuSet, Instant, Placement, Priority, RecordKind,
    Recorder, Span, TaskId,
};

use crate::machine::{Machine, Parameters};
use crate::sys::clock::monotonic_ns;
use crate::translate::EventTranslator;
use crate::work::{ON_TRIGGER_NS, Worker};
use crate::{LiveError, Plan};

/// The changes of a run.
pub(crate) struct Changes<'a> {
    /// The plan, with the changes so far.
    plan: Plan<'a>,
    /// C, T, D of each task, with the changes so far.
    attributes: Vec<[Span; 3]>,
    priorities: Vec<Priority>,
    /// Decides on requests; `None`: everything is admitted.
    admitted: Option<Admitted>,
    /// Indices of the file's actions, by time.
    order: Vec<usize>,
    done: usize,
    /// CPUs of the machine that were taken offline, to be brought back.
    offline: CpuSet,
    /// Tasks that run in the background until they have their reservation again.
    demoted: BTreeSet<TaskId>,
    /// Start of the run, on the monotonic clock.
    origin_ns: u64,
    /// Facts that affect the results.
    pub(crate) notes: Vec<String>,
}

/// What a change may affect.
struct ChangeContext<'r, R> {
    at: Instant,
    workers: &'r [Worker],
    machine: &'r mut dyn Machine,
    translator: &'r mut EventTranslator,
    recorder: &'r mut R,
}

impl<R> ChangeContext<'_, R> {
    /// The worker of the task, if it has one.
    fn worker(&self, task: TaskId) -> Option<&Worker> {
        self.workers.iter().find(|worker| worker.task == task)
    }
}

/// Why a change is refused, or the error that ends the run.
enum Failure {
    Refused(String),
    Fatal(LiveError),
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        Self::Fatal(error)
    }
}

impl<'a> Changes<'a> {
    /// The changes of this plan, before the first.
    pub(crate) fn new(plan: &Plan<'a>, admitted: Option<Admitted>) -> Self {
        let mut order: Vec<usize> = (0..plan.set.actions.len()).collect();
        order.sort_by_key(|&index| plan.set.actions[index].at);
        let attributes = plan.set.tasks.iter();
        Self {
            attributes: attributes
                .map(|task| [task.cost, task.period, task.deadline])
                .collect(),
            priorities: plan.set.priorities(),
            plan: plan.clone(),
            admitted,
            order,
            done: 0,
            offline: CpuSet::EMPTY,
            demoted: BTreeSet::new(),
            origin_ns: u64::MAX,
            notes: Vec::new(),
        }
    }

    /// The run starts at this instant of the monotonic clock.
    pub(crate) fn begin(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    fn now(&self) -> Instant {
        Instant::from_ns(monotonic_ns().saturating_sub(self.origin_ns))
    }

    /// Until when the previous claim of a task counts in admission, after the machine has made a change. Only
    /// the place of decision knows what is left of the task's budget, so this is the end of a period that begins
    /// now: never too early. The clock is read after the change, as a period may have begun during it.
    fn lingers_until(&self, period: Span) -> Instant {
        self.now() + period
    }

    /// When the next of the file's changes is due; [`Instant::NEVER`] if there is none.
    pub(crate) fn next(&self) -> Instant {
        self.order
            .get(self.done)
            .map_or(Instant::NEVER, |&index| self.plan.set.actions[index].at)
    }

    /// Makes all changes that are due, and admits tasks that wait for capacity that has become free. A change that is
    /// refused changes nothing and is a record.
    pub(crate) fn act<R: Recorder>(
        &mut self,
        now: Instant,
        workers: &[Worker],
        machine: &mut dyn Machine,
        translator: &mut EventTranslator,
        recorder: &mut R,
    ) -> Result<(), LiveError> {
        self.advance(now, workers, machine)?;
        while self.next() <= now {
            let action = self.order[self.done];
            self.done += 1;
            let change = self.plan.set.actions[action].change.clone();
            let mut context = ChangeContext {
                at: now,
                workers,
                machine: &mut *machine,
                translator: &mut *translator,
                recorder: &mut *recorder,
            };
            match self.change(&change, &mut context) {
                Ok(()) => {}
                Err(Failure::Refused(reason)) => {
                    let reason = reason.into_boxed_str();
                    recorder.record(now, &RecordKind::Refused { action, reason });
                }
                Err(Failure::Fatal(error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn advance(
        &mut self,
        now: Instant,
        workers: &[Worker],
        machine: &mut dyn Machine,
    ) -> Result<(), LiveError> {
        let Some(admitted) = &mut self.admitted else {
            return Ok(());
        };
        let regained = admitted.advance(now);
        let regained: Vec<TaskId> = regained.into_iter().map(|(task, _)| task).collect();
        self.readmit(&regained, workers, machine)
    }

    /// Admits those of these tasks again that ran in the background after a request that was too large.
    fn readmit(
        &mut self,
        regained: &[TaskId],
        workers: &[Worker],
        machine: &mut dyn Machine,
    ) -> Result<(), LiveError> {
        for &task in regained {
            let claim = self.admitted.as_ref().and_then(|all| all.claim(task));
            let bound = claim.and_then(|claim| Affinity::new(claim.cpus));
            let worker = workers.iter().find(|worker| worker.task == task);
            if let (Some(bound), Some(worker)) = (bound, worker)
                && self.demoted.remove(&task)
            {
                self.plan.bound[task.index()] = bound;
                self.admit(worker, machine)?;
                let name = &self.plan.set.tasks[task.index()].name;
                self.notes
                    .push(format!("task {name} has its reservation again"));
            }
        }
        Ok(())
    }

    fn change<R: Recorder>(
        &mut self,
        change: &Change,
        context: &mut ChangeContext<'_, R>,
    ) -> Result<(), Failure> {
        match change {
            Change::Enter(task) => self.enter(*task, context),
            Change::Leave(task) => {
                context.machine.dismiss(*task)?;
                self.demoted.remove(task);
                let until = self.lingers_until(self.attributes[task.index()][1]);
                if let Some(admitted) = &mut self.admitted {
                    admitted.leave(*task, until);
                }
                Ok(())
            }
            Change::SetAttributes {
                task,
                cost,
                period,
                deadline,
            } => self.set_attributes(*task, [*cost, *period, *deadline], context),
            Change::SetAffinity(task, affinity) => self.set_affinity(*task, affinity, context),
            Change::SetPriority(task, priority) => {
                self.consider(*task, |claim| claim.priority = *priority)?;
                self.priorities[task.index()] = *priority;
                context.machine.set_priority(*task, *priority)?;
                let until = self.lingers_until(self.attributes[task.index()][1]);
                if let Some(admitted) = &mut self.admitted {
                    refused(admitted.set_priority(*task, *priority, until))?;
                }
                Ok(self.readmit(&[*task], context.workers, context.machine)?)
            }
            Change::CpuOffline(cpu) => self.set_online(*cpu, false, context),
            Change::CpuOnline(cpu) => self.set_online(*cpu, true, context),
            Change::SetReserve(share) => {
                if let Some(admitted) = &mut self.admitted {
                    refused(admitted.set_reserve(*share))?;
                }
                context.machine.set_reserve(*share);
                Ok(())
            }
            Change::Move(..) | Change::SetClusters(_) => Err(Failure::Refused(String::from(
                "clusters cannot change in a live run; `set-affinity` changes where a task may run",
            ))),
        }
    }

    fn enter<R: Recorder>(
        &mut self,
        task: TaskId,
        context: &mut ChangeContext<'_, R>,
    ) -> Result<(), Failure> {
        let Some(worker) = context.worker(task).copied() else {
            return Ok(());
        };
        let claim = self.claim(task);
        if let Some(admitted) = &mut self.admitted {
            refused(admitted.enter(claim))?;
        }
        self.admit(&worker, context.machine)?;
        Ok(())
    }

    /// Whether the task may change its claim so, before the machine is changed.
    fn consider(&mut self, task: TaskId, change: impl Fn(&mut Claim)) -> Result<(), Failure> {
        let Some(admitted) = &mut self.admitted else {
            return Ok(());
        };
        let Some(mut claim) = admitted.claim(task).cloned() else {
            let name = &self.plan.set.tasks[task.index()].name;
            return Err(Failure::Refused(format!(
                "task {name} is not admitted; it has to enter first"
            )));
        };
        change(&mut claim);
        refused(admitted.consider(&claim))
    }

    fn claim(&self, id: TaskId) -> Claim {
        let task = &self.plan.set.tasks[id.index()];
        let [cost, period, deadline] = self.claimed(id, self.attributes[id.index()]);
        let (priority, bound) = (self.priorities[id.index()], &self.plan.bound[id.index()]);
        Claim {
            cost,
            period,
            deadline,
            ..Claim::new(id, task, priority, bound)
        }
    }

    /// What admission counts of these parameters of the task: suspensions within jobs as computing.
    fn claimed(&self, id: TaskId, [cost, period, deadline]: [Span; 3]) -> [Span; 3] {
        let suspension = suspension(&self.plan.set.tasks[id.index()]);
        [(cost + suspension).min(Span::MAX), period, deadline]
    }

    /// Admits the task with its present parameters. A job of a thread is released at once, or by the next trigger.
    fn admit(&self, worker: &Worker, machine: &mut dyn Machine) -> Result<(), LiveError> {
        let [cost, period, deadline] = self.attributes[worker.task.index()];
        let mut of = Parameters::of(&self.plan, worker, None);
        (of.cost, of.period, of.deadline) = (cost, period, deadline);
        of.priority = self.priorities[worker.task.index()];
        if machine.admit(worker.task, &of)? && !worker.is_program {
            let is_triggered = worker.first.is_none();
            let release_ns = if is_triggered {
                ON_TRIGGER_NS
            } else {
                monotonic_ns()
            };
            machine.first_job(worker.task, release_ns)?;
        }
        Ok(())
    }

    fn set_attributes<R: Recorder>(
        &mut self,
        task: TaskId,
        [cost, period, deadline]: [Option<Span>; 3],
        context: &mut ChangeContext<'_, R>,
    ) -> Result<(), Failure> {
        let old = self.attributes[task.index()];
        let new = [
            cost.unwrap_or(old[0]),
            period.unwrap_or(old[1]),
            deadline.unwrap_or(old[2]),
        ];
        let claimed = self.claimed(task, new);
        self.consider(task, |claim| {
            [claim.cost, claim.period, claim.deadline] = claimed;
        })?;
        self.attributes[task.index()] = new;
        if let Some(worker) = context.worker(task) {
            let mut of = Parameters::of(&self.plan, worker, None);
            (of.cost, of.period, of.deadline) = (new[0], new[1], new[2]);
            context.machine.set_server(task, &of)?;
        }
        let until = self.lingers_until(old[1]);
        if let Some(admitted) = &mut self.admitted {
            refused(admitted.set_parameters(task, claimed, until))?;
        }
        self.readmit(&[task], context.workers, context.machine)?;
        context
            .translator
            .set_attributes(context.at, task, new, context.recorder);
        Ok(())
    }

    /// Whether the policy lets affinities change: policies that bind tasks themselves, or ignore affinities, do not.
    fn may_bind(&self, task: TaskId, affinity: &Affinity) -> Result<(), String> {
        let placement = self
            .admitted
            .as_ref()
            .map(|all| all.terms().policy.placement);
        match placement {
            None | Some(Placement::Strong | Placement::Weak) => Ok(()),
            Some(Placement::Hierarchical) => {
                let mut bound = self.plan.bound.clone();
                bound[task.index()] = *affinity;
                match AffinityKind::of(&self.plan.set.platform.all(), &bound) {
                    AffinityKind::Arbitrary => Err(String::from(
                        "the new affinity would overlap another without nesting; `strong-edf` and \
                         `strong-fp` take any",
                    )),
                    _ => Ok(()),
                }
            }
            Some(_) => Err(String::from(
                "this policy chooses itself where tasks run; `strong-edf` and `strong-fp` let \
                 affinities change",
            )),
        }
    }

    fn set_affinity<R: Recorder>(
        &mut self,
        task: TaskId,
        affinity: &Affinity,
        context: &mut ChangeContext<'_, R>,
    ) -> Result<(), Failure> {
        self.may_bind(task, affinity).map_err(Failure::Refused)?;
        // A request that is refused would cost the reservation; an action that is refused must change nothing.
        self.consider(task, |claim| claim.cpus = *affinity.cpus())?;
        if let Some(worker) = context.worker(task).copied() {
            let cpus = self.plan.on_machine(affinity.cpus());
            context.machine.approve(task, &cpus)?;
            let bound = context.machine.bind(task, worker.thread, &cpus);
            bound.map_err(|error| {
                Failure::Refused(format!("the kernel refuses the affinity: {error}"))
            })?;
        }
        self.plan.bound[task.index()] = *affinity;
        let until = self.lingers_until(self.attributes[task.index()][1]);
        if let Some(admitted) = &mut self.admitted {
            refused(admitted.request_affinity(task, *affinity.cpus(), until))?;
        }
        Ok(self.readmit(&[task], context.workers, context.machine)?)
    }

    /// Decides on a task that has asked the kernel for CPUs of the machine that it was not admitted for, and has
    /// run in the background since. Admits it again if it may have them; otherwise a note.
    pub(crate) fn decide_request(
        &mut self,
        task: TaskId,
        worker: &Worker,
        cpus: &CpuSet,
        machine: &mut dyn Machine,
    ) -> Result<Option<String>, LiveError> {
        let in_file: CpuSet = (0..self.plan.cpus.len())
            .filter(|&index| cpus.contains(self.plan.cpus[index]))
            .map(CpuId::from_index)
            .collect();
        let name = &self.plan.set.tasks[task.index()].name;
        let lost = |reason: &str| {
            Some(format!(
                "task {name} asked for CPUs {cpus} and lost its reservation: {reason}"
            ))
        };
        let Some(affinity) = Affinity::new(in_file) else {
            return Ok(lost("none of them belongs to the platform"));
        };
        if self.plan.set.tasks[task.index()].locks() {
            // It may hold a mutex, by which it is scheduled: nothing admits it again.
            return Ok(lost("a task that locks mutexes stays on its CPUs"));
        }
        if self.plan.set.first_triggered().is_some() {
            let reason = "nothing is known of changes where tasks trigger others";
            self.demoted.insert(task);
            return Ok(lost(reason));
        }
        if let Err(reason) = self.may_bind(task, &affinity) {
            return Ok(lost(&reason));
        }
        let until = self.lingers_until(self.attributes[task.index()][1]);
        if let Some(admitted) = &mut self.admitted
            && let Err(refusal) = admitted.request_affinity(task, in_file, until)
        {
            self.demoted.insert(task);
            return Ok(lost(&refusal.reason));
        }
        self.demoted.remove(&task);
        self.plan.bound[task.index()] = affinity;
        self.admit(worker, machine)?;
        Ok(None)
    }

    fn set_online<R: Recorder>(
        &mut self,
        cpu: CpuId,
        online: bool,
        context: &mut ChangeContext<'_, R>,
    ) -> Result<(), Failure> {
        let machine_cpu = self.plan.cpus[cpu.index()];
        write_online(machine_cpu, online).map_err(|error| {
            let what = if online { "online" } else { "offline" };
            Failure::Refused(format!(
                "the kernel does not take CPU {machine_cpu} {what}: {error}"
            ))
        })?;
        if online {
            self.offline.remove(machine_cpu);
            if let Some(admitted) = &mut self.admitted {
                let regained = admitted.cpu_online(cpu).regained;
                let regained: Vec<TaskId> = regained.into_iter().map(|(task, _)| task).collect();
                self.readmit(&regained, context.workers, context.machine)?;
            }
        } else {
            self.offline.insert(machine_cpu);
            if let Some(admitted) = &mut self.admitted {
                for loss in admitted.cpu_offline(cpu) {
                    self.notes.push(loss.reason);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        for cpu in self.offline.iter() {
            // If the kernel does not bring a CPU back, nothing more can be done.
            let _ = write_online(cpu, true);
        }
    }
}

/// The refusal of a request as the failure of a change.
fn refused<T>(answer: Result<T, Box<Refusal>>) -> Result<(), Failure> {
    match answer {
        Ok(_) => Ok(()),
        Err(refusal) => Err(Failure::Refused(refusal.reason)),
    }
}

fn write_online(cpu: CpuId, online: bool) -> std::io::Result<()> {
    let path = format!("/sys/devices/system/cpu/cpu{}/online", cpu.index());
    fs::write(path, if online { "1" } else { "0" })
}
