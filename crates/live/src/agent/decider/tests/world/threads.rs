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
            if !self.thread(id).is_at_end() {
                continue;
            }
            self.go_on(cpu, id);
        }
    }

    /// What the thread does after a stretch.
    fn go_on(&mut self, cpu: usize, id: TaskId) {
        let (mut unlocks, mut triggers) = (Vec::new(), Vec::new());
        while let Some((step, run)) = self.thread(id).rests.pop_front() {
            if matches!(step, Step::Sleep(_) | Step::Lock(_)) && !unlocks.is_empty() {
                self.thread(id).rests.push_front((step, run));
                self.affect(id, &unlocks, &triggers);
                return;
            }
            self.thread(id).left_ns = run.as_ns();
            match step {
                Step::Sleep(span) => {
                    self.affect(id, &unlocks, &triggers);
                    self.thread(id).doing = Doing::Sleeps(self.now_ns + span.as_ns());
                    self.stop_current(cpu);
                    self.block(id, cpu);
                    return;
                }
                Step::Trigger(target) => triggers.push(target),
                Step::Unlock(mutex) => unlocks.push(mutex),
                Step::Lock(mutex) => {
                    self.affect(id, &unlocks, &triggers);
                    self.thread(id).doing = Doing::Requests(Some(mutex));
                    let number = mutex.index() as u64 + 1;
                    self.report(Kind::LockRequested, Some(id), Some(cpu), number);
                    return;
                }
                Step::Complete => {}
            }
            if !run.is_zero() {
                self.affect(id, &unlocks, &triggers);
                return;
            }
        }
        triggers.extend(self.set.triggered_at_completion(id));
        self.unlock(id, &unlocks, true);
        self.finish_job(cpu, id, &triggers);
    }

    /// What the thread does to others, and goes on: if it unlocks mutexes, after the agent has decided.
    fn affect(&mut self, id: TaskId, unlocks: &[ResourceId], triggers: &[TaskId]) {
        self.unlock(id, unlocks, false);
        self.trigger(id, triggers, false);
        if !unlocks.is_empty() {
            self.thread(id).doing = Doing::Requests(None);
        }
    }

    /// The thread goes on. No other one has the mutex that it requested.
    pub(super) fn hear_answer(&mut self, id: TaskId) {
        let Doing::Requests(mutex) = self.thread(id).doing else {
            panic!("{} at {}: {id:?} asked nothing", self.name, self.now());
        };
        self.thread(id).doing = Doing::Computes;
        if let Some(mutex) = mutex {
            let before = self.holders[mutex.index()].replace(id);
            assert_eq!(before, None, "{} at {}: {id:?}", self.name, self.now());
        }
    }

    fn unlock(&mut self, id: TaskId, mutexes: &[ResourceId], at_completion: bool) {
        for mutex in mutexes {
            let before = self.holders[mutex.index()].take();
            assert_eq!(before, Some(id), "{} at {}", self.name, self.now());
        }
        if !mutexes.is_empty() {
            let value = UnlockValue::new(mutexes, at_completion);
            self.report(Kind::UnlockRequested, Some(id), None, value.word());
        }
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

impl Thread {
    /// Whether it has executed what comes before its next step.
    pub(super) fn is_at_end(&self) -> bool {
        self.left_ns == 0 && !matches!(self.doing, Doing::Requests(_))
    }

    /// Whether the job after the present one has been released before `now`, or is released at `now`.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        match &self.doing {
            Doing::Waits => self.job.release.is_some_and(|release| release < now),
            Doing::Ended => false,
            _ => {
                let mut ahead = self.jobs.clone();
                ahead
                    .next(Instant::ZERO)
                    .is_some_and(|next| next.release.is_some_and(|release| release <= now))
            }
        }
    }
}
