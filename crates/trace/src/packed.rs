//! The records of a run in little memory.

use std::borrow::Cow;

use shiftwork_model::{
    CpuId, Instant, JobId, NotReadyReason, Priority, Record, RecordKind, Recorder, TaskId,
};

/// Records in memory: as they are, or packed.
#[derive(Clone, Copy, Debug)]
pub enum Records<'a> {
    /// As they are.
    Plain(&'a [Record]),
    /// Packed.
    Packed(&'a PackedRecords),
}

impl Default for Records<'_> {
    fn default() -> Self {
        Self::Plain(&[])
    }
}

impl<'a> From<&'a [Record]> for Records<'a> {
    fn from(records: &'a [Record]) -> Self {
        Self::Plain(records)
    }
}

impl<'a> From<&'a Vec<Record>> for Records<'a> {
    fn from(records: &'a Vec<Record>) -> Self {
        Self::Plain(records)
    }
}

impl<'a> From<&'a PackedRecords> for Records<'a> {
    fn from(records: &'a PackedRecords) -> Self {
        Self::Packed(records)
    }
}

impl<'a> Records<'a> {
    /// Number of records.
    pub const fn len(self) -> usize {
        match self {
            Self::Plain(records) => records.len(),
            Self::Packed(packed) => packed.count,
        }
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether a record says that a job had its CPU and did not execute.
    pub(crate) fn has_interruptions(self) -> bool {
        let is_one = |kind: &RecordKind| matches!(kind, RecordKind::Interrupted { .. });
        match self {
            Self::Plain(records) => records.iter().any(|record| is_one(&record.kind)),
            Self::Packed(packed) => packed.others.iter().any(is_one),
        }
    }

    /// All records, in order.
    pub fn iter(self) -> impl Iterator<Item = Cow<'a, Record>> {
        let (mut plain, mut packed) = match self {
            Self::Plain(records) => (records.iter(), None),
            Self::Packed(packed) => ([].iter(), Some(Unpacking::of(packed))),
        };
        std::iter::from_fn(move || match &mut packed {
            None => plain.next().map(Cow::Borrowed),
            Some(packed) => packed.next().map(Cow::Owned),
        })
    }
}

/// Keeps every record of a run in about 6 bytes instead of 64. They can only be read from the first on.
///
/// The records of the usual life of jobs are bytes, most of them as differences to the records before: a byte for
/// the kind and whether time advanced, then numbers of variable length, seven bits in each byte. All others are kept
/// as they are.
#[derive(Clone, Debug, Default)]
pub struct PackedRecords {
    bytes: Vec<u8>,
    others: Vec<RecordKind>,
    count: usize,
    context: Context,
}

/// What both sides know from the records so far. Differences wrap, so that every number can be packed.
#[derive(Clone, Debug, Default)]
struct Context {
    now: u64,
    /// By task: number and deadline of its last record that had one.
    tasks: Vec<(u64, u64)>,
    /// By CPU, its job as of the last switch.
    cpus: Vec<Option<JobId>>,
}

/// Records of tasks beyond are kept as they are, so that a broken record does not need memory for all tasks before.
const TASKS_MAX: usize = 1 << 20;

impl Context {
    fn task(&mut self, id: TaskId) -> Option<&mut (u64, u64)> {
        grown(&mut self.tasks, id.index(), TASKS_MAX)
    }

    fn cpu(&mut self, id: CpuId) -> Option<&mut Option<JobId>> {
        grown(&mut self.cpus, id.index(), shiftwork_model::CPUS_MAX)
    }
}

/// The element at this index, which must be below `max`; missing elements are added.
fn grown<T: Clone + Default>(list: &mut Vec<T>, index: usize, max: usize) -> Option<&mut T> {
    if index >= list.len() && index < max {
        list.resize(index + 1, T::default());
    }
    list.get_mut(index)
}

const RELEASED: u8 = 0;
const READY: u8 = 1;
const SUSPENDED: u8 = 2;
const THROTTLED: u8 = 3;
const COMPLETED: u8 = 4;
const TO_JOB: u8 = 5;
const TO_NONE: u8 = 6;
const OTHER: u8 = 7;
/// Added to the kind if the instant is another than that of the record before.
const ADVANCED: u8 = 0x80;

