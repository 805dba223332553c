//! What reports that were lost would have said: how far a task's jobs are, and about affinities, CPUs and
//! slots. It is told on as if it had been reported.

use shiftwork_model::{CpuId, Instant, Span, TaskId};

use super::task_state::Running;
use super::{Decider, in_platform, number};
use crate::agent::TaskSnapshot;
use crate::event::{Event, Kind};

impl Decider {
    /// How things stand with a task, after reports were lost.
    pub(in crate::agent) fn resync_task(&mut self, id: TaskId, snapshot: &TaskSnapshot) {
        let now = self.instant(snapshot.at_ns);
        self.cause = now;
        if !self.states[id.index()].is_present {
            return;
        }
        if !snapshot.present {
            self.resync_absent(id, snapshot);
            return;
        }
        self.resync_affinity(id, snapshot);
        let is_same_run = !self.charge_unreported(now, id, snapshot);
        let (stops, finished) = (
            self.states[id.index()].stops,
            self.states[id.index()].finished,
        );
        if snapshot.finished != finished {
            self.vacate(id);
            self.next_job(now, id, self.instant(snapshot.release_ns));
        } else if snapshot.stops != stops {
            self.vacate_and_suspend(id);
        }
        let state = &mut self.states[id.index()];
        (state.stops, state.finished) = (snapshot.stops, snapshot.finished);
        state.known_until = now;
        let cpu_index = snapshot.cpu.and_then(|cpu| self.cpu_index(cpu.index()));
        let begun = cpu_index.map(|cpu_index| Running {
            cpu_index,
            since: now,
            charged: Span::ZERO,
        });
        let state = &mut self.states[id.index()];
        // What has been charged of a run that goes on is not charged again at its end.
        state.running = state.running.filter(|_| is_same_run).or(begun);
        match (self.states[id.index()].is_awake, snapshot.awake) {
            (false, true) => self.wake(now, id),
            (true, false) => self.suspend(id),
            _ => {}
        }
    }

    /// Charges what it ran by reports that were lost. Whether there was any.
    fn charge_unreported(&mut self, now: Instant, id: TaskId, snapshot: &TaskSnapshot) -> bool {
        let state = &mut self.states[id.index()];
        let unreported = Span::from_ns(snapshot.ran_ns).saturating_sub(state.ran);
        if unreported.is_zero() {
            return false;
        }
        if state.charge(unreported, now) {
            self.emit(now, Kind::Overrun, number(id), None, 0);
        }
        true
    }

    /// How many CPUs the platform has.
    pub(in crate::agent) fn cpu_count(&self) -> usize {
        self.cpus.len()
    }

    /// The machine's number of this CPU of the platform.
    pub(in crate::agent) fn cpu(&self, index: usize) -> CpuId {
        self.cpus[index].cpu
    }

    /// For these reasons, a bit for each, this CPU of the platform was gone then.
    pub(in crate::agent) fn resync_cpu(&mut self, index: usize, at_ns: u64, gone: u64) {
        let before = self.cpus[index].gone;
        for (kind, value) in [
            (Kind::CpuLost, gone & !before),
            (Kind::CpuBack, before & !gone),
        ] {
            if value != 0 {
                let cpu = u16::try_from(self.cpus[index].cpu.index()).ok();
                self.report(Event {
                    at: at_ns,
                    value,
                    task: 0,
                    cpu,
                    kind,
                });
            }
        }
        self.cpus[index].known_until = self.instant(at_ns);
    }

    /// All slots have to be filled again: a CPU that went and came back since has an empty one.
    pub(in crate::agent) fn refill_slots(&mut self) {
        for cpu in &mut self.cpus {
            cpu.slot = None;
            cpu.cause = Some(cpu.cause.unwrap_or(self.cause));
        }
    }

    /// It takes no part any more, perhaps because of what it asks for.
    pub(super) fn resync_absent(&mut self, id: TaskId, snapshot: &TaskSnapshot) {
        match snapshot.cpus {
            Some(_) => self.report_of(Kind::Demoted, id, snapshot),
            None => self.leave(id, false),
        }
    }

    /// It may use other CPUs than is known.
    pub(super) fn resync_affinity(&mut self, id: TaskId, snapshot: &TaskSnapshot) {
        let known = self.tasks[id.index()].affinity.cpus();
        let differs = |cpus| in_platform(&self.cpus, cpus) != *known;
        if snapshot.cpus.as_ref().is_some_and(differs) {
            self.report_of(Kind::Affinity, id, snapshot);
        }
    }

    fn report_of(&mut self, kind: Kind, id: TaskId, snapshot: &TaskSnapshot) {
        self.report(Event {
            at: snapshot.at_ns,
            value: snapshot.cpus.map_or(0, |cpus| cpus.words()[0]),
            task: number(id),
            cpu: None,
            kind,
        });
    }
}
