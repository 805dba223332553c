//! The side of the thread that started the agent.

use std::path::Path;
use std::sync::Arc;

use shiftwork_model::Share;

use super::job_barrier::FifoJobBarrier;
use super::shared_state::SharedState;
use super::watchdog::Watchdog;
use crate::LiveError;
use crate::agent::EnactorOwner;
use crate::work::JobBarrier;

/// The `SCHED_FIFO` machine as the thread that started the agent uses it. Dropping it makes all threads ordinary
/// again, also after the agent has failed.
#[derive(Debug)]
pub(crate) struct FifoOwner {
    pub(super) shared: Arc<SharedState>,
    /// Stopped when dropped.
    pub(super) watchdog: Option<Watchdog>,
}

impl EnactorOwner for FifoOwner {
    fn job_barrier(&self) -> Arc<dyn JobBarrier> {
        Arc::new(FifoJobBarrier(Arc::clone(&self.shared)))
    }

    fn wake_agent(&self) {
        self.shared.doorbell.ring();
    }

    fn failed(&self) -> Option<String> {
        self.shared.failed().map(str::to_owned)
    }

    /// The kernel alone decides how much CPU time ordinary work gets.
    fn set_reserve(&mut self, _reserve: Share) {}

    fn reports_affinities(&self) -> bool {
        false
    }

    fn pin(&mut self, _folder: &Path) -> Result<(), LiveError> {
        Err(LiveError::Machine {
            what: String::from("`--machine fifo` loads no scheduler that could be pinned"),
            remedy: String::from("use `--machine kernel` to pin a scheduler"),
        })
    }

    fn open_job_barrier(&self) {
        self.shared.end_run();
    }

    fn unload(&mut self) {
        self.watchdog = None;
        self.shared.end_run();
        self.shared.restore();
    }
}

impl Drop for FifoOwner {
    fn drop(&mut self) {
        self.unload();
    }
}
