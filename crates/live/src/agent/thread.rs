//! The life of an agent: a thread that hears, decides and has it carried out, until it is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use shiftwork_model::{CpuId, CpuSet, Priority, TaskId};

use super::channel::Sender;
use super::decider::Decider;
use super::enactor::{BEAT_NS, Enactor, Slot};
use crate::LiveError;
use crate::event::{Event, Kind};
use crate::host::System;
use crate::host::privileges::RANK_REMEDY;
use crate::machine::Parameters;
use crate::plan::Attention;
use crate::sys::clock::{monotonic_ns, pause};
use crate::sys::thread::{Class, set_affinity, set_class};
use crate::sys::word::Word;

/// Above ordinary real-time threads, below the kernel's own watchdogs.
const PRIORITY: u8 = 90;

/// How a dedicated agent lets its CPU's kernel threads, and whoever started it, have a little.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// So much at a time.
    span_ns: u64,
    /// So long after the last time if nobody runs and nothing is due, when nobody has to wait for that.
    after_ns: u64,
    /// So long in any case.
    at_latest_ns: u64,
}

impl Rest {
    /// Where only they may want the CPU.
    pub(crate) const SHORT: Self = Self {
        span_ns: 1_000_000,
        after_ns: 20_000_000,
        at_latest_ns: 500_000_000,
    };
    /// More than the 50 ms of each second that kernels keep from real-time threads on a CPU where others
    /// wait, or they would take them all at once.
    pub(crate) const LONG: Self = Self {
        span_ns: 3_000_000,
        after_ns: 20_000_000,
        at_latest_ns: 45_000_000,
    };
}

/// What the agent is asked by whoever started it.
pub(super) enum Request {
    Admit(TaskId, Parameters),
    FirstJob(TaskId, u64),
    Dismiss(TaskId),
    Approve(TaskId, CpuSet),
    SetAffinity(TaskId, CpuSet),
    SetPriority(TaskId, Priority),
    SetServer(TaskId, Parameters),
}

/// What it answers: whether the task is there.
pub(super) type Reply = Result<bool, LiveError>;

/// What both sides look at.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) is_over: AtomicBool,
    /// Whether jobs are released: before and after that the agent has time.
    pub(super) is_on: AtomicBool,
    /// How many running jobs were moved.
    pub(super) shifts: AtomicU64,
    /// What a report costs, in ns.
    pub(super) report_ns: AtomicU64,
    /// Reports that found no room on their way to the agent.
    pub(super) lost: AtomicU64,
    /// 1 when a task waits for an answer from whoever started the agent.
    pub(super) asked: Word,
}

/// An agent at work.
pub(super) struct Agent<E> {
    pub(super) enactor: E,
    pub(super) decider: Decider,
    pub(super) attention: Attention,
    pub(super) rest: Rest,
    pub(super) requests: Receiver<Request>,
    pub(super) replies: SyncSender<Reply>,
    pub(super) story: Sender,
    pub(super) shared: Arc<Shared>,
    pub(super) scratch: Scratch,
}

/// What is filled and emptied again at each look; kept so that nothing is allocated there.
pub(super) struct Scratch {
    reports: Vec<Event>,
    slots: Vec<Slot>,
    reports_lost: u64,
    beaten_ns: u64,
    rested_ns: u64,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self {
            reports: Vec::with_capacity(4096),
            slots: Vec::with_capacity(64),
            reports_lost: 0,
            beaten_ns: 0,
            rested_ns: monotonic_ns(),
        }
    }
}

/// Makes the calling thread an agent's: above everybody else, on its own CPU.
///
/// # Errors
/// If the kernel does not allow that.
pub(super) fn take_place(cpu: CpuId) -> Result<(), LiveError> {
    set_affinity(None, &CpuSet::single(cpu))
        .map_err(LiveError::system(format!("bind the agent to CPU {cpu}")))?;
    set_class(None, Class::Fifo(PRIORITY)).map_err(|error| LiveError::Machine {
        what: format!("the agent may not be a real-time thread: {error}"),
        remedy: System::this().for_caller(RANK_REMEDY.to_owned()),
    })
}

impl<E: Enactor> Agent<E> {
    /// Works until it is told to stop.
    pub(super) fn work(&mut self) -> Result<(), LiveError> {
        let cost = self.enactor.cost_of_a_report()?;
        self.shared.report_ns.store(cost.as_ns(), Ordering::Relaxed);
        while !self.shared.is_over.load(Ordering::Acquire) {
            self.answer_requests()?;
            let now_ns = self.look()?;
            if now_ns.saturating_sub(self.scratch.beaten_ns) >= BEAT_NS {
                self.scratch.beaten_ns = now_ns;
                self.enactor.beat()?;
            }
            self.rest(now_ns);
        }
        Ok(())
    }

