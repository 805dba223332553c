//! The threads of a run: those of tasks, and those that disturb them.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use shiftwork_live::{Class, set_class};
use shiftwork_model::CpuSet;

use super::plan::Work;
use crate::deadline::work::bind;
use crate::faults::{Actor, compute};
use crate::mutexes::futex::InheritingMutex;
use crate::standing::periodic::Periodic;
use crate::standing::worker::{Doing, Worker};

/// A thread with a reservation, or of a process that has one.
pub enum Thread {
    Jobs(Periodic),
    Works(Worker),
    Program(Actor),
}

impl Thread {
    /// Starts it; [`Work::Jobs`] have to be given to it.
    pub fn start(work: Work) -> Result<Self, String> {
        Ok(match work {
            Work::Jobs { .. } => Self::Jobs(Periodic::start()),
            Work::Naps => Self::Works(Worker::start(Doing::Naps)),
            Work::Hogs => Self::Works(Worker::start(Doing::Hogs)),
            Work::Yields => Self::Works(Worker::start(Doing::Yields)),
            Work::Program { run_us, sleep_us } => {
                Self::Program(Actor::start(&format!("naps {run_us} {sleep_us}"))?)
            }
        })
    }

    pub fn id(&self) -> Result<Pid, String> {
        match self {
            Self::Jobs(thread) => Ok(thread.id),
            Self::Works(worker) => Ok(worker.id),
            Self::Program(actor) => {
                let raw = i32::try_from(actor.id()).ok();
                raw.and_then(Pid::from_raw)
                    .ok_or_else(|| "a process without a number".to_owned())
            }
        }
    }

    /// It ends soon: at once if it is a process, otherwise when it has done its present job.
    pub fn ends(&self) {
        match self {
            Self::Jobs(thread) => thread.ends(),
            Self::Works(worker) => worker.does(Doing::Ends),
            Self::Program(_) => self.signal(Signal::KILL),
        }
    }

    /// A process gets the signal, unless it is gone.
    pub fn signal(&self, signal: Signal) {
        if let (Self::Program(_), Ok(id)) = (self, self.id()) {
            let _ = kill_process(id, signal);
        }
    }
}

/// A thread that ends by itself after a while.
pub type Passing = JoinHandle<Result<(), String>>;

/// A thread that computes for so long, bound to these CPUs, as a SCHED_FIFO one or as ordinary work. If all of these CPUs are
/// offline it does nothing.
pub fn burst(cpus: u64, class: Class, for_us: u64) -> Passing {
    thread::spawn(move || {
        if bind(&CpuSet::from_bits(cpus), 0).is_err() {
            return Ok(());
        }
        set_class(None, class).map_err(|error| error.to_string())?;
        compute(Duration::from_micros(for_us));
        Ok(())
    })
}

/// A SCHED_FIFO thread that wants the mutex: whatever holds it has its class for a while.
pub fn boost(mutex: Arc<InheritingMutex>) -> Passing {
    thread::spawn(move || {
        set_class(None, Class::Fifo(20)).map_err(|error| error.to_string())?;
        mutex.lock()?;
        mutex.unlock()
    })
}
