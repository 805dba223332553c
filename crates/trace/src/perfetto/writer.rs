//! The writer of traces, a recorder.

use std::io::{self, Write};

use shiftwork_model::{
    CpuId, Instant, JobId, NotReadyReason, RecordKind, Recorder, Span, TaskId, TaskSet,
};

use super::packets::{Event, Name, Note, write_packet, write_records};
use super::prologue::{self, Tracks};
use super::proto_buffer::ProtoBuffer;
use super::records;
use super::schema::{End, INSTANT, SLICE_BEGIN, SLICE_END, TracePacket};
use super::{Provenance, RecorderMetadata, sched_switch};
use crate::backlog::{Backlog, Pending, Run};
use crate::running::Running;

/// Approximate size in bytes of the pieces in which packets are written.
const CHUNK_BYTES: usize = 1 << 18;

/// Records are buffered until there are about this many bytes of them.
const STRETCH_BYTES: usize = 1 << 15;

/// Writes a Perfetto trace of a run.
///
/// Its events:
///
/// - Each CPU has a track with a slice for every interval in which it runs a job, as of whole
///   instants. A shift is a flow from the slice on the old CPU to the one on the new, and a trigger one from the job
///   that makes it to the task that it triggers. The times when it is
///   offline or runs background work are slices on a second track.
/// - Each task has a track with a slice per job. It begins with the release and ends with the completion; the
///   slice of a job that is released before its predecessor completes begins with that completion. Within it,
///   the times when the job is throttled or suspended are slices, and a missed deadline is an instant at the late
///   completion (or, if the job never completes, at the deadline). Releases and deadlines are instants.
///
/// # Cost
/// About 200 bytes and 250 ns per job, without allocation. The trace is written to `out` in large pieces, so that
/// `out` needs no buffer. Memory does not grow with the run.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
    buffer: ProtoBuffer,
    records: ProtoBuffer,
    /// Instant of the last record in `records`.
    last_record: Instant,
    now: Instant,
    running: Running,
    tasks: Vec<TaskTrack>,
    tracks: Tracks,
    /// Deadlines after this instant have no event.
    horizon: Instant,
    /// Number of shifts and triggers so far; each is a flow with that number.
    flows: u64,
    /// Jobs of tasks that left.
    dropped: Vec<(TaskId, Run)>,
    /// The names, if `sched_switch` events are requested.
    names: Option<Vec<String>>,
    /// Maximum time of the run for which records may be buffered, and the next flush; `None`: records are flushed
    /// only when there are enough.
    patience: Option<(Span, Instant)>,
}

#[derive(Clone, Debug, Default)]
struct TaskTrack {
    track: u64,
    name: u64,
    backlog: Backlog,
    /// Whether a slice within the job's slice is open, for the reason why it is not ready.
    waits: bool,
    /// The job that executed last and its CPU, number 0 before the first, and whether it still executes.
    executed: u64,
    cpu: usize,
    executes: bool,
    /// The flow of the shift at this instant.
    flow: Option<u64>,
}

impl<W: Write> Recorder for Writer<W> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        if at != self.now {
            if !self.running.is_settled() {
                self.settle();
            }
            self.now = at;
            self.keep_up();
        }
        records::write(&mut self.records, &mut self.last_record, at, kind);
        self.show(kind);
        if self.records.len() >= STRETCH_BYTES {
            self.close_stretch();
        }
        if self.buffer.len() >= CHUNK_BYTES {
            self.flush();
        }
    }
}

impl<W: Write> Writer<W> {
    /// Begins a trace of a run of this task set.
    pub fn new(set: &TaskSet, provenance: &Provenance, out: W) -> Self {
        let tracks = Tracks::of(set);
        let mut buffer = ProtoBuffer::default();
        prologue::write(&mut buffer, set, provenance, tracks);
        let tasks = (0..set.tasks.len()).map(|index| TaskTrack {
            track: tracks.task(index),
            name: Name::TASKS + index as u64,
            ..TaskTrack::default()
        });
        Self {
            out,
            failed: None,
            buffer,
            records: ProtoBuffer::default(),
            last_record: Instant::ZERO,
            now: Instant::ZERO,
            running: Running::new(set.platform.cpus),
            tasks: tasks.collect(),
            tracks,
            horizon: provenance.horizon,
            flows: 0,
            dropped: Vec::new(),
            names: None,
            patience: None,
        }
    }

