//! A run from beginning to end: load, spawn, admit, release, monitor, stop, report.

mod tally;

use shiftwork_analysis::admission::Admitted;
use shiftwork_model::{
    CpuId, CpuSet, Instant, JobId, OnOverrun, Recorder, ResourceId, Span, Task, TaskId,
};

use crate::agent::{AgentConfig, AgentMachine, BelowAgent, CpuYield};
use crate::changes::Changes;
use crate::fifo;
use crate::host::{System, Taken};
use crate::kernel::{EnactorBuilder, KernelMachine, SchedExtOwner, Scheduler, SchedulerConfig};
use crate::machine::{Machine, Parameters};
use crate::overheads::Overheads;
use crate::plan::{Attention, Backend};
use crate::preflight::Host;
use crate::sys::bpf::DecisionSite;
use crate::sys::clock::{monotonic_ns, pause, sleep_until};
use crate::sys::memory::{allow_huge_pages, lock_all};
use crate::sys::process::warn;
use crate::sys::thread::set_affinity;
use crate::translate::EventTranslator;
use crate::work::{Ending, Jobs, ON_TRIGGER_NS, Workers};
use crate::{LiveError, Options, Plan, preflight};
use tally::Tally;

/// From the last preparation to the first release. Not a multiple of [`POLL_NS`], or every poll would coincide with
/// the releases of all tasks with round periods.
const LEAD_NS: u64 = 67_000_000;

/// How often the trace is read and the caller asked. The trace buffer has room for many times as much.
const POLL_NS: u64 = 50_000_000;

/// Least time between two polls, however many requests there are.
const POLL_GAP_NS: u64 = 1_000_000;

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Time since the first release; zero before it.
    pub now: Instant,
    /// The job on each CPU of the file when the trace was last read.
    pub running: &'a [Option<JobId>],
    /// Number of events that the policy has processed.
    pub events: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// At its horizon.
    Horizon,
    /// Earlier, because the caller stopped it.
    Stopped,
    /// Earlier, because the kernel unloaded the scheduler. All tasks continued under the kernel's own.
    Unloaded {
        /// Message of the kernel.
        reason: String,
    },
}

/// The results of a run beside its records.
#[derive(Clone, Debug)]
pub struct Report {
    /// End of the interval that the records cover, at most the horizon.
    pub reached: Instant,
    /// Number of events that the policy has processed.
    pub events: u64,
    /// Number of running jobs that were migrated to make room.
    pub shifts: u64,
    /// From each decision that gives a CPU another job to the start of that job there.
    pub reaction: Vec<Span>,
    /// From each release to the kernel's notice of it.
    pub lateness: Vec<Span>,
    /// Number of events that found no room in the trace buffer and are not in the records.
    pub lost: u64,
    /// The end of the run.
    pub ended: Ended,
    /// Facts that affect the results, one sentence each.
    pub notes: Vec<String>,
    /// What was wrong with the core's state at the end; `None` if nothing was.
    pub fault: Option<&'static str>,
    /// The cost of scheduling; `None` where the kernel decides.
    pub overheads: Option<Overheads>,
}

