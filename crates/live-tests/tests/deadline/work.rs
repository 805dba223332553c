//! What a thread under `SCHED_DEADLINE` does, step by step: it binds itself, enters the class, sleeps
//! until an instant, and computes for a span of its own CPU time.

use std::time::Duration;

use rustix::thread::{CpuSet, clock_nanosleep_absolute, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};
use shiftwork_model::Span;
use thread_priority::{
    DeadlineFlags, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy,
};

/// How the error begins if the kernel has no room for a thread.
pub const NOT_ADMITTED: &str = "it is not admitted";

/// So far the calling thread computes without looking whether others want to: an emulator that does one
/// CPU after the other goes on to the next when a thread pauses, and that takes it longer than this.
const STRIDE_NS: u64 = 5_000;

/// Binds the calling thread to these CPUs of a task-set file; CPU 0 of the file is the machine's
/// `first`.
///
/// # Errors
/// If the kernel does not let it.
pub fn bind(cpus: &shiftwork_model::CpuSet, first: usize) -> Result<(), String> {
    let mut allowed = CpuSet::new();
    cpus.iter().for_each(|cpu| allowed.set(cpu.index() + first));
    sched_setaffinity(None, &allowed).map_err(|error| format!("to CPUs {cpus}: {error}"))
}

/// Puts the calling thread under `SCHED_DEADLINE` with this budget, deadline and period.
///
/// # Errors
/// If the kernel does not let it.
pub fn enter(cost: Span, deadline: Span, period: Span) -> Result<(), String> {
    let span = |span: Span| Duration::from_nanos(span.as_ns());
    let server = ThreadPriority::Deadline {
        runtime: span(cost),
        deadline: span(deadline),
        period: span(period),
        flags: DeadlineFlags::empty(),
    };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Deadline);
    // The calling thread: here the crate takes the kernel's numbers of threads, not those of pthreads.
    set_thread_priority_and_policy(0, server, policy)
        .map_err(|error| format!("{NOT_ADMITTED}: {error}"))
}

/// What a clock says, in nanoseconds.
pub fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until the monotonic clock says so many nanoseconds.
pub fn sleep_until(at_ns: u64) {
    let at = Timespec {
        tv_sec: (at_ns / 1_000_000_000) as i64,
        tv_nsec: (at_ns % 1_000_000_000) as i64,
    };
    while clock_nanosleep_absolute(ClockId::Monotonic, &at).is_err() {}
}

/// Computes for so much of the thread's own time.
pub fn burn(span: Span) {
    let end_ns = now_ns(ClockId::ThreadCPUTime) + span.as_ns();
    loop {
        let left_ns = end_ns.saturating_sub(now_ns(ClockId::ThreadCPUTime));
        if left_ns == 0 {
            return;
        }
        // Own time is never faster than this, which needs no system call.
        let then_ns = now_ns(ClockId::Monotonic) + left_ns;
        let mut pause_ns = 0;
        loop {
            let now_ns = now_ns(ClockId::Monotonic);
            if now_ns >= then_ns {
                break;
            }
            if now_ns >= pause_ns {
                std::hint::spin_loop();
                pause_ns = now_ns + STRIDE_NS;
            }
        }
    }
}
