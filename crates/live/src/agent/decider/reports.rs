//! Reports and what they change: jobs, affinities, CPUs.

use shiftwork_model::{CpuId, CpuSet, Instant, TaskId};
use shiftwork_policy::Event as PolicyEvent;

use super::Decider;
use crate::event::{Event, Kind};

impl Decider {
    /// Applies a report and forwards it.
    pub(in crate::agent) fn report(&mut self, event: Event) {
        if event.kind == Kind::Probe {
            return;
        }
        let now = self.instant(event.at);
        if now != self.cause || !comes_before_arrivals(event.kind) {
            self.apply_arrivals();
        }
        self.cause = now;
        if event.kind == Kind::Triggered {
            self.triggered(now, event);
            return;
        }
        if matches!(event.kind, Kind::LockRequested | Kind::UnlockRequested) {
            self.mutex_reported(now, event);
            return;
        }
        let id = (event.task as usize).checked_sub(1).map(TaskId::from_index);
        let id = id.filter(|id| id.index() < self.states.len());
        let Some(id) = id else {
            self.events.push(event);
            if event.task == 0 {
                self.cpu_reported(event);
            }
            return;
        };
        let state = &self.states[id.index()];
        let is_later = now >= state.since && now > state.known_until;
        let is_news = state.is_present && is_later;
        // What a job holds passes on before it ends. A task that was demoted holds mutexes, too, until its thread ends.
        let ends = match event.kind {
            Kind::NextJob | Kind::LastJob => is_news,
            Kind::Left => is_later,
            _ => false,
        };
        if ends {
            self.abandon_mutexes(now, id);
        }
        self.events.push(event);
        if is_news {
            self.task_reported(now, event, id);
        }
    }

    fn cpu_reported(&mut self, event: Event) {
        let Some(index) = event.cpu.and_then(|cpu| self.cpu_index(usize::from(cpu))) else {
            return;
        };
        if self.instant(event.at) < self.cpus[index].known_until {
            return;
        }
        let before = self.cpus[index].gone;
        let after = match event.kind {
            Kind::CpuLost => before | event.value,
            Kind::CpuBack => before & !event.value,
            _ => return,
        };
        self.cpus[index].gone = after;
        let cpu = CpuId::from_index(index);
        if event.kind == Kind::CpuLost {
            self.cpus[index].slot = None;
        }
        match (before == 0, after == 0) {
            (true, false) => self.apply(PolicyEvent::CpuOffline(cpu)),
            (false, true) => {
                let state = &mut self.cpus[index];
                state.cause = state.cause.or(Some(self.cause));
                self.apply(PolicyEvent::CpuOnline(cpu));
            }
            _ => {}
        }
    }

    /// These reports have channels of their own, in which none is lost, and count whether or not the task takes part.
    fn mutex_reported(&mut self, now: Instant, event: Event) {
        let id = TaskId::from_index((event.task as usize).saturating_sub(1));
        match event.kind {
            _ if id.index() >= self.states.len() => {}
            Kind::LockRequested => self.lock_requested(event, id),
            _ => self.unlock_requested(now, event, id),
        }
    }

    fn task_reported(&mut self, now: Instant, event: Event, id: TaskId) {
        match event.kind {
            Kind::NextJob => {
                self.states[id.index()].finished += 1;
                self.count_stop(id);
                self.follow(now, id, event.value);
                self.end_mutexes(id);
            }
            Kind::Yielded => {
                self.count_stop(id);
                let next = self.states[id.index()].next_period();
                self.next_job(now, id, next);
            }
            Kind::LastJob => {
                self.complete(id);
                self.end_mutexes(id);
            }
            Kind::Blocked => {
                self.count_stop(id);
                self.suspend(id);
            }
            Kind::Woken => self.wake(now, id),
            Kind::Running => self.start_running(now, event, id),
            Kind::Stopped => {
                self.charge(now, event, id);
                self.states[id.index()].running = None;
            }
            Kind::Ran => self.charge(now, event, id),
            Kind::Left => self.leave(id, false),
            Kind::Demoted => self.leave(id, true),
            Kind::Affinity => self.rebind(id, &CpuSet::from_bits(event.value)),
            _ => {}
        }
    }

    /// Counts a stop of the task, which empties its slot.
    pub(super) fn count_stop(&mut self, id: TaskId) {
        self.states[id.index()].stops = self.states[id.index()].stops.wrapping_add(1);
        self.vacate(id);
    }

    pub(super) fn vacate(&mut self, id: TaskId) {
        for cpu in &mut self.cpus {
            if cpu.slot == Some(id) {
                cpu.slot = None;
                cpu.cause = cpu.cause.or(Some(self.cause));
            }
        }
    }
}

/// Whether of one instant this comes before the arrivals, as in the simulator.
fn comes_before_arrivals(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Triggered
            | Kind::NextJob
            | Kind::LastJob
            | Kind::Blocked
            | Kind::Stopped
            | Kind::Ran
            | Kind::LockRequested
            | Kind::UnlockRequested
    )
}
