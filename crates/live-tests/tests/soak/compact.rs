//! Records, one line each.

use std::fmt::Write as _;

use shiftwork_model::{Instant, Record, RecordKind, Span};

/// The records in lines; times are in microseconds since `origin`.
pub fn lines(records: &[Record], origin: Instant) -> String {
    let mut text = String::new();
    for record in records {
        // Infallible for a string.
        let _ = writeln!(text, "{}", line(record, origin));
    }
    text
}

fn line(record: &Record, origin: Instant) -> String {
    let us = |at: Instant| match at.since(origin) {
        Some(after) => thousandths(after),
        None => format!("-{}", thousandths(origin.late_since(at))),
    };
    let what = match &record.kind {
        RecordKind::Released { job, deadline } => {
            format!("{job:?} released, due {}", us(*deadline))
        }
        RecordKind::Ready {
            job,
            deadline,
            priority,
        } => {
            format!(
                "{job:?} ready, deadline {}, priority {}",
                us(*deadline),
                priority.number()
            )
        }
        RecordKind::NotReady { job, reason } => format!("{job:?} not ready: {reason:?}"),
        RecordKind::Completed { job } => format!("{job:?} completed"),
        RecordKind::Switched { cpu, from, to } => {
            let name = |job: &Option<_>| job.map_or("-".to_owned(), |job| format!("{job:?}"));
            format!("CPU {}: {} -> {}", cpu.index(), name(from), name(to))
        }
        RecordKind::BudgetSpent { job } => format!("{job:?} budget spent"),
        RecordKind::Replenished {
            task,
            budget,
            deadline,
        } => {
            format!("{task:?} replenished, {budget}, deadline {}", us(*deadline))
        }
        RecordKind::Entered { task } => format!("{task:?} entered"),
        RecordKind::Left { task } => format!("{task:?} left"),
        RecordKind::Demoted { task, asked } => format!("{task:?} demoted, asked for CPUs {asked}"),
        RecordKind::AffinitySet { task, affinity } => format!("{task:?} CPUs {}", affinity.cpus()),
        RecordKind::PrioritySet { task, priority } => {
            format!("{task:?} priority {}", priority.number())
        }
        RecordKind::AttributesSet {
            task,
            cost,
            period,
            deadline,
        } => {
            format!("{task:?} cost {cost}, period {period}, deadline {deadline}")
        }
        RecordKind::CpuOffline { cpu } => format!("CPU {} offline", cpu.index()),
        RecordKind::CpuOnline { cpu } => format!("CPU {} online", cpu.index()),
        RecordKind::CpuTaken { cpu } => format!("CPU {} taken", cpu.index()),
        RecordKind::CpuReturned { cpu } => format!("CPU {} returned", cpu.index()),
        other => format!("{other:?}"),
    };
    format!("{:>12}  {what}", us(record.at))
}

/// Microseconds and three digits.
fn thousandths(span: Span) -> String {
    format!("{}.{:03}", span.as_ns() / 1_000, span.as_ns() % 1_000)
}

/// A number that differs, as a rule, where records differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    pub const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    /// FNV-1a.
    pub fn add(&mut self, records: &[Record]) {
        for byte in lines(records, Instant::ZERO).bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
