//! A scheduler for daemons without a kernel, in tests and benchmarks.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};

use shiftwork_daemon::backend::{Scheduler, SchedulerBackend};
use shiftwork_daemon::reservation::{Denial, Reservation, Thread};
use shiftwork_live::LiveError;
use shiftwork_live::standing::Observed;
use shiftwork_model::{CpuSet, Record, Share, TaskId};

/// A scheduler that accepts everything, and of which nothing is heard.
pub struct FakeScheduler {
    cpus: usize,
    /// Nothing to read.
    events: File,
}

impl FakeScheduler {
    /// Of a machine with this number of CPUs.
    pub fn new(cpus: usize) -> std::io::Result<Self> {
        let events = File::open("/dev/null")?;
        Ok(Self { cpus, events })
    }
}

impl SchedulerBackend for FakeScheduler {
    fn admit(&mut self, _: TaskId, _: &Thread, _: &Reservation) -> Result<(), Denial> {
        Ok(())
    }

    fn readmit(&mut self, _: TaskId, _: &Thread, _: &Reservation) -> Result<(), Denial> {
        Ok(())
    }

    fn change(
        &mut self,
        _: TaskId,
        _: &Thread,
        _: &Reservation,
        _: &Reservation,
    ) -> Result<(), Denial> {
        Ok(())
    }

    fn dismiss(&mut self, _: TaskId) {}
}

impl Scheduler for FakeScheduler {
    fn observe(&mut self, _: TaskId, _: &Thread) -> Result<(), Denial> {
        Ok(())
    }

    fn stop_observing(&mut self, _: TaskId) {}

    fn bind_self(&self, _: &CpuSet) -> Result<(), LiveError> {
        Ok(())
    }

    fn set_reserve(&mut self, _: Share) {}

    fn send_overrun_signal(&self, _: &Thread) {}

    fn take_records(&mut self, _: usize) -> Result<Vec<Record>, LiveError> {
        Ok(Vec::new())
    }

    fn has_more_records(&self) -> bool {
        false
    }

    fn take_observed(&mut self) -> Vec<Observed> {
        Vec::new()
    }

    fn online(&self) -> Option<CpuSet> {
        Some(CpuSet::first(self.cpus))
    }

    fn loans_made(&self) -> u64 {
        0
    }

    fn events_lost(&self) -> u64 {
        0
    }

    fn unloaded(&mut self) -> Option<String> {
        None
    }

    fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}
