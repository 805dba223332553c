//! The sentences about misses, as plain text.

use shiftwork_model::{CpuSet, JobId, Span, TaskId, TaskSet};
use shiftwork_trace::explain::{Culprit, End, ShiftChain};

use super::{Loss, LossKind, Miss, REMEDIES};
use crate::units::{self, Script};

/// The cause: its name and a sentence.
pub(crate) fn verdict(miss: &Miss, names: Names<'_>) -> Option<(String, String)> {
    let explanation = miss.explanation.as_ref()?;
    let names: Vec<&str> = names.all().collect();
    Some((
        explanation.cause_name(&names),
        explanation.verdict(&names, &time),
    ))
}

/// Names of tasks and jobs.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a>(pub &'a TaskSet);

impl<'a> Names<'a> {
    /// The names of all tasks, by their index.
    fn all(self) -> impl Iterator<Item = &'a str> {
        self.0.tasks.iter().map(|task| task.name.as_str())
    }

    pub fn task(self, task: TaskId) -> String {
        match self.0.tasks.get(task.index()) {
            Some(task) => task.name.clone(),
            None => format!("task {}", task.index()),
        }
    }

    pub fn job(self, job: JobId) -> String {
        format!("{} #{}", self.task(job.task), job.number)
    }
}

fn time(span: Span) -> String {
    units::span(span.as_ns(), Script::Unicode)
}

/// The miss in a line: the tardiness, and whether the job finished.
pub(crate) fn miss_line(miss: &Miss) -> String {
    let late = time(miss.late.tardiness());
    match miss.late.end {
        End::Finished => format!("finished {late} late"),
        End::Dropped if miss.late.until <= miss.late.deadline => {
            "dropped when its task left, and never finished".into()
        }
        End::Dropped => format!("dropped when its task left, {late} after its deadline"),
        End::Unfinished if miss.late.tardiness().is_zero() => {
            "unfinished at its deadline, where the run ends".into()
        }
        End::Unfinished => format!("unfinished at the end of the run, {late} after its deadline"),
    }
}

/// The kind in a few words, as a heading.
pub(crate) fn label(kind: LossKind) -> &'static str {
    match kind {
        LossKind::LatePredecessor => "predecessor late",
        LossKind::Overrun => "overran its cost",
        LossKind::Overheads => "overheads",
        LossKind::TaskLeft => "its task left",
        LossKind::Suspended => "suspended itself",
        LossKind::Throttled => "throttled",
        LossKind::Blocked => "waited for mutexes",
        LossKind::TooLong => "cost exceeds deadline",
        LossKind::MoreUrgent => "more urgent work",
        LossKind::OtherOverrun => "overrun of more urgent work",
        LossKind::OtherWork => "other work",
        LossKind::Stalled => "scheduler stall",
        LossKind::HeldBack => "the policy's rule",
        LossKind::CpuAway => "CPU not available",
    }
}

/// The loss as a sentence.
pub(crate) fn sentence(miss: &Miss, loss: Loss, names: Names<'_>) -> String {
    let span = time(loss.time);
    match loss.kind {
        LossKind::LatePredecessor => {
            let before = JobId {
                number: miss.late.job.number.saturating_sub(1),
                ..miss.late.job
            };
            let since = miss.late_since.filter(|&first| first != before);
            let since = since.map_or(String::new(), |first| {
                format!("; every job since #{} was late", first.number)
            });
            format!(
                "It started late: {} was still unfinished for {span}{since}.",
                names.job(before)
            )
        }
        LossKind::Overrun => format!("It overran: it executed {span} more than its declared cost."),
        LossKind::Overheads => {
            format!("Overheads took {span} of the time that it had a CPU.")
        }
        LossKind::TaskLeft => {
            format!("Its task left {span} before the deadline and took the unfinished job with it.")
        }
        LossKind::Suspended => format!("It suspended itself for {span}."),
        LossKind::Throttled => format!("It was throttled for {span}: its budget was spent."),
        LossKind::Blocked => format!("It waited {span} for mutexes that other tasks held."),
        LossKind::TooLong => {
            format!("Its execution alone is {span} longer than its relative deadline.")
        }
        LossKind::MoreUrgent => {
            format!("It waited {span} while more urgent jobs had every CPU it may use.")
        }
        LossKind::OtherOverrun => format!(
            "It waited {span} while more urgent jobs had every CPU it may use, one of them beyond its declared cost."
        ),
        LossKind::OtherWork => {
            format!("It waited {span} while other jobs had every CPU it may use.")
        }
        LossKind::Stalled => format!(
            "It waited {span} although a CPU it may use was idle or ran a less urgent job: a decision was missing, \
             or not carried out."
        ),
        LossKind::HeldBack => format!(
            "It waited {span} although a CPU it may use was idle or ran a less urgent job; the rules of the policy \
             do not exclude that."
        ),
        LossKind::CpuAway => {
            format!(
                "It waited {span} while a CPU it may use was offline, taken by others or had background work."
            )
        }
    }
}

/// The mutexes for which it waited, each as a sentence.
pub(crate) fn mutex_lines(miss: &Miss, names: Names<'_>) -> Vec<String> {
    let names: Vec<&str> = names.all().collect();
    let waits = miss.late.mutexes.iter();
    waits.map(|wait| wait.sentence(&names, &time)).collect()
}

/// The remedies, each as a sentence.
pub(crate) fn remedy_lines(miss: &Miss, names: Names<'_>) -> Vec<String> {
    let line = |culprit| {
        let &(span, cpus) = miss.late.delays.get(&culprit)?;
        let span = time(span);
        match culprit {
            Culprit::NoShift => Some(shift_line(miss.late.chain.as_ref()?, &span, names)),
            Culprit::NarrowPacking => Some(wider_line(&cpus, &span, "partition")),
            _ => Some(wider_line(&cpus, &span, "affinity")),
        }
    };
    REMEDIES.into_iter().filter_map(line).collect()
}

fn wider_line(cpus: &CpuSet, span: &str, bound: &str) -> String {
    let which = if cpus.len() == 1 {
        "CPU"
    } else {
        "one of CPUs"
    };
    format!(
        "For {span} of its wait, {which} {cpus} was idle or ran less urgent work: its {bound} is too narrow to use it."
    )
}

fn shift_line(chain: &ShiftChain, span: &str, names: Names<'_>) -> String {
    let vacant = chain.displaced.map_or(String::from("idle"), |job| {
        format!("running the less urgent {}", names.job(job))
    });
    let mut moves = String::new();
    for (index, step) in chain.moves.iter().enumerate() {
        let (job, from, to) = (names.job(step.job), step.from, step.to);
        match index {
            0 => moves += &format!("{job} from CPU {from} to CPU {to} (then {vacant})"),
            _ => moves += &format!(", and {job} from CPU {from} to CPU {to}"),
        }
    }
    format!("For {span} of its wait, a shift would have made room: moving {moves}.")
}

/// The addition to the sentence of a loss that explains the whole tardiness.
pub(crate) fn alone(miss: &Miss, span: Span) -> &'static str {
    if miss.explained_by(span) {
        "alone enough to miss"
    } else {
        ""
    }
}
