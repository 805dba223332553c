//! The records of a run in compact form.
//!
//! A record is the number of its kind, see `tag` (one byte), the nanoseconds since
//! the record before it (from 0 for the first), then its fields in their order: numbers as varints,
//! a task as its index, a job as task and number, an optional job with its task plus 1 and 0 for
//! none, a deadline as the signed distance from the record's instant, CPU sets and texts after their
//! length. Time differences wrap, so that all records are read back exactly.

use shiftwork_model::{
    Affinity, CPUS_MAX, CpuId, CpuSet, Instant, JobId, NotReadyReason, Priority, Record,
    RecordKind, ResourceId, Span, TaskId,
};

use super::proto_buffer::ProtoBuffer;

/// The version of this encoding; it changes with every change of the encoding.
/// Earlier versions can also be read: 1 has the kinds up to 16, 2 those up to 19, 3 those up to 20.
pub(super) const VERSION: u32 = 4;

/// Maximum size of a record without texts and CPU sets.
const RECORD_BYTES_MAX: usize = 64;

/// Appends a record; `last` is the instant of the previous one.
#[inline]
pub(super) fn write(buffer: &mut ProtoBuffer, last: &mut Instant, at: Instant, kind: &RecordKind) {
    buffer.ensure(RECORD_BYTES_MAX);
    buffer.byte(tag(kind));
    buffer.varint(at.as_ns().wrapping_sub(last.as_ns()));
    *last = at;
    match *kind {
        RecordKind::Released { job, deadline } => {
            write_job(buffer, job);
            write_deadline(buffer, at, deadline);
        }
        RecordKind::Ready {
            job,
            deadline,
            priority,
        } => {
            write_job(buffer, job);
            write_deadline(buffer, at, deadline);
            buffer.varint(priority.number().into());
        }
        RecordKind::NotReady { job, reason } => {
            write_job(buffer, job);
            buffer.byte(match reason {
                NotReadyReason::Suspended => 0,
                NotReadyReason::Throttled => 1,
                NotReadyReason::Blocked(_) => 2,
            });
            if let NotReadyReason::Blocked(resource) = reason {
                write_resource(buffer, resource);
            }
        }
        RecordKind::Completed { job } | RecordKind::BudgetSpent { job } => write_job(buffer, job),
        RecordKind::Switched { cpu, from, to } => {
            write_cpu(buffer, cpu);
            write_some_job(buffer, from);
            write_some_job(buffer, to);
        }
        _ => write_rare(buffer, at, kind),
    }
}

fn write_rare(buffer: &mut ProtoBuffer, at: Instant, kind: &RecordKind) {
    match kind {
        RecordKind::Replenished {
            task,
            budget,
            deadline,
        } => {
            write_task(buffer, *task);
            buffer.varint(budget.as_ns());
            write_deadline(buffer, at, *deadline);
        }
        RecordKind::Spinning { job, resource }
        | RecordKind::Locked { job, resource }
        | RecordKind::Unlocked { job, resource } => {
            write_job(buffer, *job);
            write_resource(buffer, *resource);
        }
        RecordKind::Triggered { by, task, is_lost } => {
            write_job(buffer, *by);
            write_task(buffer, *task);
            buffer.byte(u8::from(*is_lost));
        }
        RecordKind::RankChanged {
            task,
            priority,
            deadline,
        } => {
            write_task(buffer, *task);
            buffer.varint(priority.number().into());
            write_deadline(buffer, at, *deadline);
        }
        RecordKind::Entered { task } | RecordKind::Left { task } => write_task(buffer, *task),
        RecordKind::AffinitySet { task, affinity } => {
            write_task(buffer, *task);
            write_cpus(buffer, affinity.cpus());
        }
        RecordKind::Demoted { task, asked } => {
            write_task(buffer, *task);
            write_cpus(buffer, asked);
        }
        RecordKind::PrioritySet { task, priority } => {
            write_task(buffer, *task);
            buffer.varint(priority.number().into());
        }
        RecordKind::AttributesSet {
            task,
            cost,
            period,
            deadline,
        } => {
            write_task(buffer, *task);
            [cost, period, deadline]
                .into_iter()
                .for_each(|span| buffer.varint(span.as_ns()));
        }
        RecordKind::CpuOffline { cpu }
        | RecordKind::CpuOnline { cpu }
        | RecordKind::BackgroundStarted { cpu }
        | RecordKind::BackgroundEnded { cpu }
        | RecordKind::CpuTaken { cpu }
        | RecordKind::CpuReturned { cpu } => write_cpu(buffer, *cpu),
        RecordKind::Interrupted { job, time } => {
            write_job(buffer, *job);
            buffer.varint(time.as_ns());
        }
        RecordKind::Refused { action, reason } => {
            buffer.varint(*action as u64);
            buffer.varint(reason.len() as u64);
            buffer.slice(reason.as_bytes());
        }
        RecordKind::Released { .. }
        | RecordKind::Ready { .. }
        | RecordKind::NotReady { .. }
        | RecordKind::Completed { .. }
        | RecordKind::BudgetSpent { .. }
        | RecordKind::Switched { .. } => unreachable!("the frequent kinds are written by `write`"),
    }
}