    /// Hears what there is, decides, and has it carried out. Returns when it heard.
    fn look(&mut self) -> Result<u64, LiveError> {
        self.scratch.reports.clear();
        self.enactor.take_reports(&mut self.scratch.reports)?;
        let heard_ns = monotonic_ns();
        for &report in &self.scratch.reports {
            self.decider.report(report);
        }
        let lost = self.enactor.reports_lost();
        if lost != self.scratch.reports_lost {
            self.scratch.reports_lost = lost;
            self.resync()?;
        }
        self.decider.pass(heard_ns);
        self.carry_out(heard_ns)?;
        self.tell_story();
        Ok(heard_ns)
    }

    fn carry_out(&mut self, heard_ns: u64) -> Result<(), LiveError> {
        self.scratch.slots.clear();
        let Some(cause_ns) = self.decider.take_slots(&mut self.scratch.slots) else {
            return Ok(());
        };
        let decided_ns = monotonic_ns();
        let half = |ns: u64| ns.min(u64::from(u32::MAX));
        let parts = half(heard_ns.saturating_sub(cause_ns)) | half(decided_ns - heard_ns) << 32;
        self.note(decided_ns, Kind::Decided, parts);
        self.enactor.assign(&self.scratch.slots)?;
        // Those who were told go first.
        pause();
        self.note(monotonic_ns(), Kind::Concluded, 0);
        Ok(())
    }

    fn note(&mut self, at: u64, kind: Kind, value: u64) {
        self.decider.told.push(Event {
            at,
            value,
            task: 0,
            cpu: None,
            kind,
        });
    }

    /// Looks how things stand with everybody, since not all was reported.
    fn resync(&mut self) -> Result<(), LiveError> {
        for index in 0..self.decider.task_count() {
            let task = TaskId::from_index(index);
            let level = self.enactor.level(task)?;
            self.decider.sync(task, &level);
        }
        for index in 0..self.decider.cpu_count() {
            let cpu = self.decider.cpu(index);
            if let Some((at_ns, gone)) = self.enactor.why_gone(cpu)? {
                self.decider.sync_cpu(index, at_ns, gone);
            }
        }
        self.decider.assign_again();
        Ok(())
    }

    fn tell_story(&mut self) {
        let mut asks = false;
        for &event in &self.decider.told {
            // What finds no room is counted there.
            self.story.send(event);
            asks |= event.kind == Kind::Demoted;
        }
        if asks && self.shared.asked.change(0, 1) {
            self.shared.asked.wake();
        }
        self.decider.told.clear();
        let lost = self.scratch.reports_lost;
        self.shared.lost.store(lost, Ordering::Relaxed);
        let shifts = self.decider.shifts;
        self.shared.shifts.store(shifts, Ordering::Relaxed);
    }

    /// Until there is something to do, or for a moment only.
    fn rest(&mut self, now_ns: u64) {
        let due_ns = self
            .decider
            .next_ns()
            .min(self.scratch.beaten_ns.saturating_add(BEAT_NS));
        match self.attention {
            Attention::Dedicated if !self.shared.is_on.load(Ordering::Relaxed) => {
                self.enactor.wait_until(due_ns);
            }
            Attention::Shared => self.enactor.wait_until(due_ns),
            Attention::Dedicated if self.may_rest(now_ns) => {
                self.enactor
                    .wait_until(due_ns.min(now_ns + self.rest.span_ns));
                self.scratch.rested_ns = monotonic_ns();
            }
            Attention::Dedicated => pause(),
        }
    }

    fn may_rest(&self, now_ns: u64) -> bool {
        let Rest {
            span_ns,
            after_ns,
            at_latest_ns,
        } = self.rest;
        let worked_ns = now_ns.saturating_sub(self.scratch.rested_ns);
        let is_quiet = || self.decider.is_idle(now_ns + 2 * span_ns);
        worked_ns >= at_latest_ns || (worked_ns >= after_ns && is_quiet())
    }

    fn answer_requests(&mut self) -> Result<(), LiveError> {
        while let Ok(request) = self.requests.try_recv() {
            let reply = self.answer(request);
            // Nobody waits any more if the run is called off.
            let _ = self.replies.send(reply);
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> Reply {
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
        // What was reported of it until now was of another stay.
        self.look()?;
        let now_ns = monotonic_ns();
        let Some(is_awake) = self.enactor.admit(task, of)? else {
            return Ok(false);
        };
        if let Err(refusal) = self.decider.admit(now_ns, task, of, is_awake) {
            self.enactor.dismiss(task)?;
            return Err(LiveError::TaskSet(refusal));
        }
        // That it takes part is told before anything of its jobs.
        self.look()?;
        Ok(true)
    }
}
