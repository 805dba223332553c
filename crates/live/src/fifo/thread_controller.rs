//! CPU and priority level of each managed thread, as follows from the agent's slots and the threads' events.

use std::io;
use std::sync::Arc;

use rustix::thread::Pid;
use shiftwork_model::{CpuId, CpuSet, TaskId};

use super::managed_thread::{ManagedThread, Moment, NEVER, number};
use super::shared_state::SharedState;
use super::thread_ops::ThreadOps;
use super::{JOB_LEVEL, WAITING_LEVEL, refused};
use crate::LiveError;
use crate::agent::{Slot, TaskSnapshot};
use crate::event::{Event, Kind, TriggerValue};
use crate::machine::Parameters;
use crate::sys::thread::Class;

/// Room for the reports between two polls of the agent.
const REPORTS: usize = 4096;

/// A CPU of the platform.
#[derive(Clone, Copy, Debug)]
struct CpuState {
    cpu: CpuId,
    /// The task that it is assigned and, as far as is known, runs or will run.
    task: Option<usize>,
    is_blocked: bool,
}

/// CPU and priority level of each managed thread. Only the thread of the agent uses it.
///
/// A task that is assigned to a CPU is in a job, raised, bound to that CPU, and assigned to no other. A waiting
/// thread is raised already, unless it was held when its job ended. Once [`block`](Self::block) has been called, a
/// CPU is blocked exactly if a held task is bound to it.
#[derive(Debug)]
pub(super) struct ThreadController<H> {
    shared: Arc<SharedState>,
    pub(super) ops: H,
    names: Vec<String>,
    tasks: Vec<Option<ManagedThread>>,
    /// In the order of [`SharedState::blocker_cpus`].
    cpus: Vec<CpuState>,
    /// Reports that the agent has not taken yet.
    pub(super) reports: Vec<Event>,
    /// Earliest instant of further reports: the agent ignores reports that are not later than its last snapshot.
    report_from_ns: u64,
    /// When the first sleeping thread wakes up.
    pub(super) wakeup_ns: u64,
    /// Whether the set of held tasks may have changed since the blockers were last updated.
    held_changed: bool,
    /// The task that each slot really gets, while slots are filled; kept so that nothing is allocated.
    filled: Vec<Option<usize>>,
}

impl<H: ThreadOps> ThreadController<H> {
    /// For tasks with these names; none is admitted.
    pub(super) fn new(shared: Arc<SharedState>, ops: H, names: Vec<String>) -> Self {
        let cpu_state = |cpu| CpuState {
            cpu,
            task: None,
            is_blocked: false,
        };
        Self {
            tasks: vec![None; names.len()],
            cpus: shared
                .blocker_cpus
                .iter()
                .map(|blocker| cpu_state(blocker.cpu))
                .collect(),
            reports: Vec::with_capacity(REPORTS),
            report_from_ns: 0,
            wakeup_ns: NEVER,
            held_changed: false,
            filled: Vec::with_capacity(shared.blocker_cpus.len()),
            shared,
            ops,
            names,
        }
    }

    pub(super) fn now_ns(&mut self) -> u64 {
        self.ops.now_ns()
    }

    /// Applies an event from the thread of this task.
    pub(super) fn on_thread_event(&mut self, task: usize, event: Event) {
        let managed = self.tasks.get(task).and_then(Option::as_ref);
        if managed.is_none_or(|managed| managed.epoch != event.task) {
            return;
        }
        match event.kind {
            Kind::Running => self.on_running(task, event),
            Kind::Stopped => self.end_run(task, event.at, event.value),
            Kind::Triggered => self.on_trigger(task, event),
            Kind::LockRequested | Kind::UnlockRequested => {
                self.report(event.at, event.kind, Some(task), None, event.value);
            }
            _ => self.on_stopped(task, event),
        }
    }

    /// The job of this task triggers another, which the value of the event names.
    fn on_trigger(&mut self, task: usize, event: Event) {
        if let Some(value) = TriggerValue::read(event.value) {
            let by = TriggerValue {
                source: TaskId::from_index(task),
                ..value
            };
            let target = value.source.index();
            self.report(event.at, Kind::Triggered, Some(target), None, by.word());
        }
    }

    /// Reports each thread as awake that has reached its wake-up time.
    pub(super) fn wake(&mut self, now_ns: u64) {
        self.wakeup_ns = NEVER;
        for task in 0..self.tasks.len() {
            let Some(managed) = &mut self.tasks[task] else {
                continue;
            };
            if managed.wakeup_ns > now_ns {
                self.wakeup_ns = self.wakeup_ns.min(managed.wakeup_ns);
                continue;
            }
            managed.wakeup_ns = NEVER;
            let cpu = managed.cpu;
            self.report(now_ns, Kind::Woken, Some(task), Some(cpu), 0);
        }
    }

