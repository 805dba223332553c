//! What is recorded of the threads of a process.

use std::collections::BTreeMap;

use shiftwork_model::{CpuSet, Instant, Span};

/// Why a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchedOut {
    /// It was preempted, or yielded: it is still ready.
    Ready,
    /// It sleeps until it is woken: its job is over.
    Asleep,
    /// It waits for a device or a lock of the kernel (state D), or is stopped: its job goes on afterwards.
    Suspended,
    /// It has ended.
    Ended,
}

/// What woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waker {
    /// A thread, of this process or another one.
    Thread(u32),
    /// An interrupt: a timer or a device.
    Interrupt,
    /// The wake-up was not seen.
    Unknown,
}

/// A scheduling event. Threads are named by their numbers (TID); 0 is an idle CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// What.
    pub kind: EventKind,
}

/// What a scheduling event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A thread is to be woken. Without effect if it does not sleep.
    Wakeup {
        /// The thread.
        thread: u32,
        /// What wakes it.
        by: Waker,
    },
    /// A CPU changes to another thread.
    Switch {
        /// The thread that ran.
        from: u32,
        /// Why it does not run any more.
        out: SwitchedOut,
        /// The thread that runs.
        to: u32,
    },
}

/// A thread of the process, or of one that this started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The number of its process, which is that of the main thread.
    pub process: u32,
    /// The name of its process, that of the main thread; empty if that was never seen.
    pub process_name: String,
    /// Its name (`comm`); several threads may share one.
    pub name: String,
    /// The CPUs that it may use.
    pub affinity: CpuSet,
    /// CPU time between the beginning and the end of the recording; `None` if the kernel does not report it.
    pub cpu_time: Option<Span>,
    /// When it began, in clock ticks since boot.
    pub started: u64,
    /// Whether it ended before the recording.
    pub has_ended: bool,
}

/// The events of a process, and of those that it started, in a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The number of the first process, which is that of its main thread.
    pub process: u32,
    /// The threads of all processes, by number.
    pub threads: BTreeMap<u32, Thread>,
    /// When the recording began.
    pub from: Instant,
    /// When it ended.
    pub until: Instant,
    /// By time.
    pub events: Vec<Event>,
    /// Stretches in which events may be missing. Jobs in them do not count.
    pub gaps: Vec<(Instant, Instant)>,
    /// Lines that could not be read.
    pub unreadable: u64,
}

impl Recording {
    /// Length of the recording.
    pub fn length(&self) -> Span {
        self.until.late_since(self.from)
    }
}
