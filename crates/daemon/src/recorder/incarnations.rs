//! Which task a number means: numbers are used again.

use std::collections::BTreeMap;

use shiftwork_model::{JobId, Record, RecordKind, TaskId};

use crate::reservation::Reservation;

/// A task from its admission on until its reservation ends. Its number among incarnations is never used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskIncarnation {
    /// The number of the task, which another task gets later.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The user that it belongs to.
    pub user: u32,
    /// What it reserved at first. Records say what changed.
    pub reservation: Reservation,
    /// When its reservation ended, on the monotonic clock in ns; `None`: it has it.
    pub gone_ns: Option<u64>,
}

/// All incarnations that are remembered, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Incarnations {
    all: BTreeMap<u32, TaskIncarnation>,
    next: u32,
    /// The incarnation that records with a number are about.
    present: BTreeMap<TaskId, u32>,
    /// The incarnation that has the number already, while records of the one before may still come.
    coming: BTreeMap<TaskId, u32>,
    /// Whether the last record about its part is that it left, by incarnation.
    out: BTreeMap<u32, bool>,
}

impl Incarnations {
    /// The task has this reservation. One that had one keeps its incarnation.
    pub fn know(&mut self, task: TaskId, name: &str, user: u32, reservation: &Reservation) {
        let known = self.of(task).and_then(|number| self.all.get(&number));
        if known.is_some_and(|it| it.gone_ns.is_none()) {
            return;
        }
        let incarnation = TaskIncarnation {
            number: task.index() as u32,
            name: name.to_owned(),
            user,
            reservation: reservation.clone(),
            gone_ns: None,
        };
        self.all.insert(self.next, incarnation);
        self.coming.insert(task, self.next);
        self.next += 1;
    }

    /// The task's reservation has ended.
    pub fn forget(&mut self, task: TaskId, now_ns: u64) {
        let Some(number) = self.of(task) else { return };
        if let Some(it) = self.all.get_mut(&number) {
            it.gone_ns.get_or_insert(now_ns);
        }
        self.coming.remove(&task);
        if self.out.get(&number) == Some(&true) {
            self.present.remove(&task);
        }
    }

    /// The incarnation that has the number of a task now.
    pub fn of(&self, task: TaskId) -> Option<u32> {
        let coming = self.coming.get(&task);
        coming.or_else(|| self.present.get(&task)).copied()
    }

    /// The record with the numbers of incarnations as those of tasks; `None` if it is about a task without a reservation.
    pub fn renumber(&mut self, record: &Record) -> Option<Record> {
        let mut record = record.clone();
        if let RecordKind::Switched { from, to, .. } = &mut record.kind {
            for job in [from, to] {
                let renumbered = job.and_then(|it| {
                    let task = self.meant_by(it.task)?;
                    Some(JobId { task, ..it })
                });
                *job = renumbered;
            }
            return Some(record);
        }
        let enters = matches!(record.kind, RecordKind::Entered { .. });
        let leaves = matches!(record.kind, RecordKind::Left { .. });
        for task in record.kind.tasks_mut().into_iter().flatten() {
            if enters && let Some(number) = self.coming.remove(task) {
                self.present.insert(*task, number);
            }
            let slot = *task;
            *task = self.meant_by(slot)?;
            let number = task.index() as u32;
            if enters || leaves {
                self.out.insert(number, leaves);
            }
            let is_gone = self.all.get(&number).is_none_or(|it| it.gone_ns.is_some());
            if leaves && is_gone {
                self.present.remove(&slot);
            }
        }
        Some(record)
    }

    fn meant_by(&mut self, task: TaskId) -> Option<TaskId> {
        if !self.present.contains_key(&task)
            && let Some(number) = self.coming.remove(&task)
        {
            self.present.insert(task, number);
        }
        let number = *self.present.get(&task)?;
        Some(TaskId::from_index(number as usize))
    }

