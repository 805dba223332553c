//! The scheduler in the kernel, loaded through sched_ext, as a [`Scheduler`].

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::thread::gettid;
use shiftwork_live::LiveError;
use shiftwork_live::host::System;
use shiftwork_live::standing::{Observed, Reservation as TaskParameters, Standing};
use shiftwork_model::{CpuSet, Record, Share, TaskId};

use crate::backend::{Scheduler, SchedulerBackend};
use crate::reservation::{Denial, Reservation, Thread};
use crate::threads::{is_alive, look_up};

/// Enforces reservations by the scheduler in the kernel.
pub struct SchedExtBackend {
    /// The scheduler.
    pub scheduler: Standing,
}

impl SchedExtBackend {
    /// Sets the affinity of the thread to these CPUs.
    fn bind(&self, thread: Pid, number: u32, cpus: &CpuSet) -> Result<(), Denial> {
        let bound = self.scheduler.bind(thread, cpus);
        bound.map_err(|error| Denial::Refused(error.to_string()))?;
        // The kernel silently drops CPUs that the cpuset of the control group excludes.
        let found = look_up(number)?;
        if found.cpus != *cpus {
            return Err(Denial::Refused(format!(
                "the cpuset of control group {} restricts thread {number} to CPUs {} of {cpus}; reserve on those, or \
                 widen the cpuset",
                found.cgroup, found.cpus
            )));
        }
        Ok(())
    }

    /// As [`bind`](Self::bind); restores the affinity `before` on an error.
    fn bind_or_restore(
        &self,
        thread: Pid,
        number: u32,
        before: &CpuSet,
        cpus: &CpuSet,
    ) -> Result<(), Denial> {
        let bound = self.bind(thread, number, cpus);
        if bound.is_err() {
            // Fails only if the thread has ended.
            let _ = self.scheduler.bind(thread, before);
        }
        bound
    }

    /// Binds the thread and admits it. Its affinity was `before`; `false` if it has requested
    /// another one since.
    fn bind_and_admit(
        &mut self,
        task: TaskId,
        thread: &Thread,
        reservation: &Reservation,
        before: &CpuSet,
    ) -> Result<bool, Denial> {
        let pid = pid(thread)?;
        self.bind_or_restore(pid, thread.thread, before, &reservation.cpus)?;
        let admitted = self.scheduler.admit(task, &parameters(pid, reservation));
        // Checked after the admission: until then another thread could have reused the number.
        match (admitted, is_alive(thread)) {
            (Ok(admitted), true) => Ok(admitted),
            (Ok(admitted), false) => {
                if admitted {
                    self.dismiss(task);
                }
                Err(Denial::Missing(format!(
                    "thread {} any more",
                    thread.thread
                )))
            }
            (Err(error), _) => {
                let _ = self.scheduler.bind(pid, before);
                Err(denial(&error))
            }
        }
    }
}

impl SchedulerBackend for SchedExtBackend {
    fn admit(
        &mut self,
        task: TaskId,
        thread: &Thread,
        reservation: &Reservation,
    ) -> Result<(), Denial> {
        let before = look_up(thread.thread)?.cpus;
        match self.bind_and_admit(task, thread, reservation, &before)? {
            true => Ok(()),
            false => {
                self.dismiss(task);
                let _ = self.scheduler.bind(pid(thread)?, &before);
                Err(Denial::Broken(format!(
                    "the scheduler does not accept thread {} as task {}",
                    thread.thread,
                    task.index()
                )))
            }
        }
    }

    fn readmit(
        &mut self,
        task: TaskId,
        thread: &Thread,
        reservation: &Reservation,
    ) -> Result<(), Denial> {
        let before = look_up(thread.thread)?.cpus;
        match self.bind_and_admit(task, thread, reservation, &before)? {
            true => Ok(()),
            false => Err(Denial::Refused(format!(
                "thread {} has requested another affinity since",
                thread.thread
            ))),
        }
    }

    fn change(
        &mut self,
        task: TaskId,
        thread: &Thread,
        from: &Reservation,
        to: &Reservation,
    ) -> Result<(), Denial> {
        let pid = pid(thread)?;
        if from.cpus != to.cpus {
            let approved = self.scheduler.approve(task, &to.cpus);
            approved.map_err(|error| denial(&error))?;
            self.bind_or_restore(pid, thread.thread, &from.cpus, &to.cpus)?;
        }
        let changed = self.scheduler.change(task, &parameters(pid, to));
        changed.map_err(|error| denial(&error))
    }

    fn dismiss(&mut self, task: TaskId) {
        // Fails only if the scheduler is unloaded, and then the task is ordinary work already.
        let _ = self.scheduler.dismiss(task);
    }
}

impl Scheduler for SchedExtBackend {
    fn observe(&mut self, task: TaskId, thread: &Thread) -> Result<(), Denial> {
        let missing = || Denial::Missing(format!("thread {} any more", thread.thread));
        match self.scheduler.observe(task, pid(thread)?) {
            Ok(true) if is_alive(thread) => Ok(()),
            Ok(true) => {
                self.stop_observing(task);
                Err(missing())
            }
            Ok(false) => Err(missing()),
            Err(error) => Err(denial(&error)),
        }
    }

    fn stop_observing(&mut self, task: TaskId) {
        // Fails only if the scheduler is unloaded.
        let _ = self.scheduler.stop_observing(task);
    }

    fn bind_self(&self, cpus: &CpuSet) -> Result<(), LiveError> {
        self.scheduler.bind(gettid(), cpus)
    }

    fn set_reserve(&mut self, reserve: Share) {
        self.scheduler.set_reserve(reserve);
    }

    /// By `SIGXCPU`, as `SCHED_FLAG_DL_OVERRUN` does. The signal terminates a process that does not handle it.
    fn send_overrun_signal(&self, thread: &Thread) {
        let number = i32::try_from(thread.process).ok().and_then(Pid::from_raw);
        let process = number.and_then(|it| pidfd_open(it, PidfdFlags::empty()).ok());
        // Checked after the descriptor is open: until then another process could have reused the number.
        if let Some(process) = process
            && is_alive(thread)
        {
            let _ = pidfd_send_signal(process, Signal::XCPU);
        }
    }

    fn take_records(&mut self, events: usize) -> Result<Vec<Record>, LiveError> {
        self.scheduler.take_records(events)
    }

    fn has_more_records(&self) -> bool {
        self.scheduler.has_more_records()
    }

    fn take_observed(&mut self) -> Vec<Observed> {
        self.scheduler.take_observed()
    }

    fn online(&self) -> Option<CpuSet> {
        System::this().online()
    }

    fn events_lost(&self) -> u64 {
        self.scheduler.events_lost()
    }

    fn loans_made(&self) -> u64 {
        self.scheduler.loans_made()
    }

    fn unloaded(&mut self) -> Option<String> {
        self.scheduler.unloaded()
    }

    fn events(&self) -> BorrowedFd<'_> {
        self.scheduler.as_fd()
    }
}

fn pid(thread: &Thread) -> Result<Pid, Denial> {
    let number = i32::try_from(thread.thread).ok().and_then(Pid::from_raw);
    number.ok_or_else(|| Denial::Missing(format!("thread {}", thread.thread)))
}

fn parameters(thread: Pid, it: &Reservation) -> TaskParameters {
    TaskParameters {
        thread,
        cpus: it.cpus,
        cost: it.cost,
        period: it.period,
        deadline: it.deadline,
        on_overrun: it.on_overrun,
        priority: it.priority,
    }
}

fn denial(error: &LiveError) -> Denial {
    Denial::Broken(error.to_string())
}
