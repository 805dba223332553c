//! The schedule of a run as segments.

use shiftwork_model::{CpuId, Instant, JobId, RecordKind, Recorder};

use crate::running::Running;

/// An interval in which a CPU ran a job. Never of length zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The job.
    pub job: JobId,
    /// The CPU.
    pub cpu: CpuId,
    /// Start of the interval.
    pub from: Instant,
    /// End of the interval; at most the horizon.
    pub to: Instant,
}

/// Keeps the schedule of a run. States are compared between whole instants, as by
/// [`Counters`](crate::Counters): of several switches of a CPU at one instant only the last counts.
///
/// Memory grows with the number of segments.
#[derive(Clone, Debug)]
pub struct Segments {
    now: Instant,
    running: Running,
    /// Start of each CPU's current job.
    since: Vec<Instant>,
    done: Vec<Segment>,
}

impl Recorder for Segments {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.advance(at);
        if let RecordKind::Switched { cpu, to, .. } = *kind {
            self.running.switch(cpu, to);
        }
    }
}

impl Segments {
    /// For a run on `cpus` CPUs.
    pub fn new(cpus: usize) -> Self {
        Self {
            now: Instant::ZERO,
            running: Running::new(cpus),
            since: vec![Instant::ZERO; cpus],
            done: Vec::new(),
        }
    }

    /// Whether all switches so far count: none was at the current instant.
    pub fn is_settled(&self) -> bool {
        self.running.is_settled()
    }

    /// Passes to a later instant without a record, so that segments end that ended at the instant before.
    pub fn advance(&mut self, to: Instant) {
        if to != self.now {
            self.settle();
            self.now = to;
        }
    }

    /// Takes the segments that have ended since the last call, in the order of their ends.
    pub fn take_ended(&mut self) -> impl Iterator<Item = Segment> + '_ {
        self.done.drain(..)
    }

    /// Ends the run at `horizon`, after which there is no record. Returns the segments that were not taken,
    /// by start, then by CPU.
    pub fn finish(mut self, horizon: Instant) -> Vec<Segment> {
        if self.now < horizon {
            self.settle();
        }
        for cpu in (0..self.since.len()).map(CpuId::from_index) {
            if let Some(job) = self.running.before(cpu) {
                self.close(cpu, job, horizon);
            }
        }
        self.done
            .sort_unstable_by_key(|segment| (segment.from, segment.cpu));
        self.done
    }

    /// Ends the instant: its changes end some segments and begin others.
    fn settle(&mut self) {
        if self.running.is_settled() {
            return;
        }
        let changes: Vec<_> = self.running.changes().collect();
        for change in changes {
            if let Some(job) = change.before {
                self.close(change.cpu, job, self.now);
            }
            self.since[change.cpu.index()] = self.now;
        }
        self.running.settle();
    }

    fn close(&mut self, cpu: CpuId, job: JobId, to: Instant) {
        let from = self.since[cpu.index()];
        self.done.push(Segment { job, cpu, from, to });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Script, at};

    fn segments(script: &Script, horizon: u64) -> Vec<(usize, (usize, u64), u64, u64)> {
        let mut segments = Segments::new(2);
        script.play(&mut segments);
        let found = segments.finish(at(horizon)).into_iter();
        let plain = found.map(|segment| {
            let JobId { task, number } = segment.job;
            let (from, to) = (segment.from.as_ns(), segment.to.as_ns());
            (segment.cpu.index(), (task.index(), number), from, to)
        });
        plain.collect()
    }

    #[test]
    fn segments_are_bounded_by_the_last_switches_of_instants() {
        let script = Script::default()
            .at(0)
            .switch(0, Some((0, 1)))
            .switch(0, Some((1, 1)))
            .switch(1, Some((0, 1)))
            .at(4)
            .switch(0, None)
            .switch(0, Some((1, 1)))
            .at(7)
            .switch(1, None)
            .switch(0, Some((0, 1)))
            .at(9)
            .switch(0, Some((0, 2)));
        let expected = [
            (0, (1, 1), 0, 7),
            (1, (0, 1), 0, 7),
            (0, (0, 1), 7, 9),
            (0, (0, 2), 9, 12),
        ];
        assert_eq!(segments(&script, 12), expected);
    }

    #[test]
    fn switches_at_the_horizon_begin_no_segment() {
        let script = Script::default()
            .at(3)
            .switch(0, Some((0, 1)))
            .at(5)
            .switch(0, Some((1, 1)))
            .switch(1, Some((0, 1)));
        assert_eq!(segments(&script, 5), [(0, (0, 1), 3, 5)]);
    }
}
