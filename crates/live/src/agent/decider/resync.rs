//! Makes up for lost reports: jobs, affinities, CPUs and slots are set to the state of the machine, and the
//! differences are forwarded as if they had been reported.

use shiftwork_model::{CpuId, Instant, Span, TaskId};

use super::task_state::Running;
use super::{Decider, in_platform, number};
use crate::agent::TaskSnapshot;
use crate::event::{Event, Kind};

impl Decider {
    /// Sets the task to the state in a snapshot, after reports were lost.
    pub(in crate::agent) fn resync_task(&mut self, id: TaskId, snapshot: &TaskSnapshot) {
        let now = self.instant(snapshot.at_ns);
        self.apply_arrivals();
        self.cause = now;
        if !self.states[id.index()].is_present {
            if !snapshot.present && snapshot.cpus.is_none() {
                // The thread of one that was demoted may have ended.
                self.abandon_mutexes(now, id);
            }
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
            self.abandon_mutexes(now, id);
            self.follow(now, id, snapshot.release_ns);
            self.end_mutexes(id);
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
        // What was charged of a run in progress is not charged again at its end.
        state.running = state.running.filter(|_| is_same_run).or(begun);
        match (self.states[id.index()].is_awake, snapshot.awake) {
            (false, true) => self.wake(now, id),
            (true, false) => self.suspend(id),
            _ => {}
        }
    }

    /// Charges execution time that lost reports contained. Returns whether there was any.
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

    /// Number of CPUs of the platform.
    pub(in crate::agent) fn cpu_count(&self) -> usize {
        self.cpus.len()
    }

    /// Number in the machine of this CPU of the platform.
    pub(in crate::agent) fn cpu(&self, index: usize) -> CpuId {
        self.cpus[index].cpu
    }

    /// Sets the reasons, one bit each, for which this CPU of the platform was gone at that instant.
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

    /// Decides all slots again: that of a CPU that went and came back since is empty.
    pub(in crate::agent) fn refill_slots(&mut self) {
        for cpu in &mut self.cpus {
            cpu.slot = None;
            cpu.cause = Some(cpu.cause.unwrap_or(self.cause));
        }
    }

    /// The task is not admitted any more, possibly because of the CPUs that it asked for.
    pub(super) fn resync_absent(&mut self, id: TaskId, snapshot: &TaskSnapshot) {
        match snapshot.cpus {
            Some(_) => self.report_of(Kind::Demoted, id, snapshot),
            None => self.leave(id, false),
        }
    }

    /// Updates the CPUs that the task may use.
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
