//! The time on CPUs that overheads took from jobs.

use std::collections::BTreeMap;

use shiftwork_model::{CpuId, Instant, RecordKind, Span, TaskSet};

use crate::packed::Records;
use crate::running::Running;

/// For each stretch on a CPU, by the CPU and the begin, the time that overheads took from the job. It is recorded
/// at the end of the stretch and needed at its begin; so it is collected first.
#[derive(Debug, Default)]
pub(super) struct Losses(BTreeMap<(CpuId, Instant), Span>);

impl Losses {
    pub fn of(set: &TaskSet, records: Records<'_>) -> Self {
        let cpus = set.platform.cpus;
        let mut losses = Self::default();
        if !records.has_interruptions() {
            return losses;
        }
        let mut running = Running::new(cpus);
        let mut since = vec![Instant::ZERO; cpus];
        let mut now = Instant::ZERO;
        for record in records.iter() {
            if record.at != now {
                for change in running.changes() {
                    since[change.cpu.index()] = now;
                }
                running.settle();
                now = record.at;
            }
            match record.kind {
                RecordKind::Switched { cpu, to, .. } => running.switch(cpu, to),
                RecordKind::Interrupted { job, time } => {
                    let mut all = (0..cpus).map(CpuId::from_index);
                    let cpu = all.find(|&cpu| running.before(cpu) == Some(job));
                    if let Some(cpu) = cpu {
                        *losses.0.entry((cpu, since[cpu.index()])).or_default() += time;
                    }
                }
                _ => {}
            }
        }
        losses
    }

    /// The time lost in the stretch on this CPU that began at this instant.
    pub fn at(&self, cpu: CpuId, from: Instant) -> Span {
        self.0.get(&(cpu, from)).copied().unwrap_or(Span::ZERO)
    }
}
