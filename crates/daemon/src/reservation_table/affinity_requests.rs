//! Affinities that threads request from the kernel, which admission cannot forbid.

use shiftwork_model::{CpuSet, TaskId};

use super::{NoticeKind, Reservation, ReservationTable, SchedulerBackend, TaskNotice, refused};

impl ReservationTable {
    /// Handles an affinity that the thread requested from the kernel, by which it stopped being served: serves it again if it
    /// can be admitted with that affinity. The event may be a repetition, or report the affinity that the backend has set.
    pub fn request_affinity(
        &mut self,
        task: TaskId,
        cpus: CpuSet,
        backend: &mut dyn SchedulerBackend,
    ) -> Option<TaskNotice> {
        self.version += 1;
        let reserved = self.tasks.get_mut(&task)?;
        if reserved.is_served && reserved.reservation.cpus == cpus {
            let notices = self.readmit([task].into_iter(), backend);
            // That it is served as before is no change.
            return notices
                .into_iter()
                .find(|_| !self.tasks.contains_key(&task));
        }
        reserved.is_served = false;
        let lost = |table: &Self, what: &str| {
            let what = format!("asked for CPUs {cpus} and lost its reservation: {what}");
            table.notice(task, NoticeKind::Lost, what)
        };
        let available = cpus & self.rules.cpus;
        let to = Reservation {
            cpus: available,
            ..reserved.reservation.clone()
        };
        let owner = reserved.owner.clone();
        let until = self.now + to.period;
        if available.is_empty() {
            reserved.reservation.cpus = self.rules.cpus;
            self.deferred.remove(&task);
            // It waits, without a CPU on which it could be served. Its reservation stays charged, which stands for what that
            // still counts where it was.
            let _ = self.admission.request_affinity(task, available, until);
            return lost(
                self,
                &format!("the daemon schedules CPUs {}", self.rules.cpus),
            );
        }
        reserved.reservation.cpus = available;
        let amount = self.released_by_move(task, &to);
        if let Err(denial) = self.usage.check_release(&owner, amount) {
            let _ = self.admission.request_affinity(task, CpuSet::EMPTY, until);
            self.deferred.insert(task);
            return lost(self, &denial.to_string());
        }
        self.deferred.remove(&task);
        self.release(task, &owner, amount, until + to.period + to.period);
        let nests = self.check_nesting(Some(task), &to);
        let answer = match nests {
            Ok(()) => self
                .admission
                .request_affinity(task, available, until)
                .map_err(|refusal| refused(&refusal)),
            Err(denial) => {
                let _ = self.admission.request_affinity(task, CpuSet::EMPTY, until);
                Err(denial)
            }
        };
        match answer {
            Ok(_) => self.readmit([task].into_iter(), backend).pop(),
            Err(denial) => lost(self, &self.with_names(&denial.to_string(), 0, None)),
        }
    }
}
