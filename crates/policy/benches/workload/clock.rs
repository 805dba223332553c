//! Time that does not pass while another process has the CPU.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long this thread has been on a CPU.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).expect("CPU time is not negative");
    let nanoseconds = u64::try_from(time.tv_nsec).expect("a part of a second is not negative");
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}
