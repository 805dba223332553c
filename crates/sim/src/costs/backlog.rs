//! What scheduling itself has one CPU do before it can go on with jobs.

use shiftwork_model::{Instant, Span};

/// The scheduling work of one CPU. Interrupts come first; then the CPU carries out the latest decision
/// about what it is to run, once it has heard of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    /// When the interrupts so far are handled.
    interrupts_end: Instant,
    /// When the CPU hears of the latest decision.
    notified: Instant,
    /// How long carrying it out takes.
    dispatch: Span,
}

impl Backlog {
    /// When the interrupts so far are handled; `at` if that is later.
    pub(crate) fn after_interrupts(&self, at: Instant) -> Instant {
        self.interrupts_end.max(at)
    }

    /// An interrupt takes `span`. The CPU, which would have been free for jobs from `free_at` on, is so
    /// from the instant that is returned.
    pub(crate) fn interrupt(&mut self, now: Instant, span: Span, free_at: Instant) -> Instant {
        self.interrupts_end = self.interrupts_end.max(now) + span;
        if now < self.notified {
            // Waiting to be notified is not work: interrupts are handled meanwhile.
            return self.carried_out();
        }
        free_at.max(now) + span
    }

    /// The CPU is to run something else, of which it hears after `latency`. A decision that it has not
    /// carried out by now is dropped: whoever decides anew decides on what is ready then. Returns when the
    /// CPU is free for jobs.
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
    fn interrupts_delay_what_follows_them() {
        let mut cpu = Backlog::default();
        let free = cpu.interrupt(AT(10), NS(3), AT(0));
        assert_eq!(free, AT(13));
        let free = cpu.interrupt(AT(12), NS(3), free);
        assert_eq!(free, AT(16));
        assert_eq!(cpu.decide(AT(12), NS(0), NS(5)), AT(21));
        assert_eq!(cpu.interrupt(AT(17), NS(1), AT(21)), AT(22));
    }

    #[test]
    fn interrupts_are_handled_while_the_cpu_waits_to_be_told() {
        let mut cpu = Backlog::default();
        let free = cpu.decide(AT(0), NS(10), NS(5));
        assert_eq!(free, AT(15));
        let free = cpu.interrupt(AT(2), NS(7), free);
        assert_eq!(free, AT(15));
        let free = cpu.interrupt(AT(9), NS(7), free);
        assert_eq!(free, AT(21));
    }

    #[test]
    fn a_decision_that_is_revised_in_time_costs_nothing_more() {
        let mut cpu = Backlog::default();
        let free = cpu.decide(AT(0), NS(0), NS(5));
        let free = cpu.interrupt(AT(1), NS(2), free);
        assert_eq!(free, AT(7));
        // The interrupt is over at 3, and with it all that is left of the past.
        assert_eq!(cpu.decide(AT(2), NS(0), NS(5)), AT(8));
        assert_eq!(cpu.decide(AT(30), NS(0), NS(5)), AT(35));
    }
}
