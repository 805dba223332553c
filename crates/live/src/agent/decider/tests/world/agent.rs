//! The side of the agent: reports reach the decider, and its slots are compared with those of the machine.

use super::*;

impl World<'_> {
    pub(super) fn deliver_reports(&mut self) {
        while let Some(&(arrives_ns, event)) = self.in_flight.front()
            && arrives_ns <= self.now_ns
        {
            self.in_flight.pop_front();
            let decider = &mut self.decider;
            let counted = allocation_counter::measure(|| decider.report(event));
            // The departure of a task may allocate.
            if event.kind != Kind::Left {
                self.allocated += counted.count_total;
            }
        }
    }

    /// One iteration of the agent.
    pub(super) fn poll(&mut self) {
        self.deliver_reports();
        // At an instant at which a thread is about to report something there is no later report yet.
        if self.lost != self.lost_before && !self.is_any_at_end() {
            self.lost_before = self.lost;
            self.resync();
        }
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        let (decider, now_ns) = (&mut self.decider, self.now_ns);
        let counted = allocation_counter::measure(|| {
            decider.advance(now_ns);
            decider.take_slots(&mut slots);
        });
        self.allocated += counted.count_total;
        for id in std::mem::take(&mut self.decider.begun) {
            self.wake_waiting(id);
        }
        if !slots.is_empty() {
            self.assign(&slots);
        }
        let answered: Vec<TaskId> = self.decider.answered.drain(..).collect();
        for id in answered {
            self.hear_answer(id);
        }
        self.slots = slots;
    }

    pub(super) fn resync(&mut self) {
        for (id, _) in self.set.iter() {
            let Some(thread) = &self.threads[id.index()] else {
                continue;
            };
            let runs_on = |cpu: &usize| self.cpus[*cpu].current == Some(id);
            let snapshot = TaskSnapshot {
                at_ns: self.now_ns,
                cpu: thread.on.filter(runs_on).map(machine_cpu),
                ..thread.snapshot
            };
            self.decider.resync_task(id, &snapshot);
        }
        self.synced = Some(self.now());
        // Reports from now on are later than the snapshot.
        self.advance(self.now_ns + 1);
    }

    /// Whether a thread on a CPU has executed what comes before its next step, which it takes at this instant.
    fn is_any_at_end(&self) -> bool {
        let is_at_end = |id: TaskId| {
            let thread = self.threads[id.index()].as_ref();
            thread.is_some_and(Thread::is_at_end)
        };
        self.cpus
            .iter()
            .any(|cpu| cpu.current.is_some_and(is_at_end))
    }

    /// Once all reports have arrived, the machine, the decider and the policy have the same slots.
    pub(super) fn check_slots(&self) {
        if !self.in_flight.is_empty() || self.lost != self.lost_before {
            return;
        }
        for (index, cpu) in self.cpus.iter().enumerate() {
            let assigned = self.decider.policy.assigned(CpuId::from_index(index));
            let believed = self.decider.cpus[index].slot;
            assert_eq!(
                (cpu.slot, believed),
                (assigned, assigned),
                "{} at {}: slot of CPU {index}, and that of the decider, against the policy",
                self.name,
                self.now()
            );
        }
    }
}
