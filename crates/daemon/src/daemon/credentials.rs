//! Credentials of reserved and observed threads: whether they are still those of the admission.
//!
//! A thread that has changed its user or group, as by executing a set-user-ID program, loses its reservation: otherwise its
//! former user could bind and throttle a thread that the kernel would no longer let that user control. They are checked at
//! every call about a task, and of all tasks in turns.

use std::collections::BTreeSet;

use shiftwork_model::{Instant, Span, TaskId};

use super::Daemon;
use crate::reservation::Denial;
use crate::reservation_table::{NoticeKind, TaskNotice};

/// Interval between two steps of the sweep, each of which checks a part of the tasks.
const STEP: Span = Span::from_ms(50);

/// Number of steps in which all tasks are checked: within two seconds, so that 1,023 tasks take less than a hundredth of a
/// CPU.
const STEPS: usize = 40;

/// Progress of the sweep over all tasks.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    /// No task before this one is checked in the next step.
    next: TaskId,
    step_at: Instant,
    /// Tasks whose threads had ended when they were last checked.
    ended: BTreeSet<TaskId>,
    /// How many tasks are to be checked for their affinities, too.
    affinities: usize,
}

impl Sweep {
    /// The first step is due at `now`.
    pub(super) fn beginning(now: Instant) -> Self {
        Self {
            next: TaskId::from_index(0),
            step_at: now,
            ended: BTreeSet::new(),
            affinities: 0,
        }
    }

    /// Each of these `tasks` is checked for its affinity.
    pub(super) const fn check_affinities(&mut self, tasks: usize) {
        self.affinities = tasks;
    }
}

impl Daemon {
    /// The next step of the sweep, if it is due: ends reservations of threads with other credentials.
    pub(super) fn check_next_credentials(&mut self, now: Instant) -> Vec<TaskNotice> {
        if self.credentials.step_at > now {
            return Vec::new();
        }
        self.credentials.step_at = now + STEP;
        let count = self.table.tasks().count().div_ceil(STEPS);
        let next = self.credentials.next;
        let rest = self.table.tasks().map(|(task, _)| task);
        let checked: Vec<TaskId> = rest.filter(|&task| task >= next).take(count).collect();
        self.credentials
            .ended
            .retain(|task| self.table.task(*task).is_some());
        self.credentials.next = match checked.last() {
            Some(last) if checked.len() == count => TaskId::from_index(last.index() + 1),
            _ => TaskId::from_index(0),
        };
        checked
            .into_iter()
            .filter_map(|task| self.check_thread(task))
            .collect()
    }

    /// Whether the task's thread exists and has the credentials of its admission, and after events were lost, whether it is
    /// bound to the CPUs of its reservation.
    fn check_thread(&mut self, task: TaskId) -> Option<TaskNotice> {
        let reserved = self.table.task(task)?;
        let is_alive = self.threads.is_alive(&reserved.thread);
        // The event of its end may be on its way; if it is lost the thread is still missed at the next check.
        if is_alive {
            self.credentials.ended.remove(&task);
        } else if self.credentials.ended.insert(task) {
            return None;
        } else {
            self.credentials.ended.remove(&task);
            let what = "removed: its thread has ended".to_owned();
            let notice = self.table.notice(task, NoticeKind::Ended, what);
            // Fails only if there is no such task.
            let _ = self.table.dismiss(task, &mut *self.backend);
            return notice;
        }
        if self.has_changed(task) {
            return self.end_of_changed(task);
        }
        self.credentials.affinities = self.credentials.affinities.checked_sub(1)?;
        let found = self.threads.look_up(reserved.thread.thread).ok()?;
        let is_elsewhere = reserved.is_served && found.cpus != reserved.reservation.cpus;
        let asks = is_elsewhere.then_some(found.cpus)?;
        self.request_affinity(task, asks)
    }

    /// Ends the observations of threads with other credentials.
    pub(super) fn check_observed_credentials(&mut self) {
        let threads = &self.threads;
        let ended = self.observations.remove_if(|it| {
            let credentials = threads.credentials(&it.thread);
            credentials.is_some_and(|found| !it.owner.allows(found))
        });
        for task in ended {
            self.end_observing(task);
        }
    }

    /// Checks that the task's thread has the credentials of its admission. Ends the reservation if it has others.
    ///
    /// # Errors
    /// If it has others.
    pub(super) fn check_credentials(&mut self, task: TaskId) -> Result<(), Denial> {
        if !self.has_changed(task) {
            return Ok(());
        }
        let notice = self.end_of_changed(task);
        self.notices.extend(notice);
        Err(Denial::Forbidden(format!(
            "the thread of task {} has changed its user or group since its admission, which has ended its reservation",
            task.index()
        )))
    }

    fn has_changed(&self, task: TaskId) -> bool {
        let reserved = self.table.task(task);
        // Those of a thread that has ended are none; its end is handled elsewhere.
        reserved.is_some_and(|it| {
            let credentials = self.threads.credentials(&it.thread);
            credentials.is_some_and(|found| !it.owner.allows(found))
        })
    }

    fn end_of_changed(&mut self, task: TaskId) -> Option<TaskNotice> {
        let what = "lost its reservation: its thread has changed its user or group".to_owned();
        let notice = self.table.notice(task, NoticeKind::Lost, what);
        // Fails only if there is no such task.
        self.table.dismiss(task, &mut *self.backend).ok()?;
        self.is_unsaved = true;
        notice
    }
}