impl Recorder for PackedRecords {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.count += 1;
        let ahead = at.as_ns().wrapping_sub(self.context.now);
        self.context.now = at.as_ns();
        let advanced = if ahead == 0 { 0 } else { ADVANCED };
        let start = self.bytes.len();
        self.bytes.push(advanced);
        if ahead != 0 {
            self.number(ahead);
        }
        let code = self.pack(kind).unwrap_or_else(|| {
            self.others.push(kind.clone());
            OTHER
        });
        self.bytes[start] |= code;
    }
}

impl PackedRecords {
    /// Appends what the record says beside its kind, which it returns; `None` if it is to be kept as it is, before
    /// anything is appended.
    fn pack(&mut self, kind: &RecordKind) -> Option<u8> {
        match *kind {
            RecordKind::Released { job, deadline } => {
                self.job(job)?;
                self.deadline(job.task, deadline);
                Some(RELEASED)
            }
            RecordKind::Ready {
                job,
                deadline,
                priority,
            } => {
                self.job(job)?;
                self.deadline(job.task, deadline);
                self.number(u64::from(priority.number()));
                Some(READY)
            }
            RecordKind::NotReady {
                job,
                reason: NotReadyReason::Suspended,
            } => self.job(job).map(|()| SUSPENDED),
            RecordKind::NotReady {
                job,
                reason: NotReadyReason::Throttled,
            } => self.job(job).map(|()| THROTTLED),
            RecordKind::Completed { job } => self.job(job).map(|()| COMPLETED),
            RecordKind::Switched { cpu, from, to } => {
                // What it leaves is mostly what it came to.
                let before = std::mem::replace(self.context.cpu(cpu)?, to);
                if before != from {
                    return None;
                }
                if let Some(job) = to {
                    self.job(job)?;
                }
                self.number(cpu.index() as u64);
                Some(to.map_or(TO_NONE, |_| TO_JOB))
            }
            _ => None,
        }
    }

    fn job(&mut self, job: JobId) -> Option<()> {
        let (number, _) = self.context.task(job.task)?;
        let step = job.number.wrapping_sub(*number);
        *number = job.number;
        self.number(job.task.index() as u64);
        self.number(folded(step));
        Some(())
    }

    /// Follows [`Self::job`].
    fn deadline(&mut self, task: TaskId, deadline: Instant) {
        let (_, before) = &mut self.context.tasks[task.index()];
        let step = deadline.as_ns().wrapping_sub(*before);
        *before = deadline.as_ns();
        self.number(folded(step));
    }