/// Runs the plan on this machine and records everything that happens, with a short delay, until the horizon or until
/// `go_on`, which is called about 20 times a second, returns false.
///
/// `admitted` decides on requests of the tasks while they run; without it everything is admitted.
///
/// # Errors
/// If the machine cannot run the plan. The records until then are valid.
pub fn run_while<R: Recorder>(
    plan: &Plan<'_>,
    options: &Options,
    backend: Backend,
    admitted: Option<Admitted>,
    recorder: &mut R,
    go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
) -> Result<Report, LiveError> {
    let host = preflight::check(plan, options, &backend)?;
    let mut notes = host.notes.clone();
    // Without huge pages nothing replaces pages.
    let _ = allow_huge_pages(false);
    if let Err(error) = lock_all() {
        notes.push(format!(
            "memory is not locked ({error}): a page fault may make a job late"
        ));
    }
    // This thread keeps off the CPUs of the tasks and of the agent, if there are others.
    let mut room = host.elsewhere;
    if !matches!(backend, Backend::Kernel) && room.len() > 1 {
        room.remove(host.agent_cpu);
    }
    if !room.is_empty() {
        set_affinity(None, &room).map_err(LiveError::system("leave the tasks' CPUs"))?;
    }
    let quantum = backend.quantum();
    let polls = host.has_timers && matches!(backend, Backend::Agent(_, Attention::Dedicated));
    let is_below_agent = polls && host.agent_shares_cpu();
    let mut machine = machine(plan, options, backend, &host)?;
    if let Some(folder) = &options.pin {
        machine.pin(folder)?;
    }
    let workers = Workers::spawn(plan, options, &machine.job_barrier())?;
    let below = is_below_agent.then(BelowAgent::begin);
    let _below = below
        .transpose()
        .map_err(LiveError::system("give way to the agent"))?;
    let horizon = Instant::ZERO + options.horizon;
    let mut run = Run {
        translator: EventTranslator::planned(plan, jobs(plan, options, &workers, horizon), horizon),
        changes: Changes::new(plan, admitted),
        plan,
        machine,
        workers,
        horizon,
        quantum,
        notes,
        request_notes: Tally::default(),
        taken_before: Taken::default(),
    };
    let ended = run.execute(recorder, go_on);
    let stopped = run.stop(recorder);
    let (ended, reached) = ended?;
    stopped?;
    Ok(run.report(ended, reached))
}

/// The machine of this backend.
fn machine(
    plan: &Plan<'_>,
    options: &Options,
    backend: Backend,
    host: &Host,
) -> Result<Box<dyn Machine>, LiveError> {
    let config = |policy, attention: Attention| AgentConfig {
        plan,
        options,
        policy,
        attention,
        cpu_yield: match host.agent_shares_cpu() {
            true => CpuYield::LONG,
            false => CpuYield::SHORT,
        },
        cpu: host.agent_cpu,
    };
    Ok(match backend {
        Backend::Kernel => {
            let scheduler = scheduler(plan, options, DecisionSite::Core, host)?;
            Box::new(KernelMachine::new(scheduler))
        }
        Backend::Agent(policy, attention) => {
            let decision_site = DecisionSite::Agent(host.agent_cpu.index() as u32);
            let scheduler = scheduler(plan, options, decision_site, host)?;
            let locks = plan.set.first_locking().is_some();
            let locking = locks.then_some(plan.set.tasks.len());
            let builder = EnactorBuilder::new(&scheduler, locking)?;
            let owner = SchedExtOwner::new(scheduler, builder.event_ring());
            let build = move || builder.build();
            // Without timers the agent cannot poll: see `preflight`.
            let attention = match host.has_timers {
                true => attention,
                false => Attention::Shared,
            };
            let config = config(policy, attention);
            Box::new(AgentMachine::start(owner, config, build)?)
        }
        Backend::Fifo(policy, attention) => {
            let cpus: CpuSet = plan.cpus.iter().copied().collect();
            let names = plan.set.tasks.iter().map(|task| task.name.clone());
            let (owner, enactor) = fifo::set_up(&cpus, names.collect())?;
            let config = AgentConfig {
                cpu_yield: CpuYield::LONG,
                ..config(policy, attention)
            };
            Box::new(AgentMachine::start(owner, config, move || Ok(enactor))?)
        }
    })
}

/// Loads the programs in the kernel for the CPUs of the plan.
fn scheduler(
    plan: &Plan<'_>,
    options: &Options,
    decision_site: DecisionSite,
    host: &Host,
) -> Result<Scheduler, LiveError> {
    let cpus: CpuSet = plan.cpus.iter().copied().collect();
    let scheduler = Scheduler::load(&SchedulerConfig {
        decision_site,
        order: plan.traits.order,
        cpus,
        has_timers: host.has_timers,
        reserve: options.reserve,
        trace_bytes: options.trace_bytes,
    })?;
    for (index, &cpu) in plan.cpus.iter().enumerate() {
        let mates = plan.set.platform.cache_mates(CpuId::from_index(index));
        scheduler.set_cache_mates(cpu, &plan.on_machine(&mates))?;
    }
    for (id, task) in plan.set.iter() {
        if let Some(trigger) = task.trigger() {
            scheduler.set_triggers(id, trigger)?;
        }
    }
    for (index, resource) in plan.set.resources.iter().enumerate() {
        let id = ResourceId::from_index(index);
        // An agent has protocols of its own.
        if decision_site == DecisionSite::Core
            && let Some(ceiling) = plan.set.ceiling(id, plan.traits.order)
        {
            scheduler.set_mutex(id, resource.protocol, ceiling)?;
        }
    }
    Ok(scheduler)
}

