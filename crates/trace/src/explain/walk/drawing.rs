//! Timelines of late jobs: what the CPUs of their affinities do.

use shiftwork_model::{CpuSet, Instant};

use super::Walk;
use crate::explain::timeline::{Occupant, Slice};

impl Walk<'_> {
    /// Draws the timelines of the task's jobs that are to be explained.
    pub(super) fn draw(&mut self, index: usize, to: Instant) {
        let all = CpuSet::first(self.state.cpus());
        let from = self.state.now();
        let mut explained = std::mem::take(&mut self.histories[index].followed.explained);
        for timeline in explained.values_mut().flatten() {
            for cpu in (self.state.tasks[index].affinity & all).iter() {
                let occupant = self.occupant(cpu);
                let is_job = matches!(occupant, Occupant::Job(_));
                timeline.add(Slice {
                    cpu,
                    from,
                    to,
                    occupant,
                    shifted_from: self.shifted[cpu.index()].filter(|_| is_job),
                });
            }
        }
        self.histories[index].followed.explained = explained;
    }
}
