//! What events mean for CPUs.

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, JobId, RecordKind, Recorder, Span, TaskId,
};

use super::EventTranslator;
use crate::Plan;
use crate::event::{Event, Kind, why};

/// What is known of a CPU.
#[derive(Clone, Copy, Default)]
pub(super) struct CpuState {
    pub(super) shown: Option<JobId>,
    pub(super) gone: u64,
    /// The decision that the CPU has not carried out yet: the task, and when it was decided.
    awaited: Option<(TaskId, u64)>,
}

/// Which CPUs records are about, and their numbers there.
pub(super) struct CpuNumbers {
    /// The machine's CPUs, in the order of their numbers in records; `None`: they have the same.
    of_plan: Option<Vec<CpuId>>,
    /// Those that tasks may have, in the numbers of records.
    managed: CpuSet,
}

impl CpuNumbers {
    /// The plan's CPUs, in the file's numbers.
    pub(super) fn of_plan(plan: &Plan<'_>) -> Self {
        Self {
            of_plan: Some(plan.cpus.clone()),
            managed: CpuSet::first(plan.cpus.len()),
        }
    }

    /// These CPUs, in the machine's numbers.
    pub(super) const fn of_machine(managed: &CpuSet) -> Self {
        Self {
            of_plan: None,
            managed: *managed,
        }
    }

    /// As many CPUs as their numbers need.
    pub(super) fn count(&self) -> usize {
        self.managed.iter().last().map_or(0, |cpu| cpu.index() + 1)
    }

    fn number(&self, cpu: CpuId) -> Option<CpuId> {
        match &self.of_plan {
            Some(cpus) => cpus.iter().position(|it| *it == cpu).map(CpuId::from_index),
            None => Some(cpu),
        }
    }

    /// The CPUs in the numbers of records.
    pub(super) fn recorded(&self, cpus: &CpuSet) -> CpuSet {
        cpus.iter().filter_map(|cpu| self.number(cpu)).collect()
    }
}

impl EventTranslator {
    pub(super) fn take_cpu_event<R: Recorder>(&mut self, event: Event, recorder: &mut R) {
        let Some(place) = self.place(event) else {
            return;
        };
        if matches!(event.kind, Kind::CpuLost | Kind::CpuBack) {
            self.decisions += 1;
            let lost = event.kind == Kind::CpuLost;
            self.set_gone(self.instant(event.at), place, event.value, lost, recorder);
        }
    }

    pub(super) fn set_gone<R: Recorder>(
        &mut self,
        at: Instant,
        place: usize,
        reason: u64,
        lost: bool,
        recorder: &mut R,
    ) {
        let cpu = CpuId::from_index(place);
        let before = self.cpus[place].gone;
        let after = match lost {
            true => before | reason,
            false => before & !reason,
        };
        self.cpus[place].gone = after;
        if lost {
            // What was decided before does not count any more.
            self.cpus[place].awaited = None;
        }
        if lost && let Some(job) = self.cpus[place].shown {
            // It is on its way out: the kernel has switched already, or is about to.
            self.show(at, place, None, recorder);
            self.tasks[job.task.index()].on = None;
        }
        let reasons = [
            (
                why::OFFLINE,
                RecordKind::CpuOffline { cpu },
                RecordKind::CpuOnline { cpu },
            ),
            (
                why::TAKEN,
                RecordKind::CpuTaken { cpu },
                RecordKind::CpuReturned { cpu },
            ),
            (
                why::BACKGROUND,
                RecordKind::BackgroundStarted { cpu },
                RecordKind::BackgroundEnded { cpu },
            ),
        ];
        for (reason, begins, ends) in reasons {
            match (before & reason != 0, after & reason != 0) {
                (false, true) => self.record(at, begins, recorder),
                (true, false) => self.record(at, ends, recorder),
                _ => {}
            }
        }
    }

    /// The CPU is shown with this job from now on.
    pub(super) fn show<R: Recorder>(
        &mut self,
        at: Instant,
        place: usize,
        to: Option<JobId>,
        recorder: &mut R,
    ) {
        let from = self.cpus[place].shown;
        if from == to {
            return;
        }
        self.cpus[place].shown = to;
        let cpu = CpuId::from_index(place);
        self.record(at, RecordKind::Switched { cpu, from, to }, recorder);
    }

    pub(super) fn measure(&mut self, event: Event) {
        let Some(place) = self.place(event) else {
            return;
        };
        let task = self.task(event.task);
        match event.kind {
            Kind::Assigned => {
                let there = task.is_some_and(|id| self.tasks[id.index()].on == Some(place));
                let is_gone = self.cpus[place].gone != 0;
                let awaited = task.filter(|_| !there && !is_gone).map(|id| (id, event.at));
                self.cpus[place].awaited = awaited;
            }
            Kind::Running => {
                if let Some((awaited, since)) = self.cpus[place].awaited
                    && Some(awaited) == task
                {
                    self.cpus[place].awaited = None;
                    if since >= self.origin_ns {
                        let span = Span::from_ns(event.at.saturating_sub(since));
                        self.reactions.push(span);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn place(&self, event: Event) -> Option<usize> {
        let number = CpuId::new(usize::from(event.cpu?))?;
        let cpu = self.numbers.number(number)?;
        self.numbers.managed.contains(cpu).then(|| cpu.index())
    }

    pub(super) fn affinity<R: Recorder>(
        &mut self,
        at: Instant,
        id: TaskId,
        cpus: CpuSet,
        recorder: &mut R,
    ) {
        if let Some(affinity) = Affinity::new(self.numbers.recorded(&cpus) & self.numbers.managed) {
            let kind = RecordKind::AffinitySet {
                task: id,
                affinity: Box::new(affinity),
            };
            self.record(at, kind, recorder);
        }
    }
}
