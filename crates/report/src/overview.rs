//! What a page says of a whole run, however long: response times, late jobs, and when CPUs changed their jobs.

use shiftwork_model::{Instant, JobId, RecordKind, Recorder, Span, TaskSet};
use shiftwork_trace::{JobRow, JobSink, Jobs, Records, Segment, Segments};

/// Computed in one pass over the records. Memory: a number for each job and for each stretch of execution.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    /// The instants at which stretches of execution begin, ascending.
    pub starts: Vec<Instant>,
    /// Time for which CPUs ran jobs, over all CPUs.
    pub busy: Span,
    /// The late jobs, by deadline and then by task.
    pub late: Vec<JobId>,
    /// Their deadlines.
    pub due: Vec<Instant>,
    /// The response times of each task.
    pub responses: Vec<Responses>,
}

/// The response times of one task in one run, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Responses {
    pub sorted_ns: Vec<u64>,
    /// Number of jobs that finished after their deadlines, which with jitter are earlier after some releases than after
    /// others.
    pub late: usize,
}

impl Overview {
    /// Of the records until `horizon`.
    pub fn of(set: &TaskSet, records: Records<'_>, horizon: Instant) -> Self {
        let cpus = set.platform.cpus;
        let sink = Sink {
            horizon,
            late: Vec::new(),
            responses: vec![Responses::default(); set.tasks.len()],
        };
        let mut jobs = Jobs::new(set, sink);
        let mut segments = Segments::new(cpus);
        let mut overview = Self::default();
        for record in records.iter().take_while(|record| record.at <= horizon) {
            jobs.record(record.at, &record.kind);
            if matches!(record.kind, RecordKind::Switched { .. }) {
                segments.record(record.at, &record.kind);
                segments.take_ended().for_each(|it| overview.add(&it));
            }
        }
        let last = segments.finish(horizon);
        last.iter().for_each(|it| overview.add(it));
        overview.starts.sort_unstable();
        let mut sink = jobs.finish(horizon);
        sink.late.sort_unstable();
        (overview.due, overview.late) = sink.late.into_iter().unzip();
        for task in &mut sink.responses {
            task.sorted_ns.sort_unstable();
        }
        Self {
            responses: sink.responses,
            ..overview
        }
    }

    fn add(&mut self, segment: &Segment) {
        self.starts.push(segment.from);
        self.busy += segment.to.late_since(segment.from);
    }

    /// How many of the late jobs, at most `most`, can be explained within about so many steps, the first by deadline; at
    /// least one. While such a job waits each switch of a CPU is a step for each CPU.
    pub fn explainable(&self, set: &TaskSet, most: usize, steps: u64) -> usize {
        let cost = |(due, job): (&Instant, &JobId)| {
            let window = set.tasks.get(job.task.index());
            let window = window.map_or(Span::ZERO, |task| task.deadline);
            let from = due.as_ns().saturating_sub(window.as_ns());
            let starts = self.starts_before(*due) - self.starts_before(Instant::from_ns(from));
            (2 * starts * set.platform.cpus) as u64
        };
        let mut costs = self.due.iter().zip(&self.late).take(most).map(cost);
        let first = costs.next();
        let mut left = steps.saturating_sub(first.unwrap_or(0));
        let others = costs.take_while(|cost| {
            let fits = *cost <= left;
            left = left.saturating_sub(*cost);
            fits
        });
        first.iter().count() + others.count()
    }

    /// Number of stretches of execution that begin before this instant.
    pub fn starts_before(&self, at: Instant) -> usize {
        self.starts.partition_point(|&start| start < at)
    }
}

impl Responses {
    /// Number of response times.
    pub const fn count(&self) -> usize {
        self.sorted_ns.len()
    }

    /// The longest.
    pub fn longest(&self) -> Option<u64> {
        self.sorted_ns.last().copied()
    }

