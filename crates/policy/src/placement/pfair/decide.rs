//! A slot is decided, and begins on each CPU.

use shiftwork_model::{CpuId, CpuSet, TaskId};

use super::super::support::domains::choose_idle;
use super::super::support::ready::Status;
use super::{Pfair, Waits};
use crate::policy::{Switch, Switches};

impl Pfair {
    /// Begins slots on some CPUs, after choosing the tasks of slots that are not decided yet.
    pub(super) fn begin_slots(&mut self, out: &mut Switches) {
        // In the order of CPUs, independent of the order of their ticks.
        self.beginning.sort_unstable();
        for at in 0..self.beginning.len() {
            let state = self.cpu_states[self.beginning[at].index()];
            if let Some(slot) = state
                .begins
                .filter(|&slot| slot >= self.domains[state.domain].next)
            {
                self.open(state.domain, slot);
            }
        }
        for domain in 0..self.domains.len() {
            if self.domains[domain].is_open {
                self.domains[domain].is_open = false;
                self.decide(domain);
            }
        }
        for at in 0..self.beginning.len() {
            let cpu = self.beginning[at];
            let state = &mut self.cpu_states[cpu.index()];
            let slot = state.begins.take();
            let decided = self.domains[state.domain].next.checked_sub(1);
            // A CPU whose tick comes after the following slot was decided keeps its task until that
            // slot begins there.
            if let Some(slot) = slot.filter(|_| slot == decided) {
                self.begin_slot(cpu, slot, out);
            }
        }
        self.beginning.clear();
    }

    /// The slot is the one to be decided, if no later one is.
    fn open(&mut self, domain: usize, slot: u64) {
        let domain = &mut self.domains[domain];
        domain.next = domain.next.max(slot.saturating_add(1));
        domain.is_open = true;
    }

    /// Chooses the best for the slot, and a CPU for each.
    fn decide(&mut self, domain: usize) {
        let cpus = self.domains[domain].cpus;
        for cpu in cpus.iter() {
            self.clear(cpu);
        }
        while let Some(task) = self.domains[domain].pop_due(&mut self.places) {
            self.of(task).waits = Waits::Nowhere;
            self.enqueue(task);
        }
        let mut free = cpus & self.online;
        self.unplaced.clear();
        for _ in 0..free.len() {
            let Some(best) = self.domains[domain].pop(&mut self.places) else {
                break;
            };
            // A running task keeps its CPU: elsewhere its quanta could overlap, and caches be cold.
            match self.tasks.status(best.task) {
                Status::Assigned(cpu) => self.choose(cpu, best.task, &mut free),
                _ => self.unplaced.push(best.task),
            }
        }
        self.place(free);
    }

    /// Cancels a decision for the previous slot that never began on the CPU. The running task
    /// competes for the next slot.
    fn clear(&mut self, cpu: CpuId) {
        let state = self.cpu_states[cpu.index()];
        if let Some(task) = state.chosen {
            self.dequeue(task);
            self.enqueue(task);
        }
        let is_boundary = state.begins.is_some();
        if let Some(task) = state.runs.filter(|_| is_boundary) {
            self.end_quantum(task);
        }
    }

    /// The quantum is over. A job that needs more than it declares goes on, at the same rate.
    fn end_quantum(&mut self, task: TaskId) {
        if self.of(task).is_exhausted() && !matches!(self.of(task).waits, Waits::Chosen(_)) {
            self.dequeue(task);
            let status = self.tasks.status(task);
            self.tasks.get_mut(task).status = Status::Backlogged;
            self.enqueue(task);
            self.tasks.get_mut(task).status = status;
        }
    }

    /// Finds CPUs for chosen tasks that do not run: first the CPU of the last run, then one near
    /// it.
    fn place(&mut self, mut free: CpuSet) {
        for near in [false, true] {
            let mut kept = 0;
            for at in 0..self.unplaced.len() {
                let task = self.unplaced[at];
                let last = self.tasks.get(task).last_cpu;
                match last.filter(|&last| free.contains(last)) {
                    Some(last) => self.choose(last, task, &mut free),
                    None if near => {
                        let cpu = choose_idle(&free, last, &self.mates);
                        self.choose(cpu, task, &mut free);
                    }
                    None => {
                        self.unplaced[kept] = task;
                        kept += 1;
                    }
                }
            }
            self.unplaced.truncate(kept);
        }
    }

    fn choose(&mut self, cpu: CpuId, task: TaskId, free: &mut CpuSet) {
        free.remove(cpu);
        self.cpu_states[cpu.index()].chosen = Some(task);
        self.of(task).waits = Waits::Chosen(cpu);
    }

    /// The CPU is at its boundary.
    fn begin_slot(&mut self, cpu: CpuId, slot: u64, out: &mut Switches) {
        let state = &mut self.cpu_states[cpu.index()];
        let (from, chosen) = (state.runs, state.chosen.take());
        if let Some(task) = chosen {
            self.of(task).waits = Waits::Nowhere;
        }
        if let Some(task) = from {
            if chosen != from {
                self.end_quantum(task);
            }
            self.tasks.get_mut(task).status = Status::Backlogged;
            self.cpu_states[cpu.index()].runs = None;
        }
        let to = match chosen {
            Some(task) if self.is_due(task, slot) => Some(task),
            _ => {
                if let Some(task) = chosen {
                    self.enqueue(task);
                }
                self.next_best(cpu)
            }
        };
        if let Some(task) = to {
            self.begin_quantum(cpu, task, slot);
        }
        if from != to {
            out.push(Switch { cpu, from, to });
        }
    }

    /// Whether the task has a subtask that may be scheduled in the slot.
    fn is_due(&self, task: TaskId, slot: u64) -> bool {
        let Some(progress) = &self.progress[task.index()] else {
            return false;
        };
        let rules = self.domains[progress.domain].rules();
        let turn = progress.turn(task, false, self.early, &rules);
        self.tasks.status(task) != Status::NotReady && turn.is_some_and(|turn| turn.from <= slot)
    }

    /// Removes the first of the tasks that are not chosen and run on no other CPU.
    fn next_best(&mut self, cpu: CpuId) -> Option<TaskId> {
        if !self.online.contains(cpu) {
            return None;
        }
        let domain = self.cpu_states[cpu.index()].domain;
        self.passed.clear();
        let mut found = None;
        while let Some(best) = self.domains[domain].pop(&mut self.places) {
            match self.tasks.status(best.task) {
                Status::Assigned(_) => self.passed.push(best),
                _ => {
                    found = Some(best.task);
                    break;
                }
            }
        }
        for at in 0..self.passed.len() {
            self.domains[domain].put_back(self.passed[at], &mut self.places);
        }
        if let Some(task) = found {
            self.of(task).waits = Waits::Nowhere;
        }
        found
    }

    fn begin_quantum(&mut self, cpu: CpuId, task: TaskId, slot: u64) {
        let entry = self.tasks.get_mut(task);
        entry.status = Status::Assigned(cpu);
        entry.last_cpu = Some(cpu);
        self.of(task).begin_quantum(slot);
        self.cpu_states[cpu.index()].runs = Some(task);
        self.enqueue(task);
    }
}
