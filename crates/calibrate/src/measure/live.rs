//! What our own live machines take: from an event to the job's running, part by part, and how much longer than
//! its work a job runs.
//!
//! Every slice is a live run of short jobs under one policy, in which some find their CPU idle,
//! some preempt others and some follow others. The parts are those that `run` measures (`Overheads`
//! of `shiftwork-live`). If a job is not interrupted, its execution time beyond its work is
//! `excess`. Both together are the difference between measured and simulated response times.

use shiftwork_live::probe::{monotonic_ns, usable_cpus};
use shiftwork_live::{
    Backend, Ended, Options, Report, host::System, host::obstacle_to_fifo, host::obstacles,
    run_while,
};
use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Record, RecordKind, Span, Task, TaskSet, Work,
};
use shiftwork_policy::registry::Entry;

use super::{Batch, Measurement, Slice};
use crate::plan::{Aim, Plan};
use crate::quantity::{Kind, Quantity};

/// So many tasks there are for each CPU.
pub(crate) const TASKS_PER_CPU: usize = 3;

/// No run is shorter, or it would mostly be beginning and end.
const SPAN_NS_MIN: u64 = 200_000_000;

pub(super) struct Live {
    aim: Aim,
    entry: &'static Entry,
    cpus: Vec<CpuId>,
}

impl Live {
    /// The machine that the plan aims at.
    ///
    /// # Errors
    /// What is in the way of it, and what to do about it.
    pub(super) fn new(plan: &Plan) -> Result<Self, String> {
        let system = System::this();
        let obstacle = match plan.aim {
            Aim::InKernel => None,
            Aim::Fifo(_) => obstacle_to_fifo(&system),
            Aim::Agent(_) => obstacles(&system).into_iter().next(),
        };
        if let Some(obstacle) = obstacle {
            return Err(obstacle.to_string());
        }
        let entry = plan.policies.first().ok_or("no policy is named")?;
        let cpus = stage(plan).ok_or(
            "an agent needs a CPU of its own, and jobs another; name two with --cpus, or take --machine in-kernel",
        )?;
        Ok(Self {
            aim: plan.aim,
            entry,
            cpus: cpus.iter().collect(),
        })
    }

