//! What records that are too old to be kept still say: without it a recording would begin with no task awake and all
//! CPUs there.

use std::collections::BTreeMap;

use shiftwork_model::{CpuId, Record, RecordKind, TaskId};

/// Parts of the state; a record that sets one replaces the record before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Offline(CpuId),
    Taken(CpuId),
    Background(CpuId),
    Running(CpuId),
    Entered(TaskId),
    Attributes(TaskId),
    Affinity(TaskId),
    Priority(TaskId),
    /// The pending job.
    Job(TaskId),
    /// Whether it may run.
    Ready(TaskId),
}

/// The state at the beginning of the records that are kept, as the records that led to it.
#[derive(Clone, Debug, Default)]
pub(super) struct StateCheckpoint(BTreeMap<Part, Record>);

impl StateCheckpoint {
    /// The record is before the checkpoint from now on.
    pub fn take(&mut self, record: &Record) {
        match record.kind {
            RecordKind::CpuOffline { cpu } => self.set(Part::Offline(cpu), record),
            RecordKind::CpuOnline { cpu } => self.end(&[Part::Offline(cpu)]),
            RecordKind::CpuTaken { cpu } => self.set(Part::Taken(cpu), record),
            RecordKind::CpuReturned { cpu } => self.end(&[Part::Taken(cpu)]),
            RecordKind::BackgroundStarted { cpu } => self.set(Part::Background(cpu), record),
            RecordKind::BackgroundEnded { cpu } => self.end(&[Part::Background(cpu)]),
            RecordKind::Switched { cpu, to, .. } => {
                self.end(&[Part::Running(cpu)]);
                if to.is_some() {
                    let kind = RecordKind::Switched {
                        cpu,
                        from: None,
                        to,
                    };
                    self.set(
                        Part::Running(cpu),
                        &Record {
                            at: record.at,
                            kind,
                        },
                    );
                }
            }
            RecordKind::Entered { task } => self.set(Part::Entered(task), record),
            RecordKind::Left { task } => {
                self.end(&[Part::Entered(task), Part::Job(task), Part::Ready(task)]);
            }
            RecordKind::AttributesSet { task, .. } => self.set(Part::Attributes(task), record),
            RecordKind::AffinitySet { task, .. } => self.set(Part::Affinity(task), record),
            RecordKind::PrioritySet { task, .. } => self.set(Part::Priority(task), record),
            RecordKind::Released { job, .. } => self.set(Part::Job(job.task), record),
            RecordKind::Ready { job, .. } | RecordKind::NotReady { job, .. } => {
                self.set(Part::Ready(job.task), record);
            }
            RecordKind::Completed { job } => {
                self.end(&[Part::Job(job.task), Part::Ready(job.task)])
            }
            _ => {}
        }
    }

    /// Forgets the tasks for which this does not hold.
    pub fn retain(&mut self, is_known: impl Fn(TaskId) -> bool) {
        self.0.retain(|part, _| match *part {
            Part::Entered(task)
            | Part::Attributes(task)
            | Part::Affinity(task)
            | Part::Priority(task)
            | Part::Job(task)
            | Part::Ready(task) => is_known(task),
            _ => true,
        });
    }

    fn set(&mut self, part: Part, record: &Record) {
        self.0.insert(part, record.clone());
    }

    fn end(&mut self, parts: &[Part]) {
        for part in parts {
            self.0.remove(part);
        }
    }

    /// The records, by their instants; those of one instant in an order in which they may have happened.
    pub fn records(&self) -> Vec<Record> {
        let rank = |part: &Part| match part {
            Part::Running(_) => 2,
            Part::Ready(_) => 1,
            _ => 0,
        };
        let mut records: Vec<(&Part, &Record)> = self.0.iter().collect();
        records.sort_by_key(|(part, record)| (record.at, rank(part)));
        records
            .into_iter()
            .map(|(_, record)| record.clone())
            .collect()
    }
}
