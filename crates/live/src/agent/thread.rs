//! The thread of an agent: takes reports, decides and enacts, until it is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use shiftwork_model::{CpuId, CpuSet, TaskId};

use super::channel::Sender;
use super::decider::Decider;
use super::enactor::{Enactor, HEARTBEAT_NS, Slot};
use super::mailbox::{Answerer, Reply, Request};
use crate::LiveError;
use crate::event::{Event, Kind};
use crate::host::System;
use crate::host::privileges::RTPRIO_REMEDY;
use crate::machine::Parameters;
use crate::plan::Attention;
use crate::sys::clock::{monotonic_ns, pause};
use crate::sys::thread::{Class, set_affinity, set_class};
use crate::sys::word::Word;

/// Above ordinary real-time threads, below the kernel's own watchdogs.
const PRIORITY: u8 = 90;

/// How a dedicated agent yields its CPU to kernel threads, and to the thread that started it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuYield {
    /// Duration of a yield.
    span_ns: u64,
    /// Least time since the last yield, when no CPU has a job and none is due soon, so that no job is delayed.
    idle_interval_ns: u64,
    /// Greatest time since the last yield.
    max_interval_ns: u64,
}

impl CpuYield {
    /// Where only those threads may need the CPU.
    pub(crate) const SHORT: Self = Self {
        span_ns: 1_000_000,
        idle_interval_ns: 20_000_000,
        max_interval_ns: 500_000_000,
    };
    /// More than the 50 ms of each second that kernels keep from real-time threads on a CPU where other threads
    /// wait: otherwise the kernel would take these 50 ms at once.
    pub(crate) const LONG: Self = Self {
        span_ns: 3_000_000,
        idle_interval_ns: 20_000_000,
        max_interval_ns: 45_000_000,
    };
}

/// State that both threads use.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) should_stop: AtomicBool,
    /// Whether jobs are released: before and after that the agent may sleep.
    pub(super) is_active: AtomicBool,
    /// How many running jobs were migrated.
    pub(super) shifts: AtomicU64,
    /// Cost of a report, in ns.
    pub(super) report_ns: AtomicU64,
    /// Number of reports that found no room on their way to the agent.
    pub(super) lost: AtomicU64,
    /// 1 when a task waits for a decision of the thread that started the agent.
    pub(super) decision_wanted: Word,
}

/// An agent, used by its thread.
pub(super) struct Agent<E> {
    pub(super) enactor: E,
    pub(super) decider: Decider,
    pub(super) attention: Attention,
    pub(super) cpu_yield: CpuYield,
    pub(super) requests: Answerer,
    pub(super) events: Sender,
    pub(super) shared: Arc<Shared>,
    pub(super) scratch: Scratch,
}

/// Buffers and instants of the loop; kept so that it allocates nothing.
pub(super) struct Scratch {
    reports: Vec<Event>,
    slots: Vec<Slot>,
    reports_lost: u64,
    heartbeat_ns: u64,
    yielded_ns: u64,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self {
            reports: Vec::with_capacity(4096),
            slots: Vec::with_capacity(64),
            reports_lost: 0,
            heartbeat_ns: 0,
            yielded_ns: monotonic_ns(),
        }
    }
}

/// Binds the calling thread to its CPU and gives it the agent's priority.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn become_agent_thread(cpu: CpuId) -> Result<(), LiveError> {
    set_affinity(None, &CpuSet::single(cpu))
        .map_err(LiveError::system(format!("bind the agent to CPU {cpu}")))?;
    set_class(None, Class::Fifo(PRIORITY)).map_err(|error| LiveError::Machine {
        what: format!("the agent may not be a real-time thread: {error}"),
        remedy: System::this().for_caller(RTPRIO_REMEDY.to_owned()),
    })
}

impl<E: Enactor> Agent<E> {
    /// Runs until it is stopped.
    pub(super) fn run(&mut self) -> Result<(), LiveError> {
        let cost = self.enactor.report_cost()?;
        self.shared.report_ns.store(cost.as_ns(), Ordering::Relaxed);
        while !self.shared.should_stop.load(Ordering::Acquire) {
            self.serve_requests()?;
            let now_ns = self.poll()?;
            if now_ns.saturating_sub(self.scratch.heartbeat_ns) >= HEARTBEAT_NS {
                self.scratch.heartbeat_ns = now_ns;
                self.enactor.heartbeat()?;
            }
            self.wait(now_ns);
        }
        Ok(())
    }

    /// Takes the reports, decides and enacts. The instant at which the reports were taken.
    fn poll(&mut self) -> Result<u64, LiveError> {
        self.scratch.reports.clear();
        self.enactor.take_reports(&mut self.scratch.reports)?;
        let polled_ns = monotonic_ns();
        for &report in &self.scratch.reports {
            self.decider.report(report);
        }
        let lost = self.enactor.reports_lost();
        if lost != self.scratch.reports_lost {
            self.scratch.reports_lost = lost;
            self.resync()?;
        }
        self.decider.advance(polled_ns);
        self.enact(polled_ns)?;
        self.forward_events();
        Ok(polled_ns)
    }

    fn enact(&mut self, polled_ns: u64) -> Result<(), LiveError> {
        for task in self.decider.begun.drain(..) {
            self.enactor.wake(task);
        }
        self.fill_slots(polled_ns)?;
        for task in self.decider.answered.drain(..) {
            self.enactor.answer(task);
        }
        Ok(())
    }