/// The jobs of the tasks that have threads as workers; those of programs are not known.
fn jobs(
    plan: &Plan<'_>,
    options: &Options,
    workers: &Workers,
    horizon: Instant,
) -> Vec<Option<Jobs>> {
    let is_program = |id: TaskId| {
        let mut workers = workers.as_slice().iter();
        workers.any(|worker| worker.task == id && worker.is_program)
    };
    let of = |id| (!is_program(id)).then(|| Jobs::new(plan.set, id, options.seed, horizon));
    plan.set.iter().map(|(id, _)| of(id)).collect()
}

/// The CPU that each task is assumed to be on before it first runs, in the file's numbers: the one that its file
/// names, otherwise the one with the least load so far. A job that finds its CPU idle is not moved, so a
/// balanced start lasts.
pub(crate) fn starts(plan: &Plan<'_>) -> Vec<Option<CpuId>> {
    let mut loads = vec![0_u64; plan.cpus.len()];
    let start = |(id, task): (TaskId, &Task)| {
        let cpus = plan.bound[id.index()].cpus();
        let least = cpus.iter().min_by_key(|cpu| loads[cpu.index()]);
        let start = task.start_cpu.or(least)?;
        // In parts per million, rounded up so that every task counts; only the balance depends on it.
        let cost = task.cost.as_ns().saturating_mul(1_000_000);
        loads[start.index()] += cost.div_ceil(task.period.as_ns());
        Some(start)
    };
    plan.set.iter().map(start).collect()
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan<'a>,
    machine: Box<dyn Machine>,
    workers: Workers,
    translator: EventTranslator,
    changes: Changes<'a>,
    horizon: Instant,
    /// Of a quantum-driven policy.
    quantum: Option<Span>,
    notes: Vec<String>,
    /// Notes on requests of tasks.
    request_notes: Tally,
    /// What had been taken from the CPUs when the run began.
    taken_before: Taken,
}

