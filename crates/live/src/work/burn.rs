//! Computing for an exact CPU time.

use crate::sys::clock::{monotonic_ns, pause, thread_cpu_ns};
use crate::sys::word::Word;

/// Longest spin without reading the thread's CPU clock, so that the thread notices soon that it is to stop.
const SPIN_NS_MAX: u64 = 20_000;

/// How much CPU time between two spans counts as part of the second one, at most: a system call and a context
/// switch on a slow machine. More than that has another cause, such as waiting for a lock; counting it would
/// make the job visibly shorter than it should be.
const BETWEEN_NS_MAX: u64 = 10_000;

/// Computes by the CPU clock of the calling thread, which stands still while other threads run.
///
/// A span begins where the previous one ended, not where it is requested: CPU time between them, in system calls
/// and on the way there, is part of the work up to [`BETWEEN_NS_MAX`]. Otherwise a job that is to run for its
/// whole budget would always need a little more than that.
#[derive(Debug)]
pub(super) struct Burner {
    /// The thread's CPU time at the end of the last span.
    spent_ns: u64,
}

/// Why computing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Burnt {
    /// The span is over.
    All,
    /// The run is over, or the task has left.
    Stopped,
}

impl Burner {
    /// The first span begins now.
    pub(super) fn new() -> Self {
        Self {
            spent_ns: thread_cpu_ns(),
        }
    }

    /// Computes until the calling thread's CPU time is `span_ns` beyond the beginning of this span,
    /// while `going` holds `value` and, if it is not `u64::MAX`, before the instant `until_ns` of the
    /// monotonic clock.
    ///
    /// It ends at most one reading of the clock too late. Allocates nothing.
    pub(super) fn burn(&mut self, span_ns: u64, going: &Word, value: u32, until_ns: u64) -> Burnt {
        let mut now_ns = thread_cpu_ns();
        let begin_ns = self.spent_ns.max(now_ns.saturating_sub(BETWEEN_NS_MAX));
        let end_ns = begin_ns.saturating_add(span_ns);
        while now_ns < end_ns {
            let is_over = until_ns != u64::MAX && monotonic_ns() >= until_ns;
            if is_over || going.get() != value {
                self.spent_ns = now_ns;
                return Burnt::Stopped;
            }
            spin((end_ns - now_ns).min(SPIN_NS_MAX));
            now_ns = thread_cpu_ns();
        }
        self.spent_ns = now_ns;
        Burnt::All
    }
}

/// Spins for this time. A thread's CPU clock is never faster than the monotonic one, and reading it takes a
/// system call, which this does not.
///
/// The clock is read after every pause: a hypervisor or an emulator may run another CPU during any of
/// them, for a time that depends on the load there.
fn spin(span_ns: u64) {
    let end_ns = monotonic_ns().saturating_add(span_ns);
    while monotonic_ns() < end_ns {
        pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_follow_each_other_without_a_gap() {
        let going = Word::new(1);
        let begin = thread_cpu_ns();
        let mut burner = Burner::new();
        for (step, span_ns) in [1, 700, 50_000, 2_000_000, 0, 300_000]
            .into_iter()
            .enumerate()
        {
            let before = burner.spent_ns;
            assert_eq!(burner.burn(span_ns, &going, 1, u64::MAX), Burnt::All);
            assert!(burner.spent_ns >= before + span_ns, "step {step}");
        }
        assert!(thread_cpu_ns() - begin >= 2_350_701);
    }

    #[test]
    fn long_time_between_spans_does_not_shorten_the_second() {
        let (going, mut burner) = (Word::new(1), Burner::new());
        let begin = thread_cpu_ns();
        while thread_cpu_ns() < begin + 3_000_000 {
            std::hint::spin_loop();
        }
        let before = thread_cpu_ns();
        burner.burn(1_000_000, &going, 1, u64::MAX);
        assert!(burner.spent_ns >= before + 1_000_000 - BETWEEN_NS_MAX);
    }

    #[test]
    fn stopped_thread_does_not_compute() {
        let mut burner = Burner::new();
        // The span alone would never end.
        assert_eq!(
            burner.burn(u64::MAX, &Word::new(2), 1, u64::MAX),
            Burnt::Stopped
        );
        let soon = monotonic_ns() + 1_000_000;
        assert_eq!(
            burner.burn(u64::MAX, &Word::new(1), 1, soon),
            Burnt::Stopped
        );
        assert!(monotonic_ns() >= soon);
    }

    #[test]
    fn spin_takes_at_least_its_time() {
        for span_ns in [0, 1, 700, 50_000] {
            let begin_ns = monotonic_ns();
            spin(span_ns);
            assert!(monotonic_ns() - begin_ns >= span_ns, "{span_ns} ns");
        }
    }
}