const fn tag(kind: &RecordKind) -> u8 {
    match kind {
        RecordKind::Released { .. } => 0,
        RecordKind::Ready { .. } => 1,
        RecordKind::NotReady { .. } => 2,
        RecordKind::Completed { .. } => 3,
        RecordKind::Switched { .. } => 4,
        RecordKind::BudgetSpent { .. } => 5,
        RecordKind::Replenished { .. } => 6,
        RecordKind::Entered { .. } => 7,
        RecordKind::Left { .. } => 8,
        RecordKind::AffinitySet { .. } => 9,
        RecordKind::PrioritySet { .. } => 10,
        RecordKind::AttributesSet { .. } => 11,
        RecordKind::CpuOffline { .. } => 12,
        RecordKind::CpuOnline { .. } => 13,
        RecordKind::BackgroundStarted { .. } => 14,
        RecordKind::BackgroundEnded { .. } => 15,
        RecordKind::Refused { .. } => 16,
        RecordKind::CpuTaken { .. } => 17,
        RecordKind::CpuReturned { .. } => 18,
        RecordKind::Interrupted { .. } => 19,
        RecordKind::Demoted { .. } => 20,
        RecordKind::Locked { .. } => 21,
        RecordKind::Unlocked { .. } => 22,
        RecordKind::RankChanged { .. } => 23,
        RecordKind::Triggered { .. } => 24,
        RecordKind::Spinning { .. } => 25,
    }
}

fn write_resource(buffer: &mut ProtoBuffer, resource: ResourceId) {
    buffer.varint(resource.index() as u64);
}

fn write_task(buffer: &mut ProtoBuffer, task: TaskId) {
    buffer.varint(task.index() as u64);
}

#[inline]
fn write_job(buffer: &mut ProtoBuffer, job: JobId) {
    buffer.varint(job.task.index() as u64);
    buffer.varint(job.number);
}

#[inline]
fn write_some_job(buffer: &mut ProtoBuffer, job: Option<JobId>) {
    match job {
        Some(job) => {
            buffer.varint(job.task.index() as u64 + 1);
            buffer.varint(job.number);
        }
        None => buffer.byte(0),
    }
}

#[inline]
fn write_cpu(buffer: &mut ProtoBuffer, cpu: CpuId) {
    buffer.varint(cpu.index() as u64);
}

#[inline]
fn write_deadline(buffer: &mut ProtoBuffer, at: Instant, deadline: Instant) {
    buffer.zigzag(deadline.as_ns().wrapping_sub(at.as_ns()) as i64);
}

