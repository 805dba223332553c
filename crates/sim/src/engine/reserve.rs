//! Background work: a CPU that has run real-time jobs for a second without a break runs background work
//! for the reserve's share of a second.
//!
//! For the policy the CPU is offline meanwhile.

use shiftwork_model::{CpuId, Instant, RecordKind, Recorder, Share, Span, TaskSet};
use shiftwork_policy::Event;

use super::Engine;
use shiftwork_machine::Timeline;

/// Time for which background work waits before it gets its reserve.
const WAIT_MAX: Span = Span::from_s(1);

/// The reserve of each CPU, and when it begins and ends.
pub(crate) struct Reserve {
    pub(crate) share: Share,
    /// The end of a background interval, or of the wait before one.
    timers: Timeline,
    in_background: Vec<bool>,
}

impl Reserve {
    pub(crate) fn new(set: &TaskSet, horizon: Instant) -> Self {
        Self {
            share: set.scheduler.reserve,
            timers: Timeline::new(set.platform.cpus, horizon),
            in_background: vec![false; set.platform.cpus],
        }
    }

    pub(crate) fn next(&self) -> Instant {
        self.timers.first()
    }

    pub(crate) fn is_in_background(&self, cpu: CpuId) -> bool {
        self.in_background[cpu.index()]
    }
}

impl<R: Recorder> Engine<'_, R> {
    /// Notes that a CPU became busy with real-time jobs, or idle. A switch between jobs is no break.
    #[inline(never)]
    pub(crate) fn note_busy(&mut self, now: Instant, cpu: CpuId, was_busy: bool, is_busy: bool) {
        let Some(reserve) = &mut self.reserve else {
            return;
        };
        if was_busy == is_busy || reserve.is_in_background(cpu) {
            return;
        }
        let at = if is_busy {
            now + WAIT_MAX
        } else {
            Instant::NEVER
        };
        reserve.timers.set(cpu.index(), at);
    }

    /// Begins and ends background intervals.
    pub(crate) fn switch_background(&mut self, now: Instant) {
        while let Some(reserve) = self
            .reserve
            .as_mut()
            .filter(|reserve| reserve.next() == now)
        {
            let cpu = CpuId::from_index(reserve.timers.first_place());
            let span = reserve.share.of(WAIT_MAX);
            if reserve.is_in_background(cpu) {
                reserve.in_background[cpu.index()] = false;
                reserve.timers.set(cpu.index(), Instant::NEVER);
                self.end_background(now, cpu);
            } else if span.is_zero() {
                reserve.timers.set(cpu.index(), now + WAIT_MAX);
            } else {
                reserve.in_background[cpu.index()] = true;
                reserve.timers.set(cpu.index(), now + span);
                self.record(now, RecordKind::BackgroundStarted { cpu });
                self.notify_policy(Event::CpuOffline(cpu), None);
            }
        }
    }

    fn end_background(&mut self, now: Instant, cpu: CpuId) {
        self.record(now, RecordKind::BackgroundEnded { cpu });
        if !self.actions.is_offline(cpu) {
            self.notify_policy(Event::CpuOnline(cpu), None);
        }
    }
}
