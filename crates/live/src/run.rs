//! The way of a run from beginning to end: load, muster, admit, release, watch, stop, tell.

mod tally;

use shiftwork_analysis::admission::Admitted;
use shiftwork_machine::may_be_throttled;
use shiftwork_model::{CpuId, CpuSet, Instant, JobId, OnOverrun, Recorder, Span, Task, TaskId};

use crate::agent::{AgentConfig, AgentMachine, CpuYield};
use crate::changes::Changes;
use crate::fifo;
use crate::kernel::{EnactorBuilder, KernelMachine, SchedExtOwner, Scheduler, SchedulerConfig};
use crate::machine::{Machine, Parameters};
use crate::overheads::Overheads;
use crate::plan::{Attention, Backend};
use crate::preflight::Host;
use crate::story::Story;
use crate::sys::bpf::DecisionSite;
use crate::sys::clock::{monotonic_ns, pause, sleep_until};
use crate::sys::memory::lock_all;
use crate::sys::process::warn;
use crate::sys::thread::set_affinity;
use crate::work::{Ending, Jobs, Worker, Workers};
use crate::{LiveError, Options, Plan, preflight};
use tally::Tally;

/// From the last preparation to the first release: nobody has to hurry. Not a multiple of [`POLL_NS`], or
/// every look would come with the releases of all whose periods are round numbers.
const LEAD_NS: u64 = 67_000_000;

/// How often the trace is emptied and the caller asked. The ring has room for many times as much.
const POLL_NS: u64 = 50_000_000;

/// Between two looks at least, however many ask.
const POLL_GAP_NS: u64 = 1_000_000;

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Since the first release; zero before it.
    pub now: Instant,
    /// What each CPU of the file ran when the trace was last read.
    pub running: &'a [Option<JobId>],
    /// How many events the core was told.
    pub events: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// At its horizon.
    Horizon,
    /// Earlier, because the caller said so.
    Stopped,
    /// Earlier, because the kernel unloaded the scheduler. All tasks went on under the kernel's own.
    Unloaded {
        /// In the kernel's words.
        reason: String,
    },
}

/// What came of a run beyond its records.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the records cover, at most the horizon.
    pub reached: Instant,
    /// How many events the core was told.
    pub events: u64,
    /// How many running jobs it moved to make room.
    pub shifts: u64,
    /// From each decision that gives a CPU another job to that CPU's running it.
    pub reaction: Vec<Span>,
    /// From each release to the kernel's knowing of it.
    pub lateness: Vec<Span>,
    /// How many events of the trace found no room and are not in the records.
    pub lost: u64,
    /// How it ended.
    pub ended: Ended,
    /// What a reader of the results should know, a sentence each.
    pub notes: Vec<String>,
    /// What was wrong with the core's state at the end; `None` is as it should be.
    pub fault: Option<&'static str>,
    /// What scheduling itself took; `None` where the kernel decides.
    pub overheads: Option<Overheads>,
}

/// Runs the plan on this machine and tells the recorder everything that happens, a little later than
/// it does, until the horizon or until `go_on`, which is asked about 20 times a second, says no.
///
/// `admitted` decides on requests of the tasks while they run; without it everything is let in.
///
/// # Errors
/// If the machine or the plan cannot be run. What was recorded until then stays valid.
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
    if let Err(error) = lock_all() {
        notes.push(format!(
            "memory is not locked ({error}): a page fault may make a job late"
        ));
    }
    // Whoever watches keeps out of the way if there is room elsewhere.
    let mut room = host.elsewhere;
    if !matches!(backend, Backend::Kernel) && room.len() > 1 {
        room.remove(host.agent_cpu);
    }
    if !room.is_empty() {
        set_affinity(None, &room).map_err(LiveError::system("leave the tasks' CPUs"))?;
    }
    let quantum = backend.quantum();
    let mut machine = machine(plan, options, backend, &host)?;
    if let Some(folder) = &options.pin {
        machine.pin(folder)?;
    }
    let workers = Workers::spawn(plan, options, &machine.job_barrier())?;
    let horizon = Instant::ZERO + options.horizon;
    let mut run = Run {
        story: Story::new(plan, jobs(plan, options, &workers, horizon), horizon),
        changes: Changes::new(plan, admitted),
        plan,
        machine,
        workers,
        horizon,
        quantum,
        notes,
        request_notes: Tally::default(),
    };
    let ended = run.execute(recorder, go_on);
    let stopped = run.stop(recorder);
    let (ended, reached) = ended?;
    stopped?;
    Ok(run.report(ended, reached))
}

/// The machine that runs it so.
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
        cpu_yield: CpuYield::SHORT,
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
            let builder = EnactorBuilder::new(&scheduler)?;
            let owner = SchedExtOwner::new(scheduler, builder.event_ring());
            let build = move || builder.build();
            // `preflight` says why.
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

/// The programs in the kernel, loaded for the CPUs of the plan.
fn scheduler(
    plan: &Plan<'_>,
    options: &Options,
    decision_site: DecisionSite,
    host: &Host,
) -> Result<Scheduler, LiveError> {
    let cpus: CpuSet = plan.cpus.iter().copied().collect();
    let scheduler = Scheduler::load(&SchedulerConfig {
        decision_site,
        order: plan.order,
        cpus,
        has_timers: host.has_timers,
        reserve: options.reserve,
        trace_bytes: options.trace_bytes,
    })?;
    for (index, &cpu) in plan.cpus.iter().enumerate() {
        let mates = plan.set.platform.cache_mates(CpuId::from_index(index));
        scheduler.set_cache_mates(cpu, &on_machine(plan, &mates))?;
    }
    Ok(scheduler)
}