    /// Fills the slots.
    ///
    /// A task that loses its CPU is held before another task gets that CPU. If a task has stopped
    /// since the decision, its slot stays empty.
    pub(super) fn assign(&mut self, slots: &[Slot]) -> Result<(), LiveError> {
        let mut filled = std::mem::take(&mut self.filled);
        filled.clear();
        filled.extend(slots.iter().map(|slot| self.task_for_slot(slot)));
        for slot in slots {
            let loser = self.clear_slot(slot.cpu);
            if loser.is_some() && !filled.contains(&loser) {
                loser.map_or(Ok(()), |loser| self.hold(loser))?;
            }
        }
        for (slot, &winner) in slots.iter().zip(&filled) {
            if let Some(task) = winner {
                self.fill_slot(slot.cpu, task)?;
            }
            let now_ns = self.ops.now_ns();
            self.report(now_ns, Kind::SlotFilled, winner, Some(slot.cpu), 0);
        }
        self.filled = filled;
        self.block();
        Ok(())
    }

    /// Blocks each CPU that a held job is bound to, and unblocks the others.
    pub(super) fn block(&mut self) {
        if !std::mem::take(&mut self.held_changed) {
            return;
        }
        let managed = self.tasks.iter().flatten();
        let held: CpuSet = managed
            .filter(|managed| managed.is_held())
            .map(|managed| managed.cpu)
            .collect();
        for (blocker, cpu_state) in self.cpus.iter_mut().enumerate() {
            let is_blocked = held.contains(cpu_state.cpu);
            if is_blocked != cpu_state.is_blocked {
                cpu_state.is_blocked = is_blocked;
                self.ops.block(blocker, is_blocked);
            }
        }
    }

    /// Admits the task. `None` if its thread has ended, otherwise whether the thread is awake.
    pub(super) fn admit(
        &mut self,
        task: usize,
        of: &Parameters,
    ) -> Result<Option<bool>, LiveError> {
        let cpu = self.initial_cpu(task, of)?;
        let bound = self.ops.bind(of.thread, &CpuSet::single(cpu));
        let bound = bound.and_then(|()| self.ops.set_class(of.thread, Class::Fifo(WAITING_LEVEL)));
        if !self.thread_exists(task, bound)? {
            return Ok(None);
        }
        let handshake = &self.shared.handshakes[task];
        *handshake.to_restore() = Some((of.thread, of.cpus));
        let mut managed = ManagedThread::new(of, cpu, handshake.admit());
        // The thread may have slept by its own timer until now; from here on the controller wakes it.
        let until_ns = handshake.until_ns();
        managed.placed = self.read_clocks(of.thread);
        let now_ns = managed.placed.at_ns;
        let in_job = managed.in_job;
        let is_awake = in_job || until_ns <= now_ns;
        if !is_awake {
            managed.wakeup_ns = until_ns;
            self.wakeup_ns = self.wakeup_ns.min(until_ns);
        }
        self.tasks[task] = Some(managed);
        self.held_changed = true;
        if !in_job {
            // It waits for its word on any level; once raised, it only has to be woken.
            self.raise(task)?;
        }
        let affinity = of.cpus.words()[0];
        self.report(now_ns, Kind::Entered, Some(task), Some(cpu), affinity);
        self.block();
        Ok(Some(is_awake))
    }

    /// Makes the thread ordinary again. Changes nothing if the task is not admitted.
    pub(super) fn dismiss(&mut self, task: usize) -> Result<(), LiveError> {
        let Some(managed) = self.tasks.get(task).cloned().flatten() else {
            return Ok(());
        };
        let now = self.read_clocks(managed.thread);
        self.end_run(task, now.at_ns, now.ran_ns);
        self.vacate(task);
        self.tasks[task] = None;
        // The class first: an unmanaged thread must not run on a real-time level.
        let freed = self.ops.set_class(managed.thread, Class::Ordinary);
        let freed = freed.and_then(|()| self.ops.bind(managed.thread, &managed.cpus));
        let handshake = &self.shared.handshakes[task];
        handshake.dismiss();
        *handshake.to_restore() = None;
        self.thread_exists(task, freed)?;
        self.report(now.at_ns, Kind::Left, Some(task), None, 0);
        self.held_changed = true;
        self.block();
        Ok(())
    }

    /// The task may use these CPUs. Its thread stays where it is until it is assigned elsewhere.
    pub(super) fn approve(&mut self, task: usize, cpus: &CpuSet) {
        if let Some(Some(managed)) = self.tasks.get_mut(task) {
            managed.cpus = *cpus;
            *self.shared.handshakes[task].to_restore() = Some((managed.thread, *cpus));
        }
    }

