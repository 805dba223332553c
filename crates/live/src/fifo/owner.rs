//! The machine as whoever started the agent sees it.

use std::path::Path;
use std::sync::Arc;

use shiftwork_model::Share;

use super::job_barrier::Gate;
use super::shared_state::Floor;
use super::watchdog::Watch;
use crate::LiveError;
use crate::agent::Body;
use crate::work::JobGate;

/// The machine as whoever started the agent sees it. Dropping it makes everybody ordinary again, even
/// where the agent cannot any more.
#[derive(Debug)]
pub(crate) struct FifoBody {
    pub(super) floor: Arc<Floor>,
    /// Held for its end.
    pub(super) watch: Option<Watch>,
}

impl Body for FifoBody {
    fn gate(&self) -> Arc<dyn JobGate> {
        Arc::new(Gate(Arc::clone(&self.floor)))
    }

    fn ring(&self) {
        self.floor.bell.ring();
    }

    fn failed(&self) -> Option<String> {
        self.floor.failed().map(str::to_owned)
    }

    /// The kernel alone decides what ordinary work gets.
    fn set_reserve(&mut self, _reserve: Share) {}

    fn hears_of_affinities(&self) -> bool {
        false
    }

    fn pin(&mut self, _folder: &Path) -> Result<(), LiveError> {
        Err(LiveError::Machine {
            what: String::from("fixed priorities leave nothing behind that could be pinned"),
            remedy: String::from("use `--machine kernel` to pin a scheduler"),
        })
    }

    fn open_gate(&self) {
        self.floor.open();
    }

    fn unload(&mut self) {
        self.watch = None;
        self.floor.open();
        self.floor.restore();
    }
}

impl Drop for FifoBody {
    fn drop(&mut self) {
        self.unload();
    }
}
