//! The side of the thread that started an agent: sends requests, receives events, notices the agent's end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use rustix::thread::Pid;
use shiftwork_model::{CpuId, CpuSet, Priority, Share, Span, TaskId};
use shiftwork_policy::Policy;

use super::channel::{self, channel};
use super::decider::Decider;
use super::enactor::Enactor;
use super::mailbox::{Reply, Request, Requester, Silence, mailbox};
use super::thread::{Agent, CpuYield, Scratch, Shared, become_agent_thread};
use crate::event::Event;
use crate::machine::{Machine, Parameters};
use crate::overheads::{Meter, Overheads};
use crate::plan::Attention;
use crate::sys::clock::{monotonic_ns, pause};
use crate::sys::thread::set_affinity;
use crate::work::JobBarrier;
use crate::{LiveError, Options, Plan};

/// An agent that has not answered within this time has failed.
const ANSWER_MAX: Span = Span::from_s(10);

/// Time after the horizon, for deadlines and budgets that end later.
const AFTER: Span = Span::from_s(100);

/// What the thread that started the agent needs of its enactor.
pub(crate) trait EnactorOwner {
    /// Where threads wait between jobs.
    fn job_barrier(&self) -> Arc<dyn JobBarrier>;

    /// Wakes the agent.
    fn wake_agent(&self);

    /// Why decisions are not enacted any more; `None` as long as they are.
    fn failed(&self) -> Option<String>;

    /// What is wrong with how decisions were enacted; `None` if nothing is.
    fn fault(&self) -> Option<&'static str> {
        None
    }

    /// Sets the share of each CPU that waiting background work gets.
    fn set_reserve(&mut self, reserve: Share);

    /// Whether the kernel reports changed affinities; otherwise they reach the agent as requests.
    fn reports_affinities(&self) -> bool;

    /// Pins the scheduler, so that it outlives this program.
    fn pin(&mut self, folder: &Path) -> Result<(), LiveError>;

    /// Lets all threads that wait for jobs continue.
    fn open_job_barrier(&self);

    /// Returns all threads to the kernel's own scheduler.
    fn unload(&mut self);
}

/// A machine where an agent decides.
pub(crate) struct AgentMachine<O: EnactorOwner> {
    owner: O,
    requester: Requester,
    events: channel::Receiver,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), LiveError>>>,
    /// Why the agent ended before it was stopped.
    ended: Option<String>,
    meter: Meter,
}

/// Configuration of an agent.
pub(crate) struct AgentConfig<'a> {
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) options: &'a Options,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) attention: Attention,
    pub(crate) cpu_yield: CpuYield,
    /// CPU of the agent, in the machine's numbers; outside the platform.
    pub(crate) cpu: CpuId,
}

impl<O: EnactorOwner> AgentMachine<O> {
    /// Starts an agent. Its thread calls `build_enactor`.
    pub(crate) fn start<E: Enactor>(
        owner: O,
        config: AgentConfig<'_>,
        build_enactor: impl FnOnce() -> Result<E, LiveError> + Send + 'static,
    ) -> Result<Self, LiveError> {
        let AgentConfig {
            plan,
            options,
            policy,
            attention,
            cpu_yield,
            cpu,
        } = config;
        let span = options.horizon + AFTER;
        let decider = Decider::new(plan, policy, monotonic_ns(), span);
        let (requester, answerer) = mailbox();
        let (sender, events) = channel(options.trace_bytes as usize / size_of::<Event>());
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let run = move || {
            let enactor = become_agent_thread(cpu).and_then(|()| build_enactor());
            let enactor = match enactor {
                Ok(enactor) => enactor,
                Err(error) => {
                    // `start` waits for this.
                    answerer.answer(Err(error));
                    return Ok(());
                }
            };
            answerer.answer(Ok(true));
            let mut agent = Agent {
                enactor,
                decider,
                attention,
                cpu_yield,
                requests: answerer,
                events: sender,
                shared: seen,
                scratch: Scratch::new(),
            };
            agent.run()
        };
        let thread = std::thread::Builder::new()
            .name(String::from("agent"))
            .spawn(move || catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(panicked())))
            .map_err(LiveError::system("make a thread for the agent"))?;
        let mut machine = Self {
            owner,
            requester,
            events,
            shared,
            thread: Some(thread),
            ended: None,
            meter: Meter::default(),
        };
        machine.reply()?;
        Ok(machine)
    }

    /// Sends a request to the agent, and waits for the answer.
    fn ask(&mut self, request: Request) -> Reply {
        self.requester.send(request);
        self.owner.wake_agent();
        self.reply()
    }

    fn reply(&mut self) -> Reply {
        let latest_ns = monotonic_ns() + ANSWER_MAX.as_ns();
        match self.requester.wait_until(latest_ns) {
            Ok(reply) => reply,
            Err(Silence::Ended) => {
                self.join();
                Err(self.ended_error())
            }
            Err(Silence::Late) => Err(self.ended_error()),
        }
    }

    fn ended_error(&mut self) -> LiveError {
        let what = self.end_reason();
        let what = what.unwrap_or_else(|| String::from("the agent does not answer"));
        LiveError::Machine {
            what,
            remedy: String::from("please report this"),
        }
    }

    /// Why the agent has ended; `None` as long as it has not.
    fn end_reason(&mut self) -> Option<String> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.join();
        }
        self.ended.clone()
    }

    /// Waits for the end of an agent that ends by itself.
    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let why = match thread.join() {
                Ok(Ok(())) => String::from("the agent ended"),
                Ok(Err(error)) => error.to_string(),
                Err(_) => panicked().to_string(),
            };
            self.ended.get_or_insert(why);
        }
    }

    /// Stops the agent, and waits for its end.
    fn stop(&mut self) {
        self.shared.should_stop.store(true, Ordering::Release);
        self.owner.wake_agent();
        if let Some(thread) = self.thread.take() {
            // The result of a stopped agent does not matter any more.
            let _ = thread.join();
        }
    }
}