impl Run<'_> {
    /// Admits, releases and monitors, to the end of the run.
    fn execute<R: Recorder>(
        &mut self,
        recorder: &mut R,
        go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<(Ended, Instant), LiveError> {
        let workers = self.workers.as_slice().to_vec();
        let starts = starts(self.plan);
        for worker in &workers {
            if self.plan.set.enters_later(worker.task) {
                continue;
            }
            let of = Parameters::of(self.plan, worker, starts[worker.task.index()]);
            self.machine.admit(worker.task, &of)?;
        }
        let soon_ns = monotonic_ns() + LEAD_NS;
        // Where quanta begin, if there are any; otherwise not at a round instant, where kernels have their ticks.
        let begins = self
            .quantum
            .and_then(|quantum| soon_ns.checked_next_multiple_of(quantum.as_ns()));
        let origin_ns = begins.unwrap_or(soon_ns);
        for worker in workers.iter().filter(|worker| !worker.is_program) {
            if !self.plan.set.enters_later(worker.task) {
                let release = worker.first.map(|first| origin_ns + first.as_ns());
                let release_ns = release.unwrap_or(ON_TRIGGER_NS);
                self.machine.first_job(worker.task, release_ns)?;
            }
        }
        self.translator.begin(origin_ns);
        self.changes.begin(origin_ns);
        self.workers.start(origin_ns);
        self.machine.begin();
        self.taken_before = Taken::now(&System::this());
        self.monitor(origin_ns, recorder, go_on)
    }

    fn monitor<R: Recorder>(
        &mut self,
        origin_ns: u64,
        recorder: &mut R,
        go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<(Ended, Instant), LiveError> {
        let end_ns = origin_ns.saturating_add(self.horizon.as_ns());
        loop {
            let now_ns = monotonic_ns();
            let now = Instant::from_ns(now_ns.saturating_sub(origin_ns));
            // Events of the kernel until this instant are in the trace when the clock has been read.
            self.read(recorder)?;
            self.changes.act(
                now,
                self.workers.as_slice(),
                self.machine.as_mut(),
                &mut self.translator,
                recorder,
            )?;
            self.decide_requests()?;
            self.note_endings();
            if let Some(reason) = self.machine.unloaded() {
                return Ok((Ended::Unloaded { reason }, now.min(self.horizon)));
            }
            if now >= self.horizon {
                self.translator.advance(now_ns, recorder);
                return Ok((Ended::Horizon, self.horizon));
            }
            let running: Vec<Option<JobId>> = self.translator.running_now().collect();
            let progress = Progress {
                now,
                running: &running,
                events: self.translator.decisions,
            };
            if !go_on(&progress) {
                self.translator.advance(now_ns, recorder);
                return Ok((Ended::Stopped, now));
            }
            let change_ns = origin_ns.saturating_add(self.changes.next().as_ns());
            let wake_ns = (now_ns + POLL_NS).min(end_ns).min(change_ns.max(now_ns));
            sleep_until(wake_ns.min(now_ns + POLL_GAP_NS)).map_err(LiveError::system("wait"))?;
            self.machine.wait_until(wake_ns);
        }
    }

    fn read<R: Recorder>(&mut self, recorder: &mut R) -> Result<(), LiveError> {
        for event in self.machine.take_events()? {
            self.translator.take(event, recorder);
            pause();
        }
        Ok(())
    }

    /// Decides on requests for other CPUs, and warns programs that have overrun.
    fn decide_requests(&mut self) -> Result<(), LiveError> {
        for (task, cpus) in std::mem::take(&mut self.translator.asking) {
            let Some(worker) = self
                .workers
                .as_slice()
                .iter()
                .find(|worker| worker.task == task)
            else {
                continue;
            };
            let note = self
                .changes
                .decide_request(task, worker, &cpus, self.machine.as_mut())?;
            if let Some(note) = note {
                self.request_notes.add(note);
            }
        }
        for task in std::mem::take(&mut self.translator.overran) {
            let is_warned = self.plan.set.tasks[task.index()].on_overrun == OnOverrun::Signal;
            let mut workers = self.workers.as_slice().iter();
            if let Some(worker) =
                workers.find(|worker| worker.task == task && worker.is_program && is_warned)
            {
                // A program that has just ended needs no warning.
                let _ = warn(worker.thread);
            }
        }
        Ok(())
    }

    fn note_endings(&mut self) {
        for (task, ending) in self.workers.ended() {
            let name = &self.plan.set.tasks[task.index()].name;
            self.notes.extend(match ending {
                Ending::Done => None,
                Ending::Panicked => Some(format!("the thread of task {name} failed")),
                Ending::Exited(status) => {
                    Some(format!("the program of task {name} ended: {status}"))
                }
                Ending::NotStarted(error) => Some(format!(
                    "the program of task {name} could not be started: {error}"
                )),
            });
        }
    }

    /// Stops all workers and reads the events until then. The scheduler stays loaded until [`report`](Self::report)
    /// has read its state.
    fn stop<R: Recorder>(&mut self, recorder: &mut R) -> Result<(), LiveError> {
        self.machine.open_job_barrier();
        let read = self.read(recorder);
        for worker in self.workers.as_slice() {
            if self.machine.unloaded().is_none() {
                self.machine.dismiss(worker.task)?;
            }
        }
        for task in self.workers.stop() {
            let name = &self.plan.set.tasks[task.index()].name;
            self.notes.push(format!(
                "task {name} could not be stopped within two seconds"
            ));
        }
        read
    }

    fn report(mut self, ended: Ended, reached: Instant) -> Report {
        let (shifts, fault) = self.machine.state();
        let overheads = self.machine.overheads();
        let lost = self.machine.events_lost();
        self.machine.unload();
        self.notes.append(&mut self.changes.notes);
        self.notes.extend(self.request_notes.sentences());
        let taken = Taken::now(&System::this());
        let span = reached.late_since(Instant::ZERO);
        self.notes
            .extend(taken.since(&self.taken_before, &self.plan.cpus, span));
        if lost > 0 {
            self.notes.push(format!(
                "{lost} events of the trace found no room: the records have gaps"
            ));
        }
        Report {
            reached,
            events: self.translator.decisions,
            shifts,
            reaction: std::mem::take(&mut self.translator.reactions),
            lateness: std::mem::take(&mut self.translator.lateness),
            lost,
            ended,
            notes: self.notes,
            fault,
            overheads,
        }
    }
}