    fn fill_slots(&mut self, polled_ns: u64) -> Result<(), LiveError> {
        self.scratch.slots.clear();
        let Some(cause_ns) = self.decider.take_slots(&mut self.scratch.slots) else {
            return Ok(());
        };
        let decided_ns = monotonic_ns();
        let half = |ns: u64| ns.min(u64::from(u32::MAX));
        let parts = half(polled_ns.saturating_sub(cause_ns)) | half(decided_ns - polled_ns) << 32;
        self.push_event(decided_ns, Kind::Decided, parts);
        self.enactor.assign(&self.scratch.slots)?;
        // The CPUs that have new slots go first.
        pause();
        self.push_event(monotonic_ns(), Kind::Concluded, 0);
        Ok(())
    }

    fn push_event(&mut self, at: u64, kind: Kind, value: u64) {
        self.decider.events.push(Event {
            at,
            value,
            task: 0,
            cpu: None,
            kind,
        });
    }

    /// Makes up for lost reports from the present state of all tasks and CPUs.
    fn resync(&mut self) -> Result<(), LiveError> {
        for index in 0..self.decider.task_count() {
            let task = TaskId::from_index(index);
            let snapshot = self.enactor.snapshot(task)?;
            self.decider.resync_task(task, &snapshot);
        }
        for index in 0..self.decider.cpu_count() {
            let cpu = self.decider.cpu(index);
            if let Some((at_ns, gone)) = self.enactor.gone_reasons(cpu)? {
                self.decider.resync_cpu(index, at_ns, gone);
            }
        }
        self.decider.refill_slots();
        Ok(())
    }

    fn forward_events(&mut self) {
        let mut asks = false;
        for &event in &self.decider.events {
            // Events that find no room are counted there.
            self.events.send(event);
            asks |= event.kind == Kind::Demoted;
        }
        if asks && self.shared.decision_wanted.change(0, 1) {
            self.shared.decision_wanted.wake();
        }
        self.decider.events.clear();
        let lost = self.scratch.reports_lost;
        self.shared.lost.store(lost, Ordering::Relaxed);
        let shifts = self.decider.shifts;
        self.shared.shifts.store(shifts, Ordering::Relaxed);
    }

    /// Waits until there is something to do; a dedicated agent yields only for a moment.
    fn wait(&mut self, now_ns: u64) {
        let due_ns = self
            .decider
            .next_ns()
            .min(self.scratch.heartbeat_ns.saturating_add(HEARTBEAT_NS));
        match self.attention {
            Attention::Dedicated if !self.shared.is_active.load(Ordering::Relaxed) => {
                self.enactor.wait_until(due_ns);
            }
            Attention::Shared => self.enactor.wait_until(due_ns),
            Attention::Dedicated if self.may_yield(now_ns) => {
                self.enactor
                    .wait_until(due_ns.min(now_ns + self.cpu_yield.span_ns));
                self.scratch.yielded_ns = monotonic_ns();
            }
            Attention::Dedicated => pause(),
        }
    }

    fn may_yield(&self, now_ns: u64) -> bool {
        let CpuYield {
            span_ns,
            idle_interval_ns,
            max_interval_ns,
        } = self.cpu_yield;
        let worked_ns = now_ns.saturating_sub(self.scratch.yielded_ns);
        let is_quiet = || self.decider.is_idle(now_ns + 2 * span_ns);
        worked_ns >= max_interval_ns || (worked_ns >= idle_interval_ns && is_quiet())
    }

    fn serve_requests(&mut self) -> Result<(), LiveError> {
        while let Some(request) = self.requests.next() {
            let reply = self.serve(request);
            self.requests.answer(reply);
        }
        Ok(())
    }

    fn serve(&mut self, request: Request) -> Reply {
        let now_ns = monotonic_ns();
        match request {
            Request::Admit(task, of) => return self.admit(task, &of),
            Request::FirstJob(task, release_ns) => {
                self.decider.first_job(now_ns, task, release_ns);
            }
            Request::Dismiss(task) => {
                self.decider.dismiss(now_ns, task);
                self.enactor.dismiss(task)?;
            }
            Request::Approve(task, cpus) => self.enactor.approve(task, &cpus)?,
            Request::SetAffinity(task, cpus) => {
                self.enactor.approve(task, &cpus)?;
                self.decider.set_affinity(now_ns, task, &cpus);
            }
            Request::SetPriority(task, priority) => {
                self.decider.set_priority(now_ns, task, priority);
            }
            Request::SetServer(task, of) => self.decider.set_server(task, &of),
        }
        Ok(true)
    }

    fn admit(&mut self, task: TaskId, of: &Parameters) -> Reply {
        // Reports until now belong to an earlier admission.
        self.poll()?;
        let now_ns = monotonic_ns();
        let Some(is_awake) = self.enactor.admit(task, of)? else {
            return Ok(false);
        };
        if let Err(refusal) = self.decider.admit(now_ns, task, of, is_awake) {
            self.enactor.dismiss(task)?;
            return Err(LiveError::TaskSet(refusal));
        }
        // The admission is recorded before any event of the task's jobs.
        self.poll()?;
        Ok(true)
    }
}
