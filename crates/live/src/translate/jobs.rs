//! What events of a task mean for its jobs.

use shiftwork_machine::Taken;
use shiftwork_model::{
    CpuSet, Instant, JobId, NotReadyReason, Priority, RecordKind, Recorder, Span, TaskId,
};

use super::{EventTranslator, Pending};
use crate::event::{Event, TriggerValue, why};

/// Shorter interruptions are not recorded: a measurement reads two clocks, one after the other.
const INTERRUPTED_MIN: Span = Span::from_us(1);

impl EventTranslator {
    /// The task takes part, with what it was admitted for.
    pub(super) fn enter<R: Recorder>(
        &mut self,
        at: Instant,
        event: Event,
        id: TaskId,
        recorder: &mut R,
    ) {
        let state = &mut self.tasks[id.index()];
        state.held_on = None;
        state.is_throttled = false;
        if std::mem::replace(&mut state.present, true) {
            return;
        }
        let early = state.early.take();
        let admitted = state.admitted.take();
        self.record(at, RecordKind::Entered { task: id }, recorder);
        if let Some((attributes, priority)) = admitted {
            if self.tasks[id.index()].attributes != attributes {
                self.set_attributes(at, id, attributes, recorder);
            }
            if self.tasks[id.index()].priority != Some(priority) {
                self.set_priority(at, id, priority, recorder);
            }
        }
        let cpus = CpuSet::from_bits(event.value);
        if !cpus.is_empty() && std::mem::replace(&mut self.tasks[id.index()].cpus, cpus) != cpus {
            self.affinity(at, id, cpus, recorder);
        }
        if let Some(early) = early {
            self.note_released(at, early, recorder);
        }
    }

    pub(super) fn release<R: Recorder>(
        &mut self,
        index: usize,
        release: Instant,
        recorder: &mut R,
    ) {
        let task_state = &mut self.tasks[index];
        task_state.released += 1;
        let job = JobId {
            task: TaskId::from_index(index),
            number: task_state.released,
        };
        let pending = Pending {
            job,
            release,
            deadline: release,
            is_known: false,
        };
        match task_state.present {
            true => self.note_released(release, pending, recorder),
            false => task_state.early = Some(pending),
        }
    }

    /// Another task's job triggers the task, which may release a job.
    pub(super) fn triggered<R: Recorder>(
        &mut self,
        at: Instant,
        event: Event,
        id: TaskId,
        recorder: &mut R,
    ) {
        let Some(value) = TriggerValue::read(event.value) else {
            return;
        };
        let by = match value.at_completion {
            true => self
                .tasks
                .get(value.source.index())
                .and_then(|source| source.last_completed),
            false => self.current(value.source),
        };
        let is_lost = value.taken == Taken::Lost;
        if let Some(by) = by {
            let task = id;
            self.record(at, RecordKind::Triggered { by, task, is_lost }, recorder);
        }
        if value.taken == Taken::Releases {
            self.release(id.index(), at, recorder);
        }
    }

    pub(super) fn note_released<R: Recorder>(
        &mut self,
        at: Instant,
        pending: Pending,
        recorder: &mut R,
    ) {
        let Pending { job, release, .. } = pending;
        let task_state = &mut self.tasks[job.task.index()];
        let [.., relative] = task_state.attributes;
        let deadline = release + relative;
        task_state.pending.push_back(Pending {
            deadline,
            ..pending
        });
        self.record(at, RecordKind::Released { job, deadline }, recorder);
    }

    pub(super) fn ready<R: Recorder>(
        &mut self,
        at: Instant,
        event: Event,
        id: TaskId,
        recorder: &mut R,
    ) {
        let index = id.index();
        if self.current(id).is_none() {
            // A program's next job may begin with a new period instead of a wake-up.
            if self.tasks[index].jobs.is_some() || !self.tasks[index].present {
                return;
            }
            self.release(index, at, recorder);
        }
        if self.tasks[index].stops_soon {
            self.stop_now(at, id, recorder);
        }
        let task_state = &mut self.tasks[index];
        let is_thread = task_state.jobs.is_some();
        let Some(first) = task_state.pending.front_mut() else {
            return;
        };
        // A job that begins late because the one before it was late is not the timer's fault.
        let is_new = !std::mem::replace(&mut first.is_known, true);
        let first = *first;
        let is_timed = is_thread && !task_state.is_triggered;
        if is_new && is_timed && !task_state.goes_on && event.at >= self.origin_ns {
            let late = at.since(first.release).unwrap_or(Span::ZERO);
            self.lateness.push(late);
        }
        let task_state = &mut self.tasks[index];
        task_state.ready = true;
        task_state.is_throttled = false;
        let priority = task_state.priority.unwrap_or(Priority::MOST_URGENT);
        let on = task_state.on;
        let deadline = self.instant(event.value);
        let job = first.job;
        let kind = RecordKind::Ready {
            job,
            deadline,
            priority,
        };
        self.record(at, kind, recorder);
        // It need not have left its CPU between two jobs.
        if let Some(place) = on {
            self.show(at, place, Some(job), recorder);
        }
    }

