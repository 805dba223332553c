//! What CPUs and threads do, as the programs in `bpf/` and `work/` do it.

use super::*;

impl World<'_> {
    /// As `assign` in `bpf/agent.h`.
    pub(super) fn assign(&mut self, slots: &[Slot]) {
        let place = |slot: &Slot| (slot.cpu.index() - 1) / 2;
        for slot in slots {
            self.empty(place(slot));
        }
        for slot in slots {
            let cpu = place(slot);
            if let Some(id) = slot.task
                && self.thread(id).snapshot.present
                && self.thread(id).snapshot.stops == slot.stops
                && !self.cpus[cpu].gone
            {
                if let Some(other) = self.thread(id).on {
                    self.empty(other);
                }
                self.cpus[cpu].slot = Some(id);
                self.thread(id).on = Some(cpu);
            }
            self.report(Kind::SlotFilled, slot.task, Some(cpu), 0);
        }
    }

    pub(super) fn empty(&mut self, cpu: usize) {
        if let Some(id) = self.cpus[cpu].slot.take() {
            self.thread(id).on = None;
        }
    }

    /// Counts a stop: the task runs again only after a new decision.
    pub(super) fn stop_task(&mut self, id: TaskId) {
        self.thread(id).snapshot.stops += 1;
        if let Some(cpu) = self.thread(id).on {
            self.empty(cpu);
        }
    }

    /// The CPUs switch to the tasks in their slots. Whether any CPU did.
    pub(super) fn switch(&mut self) -> bool {
        let wanted: Vec<Option<TaskId>> =
            (0..self.cpus.len()).map(|cpu| self.wanted(cpu)).collect();
        let mut changed = false;
        for (cpu, &wanted) in wanted.iter().enumerate() {
            if self.cpus[cpu].current.is_some_and(|id| wanted != Some(id)) {
                self.stop_current(cpu);
                changed = true;
            }
        }
        for (cpu, wanted) in wanted.iter().enumerate() {
            let Some(id) = *wanted else { continue };
            if self.cpus[cpu].current.is_none() {
                self.start(cpu, id);
                changed = true;
            }
            if let Doing::Waits = self.thread(id).doing {
                self.begin(id);
                changed = true;
            }
        }
        changed
    }

    pub(super) fn wanted(&self, cpu: usize) -> Option<TaskId> {
        let id = self.cpus[cpu].slot?;
        let thread = self.threads[id.index()].as_ref()?;
        if self.cpus[cpu].gone || !thread.snapshot.awake {
            return None;
        }
        if let Doing::Waits = thread.doing {
            assert!(
                thread
                    .job
                    .release
                    .is_none_or(|release| release <= self.now()),
                "{} at {}: {id:?} gets a CPU before its release",
                self.name,
                self.now()
            );
        }
        Some(id)
    }

    pub(super) fn start(&mut self, cpu: usize, id: TaskId) {
        let elsewhere = self.cpus.iter().any(|cpu| cpu.current == Some(id));
        assert!(
            !elsewhere,
            "{} at {}: {id:?} runs twice",
            self.name,
            self.now()
        );
        self.cpus[cpu].current = Some(id);
        self.cpus[cpu].since_ns = self.now_ns;
        self.report(Kind::Running, Some(id), Some(cpu), 0);
    }

    pub(super) fn begin(&mut self, id: TaskId) {
        let thread = self.thread(id);
        thread.doing = Doing::Computes;
        thread.left_ns = thread.job.run.as_ns();
        thread.rests = thread.jobs.rests().collect();
    }

    /// Execution time of the CPU's task since it was last measured.
    pub(super) fn measure(&mut self, cpu: usize, id: TaskId) -> u64 {
        let ran = self.now_ns - self.cpus[cpu].since_ns;
        self.cpus[cpu].since_ns = self.now_ns;
        self.thread(id).snapshot.ran_ns += ran;
        ran
    }

    pub(super) fn stop_current(&mut self, cpu: usize) {
        if let Some(id) = self.cpus[cpu].current {
            let ran = self.measure(cpu, id);
            self.cpus[cpu].current = None;
            self.report(Kind::Stopped, Some(id), Some(cpu), ran);
        }
    }

    pub(super) fn finish_stretches(&mut self) {
        for cpu in 0..self.cpus.len() {
            let Some(id) = self.cpus[cpu].current else {
                continue;
            };
            if self.thread(id).left_ns > 0 {
                continue;
            }
            self.go_on(cpu, id);
        }
    }

    /// What the thread does after a stretch.
    fn go_on(&mut self, cpu: usize, id: TaskId) {
        let mut triggers = Vec::new();
        while let Some((step, run)) = self.thread(id).rests.pop_front() {
            self.thread(id).left_ns = run.as_ns();
            match step {
                Step::Sleep(span) => {
                    self.trigger(id, &triggers, false);
                    self.thread(id).doing = Doing::Sleeps(self.now_ns + span.as_ns());
                    self.stop_current(cpu);
                    self.block(id, cpu);
                    return;
                }
                Step::Trigger(target) => triggers.push(target),
                Step::Lock(_) | Step::Unlock(_) | Step::Complete => {}
            }
            if !run.is_zero() {
                self.trigger(id, &triggers, false);
                return;
            }
        }
        triggers.extend(self.set.triggered_at_completion(id));
        self.finish_job(cpu, id, &triggers);
    }

    /// The threads of the targets are woken before.
    fn trigger(&mut self, source: TaskId, targets: &[TaskId], at_completion: bool) {
        for &target in targets {
            self.wake_waiting(target);
        }
        for &target in targets {
            let value = TriggerValue {
                source,
                at_completion,
                taken: Taken::Lost,
            };
            self.report(Kind::Triggered, Some(target), None, value.word());
        }
    }

    /// Wakes the thread if it sleeps until its next job.
    pub(super) fn wake_waiting(&mut self, id: TaskId) {
        let thread = self.thread(id);
        if matches!(thread.doing, Doing::Waits) && !thread.snapshot.awake {
            self.wake(id);
        }
    }

    pub(super) fn block(&mut self, id: TaskId, cpu: usize) {
        self.thread(id).snapshot.awake = false;
        self.report(Kind::Blocked, Some(id), Some(cpu), 0);
        self.stop_task(id);
    }

    pub(super) fn finish_job(&mut self, cpu: usize, id: TaskId, triggers: &[TaskId]) {
        let now = self.now();
        self.thread(id).jobs_done += 1;
        let Some(next) = next(&mut self.thread(id).jobs, now) else {
            self.thread(id).doing = Doing::Ended;
            self.report(Kind::LastJob, Some(id), Some(cpu), 0);
            self.trigger(id, triggers, true);
            self.forget(id);
            self.stop_current(cpu);
            return;
        };
        let ran = self.measure(cpu, id);
        let release_ns = next.release_ns();
        let is_early = next.release.is_none_or(|release| release > now);
        let thread = self.thread(id);
        (thread.doing, thread.job) = (Doing::Waits, next);
        thread.snapshot.finished += 1;
        thread.snapshot.release_ns = release_ns;
        self.report(Kind::Ran, Some(id), Some(cpu), ran);
        self.report(Kind::NextJob, Some(id), Some(cpu), release_ns);
        self.trigger(id, triggers, true);
        self.stop_task(id);
        let sleeps = self.habits.sleeps && is_early;
        if sleeps || self.habits.always_stops {
            self.stop_current(cpu);
        }
        if sleeps {
            self.block(id, cpu);
        }
    }

    pub(super) fn forget(&mut self, id: TaskId) {
        if self.thread(id).snapshot.present {
            self.report(Kind::Left, Some(id), None, 0);
            self.stop_task(id);
            self.thread(id).snapshot.present = false;
        }
    }

    pub(super) fn wake_sleepers(&mut self) {
        let now = self.now();
        for (id, _) in self.set.iter() {
            let Some(thread) = &mut self.threads[id.index()] else {
                continue;
            };
            let wakes = match &thread.doing {
                Doing::Sleeps(until_ns) => *until_ns <= self.now_ns,
                Doing::Waits => {
                    let is_released = thread.job.release.is_some_and(|release| release <= now);
                    !thread.snapshot.awake && is_released
                }
                _ => false,
            };
            if wakes {
                if let Doing::Sleeps(_) = thread.doing {
                    thread.doing = Doing::Computes;
                }
                self.wake(id);
            }
        }
    }

    pub(super) fn wake(&mut self, id: TaskId) {
        self.thread(id).snapshot.awake = true;
        if self.thread(id).snapshot.present {
            self.report(Kind::Woken, Some(id), None, 0);
        }
    }
}
