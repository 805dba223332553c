//! What still counts of reservations that have ended or changed: charged to their owners until it counts no more.

use shiftwork_model::{Instant, TaskId};

use super::{Amount, Owner, Released, Reservation, ReservationTable, SchedulerBackend, TaskNotice};

impl ReservationTable {
    /// Charges the owner with this part of a reservation until the instant, and as long as admission counts it. If it is a
    /// task its number is not assigned before.
    pub(super) fn release(&mut self, task: TaskId, owner: &Owner, amount: Amount, until: Instant) {
        let is_over = until <= self.now && !self.admission.lingers(task);
        if is_over || amount == Amount::default() {
            return;
        }
        if amount.tasks > 0 {
            self.unavailable_numbers.insert(task);
        }
        self.usage.release(owner, amount);
        self.released.push(Released {
            task,
            owner: owner.clone(),
            amount,
            until,
        });
    }

    /// Ends the charges of what counts no more.
    pub(super) fn settle_released(&mut self) {
        let now = self.now;
        if self.released.iter().all(|it| it.until > now) {
            return;
        }
        for it in std::mem::take(&mut self.released) {
            if it.until > now || self.admission.lingers(it.task) {
                self.released.push(it);
                continue;
            }
            self.usage.settle(&it.owner, it.amount);
            if it.amount.tasks > 0 {
                self.unavailable_numbers.remove(&it.task);
            }
        }
    }

    /// What counts beside the reservation `to` when the task gets that: all of it, if it counts on other CPUs already.
    pub(super) fn released_by_move(&self, task: TaskId, to: &Reservation) -> Amount {
        let claim = self.admission.claim(task);
        let moves = claim.is_some_and(|claim| claim.cpus != to.cpus);
        let counts = self.admission.promise(task).is_some() || self.admission.lingers(task);
        Amount {
            tasks: 0,
            share_ppm: match moves && counts {
                true => Amount::of(to).share_ppm,
                false => 0,
            },
        }
    }

    /// Repeats requests for CPUs that exceeded the quotas of their owners.
    pub(super) fn retry_deferred(&mut self, backend: &mut dyn SchedulerBackend) -> Vec<TaskNotice> {
        let may_move = |&task: &TaskId| {
            let reserved = self.tasks.get(&task)?;
            let amount = self.released_by_move(task, &reserved.reservation);
            let fits = self.usage.check_release(&reserved.owner, amount).is_ok();
            fits.then_some((task, reserved.reservation.cpus))
        };
        let tasks: Vec<_> = self.deferred.iter().filter_map(may_move).collect();
        let retried = tasks
            .into_iter()
            .filter_map(|(task, cpus)| self.request_affinity(task, cpus, backend));
        retried.collect()
    }
}