    /// Flushes the records each time this span of the run has passed, so that a run that is killed leaves a
    /// trace until shortly before.
    #[must_use]
    pub fn with_patience(mut self, span: Span) -> Self {
        self.patience = Some((span, Instant::ZERO));
        self
    }

    /// Adds an ftrace `sched_switch` event per switch, so that Perfetto's own views of CPUs and
    /// threads, and SQL written for kernel traces, work too. Task k is the thread k + 1.
    #[must_use]
    pub fn with_sched_switch(mut self, set: &TaskSet) -> Self {
        self.names = Some(set.tasks.iter().map(|task| task.name.clone()).collect());
        self
    }

    /// Adds what a flight recorder knows of the records.
    #[must_use]
    pub fn with_recorder(mut self, recorder: RecorderMetadata) -> Self {
        let packet = TracePacket {
            recorder: Some(recorder),
            ..TracePacket::default()
        };
        write_packet(&mut self.buffer, &packet);
        self
    }

    /// Ends the run at `horizon`: flushes, and marks the trace as complete.
    ///
    /// # Errors
    /// The first error of `out`, now or earlier.
    pub fn finish(mut self, horizon: Instant) -> io::Result<W> {
        if self.now < horizon {
            self.settle();
        }
        for cpu in (0..self.running.cpus()).map(CpuId::from_index) {
            if self.running.before(cpu).is_some() {
                let track = self.tracks.cpu(cpu.index());
                Event::new(horizon.as_ns(), SLICE_END, track, 0).write(&mut self.buffer);
            }
        }
        self.show_unfinished(horizon);
        self.close_stretch();
        let end = TracePacket {
            end: Some(End {
                horizon_ns: horizon.as_ns(),
            }),
            ..TracePacket::default()
        };
        write_packet(&mut self.buffer, &end);
        self.flush();
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// Appends the events of a record to the tracks. Changes of running jobs are appended at the end of the
    /// instant.
    #[inline]
    fn show(&mut self, kind: &RecordKind) {
        let (at_ns, buffer) = (self.now.as_ns(), &mut self.buffer);
        match *kind {
            RecordKind::Released { job, deadline } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    let number = job.number;
                    let job = Pending {
                        number,
                        release: self.now,
                        deadline,
                    };
                    task.release(buffer, job, self.horizon);
                }
            }
            RecordKind::Ready { job, .. } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.end_wait(buffer, at_ns);
                }
            }
            RecordKind::NotReady { job, reason } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.begin_wait(buffer, at_ns, name_of(reason));
                }
            }
            RecordKind::Completed { job } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.complete(buffer, self.now, job.number);
                }
            }
            RecordKind::Switched { cpu, to, .. } => self.running.switch(cpu, to),
            _ => self.show_rare(kind),
        }
    }

    fn show_rare(&mut self, kind: &RecordKind) {
        let at_ns = self.now.as_ns();
        match *kind {
            RecordKind::Spinning { job, .. } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.begin_wait(&mut self.buffer, at_ns, Name::Spinning);
                }
            }
            RecordKind::Locked { job, .. } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.end_wait(&mut self.buffer, at_ns);
                }
            }
            RecordKind::BudgetSpent { job } => self.show_instant(job.task, Name::BudgetSpent),
            RecordKind::Replenished { task, .. } => self.show_instant(task, Name::Replenished),
            RecordKind::Triggered { by, task, is_lost } => self.show_trigger(by, task, is_lost),
            RecordKind::Entered { task } => self.show_instant(task, Name::Entered),
            RecordKind::Left { task } => self.show_leaving(task),
            RecordKind::CpuOffline { cpu } => self.show_away(cpu, Some(Name::Offline)),
            RecordKind::BackgroundStarted { cpu } => self.show_away(cpu, Some(Name::Background)),
            RecordKind::CpuTaken { cpu } => self.show_away(cpu, Some(Name::Taken)),
            RecordKind::CpuOnline { cpu }
            | RecordKind::CpuReturned { cpu }
            | RecordKind::BackgroundEnded { cpu } => {
                self.show_away(cpu, None);
            }
            _ => prologue::write_change(&mut self.buffer, self.tracks, at_ns, kind),
        }
    }

    fn show_instant(&mut self, task: TaskId, name: Name) {
        if let Some(task) = self.tasks.get(task.index()) {
            let event = Event::new(self.now.as_ns(), INSTANT, task.track, name as u64);
            event.write(&mut self.buffer);
        }
    }

    /// A trigger is a flow from the track of the job that made it to the triggered task.
    fn show_trigger(&mut self, by: JobId, task: TaskId, is_lost: bool) {
        let at_ns = self.now.as_ns();
        let track = |id: TaskId| self.tasks.get(id.index()).map(|task| task.track);
        let (Some(from), Some(to)) = (track(by.task), track(task)) else {
            return;
        };
        self.flows += 1;
        let flow = Some(self.flows);
        let mut start = Event::new(at_ns, INSTANT, from, Name::Trigger as u64);
        (start.job, start.flow_out) = (Some(by.number), flow);
        start.write(&mut self.buffer);
        let name = match is_lost {
            false => Name::Trigger,
            true => Name::TriggerLost,
        };
        let mut end = Event::new(at_ns, INSTANT, to, name as u64);
        end.flow_in = flow;
        end.write(&mut self.buffer);
    }

    fn show_leaving(&mut self, id: TaskId) {
        self.show_instant(id, Name::Left);
        let Some(task) = self.tasks.get_mut(id.index()) else {
            return;
        };
        let at_ns = self.now.as_ns();
        task.end_wait(&mut self.buffer, at_ns);
        if task.backlog.front().is_some() {
            Event::new(at_ns, SLICE_END, task.track, 0).write(&mut self.buffer);
        }
        self.dropped
            .extend(task.backlog.drain().map(|run| (id, run)));
    }

    /// Begins the slice of a CPU that becomes unavailable, or without a name ends it.
    fn show_away(&mut self, cpu: CpuId, name: Option<Name>) {
        if cpu.index() < self.running.cpus() {
            let kind = if name.is_some() {
                SLICE_BEGIN
            } else {
                SLICE_END
            };
            let track = self.tracks.away(cpu.index());
            let name = name.map_or(0, |name| name as u64);
            Event::new(self.now.as_ns(), kind, track, name).write(&mut self.buffer);
        }
    }

    /// Ends the instant: appends the changes of running jobs. All slices end before any begins, so that the start
    /// of a flow precedes its end.
    fn settle(&mut self) {
        let Self {
            running,
            tasks,
            buffer,
            flows,
            tracks,
            ..
        } = self;
        for change in running.changes() {
            if let Some(job) = change.after
                && let Some(task) = tasks.get_mut(job.task.index())
            {
                task.execute(job, change.cpu, flows);
            }
        }
        let at_ns = self.now.as_ns();
        for change in running.changes() {
            if let Some(job) = change.before {
                let mut event = Event::new(at_ns, SLICE_END, tracks.cpu(change.cpu.index()), 0);
                if let Some(task) = tasks.get_mut(job.task.index()) {
                    event.flow_out = task.stop(job, change.cpu);
                }
                event.write(buffer);
            }
        }
        for change in running.changes() {
            if let Some(job) = change.after
                && let Some(task) = tasks.get_mut(job.task.index())
            {
                let track = tracks.cpu(change.cpu.index());
                let mut event = Event::new(at_ns, SLICE_BEGIN, track, task.name);
                event.job = Some(job.number);
                event.flow_in = task.flow.take();
                event.write(buffer);
            }
        }
        self.show_sched_switches();
        self.running.settle();
    }

    fn show_sched_switches(&mut self) {
        let Some(names) = &self.names else { return };
        for change in self.running.changes() {
            let still_ready = change.before.is_some_and(|job| {
                let task = self.tasks.get(job.task.index());
                task.is_some_and(|task| task.is_ready(job))
            });
            sched_switch::write(&mut self.buffer, self.now, names, change, still_ready);
        }
    }

    /// Marks the deadlines that passed without a completion.
    fn show_unfinished(&mut self, horizon: Instant) {
        let mut unfinished = std::mem::take(&mut self.dropped);
        for (index, task) in self.tasks.iter_mut().enumerate() {
            let id = TaskId::from_index(index);
            unfinished.extend(task.backlog.drain().map(|run| (id, run)));
        }
        for (id, run) in unfinished {
            let track = self.tasks[id.index()].track;
            let missed = run
                .jobs()
                .take_while(|job| job.release < horizon && job.deadline <= horizon);
            for job in missed {
                let mut event =
                    Event::new(job.deadline.as_ns(), INSTANT, track, Name::Missed as u64);
                event.job = Some(job.number);
                event.write(&mut self.buffer);
                if self.buffer.len() >= CHUNK_BYTES {
                    self.flush();
                }
            }
        }
    }

    fn close_stretch(&mut self) {
        write_records(&mut self.buffer, self.records.written());
        self.records.clear();
    }

    /// Hands over everything before this instant if it is time to.
    fn keep_up(&mut self) {
        let Some((span, until)) = self.patience else {
            return;
        };
        if self.now < until {
            return;
        }
        self.patience = Some((span, self.now + span));
        self.close_stretch();
        self.flush();
        if self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(self.buffer.written()).err();
        }
        self.buffer.clear();
    }
}