    /// The state of the task for the agent.
    pub(super) fn snapshot(&mut self, task: usize) -> TaskSnapshot {
        let now_ns = self.ops.now_ns();
        self.report_from_ns = now_ns + 1;
        let absent = TaskSnapshot {
            at_ns: now_ns,
            ..TaskSnapshot::default()
        };
        let managed = self.tasks.get(task).and_then(Option::as_ref);
        managed.map_or(absent, |managed| managed.snapshot(now_ns))
    }

    /// The task that this slot gets: none if the task has stopped since the decision, or has had its last job.
    fn task_for_slot(&self, slot: &Slot) -> Option<usize> {
        let task = slot.task?.index();
        let managed = self.tasks.get(task)?.as_ref()?;
        (managed.stops == slot.stops && !managed.has_ended).then_some(task)
    }

    /// Empties the slot of this CPU; the task that it had.
    fn clear_slot(&mut self, cpu: CpuId) -> Option<usize> {
        let mut cpus = self.cpus.iter_mut();
        cpus.find(|cpu_state| cpu_state.cpu == cpu)?.task.take()
    }

    /// Empties the slot of this task.
    fn vacate(&mut self, task: usize) {
        for cpu_state in &mut self.cpus {
            if cpu_state.task == Some(task) {
                cpu_state.task = None;
            }
        }
    }

    /// Holds the task in the middle of its job, on its present CPU.
    fn hold(&mut self, task: usize) -> Result<(), LiveError> {
        let Some(managed) = self.tasks[task].as_mut().filter(|managed| managed.in_job) else {
            return Ok(());
        };
        managed.is_raised = false;
        let thread = managed.thread;
        let level = Class::Fifo(WAITING_LEVEL);
        let lowered = self.ops.set_class(thread, level);
        self.thread_exists(task, lowered)?;
        self.held_changed = true;
        self.note_displaced(task);
        Ok(())
    }

    /// Assigns the task to this CPU. The slot of the CPU is empty.
    fn fill_slot(&mut self, cpu: CpuId, task: usize) -> Result<(), LiveError> {
        if !self.move_to(cpu, task)? || !self.raise(task)? {
            return Ok(());
        }
        self.vacate(task);
        for cpu_state in &mut self.cpus {
            if cpu_state.cpu == cpu {
                cpu_state.task = Some(task);
            }
        }
        self.resume(task);
        Ok(())
    }

    /// Binds the thread to this CPU. Whether the thread exists.
    fn move_to(&mut self, cpu: CpuId, task: usize) -> Result<bool, LiveError> {
        let Some(managed) = &mut self.tasks[task] else {
            return Ok(false);
        };
        if managed.cpu == cpu {
            return Ok(true);
        }
        let thread = managed.thread;
        let moved = self.ops.bind(thread, &CpuSet::single(cpu));
        let in_job = managed.in_job;
        let thread_exists = self.thread_exists(task, moved)?;
        if in_job {
            self.note_displaced(task);
            self.held_changed = true;
        }
        if let Some(managed) = &mut self.tasks[task] {
            managed.cpu = cpu;
        }
        Ok(thread_exists)
    }

    /// Gives the thread the level of assigned jobs. Whether the thread exists.
    fn raise(&mut self, task: usize) -> Result<bool, LiveError> {
        let Some(managed) = &mut self.tasks[task] else {
            return Ok(false);
        };
        if managed.is_raised {
            return Ok(true);
        }
        managed.is_raised = true;
        self.held_changed |= managed.in_job;
        let (thread, will_report) = (managed.thread, managed.in_job && !managed.seen_running);
        if will_report {
            let now = self.read_clocks(thread);
            self.tasks[task]
                .iter_mut()
                .for_each(|managed| managed.placed = now);
        }
        let raised = self.ops.set_class(thread, Class::Fifo(JOB_LEVEL));
        self.thread_exists(task, raised)
    }

    /// Starts the next job of a waiting thread. A thread in the middle of a job runs from now on without noticing.
    fn resume(&mut self, task: usize) {
        let Some(managed) = &mut self.tasks[task] else {
            return;
        };
        if !managed.in_job {
            managed.in_job = true;
            self.shared.handshakes[task].start_job();
        } else if managed.seen_running && managed.run_start_ns.is_none() {
            let (cpu, thread) = (managed.cpu, managed.thread);
            let now = self.read_clocks(thread);
            self.begin_run(task, now, cpu);
        }
    }

