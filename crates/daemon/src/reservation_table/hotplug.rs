//! CPUs that go offline and online: the only event that may end a guarantee.

use shiftwork_model::CpuId;

use super::{Instant, NoticeKind, ReservationTable, SchedulerBackend, TaskNotice};

impl ReservationTable {
    /// A CPU has gone offline. Tasks that no longer fit wait and run as ordinary work.
    pub fn cpu_offline(
        &mut self,
        now: Instant,
        cpu: CpuId,
        backend: &mut dyn SchedulerBackend,
    ) -> Vec<TaskNotice> {
        self.now = self.now.max(now);
        self.version += 1;
        if !self.online().contains(cpu) {
            return Vec::new();
        }
        let losses = self.admission.cpu_offline(cpu);
        let mut notices = Vec::new();
        for loss in losses {
            let kept = match loss.left {
                Some(guarantee) => format!("its guarantee is now {guarantee}"),
                None => "lost its reservation".to_owned(),
            };
            let kind = match loss.left {
                Some(_) => NoticeKind::Weakened,
                None => NoticeKind::Lost,
            };
            let what = format!("{kept}: {}", self.with_names(&loss.reason, 0, None));
            notices.extend(self.notice(loss.task, kind, what));
            if loss.left.is_some() {
                continue;
            }
            if let Some(reserved) = self.tasks.get_mut(&loss.task)
                && std::mem::take(&mut reserved.is_served)
            {
                backend.dismiss(loss.task);
            }
        }
        notices
    }

    /// A CPU is online again. Waiting tasks that fit now are served.
    pub fn cpu_online(
        &mut self,
        now: Instant,
        cpu: CpuId,
        backend: &mut dyn SchedulerBackend,
    ) -> Vec<TaskNotice> {
        self.now = self.now.max(now);
        self.version += 1;
        if !self.rules.cpus.contains(cpu) || self.online().contains(cpu) {
            return Vec::new();
        }
        let returned = self.admission.cpu_online(cpu);
        let weaker = returned.losses.into_iter().filter_map(|loss| {
            let what = self.with_names(&loss.reason, 0, None);
            self.notice(loss.task, NoticeKind::Weakened, what)
        });
        let mut notices: Vec<TaskNotice> = weaker.collect();
        let regained = returned.regained.into_iter().map(|(task, _)| task);
        notices.extend(self.readmit(regained, backend));
        notices
    }
}