impl TaskTrack {
    #[inline]
    fn event(&self, at_ns: u64, kind: i32, name: u64, job: u64) -> Event {
        Event {
            job: Some(job),
            ..Event::new(at_ns, kind, self.track, name)
        }
    }

    #[inline]
    fn release(&mut self, buffer: &mut ProtoBuffer, job: Pending, horizon: Instant) {
        let at_ns = job.release.as_ns();
        let release = Name::Release as u64;
        self.event(at_ns, INSTANT, release, job.number)
            .write(buffer);
        if job.deadline <= horizon {
            let (due_ns, deadline) = (job.deadline.as_ns(), Name::Deadline as u64);
            self.event(due_ns, INSTANT, deadline, job.number)
                .write(buffer);
        }
        if self.backlog.front().is_none() {
            self.begin(buffer, at_ns, job);
        }
        self.backlog.push(job);
    }

    #[inline]
    fn begin(&self, buffer: &mut ProtoBuffer, at_ns: u64, job: Pending) {
        let mut event = self.event(at_ns, SLICE_BEGIN, self.name, job.number);
        event.note = Some((Note::Deadline, job.deadline.as_ns()));
        event.write(buffer);
    }

    #[inline]
    fn end_wait(&mut self, buffer: &mut ProtoBuffer, at_ns: u64) {
        if std::mem::take(&mut self.waits) {
            Event::new(at_ns, SLICE_END, self.track, 0).write(buffer);
        }
    }