    /// The thread reports when it started to run. It may have been moved or held before it could report that, and
    /// perhaps assigned again, which it does not notice: its execution before and after that are two runs.
    fn on_running(&mut self, task: usize, event: Event) {
        let Some(managed) = &mut self.tasks[task] else {
            return;
        };
        managed.seen_running = true;
        let (cpu, is_raised, placed) = (managed.cpu, managed.is_raised, managed.placed);
        let displaced = managed.displaced.take();
        let began = Moment {
            at_ns: event.at,
            ran_ns: event.value,
        };
        if let Some((until, there)) = displaced.filter(|(until, _)| began.at_ns <= until.at_ns) {
            self.begin_run(task, began, there);
            self.end_run_on(task, until, there);
        }
        // A held thread ran before its CPU was blocked: without an assignment, so nothing is reported.
        if is_raised {
            let since = if began.at_ns > placed.at_ns || displaced.is_none() {
                began
            } else {
                placed
            };
            self.begin_run(task, since, cpu);
        }
    }

    /// The thread waits again.
    fn on_stopped(&mut self, task: usize, event: Event) {
        self.vacate(task);
        let Some(managed) = &mut self.tasks[task] else {
            return;
        };
        self.held_changed |= managed.is_held();
        managed.stop(event);
        self.wakeup_ns = self.wakeup_ns.min(managed.wakeup_ns);
        let cpu = managed.cpu;
        self.report(event.at, event.kind, Some(task), Some(cpu), event.value);
    }

    fn begin_run(&mut self, task: usize, since: Moment, cpu: CpuId) {
        if let Some(managed) = &mut self.tasks[task] {
            managed.run_start_ns = Some(since.ran_ns);
            self.report(since.at_ns, Kind::Running, Some(task), Some(cpu), 0);
        }
    }

    /// Ends the present run of the thread, if there is one; `ran_ns` is its CPU time by then.
    fn end_run(&mut self, task: usize, at_ns: u64, ran_ns: u64) {
        if let Some(cpu) = self.tasks[task].as_ref().map(|managed| managed.cpu) {
            self.end_run_on(task, Moment { at_ns, ran_ns }, cpu);
        }
    }

    /// The same, for a run on this CPU.
    fn end_run_on(&mut self, task: usize, until: Moment, cpu: CpuId) {
        let run_start_ns = self.tasks[task]
            .as_mut()
            .and_then(|managed| managed.run_start_ns.take());
        if let (Some(run_start_ns), Some(managed)) = (run_start_ns, &mut self.tasks[task]) {
            let ran_ns = until.ran_ns.saturating_sub(run_start_ns);
            managed.reported_ns += ran_ns;
            self.report(until.at_ns, Kind::Stopped, Some(task), Some(cpu), ran_ns);
        }
    }

    /// The thread has been moved or held just now.
    fn note_displaced(&mut self, task: usize) {
        let Some(thread) = self.tasks[task].as_ref().map(|managed| managed.thread) else {
            return;
        };
        let now = self.read_clocks(thread);
        self.end_run(task, now.at_ns, now.ran_ns);
        if let Some(managed) = &mut self.tasks[task] {
            managed.placed = now;
            if !managed.seen_running {
                managed.displaced.get_or_insert((now, managed.cpu));
            }
        }
    }

    /// Now, and the CPU time of the thread. That of a thread that has ended does not matter: it counts as 0.
    fn read_clocks(&mut self, thread: Pid) -> Moment {
        let ran_ns = self.ops.ran_ns(thread).unwrap_or(0);
        Moment {
            at_ns: self.ops.now_ns(),
            ran_ns,
        }
    }

    /// The first CPU of a task: its present or previous one, otherwise the lowest that it may use.
    fn initial_cpu(&self, task: usize, of: &Parameters) -> Result<CpuId, LiveError> {
        let name = self.names.get(task).map_or("?", String::as_str);
        if !of.follows || task >= self.tasks.len() {
            return Err(LiveError::TaskSet(format!(
                "task {name} runs a program, and without sched_ext it is unknown when a program is runnable; \
                 `--machine kernel` and `--machine agent` run programs"
            )));
        }
        let start = of.start.filter(|&cpu| of.cpus.contains(cpu));
        start.or(of.cpus.lowest()).ok_or_else(|| {
            LiveError::TaskSet(format!("task {name} may not use any CPU of the platform"))
        })
    }

    /// Whether the thread of this task still exists, by the result of a system call.
    fn thread_exists(&self, task: usize, result: io::Result<()>) -> Result<bool, LiveError> {
        match result {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(error) => {
                let name = &self.names[task];
                Err(refused(
                    error,
                    format!("set CPU and priority of task {name}"),
                ))
            }
        }
    }

    fn report(&mut self, at: u64, kind: Kind, task: Option<usize>, cpu: Option<CpuId>, value: u64) {
        self.reports.push(Event {
            // The thread did this before the last snapshot, which does not show it.
            at: at.max(self.report_from_ns),
            value,
            task: task.map_or(0, number),
            cpu: cpu.and_then(|cpu| u16::try_from(cpu.index()).ok()),
            kind,
        });
    }
}
