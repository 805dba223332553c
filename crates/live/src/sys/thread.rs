//! What the kernel knows of a thread: its number, where it may run, who schedules it.

use std::io;
use std::num::NonZeroU64;

use rustix::thread::{
    CpuSet as RawCpuSet, Pid, gettid, sched_getcpu, sched_setaffinity, sched_yield,
    set_current_timer_slack,
};
use shiftwork_model::{CpuId, CpuSet, Span};

use crate::host::Reservation;

/// The number of the calling thread.
pub(crate) fn own_id() -> Pid {
    gettid()
}

/// Where the calling thread is. `None` beyond what a [`CpuSet`] can hold. Takes no system call.
pub(crate) fn own_cpu() -> Option<CpuId> {
    CpuId::new(sched_getcpu())
}

/// Whether this process has such a thread. A number that a thread leaves behind may be somebody else's
/// later.
pub(crate) fn is_ours(thread: Pid) -> bool {
    let path = format!("/proc/self/task/{}", thread.as_raw_nonzero());
    std::fs::exists(path).unwrap_or(false)
}

/// The thread may use these CPUs of the machine; `None`: the calling one. At least one of them has to
/// be online.
///
/// # Errors
/// If there is no such thread, if it is somebody else's, or if none of the CPUs is online.
pub fn set_affinity(thread: Option<Pid>, cpus: &CpuSet) -> io::Result<()> {
    Ok(sched_setaffinity(thread, &raw(cpus))?)
}

/// The CPUs of the machine that the thread may use; `None`: the calling one.
///
/// # Errors
/// If there is no such thread.
pub(crate) fn affinity(thread: Option<Pid>) -> io::Result<CpuSet> {
    let raw = rustix::thread::sched_getaffinity(thread)?;
    Ok((0..shiftwork_model::CPUS_MAX.min(RawCpuSet::MAX_CPU))
        .filter(|&cpu| raw.is_set(cpu))
        .map(shiftwork_model::CpuId::from_index)
        .collect())
}

fn raw(cpus: &CpuSet) -> RawCpuSet {
    let mut raw = RawCpuSet::new();
    for cpu in cpus.iter().filter(|cpu| cpu.index() < RawCpuSet::MAX_CPU) {
        raw.set(cpu.index());
    }
    raw
}

/// By whom a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// As everybody is, unless told otherwise.
    Ordinary,
    /// When nobody else wants the CPU, and not at once then if somebody just has.
    Idle,
    /// By a fixed priority, 1 to 99 the most urgent, above all ordinary threads.
    Fifo(u8),
    /// The same, and what the thread starts is ordinary.
    FifoAlone(u8),
}

impl Class {
    /// Number and priority, as `sched_setscheduler` takes them.
    const fn raw(self) -> (i32, i32) {
        match self {
            Self::Ordinary => (libc::SCHED_OTHER, 0),
            Self::Idle => (libc::SCHED_IDLE, 0),
            Self::Fifo(priority) => (libc::SCHED_FIFO, priority as i32),
            Self::FifoAlone(priority) => (
                libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
                priority as i32,
            ),
        }
    }
}

/// The thread is scheduled by this class from now on; `None`: the calling one.
///
/// # Errors
/// If there is no such thread, or without the privilege.
#[expect(unsafe_code, reason = "rustix does not have it")]
pub fn set_class(thread: Option<Pid>, class: Class) -> io::Result<()> {
    let (policy, priority) = class.raw();
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    let number = thread.map_or(0, |thread| thread.as_raw_nonzero().get());
    // SAFETY: the pointer is to a live local of the type that the call reads, and of which it keeps
    // nothing.
    let failed = unsafe { libc::sched_setscheduler(number, policy, &raw const parameters) };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the thread has reserved under SCHED_DEADLINE; all zero if it is scheduled by another class.
///
/// # Errors
/// If there is no such thread, or without the privilege.
#[expect(unsafe_code, reason = "rustix does not have it")]
pub(crate) fn reservation(thread: Pid) -> io::Result<Reservation> {
    let mut found = libc::sched_attr {
        size: 0,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // 48 bytes: the first version of the structure, which every kernel can fill.
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the pointer is to a live local, the call is told its size and writes no more than that, and
    // keeps nothing of it.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            thread.as_raw_nonzero().get(),
            &raw mut found,
            size,
            0,
        )
    };
    match failed {
        0 if found.sched_policy == DEADLINE => Ok(Reservation {
            runtime: Span::from_ns(found.sched_runtime),
            deadline: Span::from_ns(found.sched_deadline),
            period: Span::from_ns(found.sched_period),
        }),
        // Others have no such parameters: newer kernels tell the length of a slice in their place.
        0 => Ok(Reservation {
            runtime: Span::ZERO,
            deadline: Span::ZERO,
            period: Span::ZERO,
        }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `SCHED_DEADLINE` as the kernel numbers it.
const DEADLINE: u32 = 6;

/// The timers of the calling thread go off when they are due, not up to 50 us later, as the kernel
/// allows itself otherwise.
///
/// # Errors
/// On a kernel that has no such thing.
pub fn set_exact_timers() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Returns when the kernel is through with whatever it was doing with this thread on the queue of a CPU: waking
/// it up, putting it to sleep, letting it run or run no more. What it does later sees all that was written
/// before this call. A thread that is gone is on no queue.
#[expect(unsafe_code, reason = "rustix does not have it")]
pub(crate) fn pass_run_queue(thread: Pid) {
    let mut slice = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let number = thread.as_raw_nonzero().get();
    // Its answer does not matter: to find it, the call takes the lock of the queue that the thread is on.
    // SAFETY: the pointer is to a live local of the type that the call writes, and of which it keeps
    // nothing.
    let _ = unsafe { libc::sched_rr_get_interval(number, &raw mut slice) };
}

/// Gives the CPU away, if anybody wants it.
pub(crate) fn yield_now() {
    sched_yield();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_affinity_that_is_set_is_the_one_that_is_read() {
        let before = affinity(None).unwrap();
        let one = CpuSet::single(before.lowest().unwrap());
        set_affinity(None, &one).unwrap();
        assert_eq!(affinity(Some(own_id())).unwrap(), one);
        assert_eq!(own_cpu(), one.lowest());
        set_affinity(None, &before).unwrap();
        assert_eq!(affinity(None).unwrap(), before);
        assert!(set_affinity(None, &CpuSet::EMPTY).is_err());
        yield_now();
    }

    #[test]
    fn a_process_knows_its_own_threads() {
        assert!(is_ours(own_id()));
        assert!(!is_ours(Pid::from_raw(i32::MAX).unwrap()));
    }

    #[test]
    fn a_thread_that_was_given_no_reservation_has_none_and_nobody_has_none_at_all() {
        let own = reservation(own_id()).unwrap();
        assert!(own.runtime.is_zero() && own.period.is_zero(), "{own:?}");
        assert!(reservation(Pid::from_raw(i32::MAX).unwrap()).is_err());
    }

    #[test]
    fn who_passes_a_run_queue_comes_back() {
        pass_run_queue(own_id());
        pass_run_queue(Pid::from_raw(i32::MAX).unwrap());
    }

    #[test]
    fn every_thread_may_become_an_ordinary_one() {
        set_class(None, Class::Ordinary).unwrap();
        set_class(Some(own_id()), Class::Ordinary).unwrap();
        set_exact_timers().unwrap();
    }
}