    pub(super) fn not_ready<R: Recorder>(
        &mut self,
        at: Instant,
        id: TaskId,
        reason: NotReadyReason,
        recorder: &mut R,
    ) {
        let task_state = &mut self.tasks[id.index()];
        if !std::mem::take(&mut task_state.ready) {
            return;
        }
        if let Some(job) = self.current(id) {
            self.record(at, RecordKind::NotReady { job, reason }, recorder);
        }
    }

    /// Records that the job of a program, released in a period whose budget is used up, is not ready for that reason. It may end
    /// as ordinary work before it ever is.
    pub(super) fn hold_throttled<R: Recorder>(
        &mut self,
        at: Instant,
        id: TaskId,
        recorder: &mut R,
    ) {
        let state = &self.tasks[id.index()];
        let is_held = state.is_throttled && !state.ready && state.jobs.is_none();
        if let Some(job) = self.current(id).filter(|_| is_held && state.present) {
            let reason = NotReadyReason::Throttled;
            self.record(at, RecordKind::NotReady { job, reason }, recorder);
        }
    }

    /// The task had used up its budget and was asked to stop; it has stopped now.
    pub(super) fn stop_now<R: Recorder>(&mut self, at: Instant, id: TaskId, recorder: &mut R) {
        self.tasks[id.index()].stops_soon = false;
        if let Some(place) = self.tasks[id.index()].on {
            self.show(at, place, None, recorder);
        }
        self.not_ready(at, id, NotReadyReason::Throttled, recorder);
    }

    pub(super) fn complete<R: Recorder>(&mut self, at: Instant, id: TaskId, recorder: &mut R) {
        let task_state = &mut self.tasks[id.index()];
        task_state.stops_soon = false;
        task_state.ready = false;
        let Some(first) = task_state.pending.front().copied() else {
            return;
        };
        // A job is finished after its release, however short it is.
        if first.release > at {
            return;
        }
        task_state.pending.pop_front();
        let on = task_state.on;
        let job = first.job;
        task_state.last_completed = Some(job);
        self.record(at, RecordKind::Completed { job }, recorder);
        if let Some(place) = on
            && self.cpus[place].shown == Some(job)
        {
            self.show(at, place, None, recorder);
        }
    }

    pub(super) fn running<R: Recorder>(
        &mut self,
        at: Instant,
        event: Event,
        id: TaskId,
        recorder: &mut R,
    ) {
        let Some(place) = self.place(event) else {
            return;
        };
        self.tasks[id.index()].on = Some(place);
        self.tasks[id.index()].measured_ns = event.at;
        if self.cpus[place].gone & why::TAKEN != 0 {
            // The higher class has released the CPU already; its event comes after the next switch.
            self.set_gone(at, place, why::TAKEN, false, recorder);
        }
        let ready = self.tasks[id.index()].ready;
        if let Some(job) = self.current(id).filter(|_| ready) {
            self.show(at, place, Some(job), recorder);
        }
    }

    pub(super) fn stopped<R: Recorder>(
        &mut self,
        at: Instant,
        event: Event,
        id: TaskId,
        recorder: &mut R,
    ) {
        let Some(place) = self.place(event) else {
            return;
        };
        self.measure_own(event, id, recorder);
        if self.cpus[place].shown.is_some_and(|job| job.task == id) {
            self.show(at, place, None, recorder);
        }
        if self.tasks[id.index()].stops_soon {
            self.stop_now(at, id, recorder);
        }
        self.tasks[id.index()].on = None;
    }

    /// Records interruptions: the event says for how long the task ran, which may be less than the
    /// time that it was on the CPU.
    pub(super) fn measure_own<R: Recorder>(&mut self, event: Event, id: TaskId, recorder: &mut R) {
        let task_state = &mut self.tasks[id.index()];
        let since_ns = std::mem::replace(&mut task_state.measured_ns, event.at).max(self.origin_ns);
        let there_ns = event.at.saturating_sub(since_ns);
        let time = Span::from_ns(there_ns.saturating_sub(event.value));
        let shown = task_state.on.and_then(|place| self.cpus[place].shown);
        if let Some(job) = shown.filter(|job| job.task == id)
            && time >= INTERRUPTED_MIN
        {
            let at = self.instant(event.at);
            self.record(at, RecordKind::Interrupted { job, time }, recorder);
        }
    }

    pub(super) fn leave<R: Recorder>(&mut self, at: Instant, id: TaskId, recorder: &mut R) {
        self.decisions += 1;
        let task_state = &mut self.tasks[id.index()];
        if !std::mem::take(&mut task_state.present) {
            return;
        }
        task_state.early = None;
        task_state.pending.clear();
        task_state.ready = false;
        task_state.stops_soon = false;
        self.record(at, RecordKind::Left { task: id }, recorder);
        if let Some(place) = self.tasks[id.index()].on {
            self.show(at, place, None, recorder);
        }
    }
}
