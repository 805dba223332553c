//! A slot is decided, and begins on each CPU.

use shiftwork_model::{CpuId, CpuSet, TaskId};

use super::super::domains::choose_idle;
use super::{Pfair, Waits};
use crate::policy::{Switch, Switches};
use crate::ready::Status;

impl Pfair {
    /// Slots begin on some CPUs; who has them, if that is not known yet, is decided.
    pub(super) fn begin_slots(&mut self, out: &mut Switches) {
        // In the order of CPUs, whatever the order in which they told.
        self.beginning.sort_unstable();
        for at in 0..self.beginning.len() {
            let seat = self.seats[self.beginning[at].index()];
            if let Some(slot) = seat
                .begins
                .filter(|&slot| slot >= self.domains[seat.domain].next)
            {
                self.open(seat.domain, slot);
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
            let seat = &mut self.seats[cpu.index()];
            let slot = seat.begins.take();
            let decided = self.domains[seat.domain].next.checked_sub(1);
            // A CPU that is told of a slot when the next one is decided goes on until that begins there.
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
        self.homeless.clear();
        for _ in 0..free.len() {
            let Some(best) = self.domains[domain].pop(&mut self.places) else {
                break;
            };
            // Whoever runs stays: on another CPU its quanta could overlap, and its caches be cold.
            match self.tasks.status(best.task) {
                Status::Assigned(cpu) => self.choose(cpu, best.task, &mut free),
                _ => self.homeless.push(best.task),
            }
        }
        self.house(free);
    }

    /// What was decided of the slot before and never began there is void; who runs there competes.
    fn clear(&mut self, cpu: CpuId) {
        let seat = self.seats[cpu.index()];
        if let Some(task) = seat.chosen {
            self.dequeue(task);
            self.enqueue(task);
        }
        let is_boundary = seat.begins.is_some();
        if let Some(task) = seat.runs.filter(|_| is_boundary) {
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

    /// Finds a CPU for those who do not run: first the ones where they ran last, then near those.
    fn house(&mut self, mut free: CpuSet) {
        for near in [false, true] {
            let mut kept = 0;
            for at in 0..self.homeless.len() {
                let task = self.homeless[at];
                let last = self.tasks.get(task).last_cpu;
                match last.filter(|&last| free.contains(last)) {
                    Some(last) => self.choose(last, task, &mut free),
                    None if near => {
                        let cpu = choose_idle(&free, last, &self.mates);
                        self.choose(cpu, task, &mut free);
                    }
                    None => {
                        self.homeless[kept] = task;
                        kept += 1;
                    }
                }
            }
            self.homeless.truncate(kept);
        }
    }

    fn choose(&mut self, cpu: CpuId, task: TaskId, free: &mut CpuSet) {
        free.remove(cpu);
        self.seats[cpu.index()].chosen = Some(task);
        self.of(task).waits = Waits::Chosen(cpu);
    }

    /// The CPU is at its boundary.
    fn begin_slot(&mut self, cpu: CpuId, slot: u64, out: &mut Switches) {
        let seat = &mut self.seats[cpu.index()];
        let (from, chosen) = (seat.runs, seat.chosen.take());
        if let Some(task) = chosen {
            self.of(task).waits = Waits::Nowhere;
        }
        if let Some(task) = from {
            if chosen != from {
                self.end_quantum(task);
            }
            self.tasks.get_mut(task).status = Status::Backlogged;
            self.seats[cpu.index()].runs = None;
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

    /// Takes out who comes first of those that are not chosen and run on no other CPU.
    fn next_best(&mut self, cpu: CpuId) -> Option<TaskId> {
        if !self.online.contains(cpu) {
            return None;
        }
        let domain = self.seats[cpu.index()].domain;
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
        self.seats[cpu.index()].runs = Some(task);
        self.enqueue(task);
    }
}
