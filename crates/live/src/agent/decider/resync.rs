//! What reports that were lost would have said: how far a task's jobs are, and about affinities, CPUs and
//! slots. It is told on as if it had been reported.

use shiftwork_model::{CpuId, Instant, Span, TaskId};

use super::task_state::Running;
use super::{Decider, in_platform, number};
use crate::agent::Level;
use crate::event::{Event, Kind};

impl Decider {
    /// How things stand with a task, after reports were lost.
    pub(in crate::agent) fn sync(&mut self, id: TaskId, level: &Level) {
        let now = self.instant(level.at_ns);
        self.cause = now;
        if !self.actors[id.index()].is_present {
            return;
        }
        if !level.present {
            self.sync_absent(id, level);
            return;
        }
        self.sync_affinity(id, level);
        let is_same_run = !self.charge_unheard(now, id, level);
        let (stops, finished) = (
            self.actors[id.index()].stops,
            self.actors[id.index()].finished,
        );
        if level.finished != finished {
            self.emptied(id);
            self.next_job(now, id, self.instant(level.release_ns));
        } else if level.stops != stops {
            self.blocked(id);
        }
        let actor = &mut self.actors[id.index()];
        (actor.stops, actor.finished) = (level.stops, level.finished);
        actor.known_until = now;
        let place = level.cpu.and_then(|cpu| self.place_of(cpu.index()));
        let begun = place.map(|place| Running {
            place,
            since: now,
            charged: Span::ZERO,
        });
        let actor = &mut self.actors[id.index()];
        // What has been charged of a run that goes on is not charged again at its end.
        actor.running = actor.running.filter(|_| is_same_run).or(begun);
        match (self.actors[id.index()].is_awake, level.awake) {
            (false, true) => self.woken(now, id),
            (true, false) => self.fell_asleep(id),
            _ => {}
        }
    }

    /// Charges what it ran by reports that were lost. Whether there was any.
    fn charge_unheard(&mut self, now: Instant, id: TaskId, level: &Level) -> bool {
        let actor = &mut self.actors[id.index()];
        let unheard = Span::from_ns(level.ran_ns).saturating_sub(actor.ran);
        if unheard.is_zero() {
            return false;
        }
        if actor.charge(unheard, now) {
            self.tell(now, Kind::Overrun, number(id), None, 0);
        }
        true
    }

    /// How many CPUs the platform has.
    pub(in crate::agent) fn cpu_count(&self) -> usize {
        self.places.len()
    }

    /// The machine's number of this CPU of the platform.
    pub(in crate::agent) fn cpu(&self, index: usize) -> CpuId {
        self.places[index].cpu
    }

    /// For these reasons, a bit for each, this CPU of the platform was gone then.
    pub(in crate::agent) fn sync_cpu(&mut self, index: usize, at_ns: u64, gone: u64) {
        let before = self.places[index].gone;
        for (kind, value) in [
            (Kind::CpuLost, gone & !before),
            (Kind::CpuBack, before & !gone),
        ] {
            if value != 0 {
                let cpu = u16::try_from(self.places[index].cpu.index()).ok();
                self.report(Event {
                    at: at_ns,
                    value,
                    task: 0,
                    cpu,
                    kind,
                });
            }
        }
        self.places[index].known_until = self.instant(at_ns);
    }

    /// All slots have to be filled again: a CPU that went and came back since has an empty one.
    pub(in crate::agent) fn assign_again(&mut self) {
        for place in &mut self.places {
            place.slot = None;
            place.cause = Some(place.cause.unwrap_or(self.cause));
        }
    }

    /// It takes no part any more, perhaps because of what it asks for.
    pub(super) fn sync_absent(&mut self, id: TaskId, level: &Level) {
        match level.cpus {
            Some(_) => self.report_of(Kind::Demoted, id, level),
            None => self.leave(id, false),
        }
    }

    /// It may use other CPUs than is known.
    pub(super) fn sync_affinity(&mut self, id: TaskId, level: &Level) {
        let known = self.tasks[id.index()].affinity.cpus();
        let differs = |cpus| in_platform(&self.places, cpus) != *known;
        if level.cpus.as_ref().is_some_and(differs) {
            self.report_of(Kind::Affinity, id, level);
        }
    }

    fn report_of(&mut self, kind: Kind, id: TaskId, level: &Level) {
        self.report(Event {
            at: level.at_ns,
            value: level.cpus.map_or(0, |cpus| cpus.words()[0]),
            task: number(id),
            cpu: None,
            kind,
        });
    }
}