    /// The percentile: the shortest that at least `percent` of all do not exceed; `None` if there are none.
    pub fn percentile(&self, percent: usize) -> Option<u64> {
        let rank = (self.sorted_ns.len() * percent).div_ceil(100);
        self.sorted_ns.get(rank.max(1) - 1).copied()
    }
}

struct Sink {
    horizon: Instant,
    late: Vec<(Instant, JobId)>,
    responses: Vec<Responses>,
}

impl JobSink for Sink {
    fn take(&mut self, row: &JobRow) {
        let is_late = match row.finish {
            Some(finish) => finish > row.deadline,
            None => row.deadline <= self.horizon,
        };
        if is_late {
            self.late.push((row.deadline, row.job));
        }
        if let Some(response) = row.response()
            && let Some(task) = self.responses.get_mut(row.job.task.index())
        {
            task.sorted_ns.push(response.as_ns());
            task.late += usize::from(is_late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_script;
    use shiftwork_model::{Affinity, CpuId, Record, Task, TaskId};
    use shiftwork_trace::explain::first_misses;

    #[test]
    fn percentiles_are_responses_that_occurred() {
        let run = Responses {
            sorted_ns: vec![1, 2, 3, 4],
            late: 0,
        };
        assert_eq!(
            [0, 50, 75, 76, 100].map(|percent| run.percentile(percent)),
            [Some(1), Some(2), Some(3), Some(4), Some(4)]
        );
        assert_eq!(Responses::default().percentile(50), None);
    }

    #[test]
    fn a_job_is_late_after_its_own_deadline() {
        let task = TaskId::from_index(0);
        let at = Instant::from_ns;
        // The second job is released 5 ns after its arrival, so that it is late after 6 ns.
        let jobs = [(0, 10, 10), (25, 31, 30)];
        let records = (1..).zip(jobs).flat_map(|(number, (release, end, due))| {
            let job = JobId { task, number };
            let deadline = at(due);
            let released = RecordKind::Released { job, deadline };
            [(release, released), (end, RecordKind::Completed { job })]
        });
        let records: Vec<Record> = records
            .map(|(ns, kind)| Record { at: at(ns), kind })
            .collect();
        let cpu = Affinity::pinned(CpuId::from_index(0));
        let task = Task::periodic("t", Span::from_ns(1), Span::from_ns(20), cpu);
        let set = TaskSet::new("s", 1, vec![task]);
        let run = Overview::of(&set, (&records).into(), at(40));
        let found = &run.responses[0];
        assert_eq!((found.sorted_ns.clone(), found.late), (vec![6, 10], 1));
    }

    #[test]
    fn late_jobs_are_those_that_are_explained_and_starts_those_of_the_segments() {
        let script = run_script::crowd(24, 4, 600);
        let horizon = Instant::from_ns(600_000_000);
        let records = Records::from(&script.records);
        let found = Overview::of(&script.set, records, horizon);
        let late = first_misses(&script.set, records, horizon, usize::MAX);
        assert!(!late.is_empty());
        assert_eq!(found.late, late);
        assert!(found.due.is_sorted());
        let explainable = |most, steps| found.explainable(&script.set, most, steps);
        assert_eq!(explainable(usize::MAX, u64::MAX), late.len());
        assert_eq!(explainable(3, u64::MAX), 3);
        assert_eq!(explainable(3, 0), 1);
        assert_eq!(explainable(0, u64::MAX), 0);
        assert!((2..late.len()).contains(&explainable(usize::MAX, 3_000)));
        let mut segments = Segments::new(4);
        for record in &script.records {
            segments.record(record.at, &record.kind);
        }
        let segments = segments.finish(horizon);
        let starts: Vec<Instant> = segments.iter().map(|segment| segment.from).collect();
        assert_eq!(found.starts, starts);
        let busy = segments.iter().map(|it| it.to.late_since(it.from));
        assert_eq!(found.busy, busy.fold(Span::ZERO, |sum, time| sum + time));
    }
}
