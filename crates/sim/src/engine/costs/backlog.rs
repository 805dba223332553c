//! The scheduling work of one CPU, which delays its jobs.

use shiftwork_model::{Instant, Span};

/// The scheduling work of one CPU. Interrupts come first; then, after the notification, the CPU carries out
/// the latest decision about its job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    /// End of the interrupts so far.
    interrupts_end: Instant,
    /// The instant at which the CPU is notified of the latest decision.
    notified: Instant,
    /// Time for carrying it out.
    dispatch: Span,
}

impl Backlog {
    /// The end of the interrupts so far, or `at` if that is later.
    pub(crate) fn after_interrupts(&self, at: Instant) -> Instant {
        self.interrupts_end.max(at)
    }

    /// Adds an interrupt of length `span`. `free_at` is the instant from which the CPU would have been free for
    /// jobs; returns the new one.
    pub(crate) fn interrupt(&mut self, now: Instant, span: Span, free_at: Instant) -> Instant {
        self.interrupts_end = self.interrupts_end.max(now) + span;
        if now < self.notified {
            // The CPU handles interrupts while it waits for the notification.
            return self.carried_out();
        }
        free_at.max(now) + span
    }

    /// Adds a decision, of which the CPU is notified after `latency`. It replaces a decision that is not yet
    /// carried out. Returns the instant from which the CPU is free for jobs.
    pub(crate) fn decide(&mut self, now: Instant, latency: Span, dispatch: Span) -> Instant {
        self.notified = now + latency;
        self.dispatch = dispatch;
        self.carried_out()
    }

    fn carried_out(&self) -> Instant {
        self.after_interrupts(self.notified) + self.dispatch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_ns;
    const NS: fn(u64) -> Span = Span::from_ns;

    #[test]
    fn interrupts_delay_the_dispatch() {
        let mut cpu = Backlog::default();
        let free = cpu.interrupt(AT(10), NS(3), AT(0));
        assert_eq!(free, AT(13));
        let free = cpu.interrupt(AT(12), NS(3), free);
        assert_eq!(free, AT(16));
        assert_eq!(cpu.decide(AT(12), NS(0), NS(5)), AT(21));
        assert_eq!(cpu.interrupt(AT(17), NS(1), AT(21)), AT(22));
    }

    #[test]
    fn interrupts_are_handled_while_the_cpu_waits_for_the_notification() {
        let mut cpu = Backlog::default();
        let free = cpu.decide(AT(0), NS(10), NS(5));
        assert_eq!(free, AT(15));
        let free = cpu.interrupt(AT(2), NS(7), free);
        assert_eq!(free, AT(15));
        let free = cpu.interrupt(AT(9), NS(7), free);
        assert_eq!(free, AT(21));
    }

    #[test]
    fn decision_revised_in_time_has_no_cost() {
        let mut cpu = Backlog::default();
        let free = cpu.decide(AT(0), NS(0), NS(5));
        let free = cpu.interrupt(AT(1), NS(2), free);
        assert_eq!(free, AT(7));
        // The interrupt ends at 3; nothing else is left to do.
        assert_eq!(cpu.decide(AT(2), NS(0), NS(5)), AT(8));
        assert_eq!(cpu.decide(AT(30), NS(0), NS(5)), AT(35));
    }
}