    /// Seven bits in each byte, the lowest first; all but the last have the highest bit set.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

/// A difference with the sign in the lowest bit, so that small ones of both signs are short.
const fn folded(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

const fn unfolded(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// Reads packed records.
struct Unpacking<'a> {
    bytes: std::slice::Iter<'a, u8>,
    others: std::slice::Iter<'a, RecordKind>,
    context: Context,
}

impl<'a> Unpacking<'a> {
    fn of(packed: &'a PackedRecords) -> Self {
        Self {
            bytes: packed.bytes.iter(),
            others: packed.others.iter(),
            context: Context {
                now: 0,
                tasks: vec![Default::default(); packed.context.tasks.len()],
                cpus: vec![None; packed.context.cpus.len()],
            },
        }
    }

    /// `None` at the end. Nothing else ends it: all bytes were written by the counterpart above.
    fn next(&mut self) -> Option<Record> {
        let code = *self.bytes.next()?;
        if code & ADVANCED != 0 {
            self.context.now = self.context.now.wrapping_add(self.number()?);
        }
        let kind = match code & !ADVANCED {
            RELEASED => {
                let job = self.job()?;
                let deadline = self.deadline(job.task)?;
                RecordKind::Released { job, deadline }
            }
            READY => {
                let job = self.job()?;
                RecordKind::Ready {
                    job,
                    deadline: self.deadline(job.task)?,
                    priority: self.priority()?,
                }
            }
            SUSPENDED => RecordKind::NotReady {
                job: self.job()?,
                reason: NotReadyReason::Suspended,
            },
            THROTTLED => RecordKind::NotReady {
                job: self.job()?,
                reason: NotReadyReason::Throttled,
            },
            COMPLETED => RecordKind::Completed { job: self.job()? },
            code @ (TO_JOB | TO_NONE) => {
                let to = if code == TO_JOB {
                    Some(self.job()?)
                } else {
                    None
                };
                let cpu = CpuId::new(self.number()? as usize)?;
                let from = std::mem::replace(self.context.cpus.get_mut(cpu.index())?, to);
                RecordKind::Switched { cpu, from, to }
            }
            _ => {
                let kind = self.others.next()?.clone();
                if let RecordKind::Switched { cpu, to, .. } = kind {
                    *self.context.cpu(cpu)? = to;
                }
                kind
            }
        };
        Some(Record {
            at: Instant::from_ns(self.context.now),
            kind,
        })
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.next()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(number)
    }

    fn job(&mut self) -> Option<JobId> {
        let task = self.number()? as usize;
        let step = unfolded(self.number()?);
        let (number, _) = self.context.tasks.get_mut(task)?;
        *number = number.wrapping_add(step);
        Some(JobId {
            task: TaskId::from_index(task),
            number: *number,
        })
    }

    fn deadline(&mut self, task: TaskId) -> Option<Instant> {
        let step = unfolded(self.number()?);
        let (_, deadline) = self.context.tasks.get_mut(task.index())?;
        *deadline = deadline.wrapping_add(step);
        Some(Instant::from_ns(*deadline))
    }

    fn priority(&mut self) -> Option<Priority> {
        match self.number()? {
            0 => Some(Priority::NON_PREEMPTIVE),
            number => Priority::new(u32::try_from(number).ok()?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;
    use shiftwork_model::RandomStream;

    fn unpacked(records: &[Record]) -> Vec<Record> {
        let mut packed = PackedRecords::default();
        for record in records {
            packed.record(record.at, &record.kind);
        }
        assert_eq!(Records::from(&packed).len(), records.len());
        Records::from(&packed).iter().map(Cow::into_owned).collect()
    }

    /// Whatever records say, also such that contradict each other.
    #[test]
    fn packed_records_are_read_as_they_were() {
        for seed in 1..=300 {
            let mut random = RandomStream::new(seed, 0, 0);
            let records = noise(&mut random, 5, 3, 200);
            assert_eq!(unpacked(&records), records, "seed {seed}");
        }
    }

    #[test]
    fn extreme_numbers_are_packed() {
        let job = |task, number| JobId {
            task: TaskId::from_index(task),
            number,
        };
        let numbers = [0, 1, 0x7f, 0x80, i64::MAX as u64, 1 << 63, u64::MAX];
        let tasks = [0, 7, TASKS_MAX - 1, TASKS_MAX, u32::MAX as usize - 2];
        let mut records = Vec::new();
        for (at, number) in numbers.into_iter().enumerate() {
            for task in tasks {
                for deadline in numbers.map(Instant::from_ns) {
                    let at = Instant::from_ns(numbers[at]);
                    let job = job(task, number);
                    let released = RecordKind::Released { job, deadline };
                    records.push(Record { at, kind: released });
                    for priority in [
                        Priority::NON_PREEMPTIVE,
                        Priority::MOST_URGENT,
                        Priority::LEAST_URGENT,
                    ] {
                        let kind = RecordKind::Ready {
                            job,
                            deadline,
                            priority,
                        };
                        records.push(Record { at, kind });
                    }
                    for cpu in [0, 1, shiftwork_model::CPUS_MAX - 1] {
                        let cpu = CpuId::from_index(cpu);
                        let to = (number % 2 == 0).then_some(job);
                        let kind = RecordKind::Switched {
                            cpu,
                            from: Some(job),
                            to,
                        };
                        records.push(Record { at, kind });
                    }
                }
            }
        }
        assert_eq!(unpacked(&records), records);
    }

    #[test]
    fn usual_life_of_a_job_takes_less_than_forty_bytes() {
        let mut packed = PackedRecords::default();
        for number in 1..=1_000 {
            let job = JobId {
                task: TaskId::from_index(999),
                number,
            };
            let (cpu, from) = (CpuId::from_index(63), Some(job));
            let [at, end] = [number, number + 1].map(|n| Instant::from_ns(n * 1_000_000_007));
            let deadline = end;
            let priority = Priority::MOST_URGENT;
            for (at, kind) in [
                (at, RecordKind::Released { job, deadline }),
                (
                    at,
                    RecordKind::Ready {
                        job,
                        deadline,
                        priority,
                    },
                ),
                (
                    at,
                    RecordKind::Switched {
                        cpu,
                        from: None,
                        to: from,
                    },
                ),
                (end, RecordKind::Completed { job }),
                (
                    end,
                    RecordKind::Switched {
                        cpu,
                        from,
                        to: None,
                    },
                ),
            ] {
                packed.record(at, &kind);
            }
        }
        assert!(packed.others.is_empty());
        let each = packed.bytes.len() / 1_000;
        assert!(each < 40, "{each} bytes for each job");
    }
}
