//! Scheduling parameters of threads: affinity, class, reservation.

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

/// The present CPU of the calling thread. `None` beyond what a [`CpuSet`] can hold. Takes no system call.
pub(crate) fn own_cpu() -> Option<CpuId> {
    CpuId::new(sched_getcpu())
}

/// Whether this process has such a thread. The number of a thread that has ended may be reused by another process.
pub(crate) fn is_ours(thread: Pid) -> bool {
    let path = format!("/proc/self/task/{}", thread.as_raw_nonzero());
    std::fs::exists(path).unwrap_or(false)
}

/// Binds the thread to these CPUs of the machine; `None`: the calling one. At least one of them has to
/// be online.
///
/// # Errors
/// If there is no such thread, if this user may not change it, or if none of the CPUs is online.
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

/// The CPUs of the calling thread outside these; all of its CPUs if there are none.
///
/// # Errors
/// If the kernel does not say.
pub(crate) fn affinity_outside(cpus: &CpuSet) -> io::Result<CpuSet> {
    let all = affinity(None)?;
    let outside = all - *cpus;
    Ok(if outside.is_empty() { all } else { outside })
}

fn raw(cpus: &CpuSet) -> RawCpuSet {
    let mut raw = RawCpuSet::new();
    for cpu in cpus.iter().filter(|cpu| cpu.index() < RawCpuSet::MAX_CPU) {
        raw.set(cpu.index());
    }
    raw
}

/// The scheduling class of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `SCHED_OTHER`, the default.
    Ordinary,
    /// `SCHED_IDLE`: runs when no other thread wants the CPU, and then not at once if another one has just run.
    Idle,
    /// `SCHED_FIFO`, with a priority from 1 to 99, the most urgent: above all ordinary threads.
    Fifo(u8),
    /// The same; threads that it creates are ordinary.
    FifoAlone(u8),
}

impl Class {
    /// Policy number and priority, as `sched_setscheduler` takes them.
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

/// Sets the scheduling class of the thread; `None`: the calling one.
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

/// Whether the calling thread is an ordinary one.
///
/// # Errors
/// If the kernel does not say.
#[expect(unsafe_code, reason = "rustix does not have it")]
pub(crate) fn is_ordinary() -> io::Result<bool> {
    // SAFETY: the call takes a number and returns one.
    match unsafe { libc::sched_getscheduler(0) } {
        -1 => Err(io::Error::last_os_error()),
        policy => Ok(policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_OTHER),
    }
}

/// Reservation of the thread under SCHED_DEADLINE; all zero if it has another class.
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
    // SAFETY: the pointer is to a live local, and its size is passed; the call writes no more than
    // that, and keeps nothing of it.
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
        // Other classes have no such parameters: newer kernels return the length of a slice there.
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

/// Sets the timer slack of the calling thread to its minimum; the default delays timers by up to 50 us.
///
/// # Errors
/// On a kernel without timer slack.
pub fn set_exact_timers() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Returns when the kernel has finished its present operation with this thread on a run queue: waking it up,
/// blocking it, switching to it or from it. Later operations see all that was written before this call. A thread that
/// has ended is on no run queue.
#[expect(unsafe_code, reason = "rustix does not have it")]
pub(crate) fn pass_run_queue(thread: Pid) {
    let mut slice = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let number = thread.as_raw_nonzero().get();
    // The result does not matter: to compute it, the call takes the lock of the thread's run queue.
    // SAFETY: the pointer is to a live local of the type that the call writes, and of which it keeps
    // nothing.
    let _ = unsafe { libc::sched_rr_get_interval(number, &raw mut slice) };
}

/// Yields the CPU to other threads that are ready.
pub(crate) fn yield_now() {
    sched_yield();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_that_is_set_is_read_back() {
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
    fn process_has_only_its_own_threads() {
        assert!(is_ours(own_id()));
        assert!(!is_ours(Pid::from_raw(i32::MAX).unwrap()));
    }

    #[test]
    fn reservation_of_ordinary_thread_is_zero_and_of_missing_thread_an_error() {
        let own = reservation(own_id()).unwrap();
        assert!(own.runtime.is_zero() && own.period.is_zero(), "{own:?}");
        assert!(reservation(Pid::from_raw(i32::MAX).unwrap()).is_err());
    }

    #[test]
    fn pass_run_queue_returns() {
        pass_run_queue(own_id());
        pass_run_queue(Pid::from_raw(i32::MAX).unwrap());
    }

    #[test]
    fn thread_may_always_become_ordinary() {
        set_class(None, Class::Ordinary).unwrap();
        set_class(Some(own_id()), Class::Ordinary).unwrap();
        set_exact_timers().unwrap();
    }

    #[test]
    fn threads_beside_cpus_avoid_them_if_possible() {
        let all = affinity(None).unwrap();
        assert_eq!(affinity_outside(&all).unwrap(), all);
        assert_eq!(affinity_outside(&CpuSet::EMPTY).unwrap(), all);
        if all.len() > 1 {
            let lowest = CpuSet::single(all.lowest().unwrap());
            assert!(!affinity_outside(&lowest).unwrap().intersects(&lowest));
        }
    }
}
