//! Clocks, and waiting for them.

use std::io;

use rustix::thread::{Pid, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The monotonic clock, in nanoseconds. BPF reads the same clock.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// CPU time of the calling thread, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time of another thread of this process, in nanoseconds; exact also while it runs.
///
/// # Errors
/// If this process has no such thread.
#[expect(
    unsafe_code,
    reason = "rustix does not know the clocks of other threads"
)]
pub(crate) fn cpu_ns_of(thread: Pid) -> io::Result<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let clock = clock_of(thread);
    // SAFETY: the pointer is to a live local of the type that the call writes, and of which it keeps
    // nothing.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Number of the thread's CPU-time clock: `man 2 clock_getres`,
/// and `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED` of the kernel's `posix-timers_types.h`.
fn clock_of(thread: Pid) -> libc::clockid_t {
    const PER_THREAD: i32 = 4;
    const SCHED: i32 = 2;
    (!thread.as_raw_nonzero().get() << 3) | PER_THREAD | SCHED
}

/// Lets other CPUs continue. Loops that read a long trace call it now and then: an emulator that runs all CPUs of its
/// machine on one thread switches to the next CPU only when this one pauses, and the measured times would be those of
/// the reader. On hardware it takes nanoseconds.
pub(crate) fn pause() {
    std::hint::spin_loop();
}

/// As [`pause`], in this step of a loop of short steps: in one of 64. There a pause takes longer than a step.
pub(crate) fn pause_at(step: usize) {
    if step % 64 == 63 {
        pause();
    }
}

/// Returns at this instant of the monotonic clock, at once if it is past. Signals do not shorten it.
///
/// # Errors
/// If the kernel refuses to sleep, which it does only for instants that it cannot represent.
pub fn sleep_until(at_ns: u64) -> io::Result<()> {
    let at = timespec(at_ns);
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &at) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}

/// This many nanoseconds as the kernel's type.
pub(crate) fn timespec(ns: u64) -> Timespec {
    const BILLION: u64 = 1_000_000_000;
    Timespec {
        // 2^64 ns are less than 2^35 s, so neither part can overflow.
        tv_sec: (ns / BILLION) as i64,
        tv_nsec: (ns % BILLION) as _,
    }
}

/// These clocks start at zero and count up: they are never negative, and 64 bits last 584 years.
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_until_does_not_return_early() {
        let at = monotonic_ns() + 3_000_000;
        sleep_until(at).unwrap();
        assert!(monotonic_ns() >= at);
        sleep_until(at).unwrap();
    }

    #[test]
    fn cpu_clock_of_a_thread_is_readable_from_others() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (thread, own) = std::thread::scope(|scope| {
            scope.spawn(move || {
                let own = crate::sys::thread::own_id();
                let before = thread_cpu_ns();
                let seen = cpu_ns_of(own).unwrap();
                assert!((before..=thread_cpu_ns()).contains(&seen));
                sender.send(own).unwrap();
            });
            (receiver.recv().unwrap(), crate::sys::thread::own_id())
        });
        assert_ne!(thread, own);
        // The thread has ended, or is about to.
        while cpu_ns_of(thread).is_ok() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn sleep_consumes_no_cpu_time() {
        let (cpu, wall) = (thread_cpu_ns(), monotonic_ns());
        sleep_until(wall + 20_000_000).unwrap();
        assert!(thread_cpu_ns() - cpu < monotonic_ns() - wall);
    }
}
