//! Saving and restoring reservations. Neither a full disk nor a broken one ends the daemon: it says so, goes on, and tries
//! again each second.

use std::io;

use shiftwork_model::{Instant, Span};

use super::{Daemon, PollOutcome};
use crate::problems::Subject;
use crate::reservation_table::ReservedTask;
use crate::state::LoadError;

/// Interval between two attempts after a failure.
const RETRY: Span = Span::from_s(1);

/// When to save.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// Not before this instant.
    earliest: Instant,
    /// The saved reservations could not be read yet: nothing replaces them.
    is_unrestored: bool,
}

impl Schedule {
    /// From `now` on.
    pub(super) const fn from(now: Instant) -> Self {
        Self {
            earliest: now,
            is_unrestored: false,
        }
    }
}

impl Daemon {
    /// Restores the saved reservations. If they cannot be read they are not replaced either until they can be.
    pub(super) fn restore_reservations(&mut self, outcome: &mut PollOutcome) {
        let loaded = self.state.load();
        self.saving.is_unrestored = matches!(loaded, Err(LoadError::Unreadable(_)));
        let path = self.state.path().display();
        let result = match &loaded {
            Err(LoadError::Unreadable(error)) => Err(format!(
                "{path} cannot be read: {error}; until it can be, no reservations are restored or saved; remove it to go \
                 on without them"
            )),
            Err(LoadError::Corrupt(why)) => {
                outcome.warnings.push(match self.state.move_aside() {
                    Ok(aside) => format!(
                        "no reservations restored: {path} is not a state of the daemon: {why}; it is {} now",
                        aside.display()
                    ),
                    Err(error) => format!(
                        "no reservations restored: {path} is not a state of the daemon: {why}; it cannot be renamed: {error}"
                    ),
                });
                Ok(())
            }
            Ok(_) => Ok(()),
        };
        let line = self.problems.note(Subject::Restoring, result);
        outcome.warnings.extend(line);
        for reserved in loaded.unwrap_or_default() {
            self.restore(reserved, outcome);
        }
    }

    fn restore(&mut self, reserved: ReservedTask, outcome: &mut PollOutcome) {
        let credentials = self.threads.credentials(&reserved.thread);
        let thread = reserved.thread.clone();
        let is_known = self.table.tasks().any(|(_, it)| it.thread == thread);
        if is_known || !credentials.is_some_and(|it| reserved.owner.allows(it)) {
            return;
        }
        let notice = self.table.restore(reserved, &mut *self.backend);
        outcome.notices.extend(notice);
        let restored = self.table.tasks().find(|(_, it)| it.thread == thread);
        if let Some((task, _)) = restored {
            self.statistics.insert(task);
            self.register_task(task);
        }
    }

    /// Begins to save the reservations if they have changed, and handles what came of the last time.
    pub(super) fn save_if_due(&mut self, now: Instant, outcome: &mut PollOutcome) {
        if let Some(result) = self.writer.poll() {
            outcome.warnings.extend(self.handle_saved(result, now));
        }
        let is_due = self.saving.earliest <= now && !self.writer.is_busy();
        if !self.is_unsaved || !is_due {
            return;
        }
        if self.saving.is_unrestored {
            self.saving.earliest = now + RETRY;
            self.restore_reservations(outcome);
            return;
        }
        self.save();
    }

    /// The state was saved, or not. Returns a line for the log.
    pub(super) fn handle_saved(&mut self, result: io::Result<()>, now: Instant) -> Option<String> {
        if result.is_err() {
            self.is_unsaved = true;
            self.saving.earliest = now + RETRY;
        }
        let path = self.state.path().display();
        let result = result.map_err(|error| {
            format!(
                "{path} cannot be written: {error}; a restart would restore earlier reservations; make room there, or \
                 name another file with --state"
            )
        });
        self.problems.note(Subject::Saving, result)
    }

    fn save(&mut self) {
        self.is_unsaved = false;
        let tasks = self.table.tasks().map(|(_, it)| it.clone());
        self.writer.save(tasks.collect());
    }

    /// Saves the last changes, and waits for the end of that.
    pub(super) fn finish_saving(&mut self) {
        // Its failure has been logged before, or is one that the next start finds.
        self.is_unsaved |= self.writer.wait().is_some_and(|result| result.is_err());
        if self.is_unsaved && !self.saving.is_unrestored {
            self.save();
            let _ = self.writer.wait();
        }
    }
}
