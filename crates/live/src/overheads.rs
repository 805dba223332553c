//! The cost of scheduling where an agent decides: on its own CPU, and on those that enact its decisions.
//!
//! # Source
//! The quantities of V. Bonifaci, B. Brandenburg, G. D'Angelo, A. Marchetti-Spaccamela, "Multiprocessor
//! Real-Time Scheduling with Hierarchical Processor Affinities", ECRTS 2016, Fig. 1: the scheduling
//! processor's decisions and the dispatchers of the others.

use shiftwork_model::Span;

use crate::event::{Event, Kind};

/// The latencies of decisions, a sample each, in the order of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// From the event to the agent's receipt of its report.
    pub report: Vec<Span>,
    /// From there to the decision.
    pub decide: Vec<Span>,
    /// From there to the filling of the CPU's slot.
    pub kick: Vec<Span>,
    /// From there to the start of the job on the CPU.
    pub switch: Vec<Span>,
    /// From the agent's receipt of a report to the filling of the last slot: the work of the scheduling CPU.
    pub scheduling: Vec<Span>,
    /// How long the dispatcher of a CPU took to find the task to run.
    pub dispatch: Vec<Span>,
    /// The cost of each record of these measurements, which is part of what is measured.
    pub record: Span,
}

/// Computes the samples from the events of an agent.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) overheads: Overheads,
    /// Instant of the last decision, and instant of the agent's receipt of its cause.
    decided_ns: u64,
    polled_ns: u64,
    /// For each CPU of the machine the task in its slot, and when it was filled.
    filled: Vec<Option<(u32, u64)>>,
}

impl Meter {
    /// Applies an event; events that it does not measure change nothing.
    pub(crate) fn take(&mut self, event: &Event) {
        match event.kind {
            Kind::Decided => {
                let (report_ns, decide_ns) = (event.value & u64::from(u32::MAX), event.value >> 32);
                self.overheads.report.push(Span::from_ns(report_ns));
                self.overheads.decide.push(Span::from_ns(decide_ns));
                self.decided_ns = event.at;
                self.polled_ns = event.at.saturating_sub(decide_ns);
            }
            Kind::SlotFilled => self.slot_filled(event),
            Kind::Running => self.running(event),
            Kind::Concluded => {
                let span = event.at.saturating_sub(self.polled_ns);
                self.overheads.scheduling.push(Span::from_ns(span));
            }
            Kind::Dispatched => self.overheads.dispatch.push(Span::from_ns(event.value)),
            _ => {}
        }
    }

    fn slot_filled(&mut self, event: &Event) {
        let kick = event.at.saturating_sub(self.decided_ns);
        self.overheads.kick.push(Span::from_ns(kick));
        let Some(cpu) = event.cpu.map(usize::from) else {
            return;
        };
        self.filled.resize(self.filled.len().max(cpu + 1), None);
        self.filled[cpu] = (event.task != 0).then_some((event.task, event.at));
    }

    fn running(&mut self, event: &Event) {
        let Some(filled) = event
            .cpu
            .and_then(|cpu| self.filled.get_mut(usize::from(cpu)))
        else {
            return;
        };
        if let Some((task, at)) = *filled
            && task == event.task
        {
            let switch = event.at.saturating_sub(at);
            self.overheads.switch.push(Span::from_ns(switch));
            *filled = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, kind: Kind, task: u32, cpu: Option<u16>, value: u64) -> Event {
        Event {
            at,
            value,
            task,
            cpu,
            kind,
        }
    }

    #[test]
    fn latency_of_a_decision_has_four_parts() {
        let mut meter = Meter::default();
        for event in [
            event(130, Kind::Decided, 0, None, 20 | 10 << 32),
            event(135, Kind::SlotFilled, 3, Some(2), 0),
            event(137, Kind::SlotFilled, 0, Some(1), 0),
            event(138, Kind::Concluded, 0, None, 0),
            event(140, Kind::Running, 3, Some(1), 0),
            event(150, Kind::Running, 3, Some(2), 0),
            event(160, Kind::Running, 3, Some(2), 0),
            event(170, Kind::Dispatched, 0, Some(2), 4),
        ] {
            meter.take(&event);
        }
        let spans = |all: &[u64]| all.iter().copied().map(Span::from_ns).collect::<Vec<_>>();
        let wanted = Overheads {
            report: spans(&[20]),
            decide: spans(&[10]),
            kick: spans(&[5, 7]),
            switch: spans(&[15]),
            scheduling: spans(&[18]),
            dispatch: spans(&[4]),
            record: Span::ZERO,
        };
        assert_eq!(meter.overheads, wanted);
    }
}