    fn run(&self, slice: &Slice) -> Result<(Report, Vec<Record>, TaskSet), String> {
        let left_ns = slice.until_ns.saturating_sub(monotonic_ns());
        let set = task_set(self.cpus.len(), slice.round as u64);
        let policy = self.entry.build(&set).map_err(|error| error.to_string())?;
        let deciding = match self.aim {
            Aim::Agent(attention) => Backend::Agent(policy, attention),
            Aim::Fifo(attention) => Backend::Fifo(policy, attention),
            Aim::InKernel => return Err(String::from("nothing is live inside the kernel")),
        };
        let plan = shiftwork_live::Plan {
            set: &set,
            traits: self.entry.traits,
            bound: set.tasks.iter().map(|task| task.affinity).collect(),
            cpus: self.cpus.clone(),
        };
        let options = Options {
            horizon: Span::from_ns(left_ns.max(SPAN_NS_MIN)),
            seed: 1,
            reserve: set.scheduler.reserve,
            trace_bytes: Options::TRACE_BYTES,
            pin: None,
        };
        let mut records = Vec::with_capacity(1 << 16);
        // On a thread of its own: a live run moves its calling thread to other CPUs.
        let report = std::thread::scope(|scope| {
            let run = scope
                .spawn(|| run_while(&plan, &options, deciding, None, &mut records, &mut |_| true));
            run.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let report = report.map_err(|error| error.to_string())?;
        Ok((report, records, set))
    }
}

/// The CPUs on which jobs run: all of the plan's if an agent finds another one, else all but the lowest. `None`
/// if nothing is run, or nothing is left.
pub fn stage(plan: &Plan) -> Option<CpuSet> {
    if plan.aim == Aim::InKernel {
        return None;
    }
    let has_other = !(usable_cpus() - plan.cpus).is_empty();
    let lowest = plan.cpus.lowest()?;
    let stage = match has_other {
        true => plan.cpus,
        false => plan.cpus - CpuSet::single(lowest),
    };
    (!stage.is_empty()).then_some(stage)
}

impl Measurement for Live {
    fn name(&self) -> &'static str {
        "live runs"
    }

    fn share(&self) -> u64 {
        16
    }

    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String> {
        let (report, records, set) = self.run(slice)?;
        if let Ended::Unloaded { reason } = report.ended {
            return Err(format!("the run ended early: {reason}"));
        }
        if report.lost > 0 {
            // With gaps, jobs would look shorter or longer than they were; the next round is another run.
            return Ok(());
        }
        let overheads = report
            .overheads
            .ok_or("the machine reported no overheads")?;
        let of = |spans: &[Span]| {
            spans
                .iter()
                .map(|span| span.as_ns() as i64)
                .collect::<Vec<_>>()
        };
        for (kind, samples) in [
            (Kind::LiveReport, of(&overheads.report)),
            (Kind::LiveDecide, of(&overheads.decide)),
            (Kind::LiveKick, of(&overheads.kick)),
            (Kind::LiveSwitch, of(&overheads.switch)),
            (Kind::LiveExcess, excess(&set, &records)),
        ] {
            into.push((Quantity::of(kind), samples, 0));
        }
        Ok(())
    }
}

/// Short jobs that leave two thirds of each CPU idle. The last is interrupted now and then by the others.
/// Offsets change with the seed, so that not always the same jobs meet.
fn task_set(cpus: usize, seed: u64) -> TaskSet {
    let shapes = [(20, 1_000), (60, 2_300), (300, 4_100)];
    let mut tasks = Vec::new();
    for cpu in 0..cpus {
        for (index, (run_us, period_us)) in shapes.into_iter().enumerate() {
            let own = Affinity::new(CpuSet::first(cpus))
                .unwrap_or(Affinity::pinned(CpuId::from_index(0)));
            let mut task = Task::periodic(
                &format!("t{cpu}-{index}"),
                Span::from_us(5 * run_us / 2),
                Span::from_us(period_us),
                own,
            );
            task.work = Work::Constant(Span::from_us(run_us));
            task.offset = Span::from_us(
                (137 * (1 + seed) * (1 + index as u64) + 311 * cpu as u64) % period_us,
            );
            tasks.push(task);
        }
    }
    TaskSet::new("calibration", cpus, tasks)
}

/// A job that a CPU has begun to run.
#[derive(Clone, Copy)]
struct Begun {
    number: u64,
    at: Instant,
    /// When it stopped running last; it may have been finished then.
    stopped: Option<Instant>,
    is_interrupted: bool,
}

/// For each job that was not interrupted, by how much it ran longer than its work: from its start
/// on the CPU to its end.
fn excess(set: &TaskSet, records: &[Record]) -> Vec<i64> {
    let mut begun: Vec<Option<Begun>> = vec![None; set.tasks.len()];
    let mut found = Vec::new();
    for Record { at, kind } in records {
        match *kind {
            RecordKind::Switched { from, to, .. } => {
                let mut stopped = from.and_then(|job| begun[job.task.index()].as_mut());
                stopped
                    .iter_mut()
                    .for_each(|begun| begun.stopped = Some(*at));
                let Some(job) = to else { continue };
                match &mut begun[job.task.index()] {
                    Some(begun) if begun.number == job.number => begun.is_interrupted = true,
                    slot => {
                        *slot = Some(Begun {
                            number: job.number,
                            at: *at,
                            stopped: None,
                            is_interrupted: false,
                        });
                    }
                }
            }
            RecordKind::Completed { job } => {
                let Some(begun) = begun[job.task.index()].take() else {
                    continue;
                };
                let went_on = begun.stopped.is_none_or(|stopped| stopped == *at);
                let is_whole = begun.number == job.number && went_on && !begun.is_interrupted;
                if let (true, Some(ran), Work::Constant(work)) = (
                    is_whole,
                    at.since(begun.at),
                    &set.tasks[job.task.index()].work,
                ) {
                    found.push(ran.as_ns() as i64 - work.as_ns() as i64);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use shiftwork_model::{JobId, TaskId};

    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Span::from_us(us)
    }

    fn job(task: usize, number: u64) -> JobId {
        JobId {
            task: TaskId::from_index(task),
            number,
        }
    }

    fn switched(us: u64, from: Option<JobId>, to: Option<JobId>) -> Record {
        let cpu = CpuId::from_index(0);
        Record {
            at: at(us),
            kind: RecordKind::Switched { cpu, from, to },
        }
    }

    fn completed(us: u64, job: JobId) -> Record {
        Record {
            at: at(us),
            kind: RecordKind::Completed { job },
        }
    }

    #[test]
    fn excess_is_what_uninterrupted_jobs_run_beyond_their_work() {
        let set = task_set(1, 0);
        let (short, long) = (job(0, 1), job(2, 1));
        let records = [
            switched(0, None, Some(long)),
            switched(100, Some(long), Some(short)),
            completed(123, short),
            switched(123, Some(short), None),
            switched(130, None, Some(long)),
            completed(400, long),
            switched(400, Some(long), Some(job(0, 2))),
            switched(415, Some(job(0, 2)), None),
            completed(418, job(0, 2)),
            // A live CPU is seen to stop before it is known that the job is finished.
            switched(430, None, Some(job(1, 1))),
            switched(491, Some(job(1, 1)), None),
            completed(491, job(1, 1)),
            switched(500, None, Some(job(0, 3))),
            completed(518, job(0, 3)),
            switched(518, Some(job(0, 3)), None),
        ];
        // The long one and the second short one were interrupted; the last took less than its work.
        assert_eq!(excess(&set, &records), [3_000, 1_000, -2_000]);
    }

    #[test]
    fn the_jobs_leave_room() {
        for cpus in 1..=4 {
            let set = task_set(cpus, 7);
            assert_eq!(set.tasks.len(), TASKS_PER_CPU * cpus);
            let load: f64 = set
                .tasks
                .iter()
                .map(|task| task.utilization().as_f64())
                .sum();
            assert!(load < 0.4 * cpus as f64, "{load}");
        }
    }
}