    fn begin_wait(&mut self, buffer: &mut ProtoBuffer, at_ns: u64, name: Name) {
        self.end_wait(buffer, at_ns);
        Event::new(at_ns, SLICE_BEGIN, self.track, name as u64).write(buffer);
        self.waits = true;
    }

    #[inline]
    fn complete(&mut self, buffer: &mut ProtoBuffer, now: Instant, number: u64) {
        let Some(job) = self.backlog.pop(number) else {
            return;
        };
        let at_ns = now.as_ns();
        self.end_wait(buffer, at_ns);
        if now > job.deadline {
            let mut event = self.event(at_ns, INSTANT, Name::Missed as u64, number);
            event.note = Some((Note::Tardiness, now.late_since(job.deadline).as_ns()));
            event.write(buffer);
        }
        let mut event = Event::new(at_ns, SLICE_END, self.track, 0);
        event.note = Some((Note::Response, now.late_since(job.release).as_ns()));
        event.write(buffer);
        if let Some(next) = self.backlog.front() {
            self.begin(buffer, at_ns, next);
        }
    }

    /// The job runs on the CPU after the instant; if it ran elsewhere before, that is a shift.
    #[inline]
    fn execute(&mut self, job: JobId, cpu: CpuId, flows: &mut u64) {
        if self.executes && self.executed == job.number && self.cpu != cpu.index() {
            *flows += 1;
            self.flow = Some(*flows);
        }
        self.executed = job.number;
        self.cpu = cpu.index();
        self.executes = true;
    }

    /// The job does not run on the CPU any more; the flow if it was shifted away.
    #[inline]
    fn stop(&mut self, job: JobId, cpu: CpuId) -> Option<u64> {
        if self.executed != job.number {
            return None;
        }
        if self.cpu == cpu.index() {
            self.executes = false;
        }
        self.flow
    }

    /// Whether the job could go on.
    fn is_ready(&self, job: JobId) -> bool {
        let current = self.backlog.front().map(|job| job.number);
        current == Some(job.number) && !self.waits
    }
}

const fn name_of(reason: NotReadyReason) -> Name {
    match reason {
        NotReadyReason::Suspended => Name::Suspended,
        NotReadyReason::Throttled => Name::Throttled,
        NotReadyReason::Blocked(_) => Name::Blocked,
    }
}