/// The jobs of the tasks that threads do; a program's are not known.
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

/// The machine's CPUs for these of the file.
pub(crate) fn on_machine(plan: &Plan<'_>, cpus: &CpuSet) -> CpuSet {
    cpus.iter()
        .filter_map(|cpu| plan.cpus.get(cpu.index()).copied())
        .collect()
}

/// Where each task is taken to be before it first runs, in the file's numbers: where its file says, or
/// else the CPU with the least to do so far. A job that finds its CPU idle is not moved, so a good
/// beginning lasts.
pub(crate) fn starts(plan: &Plan<'_>) -> Vec<Option<CpuId>> {
    let mut loads = vec![0_u64; plan.cpus.len()];
    let start = |(id, task): (TaskId, &Task)| {
        let cpus = plan.bound[id.index()].cpus();
        let least = cpus.iter().min_by_key(|cpu| loads[cpu.index()]);
        let start = task.start_cpu.or(least)?;
        // In parts per million, rounded up so that every task counts; only good places depend on it.
        let cost = task.cost.as_ns().saturating_mul(1_000_000);
        loads[start.index()] += cost.div_ceil(task.period.as_ns());
        Some(start)
    };
    plan.set.iter().map(start).collect()
}

/// What the core is told of a member of the crew.
pub(crate) fn parameters(plan: &Plan<'_>, worker: &Worker, start: Option<CpuId>) -> Parameters {
    let task = &plan.set.tasks[worker.task.index()];
    Parameters {
        thread: worker.thread,
        cpus: on_machine(plan, plan.bound[worker.task.index()].cpus()),
        cost: task.cost,
        period: task.period,
        deadline: task.deadline,
        on_overrun: match task.on_overrun {
            // A thread of ours does what the file says: if that is never too much, it needs no watching.
            OnOverrun::Throttle
                if !worker.is_program && !may_be_throttled(plan.set, worker.task) =>
            {
                OnOverrun::Continue
            }
            other => other,
        },
        priority: plan.set.priorities()[worker.task.index()],
        follows: !worker.is_program,
        start: start.and_then(|cpu| plan.cpus.get(cpu.index()).copied()),
    }
}

/// A run that is on.
struct Run<'a> {
    plan: &'a Plan<'a>,
    machine: Box<dyn Machine>,
    workers: Workers,
    story: Story,
    changes: Changes<'a>,
    horizon: Instant,
    /// Of a policy that decides in quanta.
    quantum: Option<Span>,
    notes: Vec<String>,
    /// What became of requests.
    request_notes: Tally,
}

impl Run<'_> {
    /// Admits, releases and watches, to the end.
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
            let of = parameters(self.plan, worker, starts[worker.task.index()]);
            self.machine.admit(worker.task, &of)?;
        }
        let soon_ns = monotonic_ns() + LEAD_NS;
        // Where quanta begin, if there are any; otherwise not, since kernels tick there.
        let begins = self
            .quantum
            .and_then(|quantum| soon_ns.checked_next_multiple_of(quantum.as_ns()));
        let origin_ns = begins.unwrap_or(soon_ns);
        for worker in workers.iter().filter(|worker| !worker.is_program) {
            if !self.plan.set.enters_later(worker.task) {
                let release_ns = origin_ns + worker.first.as_ns();
                self.machine.first_job(worker.task, release_ns)?;
            }
        }
        self.story.begin(origin_ns);
        self.changes.begin(origin_ns);
        self.workers.start(origin_ns);
        self.machine.begin();
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
            // What the kernel told before this moment is all there when the clock has been read.
            self.read(recorder)?;
            self.changes.act(
                now,
                self.workers.as_slice(),
                self.machine.as_mut(),
                &mut self.story,
                recorder,
            )?;
            self.answer()?;
            self.note_endings();
            if let Some(reason) = self.machine.unloaded() {
                return Ok((Ended::Unloaded { reason }, now.min(self.horizon)));
            }
            if now >= self.horizon {
                self.story.advance(now_ns, recorder);
                return Ok((Ended::Horizon, self.horizon));
            }
            let running: Vec<Option<JobId>> = self.story.running_now().collect();
            let progress = Progress {
                now,
                running: &running,
                events: self.story.decisions,
            };
            if !go_on(&progress) {
                self.story.advance(now_ns, recorder);
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
            self.story.take(event, recorder);
            pause();
        }
        Ok(())
    }

    /// Answers who asked for other CPUs, and warns who has overrun.
    fn answer(&mut self) -> Result<(), LiveError> {
        for (task, cpus) in std::mem::take(&mut self.story.asking) {
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
                .ask(task, worker, &cpus, self.machine.as_mut())?;
            if let Some(note) = note {
                self.request_notes.add(note);
            }
        }
        for task in std::mem::take(&mut self.story.overran) {
            let is_warned = self.plan.set.tasks[task.index()].on_overrun == OnOverrun::Signal;
            let mut workers = self.workers.as_slice().iter();
            if let Some(worker) =
                workers.find(|worker| worker.task == task && worker.is_program && is_warned)
            {
                // A program that has just ended need not be warned any more.
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

    /// Everybody goes. What was told until then is read; the scheduler stays until [`report`](Self::report)
    /// has looked at it.
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
        if lost > 0 {
            self.notes.push(format!(
                "{lost} events of the trace found no room: the records have gaps"
            ));
        }
        Report {
            reached,
            events: self.story.decisions,
            shifts,
            reaction: std::mem::take(&mut self.story.reactions),
            lateness: std::mem::take(&mut self.story.lateness),
            lost,
            ended,
            notes: self.notes,
            fault,
            overheads,
        }
    }
}