fn write_cpus(buffer: &mut ProtoBuffer, cpus: &CpuSet) {
    let words = cpus.words();
    let count = words
        .iter()
        .rposition(|&word| word != 0)
        .map_or(0, |last| last + 1);
    buffer.varint(count as u64);
    for &word in &words[..count] {
        buffer.slice(&word.to_le_bytes());
    }
    buffer.ensure(RECORD_BYTES_MAX);
}

/// Reads the records of a stretch.
pub(super) struct RecordReader<'a> {
    rest: &'a [u8],
    last: Instant,
    tasks: usize,
    cpus: usize,
}

/// The defect of a record.
type Wrong = &'static str;

impl<'a> RecordReader<'a> {
    /// The records of `stretch`, of a run of `tasks` tasks on `cpus` CPUs; `last` is the instant of the record
    /// before them. Records do not cross the boundaries of stretches.
    pub const fn new(tasks: usize, cpus: usize, last: Instant, stretch: &'a [u8]) -> Self {
        Self {
            rest: stretch,
            last,
            tasks,
            cpus,
        }
    }

    /// The next record, `None` at the end of the stretch.
    pub fn next(&mut self) -> Result<Option<Record>, Wrong> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.byte()?;
        let at = Instant::from_ns(self.last.as_ns().wrapping_add(self.number()?));
        self.last = at;
        let kind = self.kind(tag)?;
        Ok(Some(Record { at, kind }))
    }

    fn kind(&mut self, tag: u8) -> Result<RecordKind, Wrong> {
        Ok(match tag {
            0 => RecordKind::Released {
                job: self.job()?,
                deadline: self.deadline()?,
            },
            1 => RecordKind::Ready {
                job: self.job()?,
                deadline: self.deadline()?,
                priority: self.rank()?,
            },
            2 => RecordKind::NotReady {
                job: self.job()?,
                reason: self.reason()?,
            },
            3 => RecordKind::Completed { job: self.job()? },
            4 => RecordKind::Switched {
                cpu: self.cpu()?,
                from: self.some_job()?,
                to: self.some_job()?,
            },
            5 => RecordKind::BudgetSpent { job: self.job()? },
            6 => RecordKind::Replenished {
                task: self.task()?,
                budget: self.span()?,
                deadline: self.deadline()?,
            },
            7 => RecordKind::Entered { task: self.task()? },
            8 => RecordKind::Left { task: self.task()? },
            9 => RecordKind::AffinitySet {
                task: self.task()?,
                affinity: self.affinity()?,
            },
            10 => RecordKind::PrioritySet {
                task: self.task()?,
                priority: self.priority()?,
            },
            11 => RecordKind::AttributesSet {
                task: self.task()?,
                cost: self.span()?,
                period: self.span()?,
                deadline: self.span()?,
            },
            12 => RecordKind::CpuOffline { cpu: self.cpu()? },
            13 => RecordKind::CpuOnline { cpu: self.cpu()? },
            14 => RecordKind::BackgroundStarted { cpu: self.cpu()? },
            15 => RecordKind::BackgroundEnded { cpu: self.cpu()? },
            16 => RecordKind::Refused {
                action: self.index()?,
                reason: self.text()?,
            },
            17 => RecordKind::CpuTaken { cpu: self.cpu()? },
            18 => RecordKind::CpuReturned { cpu: self.cpu()? },
            19 => RecordKind::Interrupted {
                job: self.job()?,
                time: self.span()?,
            },
            20 => RecordKind::Demoted {
                task: self.task()?,
                asked: Box::new(self.cpus()?),
            },
            21 => RecordKind::Locked {
                job: self.job()?,
                resource: self.resource()?,
            },
            22 => RecordKind::Unlocked {
                job: self.job()?,
                resource: self.resource()?,
            },
            23 => RecordKind::RankChanged {
                task: self.task()?,
                priority: self.rank()?,
                deadline: self.deadline()?,
            },
            24 => RecordKind::Triggered {
                by: self.job()?,
                task: self.task()?,
                is_lost: self.byte()? != 0,
            },
            25 => RecordKind::Spinning {
                job: self.job()?,
                resource: self.resource()?,
            },
            _ => return Err("there is no such kind of record"),
        })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or("it ends too early")?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Wrong> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u64, Wrong> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                break;
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number exceeds 64 bits")
    }

    fn index(&mut self) -> Result<usize, Wrong> {
        usize::try_from(self.number()?).map_err(|_| "an index exceeds this machine's word")
    }

    fn task(&mut self) -> Result<TaskId, Wrong> {
        let index = self.index()?;
        self.task_at(index)
    }

    fn task_at(&self, index: usize) -> Result<TaskId, Wrong> {
        if index >= self.tasks {
            return Err("it names a task that the header does not");
        }
        Ok(TaskId::from_index(index))
    }

    fn job(&mut self) -> Result<JobId, Wrong> {
        Ok(JobId {
            task: self.task()?,
            number: self.number()?,
        })
    }

    fn some_job(&mut self) -> Result<Option<JobId>, Wrong> {
        let Some(index) = self.index()?.checked_sub(1) else {
            return Ok(None);
        };
        Ok(Some(JobId {
            task: self.task_at(index)?,
            number: self.number()?,
        }))
    }

    fn cpu(&mut self) -> Result<CpuId, Wrong> {
        let known = Some(self.index()?).filter(|&index| index < self.cpus);
        known
            .and_then(CpuId::new)
            .ok_or("it names a CPU that the header does not")
    }

    fn deadline(&mut self) -> Result<Instant, Wrong> {
        let zigzag = self.number()?;
        let distance = zigzag >> 1 ^ (zigzag & 1).wrapping_neg();
        Ok(Instant::from_ns(self.last.as_ns().wrapping_add(distance)))
    }

    fn span(&mut self) -> Result<Span, Wrong> {
        Ok(Span::from_ns(self.number()?))
    }

    fn priority(&mut self) -> Result<Priority, Wrong> {
        let number = u32::try_from(self.number()?).ok();
        number
            .and_then(Priority::new)
            .ok_or("a priority is outside 1 to 2^31 - 1")
    }

    /// A priority, or the one above those of all tasks.
    fn rank(&mut self) -> Result<Priority, Wrong> {
        match self.rest.first() {
            Some(0) => self.byte().map(|_| Priority::NON_PREEMPTIVE),
            _ => self.priority(),
        }
    }

    fn reason(&mut self) -> Result<NotReadyReason, Wrong> {
        match self.byte()? {
            0 => Ok(NotReadyReason::Suspended),
            1 => Ok(NotReadyReason::Throttled),
            2 => self.resource().map(NotReadyReason::Blocked),
            _ => Err("there is no such reason to wait"),
        }
    }

    fn resource(&mut self) -> Result<ResourceId, Wrong> {
        let index = u32::try_from(self.number()?).map_err(|_| "a resource exceeds 32 bits")?;
        Ok(ResourceId::from_index(index as usize))
    }

    fn affinity(&mut self) -> Result<Box<Affinity>, Wrong> {
        Affinity::new(self.cpus()?)
            .map(Box::new)
            .ok_or("an affinity is empty")
    }

    fn cpus(&mut self) -> Result<CpuSet, Wrong> {
        let count = self.index()?;
        if count > CPUS_MAX / 64 {
            return Err("an affinity has more CPUs than there can be");
        }
        let mut cpus = CpuSet::EMPTY;
        for word in 0..count {
            let bytes = self.take(8)?.try_into().expect("8 bytes were taken");
            let bits = CpuSet::from_bits(u64::from_le_bytes(bytes));
            bits.iter()
                .for_each(|cpu| cpus.insert(CpuId::from_index(word * 64 + cpu.index())));
        }
        Ok(cpus)
    }

    fn text(&mut self) -> Result<Box<str>, Wrong> {
        let length = self.index()?;
        let text = std::str::from_utf8(self.take(length)?);
        text.map(Box::from).map_err(|_| "a text is not UTF-8")
    }
}