fn panicked() -> LiveError {
    LiveError::Machine {
        what: String::from("the agent failed"),
        remedy: String::from("please report this"),
    }
}

impl<O: EnactorOwner> Machine for AgentMachine<O> {
    fn job_barrier(&self) -> Arc<dyn JobBarrier> {
        self.owner.job_barrier()
    }

    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<bool, LiveError> {
        self.ask(Request::Admit(task, of.clone()))
    }

    fn first_job(&mut self, task: TaskId, release_ns: u64) -> Result<(), LiveError> {
        self.ask(Request::FirstJob(task, release_ns)).map(drop)
    }

    fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError> {
        self.ask(Request::Dismiss(task)).map(drop)
    }

    fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError> {
        self.ask(Request::Approve(task, *cpus)).map(drop)
    }

    fn bind(&mut self, task: TaskId, thread: Pid, cpus: &CpuSet) -> Result<(), String> {
        if self.owner.reports_affinities() {
            return set_affinity(Some(thread), cpus).map_err(|error| error.to_string());
        }
        let asked = self.ask(Request::SetAffinity(task, *cpus));
        asked.map(drop).map_err(|error| error.to_string())
    }

    fn set_priority(&mut self, task: TaskId, priority: Priority) -> Result<(), LiveError> {
        self.ask(Request::SetPriority(task, priority)).map(drop)
    }

    fn set_server(&mut self, task: TaskId, of: &Parameters) -> Result<(), LiveError> {
        self.ask(Request::SetServer(task, of.clone())).map(drop)
    }

    fn set_reserve(&mut self, reserve: Share) {
        self.owner.set_reserve(reserve);
    }

    fn take_events(&mut self) -> Result<Vec<Event>, LiveError> {
        let mut events = Vec::new();
        self.events.take(&mut events);
        for event in &events {
            self.meter.take(event);
            pause();
        }
        Ok(events)
    }

    fn wait_until(&self, at_ns: u64) {
        self.shared.decision_wanted.wait_until(0, at_ns);
        // Reset before the events are read: a request that comes later sets it again.
        self.shared.decision_wanted.change(1, 0);
    }

    fn events_lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed) + self.events.lost()
    }

    fn unloaded(&mut self) -> Option<String> {
        // After a failure of the agent, the kernel only knows that its thread has ended.
        self.end_reason().or_else(|| self.owner.failed())
    }

    fn state(&mut self) -> (u64, Option<&'static str>) {
        let shifts = self.shared.shifts.load(Ordering::Relaxed);
        (shifts, self.owner.fault())
    }

    fn overheads(&mut self) -> Option<Overheads> {
        let mut overheads = std::mem::take(&mut self.meter.overheads);
        overheads.record = Span::from_ns(self.shared.report_ns.load(Ordering::Relaxed));
        Some(overheads)
    }

    fn pin(&mut self, folder: &Path) -> Result<(), LiveError> {
        self.owner.pin(folder)
    }

    fn begin(&self) {
        self.shared.is_active.store(true, Ordering::Relaxed);
        self.owner.wake_agent();
    }

    fn open_job_barrier(&self) {
        self.shared.is_active.store(false, Ordering::Relaxed);
        self.owner.open_job_barrier();
    }

    fn unload(&mut self) {
        self.stop();
        self.owner.unload();
    }
}

impl<O: EnactorOwner> Drop for AgentMachine<O> {
    fn drop(&mut self) {
        self.owner.open_job_barrier();
        self.stop();
    }
}
