//! The timed changes of the set, as a live run makes them.

use super::*;

impl World<'_> {
    pub(super) fn act(&mut self) {
        let now = self.now();
        let actions = self.actions();
        while let Some(&action) = actions.get(self.done_actions)
            && self.set.actions[action].at <= now
        {
            self.done_actions += 1;
            self.change(&self.set.actions[action].change);
            if self.trouble.is_none() {
                self.deliver_reports();
            }
        }
    }

    pub(super) fn change(&mut self, change: &Change) {
        match change {
            Change::Enter(id) if self.threads[id.index()].is_some() => self.enter(*id),
            Change::Leave(id) if self.threads[id.index()].is_some() => self.leave(*id),
            Change::SetAttributes {
                task,
                cost,
                period,
                deadline,
            } => self.set_attributes(*task, [*cost, *period, *deadline]),
            Change::SetAffinity(id, affinity) => self.set_affinity(*id, affinity),
            Change::SetPriority(id, priority) => {
                self.priorities[id.index()] = *priority;
                self.decider.set_priority(self.now_ns, *id, *priority);
            }
            Change::CpuOffline(cpu) => {
                self.cpus[cpu.index()].gone = true;
                self.report(Kind::CpuLost, None, Some(cpu.index()), why::OFFLINE);
                self.empty(cpu.index());
                self.stop_current(cpu.index());
            }
            Change::CpuOnline(cpu) => {
                self.cpus[cpu.index()].gone = false;
                self.report(Kind::CpuBack, None, Some(cpu.index()), why::OFFLINE);
            }
            _ => {}
        }
    }

    pub(super) fn enter(&mut self, id: TaskId) {
        if let Doing::Waits = self.thread(id).doing {
            self.admit(id);
            let release_ns = self.thread(id).job.release_ns();
            self.decider.first_job(self.now_ns, id, release_ns);
        }
    }

    /// The thread drops its job.
    pub(super) fn leave(&mut self, id: TaskId) {
        self.decider.dismiss(self.now_ns, id);
        self.forget(id);
        if let Some(cpu) = (0..self.cpus.len()).find(|&cpu| self.cpus[cpu].current == Some(id)) {
            self.stop_current(cpu);
        }
        let now = self.now();
        let thread = self.thread(id);
        // It may wait for its next admission already.
        if thread.job.until <= now {
            let next = next(&mut thread.jobs, now);
            thread.doing = next.map_or(Doing::Ended, |_| Doing::Waits);
            thread.job = next.unwrap_or(thread.job);
            thread.left_ns = 0;
        }
    }

    pub(super) fn set_attributes(&mut self, id: TaskId, changed: [Option<Span>; 3]) {
        let old = self.attributes[id.index()];
        self.attributes[id.index()] = std::array::from_fn(|at| changed[at].unwrap_or(old[at]));
        let now = self.now();
        // In a simulation, released jobs that have not started keep the old attributes. A live machine has only
        // one set of attributes.
        let thread = &self.threads[id.index()];
        if thread.as_ref().is_some_and(|thread| thread.is_late(now)) {
            self.differs_from = self.differs_from.min(now);
        }
        let of = self.parameters(id);
        self.decider.set_server(id, &of);
        self.translate_events();
        let new = self.attributes[id.index()];
        self.translator
            .set_attributes(now, id, new, &mut self.records);
    }

    pub(super) fn set_affinity(&mut self, id: TaskId, affinity: &Affinity) {
        self.bound[id.index()] = *affinity;
        let cpus = on_machine(affinity.cpus());
        let thread = &self.threads[id.index()];
        if !thread
            .as_ref()
            .is_some_and(|thread| thread.snapshot.present)
        {
            return;
        }
        if self.habits.reports_affinities {
            let bits = cpus.as_bits().unwrap();
            self.report(Kind::Affinity, Some(id), None, bits);
        } else {
            self.decider.set_affinity(self.now_ns, id, &cpus);
        }
    }
}
