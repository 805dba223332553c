//! What is measured, by name.

use std::fmt;

/// What is measured. The order is that of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Recording a sample: a part of everything that is measured.
    Record,
    /// For how long a job loses its CPU when a timer goes off there and wakes a task that has to wait.
    Release,
    /// For how long a job loses its CPU to the kernel's tick.
    Tick,
    /// From one thread of a process to another on the same CPU, which then waits.
    SwitchThreads,
    /// The same between processes.
    SwitchProcesses,
    /// From waking a thread on an idle CPU to its running there.
    IpiIdle,
    /// From waking a thread on a CPU that a less urgent one computes on to its running there.
    IpiBusy,
    /// A policy's deciding on one event; `at` so many tasks.
    Decide,
    /// Global EDF's deciding on one event while no job waits, so that no ready queue is touched.
    DecideUnqueued,
    /// Putting one job into a ready queue, the variant; `at` so many tasks.
    QueueInsert,
    /// Putting several in at once.
    QueueMerge,
    /// Taking the most urgent one out.
    QueueTake,
    /// Looking for a more urgent one, in vain.
    QueueLook,
    /// What a working set takes longer on the CPU where it was before others used its caches; `at` so many
    /// bytes. More than a walk of it in cache.
    Preemption,
    /// The same on another CPU, at the cache distance of the variant.
    Migration,
    /// Live: from an event until the scheduler receives it.
    LiveReport,
    /// Live: from there until it has decided.
    LiveDecide,
    /// Live: from there until the CPU is notified.
    LiveKick,
    /// Live: from there until the CPU runs the job.
    LiveSwitch,
    /// Live: how much longer than its work a job ran that was not interrupted.
    LiveExcess,
}

/// All kinds with their names and what they mean.
const ALL: [(Kind, &str, &str); 20] = [
    (Kind::Record, "record", "recording one sample"),
    (
        Kind::Release,
        "release",
        "timer interrupt that wakes a task which has to wait, as the running job loses it",
    ),
    (
        Kind::Tick,
        "tick",
        "the kernel's tick, as the running job loses it",
    ),
    (
        Kind::SwitchThreads,
        "switch-threads",
        "from thread to thread of one process",
    ),
    (
        Kind::SwitchProcesses,
        "switch-processes",
        "from process to process",
    ),
    (
        Kind::IpiIdle,
        "ipi-idle",
        "from waking a thread to its running on an idle CPU",
    ),
    (
        Kind::IpiBusy,
        "ipi-busy",
        "from waking a thread to its running on a busy CPU",
    ),
    (Kind::Decide, "decide", "a policy's decision on one event"),
    (
        Kind::DecideUnqueued,
        "decide-unqueued",
        "global EDF's decision on one event while no job waits",
    ),
    (
        Kind::QueueInsert,
        "queue-insert",
        "putting one job into a ready queue",
    ),
    (
        Kind::QueueMerge,
        "queue-merge",
        "putting several jobs into a ready queue at once",
    ),
    (
        Kind::QueueTake,
        "queue-take",
        "taking the most urgent job out of a ready queue",
    ),
    (
        Kind::QueueLook,
        "queue-look",
        "looking for a more urgent job in a ready queue, in vain",
    ),
    (
        Kind::Preemption,
        "preemption",
        "refilling caches where the job was",
    ),
    (Kind::Migration, "migration", "refilling caches elsewhere"),
    (
        Kind::LiveReport,
        "live-report",
        "from an event until the scheduler receives it",
    ),
    (
        Kind::LiveDecide,
        "live-decide",
        "from there until it has decided",
    ),
    (
        Kind::LiveKick,
        "live-kick",
        "from there until the CPU is notified",
    ),
    (
        Kind::LiveSwitch,
        "live-switch",
        "from there until the CPU runs the job",
    ),
    (
        Kind::LiveExcess,
        "live-excess",
        "by how much a job runs longer than its work",
    ),
];

/// What is called of ready queues.
pub(crate) const QUEUE: [Kind; 4] = [
    Kind::QueueInsert,
    Kind::QueueMerge,
    Kind::QueueTake,
    Kind::QueueLook,
];

impl Kind {
    /// The name, as outputs have it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What it is, in a line.
    pub fn meaning(self) -> &'static str {
        self.row().2
    }

    /// Whether it is measured against the number of tasks: too often for tables, which have lines for that.
    pub fn is_by_tasks(self) -> bool {
        self == Self::Decide || QUEUE.contains(&self)
    }

    fn row(self) -> &'static (Self, &'static str, &'static str) {
        // A test says that each row is where its kind is.
        &ALL[self as usize]
    }
}

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    /// What kind of thing.
    pub kind: Kind,
    /// A policy or a ready queue, or where there are several of a kind which one; otherwise empty.
    pub variant: &'static str,
    /// A number of tasks or of bytes; zero where that means nothing.
    pub at: u64,
}

impl Quantity {
    /// One of which there is no other.
    pub const fn of(kind: Kind) -> Self {
        Self {
            kind,
            variant: "",
            at: 0,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if !self.variant.is_empty() {
            write!(f, " {}", self.variant)?;
        }
        match self.kind {
            _ if self.at == 0 => Ok(()),
            kind if kind.is_by_tasks() => write!(f, " n={}", self.at),
            _ => write!(f, " {}", bytes(self.at)),
        }
    }
}

/// A number of bytes in the largest unit that divides it.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        _ if count.is_multiple_of(1 << 20) => format!("{} MiB", count >> 20),
        _ if count.is_multiple_of(1 << 10) => format!("{} KiB", count >> 10),
        _ => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_in_its_row_and_names_are_unlike() {
        let mut names = Vec::new();
        for (index, &(kind, name, _)) in ALL.iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert!(!names.contains(&name), "{name}");
            names.push(name);
        }
    }

    #[test]
    fn quantities_are_named_with_what_they_are_at() {
        let of = |kind, variant, at| Quantity { kind, variant, at }.to_string();
        assert_eq!(of(Kind::Decide, "g-edf", 8), "decide g-edf n=8");
        assert_eq!(of(Kind::QueueTake, "fine", 10), "queue-take fine n=10");
        assert_eq!(
            of(Kind::Migration, "distance-1", 65_536),
            "migration distance-1 64 KiB"
        );
        assert_eq!(of(Kind::Preemption, "", 4 << 20), "preemption 4 MiB");
        assert_eq!(Quantity::of(Kind::Tick).to_string(), "tick");
    }
}
