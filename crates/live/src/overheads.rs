//! What scheduling itself takes where an agent decides: on its own CPU, and on those that carry out.
//!
//! # Source
//! The quantities of V. Bonifaci, B. Brandenburg, G. D'Angelo, A. Marchetti-Spaccamela, "Multiprocessor
//! Real-Time Scheduling with Hierarchical Processor Affinities", ECRTS 2016, Fig. 1: the scheduling
//! processor's decisions and the dispatchers of the others.

use shiftwork_model::Span;

use crate::event::{Event, Kind};

/// The way of decisions, a sample for each, in the order of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// From what happened to the agent's hearing of it.
    pub report: Vec<Span>,
    /// From there to its having decided.
    pub decide: Vec<Span>,
    /// From there to the CPU's having been told.
    pub kick: Vec<Span>,
    /// From there to the CPU's running the job.
    pub switch: Vec<Span>,
    /// How long the scheduling CPU worked for a decision, from hearing to having told all CPUs.
    pub scheduling: Vec<Span>,
    /// How long a CPU's dispatcher worked to find what to run.
    pub dispatch: Vec<Span>,
    /// What each of the records costs by which all this is known: part of what is measured.
    pub record: Span,
}

/// Puts the parts together from the events of an agent.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) overheads: Overheads,
    /// When the last decision was made, and when the agent heard of what made it necessary.
    decided_ns: u64,
    polled_ns: u64,
    /// For each CPU of the machine what it was told, and when.
    filled: Vec<Option<(u32, u64)>>,
}

impl Meter {
    /// Takes note of an event; those that are none of its business change nothing.
    pub(crate) fn take(&mut self, event: &Event) {
        match event.kind {
            Kind::Decided => {
                let (report_ns, decide_ns) = (event.value & u64::from(u32::MAX), event.value >> 32);
                self.overheads.report.push(Span::from_ns(report_ns));
                self.overheads.decide.push(Span::from_ns(decide_ns));
                self.decided_ns = event.at;
                self.polled_ns = event.at.saturating_sub(decide_ns);
            }
            Kind::Told => self.slot_filled(event),
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
    fn the_way_of_a_decision_has_four_parts() {
        let mut meter = Meter::default();
        for event in [
            event(130, Kind::Decided, 0, None, 20 | 10 << 32),
            event(135, Kind::Told, 3, Some(2), 0),
            event(137, Kind::Told, 0, Some(1), 0),
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