    /// Drops incarnations if their reservations ended before that. Returns whether there were any.
    pub fn expire(&mut self, oldest_ns: u64) -> bool {
        let before = self.all.len();
        self.all
            .retain(|_, it| it.gone_ns.is_none_or(|gone| gone >= oldest_ns));
        self.out.retain(|number, _| self.all.contains_key(number));
        self.all.len() < before
    }

    /// All of them, by their numbers.
    pub const fn all(&self) -> &BTreeMap<u32, TaskIncarnation> {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use shiftwork_model::{CpuId, CpuSet, Instant, OnOverrun, Priority, Span};

    use super::*;

    const TASK: TaskId = TaskId::from_index(3);

    fn reservation(cost_us: u64) -> Reservation {
        Reservation {
            cost: Span::from_us(cost_us),
            period: Span::from_ms(10),
            deadline: Span::from_ms(10),
            cpus: CpuSet::first(2),
            priority: Priority::MOST_URGENT,
            on_overrun: OnOverrun::Continue,
        }
    }

    /// The incarnation that a record of the task is about.
    fn hear(all: &mut Incarnations, kind: RecordKind) -> Option<usize> {
        let at = Instant::ZERO;
        let mut record = all.renumber(&Record { at, kind })?;
        let [task, _] = record.kind.tasks_mut();
        task.map(|task| task.index())
    }

    const ENTERED: RecordKind = RecordKind::Entered { task: TASK };
    const LEFT: RecordKind = RecordKind::Left { task: TASK };

    const fn completed() -> RecordKind {
        let job = JobId {
            task: TASK,
            number: 1,
        };
        RecordKind::Completed { job }
    }

    #[test]
    fn late_records_of_the_one_before_are_not_of_the_next() {
        let mut all = Incarnations::default();
        all.know(TASK, "a", 7, &reservation(1));
        assert_eq!(hear(&mut all, ENTERED), Some(0));
        all.forget(TASK, 5);
        all.know(TASK, "b", 7, &reservation(1));
        assert_eq!(all.of(TASK), Some(1));
        assert_eq!(hear(&mut all, completed()), Some(0));
        assert_eq!(hear(&mut all, LEFT), Some(0));
        assert_eq!(hear(&mut all, ENTERED), Some(1));
        assert_eq!(hear(&mut all, completed()), Some(1));
        assert_eq!(all.all()[&1].name, "b");
    }

    #[test]
    fn a_task_that_leaves_and_enters_again_is_the_same() {
        let mut all = Incarnations::default();
        all.know(TASK, "a", 7, &reservation(1));
        hear(&mut all, ENTERED);
        assert_eq!(hear(&mut all, LEFT), Some(0));
        assert_eq!(hear(&mut all, ENTERED), Some(0));
        all.know(TASK, "a", 7, &reservation(2));
        assert_eq!(
            all.all()[&0].reservation,
            reservation(1),
            "records say what changed"
        );
    }

    #[test]
    fn a_switch_between_a_task_and_one_without_a_reservation_is_of_the_task_alone() {
        let mut all = Incarnations::default();
        let [one, other] = [TASK, TaskId::from_index(4)].map(|task| JobId { task, number: 1 });
        let kind = RecordKind::Switched {
            cpu: CpuId::from_index(1),
            from: Some(one),
            to: Some(other),
        };
        all.know(other.task, "a", 7, &reservation(1));
        let record = all
            .renumber(&Record {
                at: Instant::ZERO,
                kind,
            })
            .unwrap();
        let RecordKind::Switched { from, to, .. } = record.kind else {
            panic!("{record:?}");
        };
        assert_eq!((from, to.map(|job| job.task.index())), (None, Some(0)));
    }

    #[test]
    fn a_number_without_a_reservation_means_no_task() {
        let mut all = Incarnations::default();
        assert_eq!(hear(&mut all, completed()), None);
        all.know(TASK, "a", 7, &reservation(1));
        hear(&mut all, ENTERED);
        hear(&mut all, LEFT);
        all.forget(TASK, 5);
        assert_eq!(hear(&mut all, completed()), None);
        all.expire(5);
        assert_eq!(all.all().len(), 1);
        all.expire(6);
        assert_eq!(all.all().len(), 0);
    }
}
