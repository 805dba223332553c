//! The decisions as sentences.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use shiftwork_model::{CpuId, CpuSet, Instant, Share, Span, TaskId, TaskSet};

use super::{Claim, Guarantee, Terms};
use crate::Witness;
use crate::exact::{Decimal as _, Demand, Supplied, beside, side_by_side, whole};
use crate::names::{list, quoted};
use crate::stand_ins::has_jitter;
use crate::suspensions::suspends;

/// Why some tasks get less than a hard guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// EDF on this CPU may miss deadlines before the end of the period.
    Overfull(CpuId),
    /// No test shows that this task is in time.
    NotShown(TaskId),
    /// The test on these CPUs was given up.
    StepLimit(CpuSet),
    /// Weak scheduling of affinities that differ.
    Weak,
    /// The task may use neither one CPU nor all.
    NeitherOneNorAll(TaskId),
    /// The task's deadline is beyond its period.
    LongDeadline(TaskId),
    /// In windows that end by the deadlines there are too few quanta; for these tasks alone, if any.
    Quanta(Vec<TaskId>),
    /// These tasks fit by utilization and not by density.
    Dense(Vec<TaskId>),
}

/// Names by task, made when a sentence is.
struct Names<'a>(BTreeMap<TaskId, &'a str>);

impl<'a> Names<'a> {
    fn new(claims: &[&'a Claim]) -> Self {
        let name = |claim: &&'a Claim| (claim.task, claim.name.as_str());
        Self(claims.iter().map(name).collect())
    }

    fn of(&self, task: TaskId) -> String {
        quoted(task, self.0.get(&task).copied())
    }

    /// See [`list`].
    fn list(&self, tasks: &[TaskId]) -> String {
        list(tasks, |task| self.of(task))
    }
}

/// Where jobs have to wait: where that is, and what counts for it.
pub(super) fn waiting(set: &TaskSet) -> (&'static str, &'static str) {
    if set.first_locking().is_some() {
        return (
            "where tasks lock such mutexes",
            "blocking by mutexes counts as computing",
        );
    }
    match (has_jitter(set), suspends(set)) {
        (false, _) => (
            "where tasks suspend themselves within jobs",
            "suspensions within jobs count as computing",
        ),
        (true, false) => ("where tasks have jitter", "jitter is counted"),
        (true, true) => (
            "where tasks have jitter or suspend themselves within jobs",
            "jitter is counted, and suspensions within jobs as computing",
        ),
    }
}

/// `CPU 3` or `CPUs 0-3`.
fn cpus(set: &CpuSet) -> String {
    match set.len() {
        1 => format!("CPU {set}"),
        _ => format!("CPUs {set}"),
    }
}

/// How a supply below 1 came about: ` (2 less a reserve of 0.05 each)`.
fn reserved(count: usize, reserve: Share) -> String {
    match (reserve.billionths(), count) {
        (0, _) => String::new(),
        (_, 1) => format!(" (1 less the reserve of {reserve})"),
        _ => format!(" ({count} less the reserve of {reserve} of each)"),
    }
}

/// Why the demand does not fit, and what would help.
pub(super) fn crowded(witness: &Witness, claims: &[&Claim], terms: Terms) -> String {
    let names = Names::new(claims);
    match witness {
        Witness::NoTask { task } => format!(
            "task {} has a cost, period or deadline of zero; all must be above zero",
            names.of(*task)
        ),
        Witness::Alone { task, needed } => format!(
            "task {} needs {} CPUs, and a job runs on one CPU at a time; lower its cost to its \
             period or less",
            names.of(*task),
            side_by_side(&Demand::of(*needed), &Supplied(1, whole())).0
        ),
        Witness::TooLong {
            task,
            least,
            deadline,
        } => format!(
            "a job of task {} may take {least} from its arrival even if nothing else executes, and is due after {deadline}; \
             lower its cost, its jitter or its suspensions, or lengthen its deadline",
            names.of(*task)
        ),
        Witness::Nowhere { task } => format!(
            "no CPU that task {} may use is online; widen its affinity",
            names.of(*task)
        ),
        Witness::Crowd {
            tasks,
            cpus: where_,
            needed,
            supply,
        } => {
            let supplied = Supplied(where_.len(), *supply);
            let (needed, available) = side_by_side(needed, &supplied);
            let need = if tasks.len() == 1 { "needs" } else { "need" };
            let remedy = match terms.reserve.billionths() {
                0 => "lower a cost or widen an affinity",
                _ => "lower a cost, widen an affinity or lower the reserve",
            };
            format!(
                "{} may run only on {} and {need} {needed} CPUs there, of which there are \
                 {available}{}; {remedy}",
                names.list(tasks),
                cpus(where_),
                reserved(where_.len(), terms.reserve),
            )
        }
        Witness::Interval {
            cpu,
            length,
            demand,
        } => format!(
            "on CPU {cpu} jobs that need {demand} may all be released and due within {length}{}; \
             lower a cost, lengthen a deadline or use another CPU",
            beside_reserve(terms.reserve)
        ),
        Witness::Blocked {
            task,
            cpu,
            length,
            demand,
        } => format!(
            "on CPU {cpu} jobs that need {demand} may all be released and due within {length}{}, just after a job \
             of task {} has begun; lower a cost, lengthen a deadline or use another CPU",
            beside_reserve(terms.reserve),
            names.of(*task)
        ),
        Witness::Late {
            task,
            cpu,
            response,
            deadline,
        } => format!(
            "task {} may take {response} on CPU {cpu} and is due after {deadline}{}; lower a cost, \
             make it more urgent or use another CPU",
            names.of(*task),
            beside_reserve(terms.reserve)
        ),
    }
}

fn beside_reserve(reserve: Share) -> String {
    match reserve.billionths() {
        0 => String::new(),
        _ => format!(" (with a reserve of {reserve})"),
    }
}

/// What is shown of a demand that fits: what is promised, on which conditions, and why it is not more; or, where
/// nothing is promised to some tasks, that and why.
pub(super) fn graded(
    tasks: &[(TaskId, Guarantee)],
    notes: &[(Guarantee, Note)],
    claims: &[&Claim],
    online: &CpuSet,
    terms: Terms,
) -> String {
    let names = Names::new(claims);
    let with = |wanted: Guarantee| -> Vec<TaskId> {
        let wanted = tasks.iter().filter(|&&(_, guarantee)| guarantee == wanted);
        wanted.map(|&(task, _)| task).collect()
    };
    let promise = |(guarantee, promise): (Guarantee, &str)| {
        let which = with(guarantee);
        match which.len() {
            0 => None,
            all if all == tasks.len() => Some(promise.to_owned()),
            _ => Some(format!("{promise} for {}", names.list(&which))),
        }
    };
    let promises = [
        (Guarantee::Hard, "all deadlines are met"),
        (Guarantee::BoundedTardiness, "tardiness is bounded"),
        (Guarantee::Share, "the utilization is provided"),
    ];
    let promises: Vec<String> = promises.into_iter().filter_map(promise).collect();
    let (promises, load) = (promises.join(", "), load(claims, online, terms.reserve));
    match promise((Guarantee::None, NOTHING)) {
        // What is shown of the other tasks does not help a set that is refused, so it comes last.
        Some(nothing) => {
            let notes = notes.iter().filter(|(shown, _)| *shown == Guarantee::None);
            let why = reasons(notes, &names).join("; ");
            sentence([nothing + ": " + &why, promises, load])
        }
        None => {
            let why = reasons(notes.iter(), &names);
            let conditions = conditions(tasks, claims, online, terms, &names);
            sentence([promises, load].into_iter().chain(why).chain(conditions))
        }
    }
}

/// How a refusal begins where the demand fits, or where nothing is known of the policy.
pub(super) const NOTHING: &str = "nothing is guaranteed";

/// The parts that are not empty, with semicolons between them.
fn sentence(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

/// The notes in words, of many the first three.
fn reasons<'a>(
    notes: impl Iterator<Item = &'a (Guarantee, Note)>,
    names: &Names<'_>,
) -> Vec<String> {
    let mut reasons: Vec<String> = notes.map(|(_, note)| because(note, names)).collect();
    if reasons.len() > 3 {
        let more = reasons.len() - 3;
        reasons.truncate(3);
        reasons.push(format!("and {more} more such"));
    }
    reasons
}

/// `2.83 of 2.85 CPUs are used`.
fn load(claims: &[&Claim], online: &CpuSet, reserve: Share) -> String {
    let mut demand = Demand::default();
    for rate in claims.iter().filter_map(|claim| claim.utilization()) {
        demand.add(rate);
    }
    format!(
        "{} of {} CPUs are used",
        demand.to_decimal(2),
        Supplied(online.len(), beside(reserve)).to_decimal(2)
    )
}

fn because(note: &Note, names: &Names<'_>) -> String {
    match note {
        Note::Overfull(cpu) => {
            format!("on CPU {cpu} deadlines before the end of a period may be missed")
        }
        Note::NotShown(task) => {
            format!(
                "no test shows that task {} meets its deadlines",
                names.of(*task)
            )
        }
        Note::StepLimit(set) => format!("the test for {} took too many steps", cpus(set)),
        Note::Weak => "without shifts a task may wait although moving others would make room; a \
                       `strong` policy moves them"
            .to_owned(),
        Note::NeitherOneNorAll(task) => format!(
            "nothing is known of tasks that may use neither one CPU nor all, as task {}",
            names.of(*task)
        ),
        Note::LongDeadline(task) => format!(
            "with affinities that differ nothing is known of deadlines beyond the period, as of \
             task {}",
            names.of(*task)
        ),
        Note::Quanta(tasks) => {
            let affected = match tasks.is_empty() {
                true => "all tasks".to_owned(),
                false => names.list(tasks),
            };
            format!(
                "what releases within quanta and quanta that end later on some CPUs take from deadlines \
                 leaves too few quanta for {affected}"
            )
        }
        Note::Dense(tasks) => format!(
            "by their deadlines, which are before the end of the period, {} need more than there is",
            names.list(tasks)
        ),
    }
}

/// What the promises assume of the reserve, in sentences.
fn conditions(
    tasks: &[(TaskId, Guarantee)],
    claims: &[&Claim],
    online: &CpuSet,
    terms: Terms,
    names: &Names<'_>,
) -> Vec<String> {
    let mut found = Vec::new();
    if terms.reserve.billionths() == 0 {
        return found;
    }
    if tasks
        .iter()
        .any(|&(_, guarantee)| guarantee == Guarantee::Hard)
    {
        found.push("deadlines assume that the reserve is taken in small pieces".to_owned());
    }
    let supply = beside(terms.reserve);
    let greedy = |claim: &&&Claim| {
        let single = (claim.cpus & *online).len() == 1;
        !single && claim.utilization().is_some_and(|rate| rate.exceeds(supply))
    };
    let greedy: Vec<TaskId> = claims
        .iter()
        .filter(greedy)
        .map(|claim| claim.task)
        .collect();
    if !greedy.is_empty() {
        found.push(format!(
            "{} may fall behind while the reserve is taken of all their CPUs at once",
            names.list(&greedy)
        ));
    }
    found
}

/// What would be let in instead of the claim, as the end of a sentence. At least one of both is known.
pub(super) fn advice(claim: &Claim, cost: Option<Span>, wider: Option<&CpuSet>) -> String {
    let mut ways = Vec::new();
    ways.extend(cost.map(|cost| format!("with a cost of up to {cost}")));
    ways.extend(wider.map(|wider| format!("on {}", cpus(wider))));
    format!(
        "; task `{}` would be let in {}",
        claim.name,
        ways.join(" or ")
    )
}

/// The lingering claims, as the end of a sentence.
pub(super) fn lingering(former: &[(&Claim, Instant)]) -> String {
    let mut text = String::new();
    for (claim, until) in former.iter().take(3) {
        // A write to a string cannot fail.
        let _ = write!(
            text,
            "; what task `{}` had before counts at least until {until}",
            claim.name
        );
    }
    if former.len() > 3 {
        let _ = write!(text, "; and {} more such", former.len() - 3);
    }
    text
}

/// Where the policy's own choice of CPUs, not the demand, is why it is refused.
pub(super) fn fits_unbound(terms: Terms) -> &'static str {
    match terms.is_edf() {
        true => {
            "; the tasks do fit their affinities, only not bound like this: `strong-edf` admits \
             them, with other guarantees"
        }
        false => {
            "; the tasks do fit their affinities, only not bound like this: a `strong` policy has \
             room for them"
        }
    }
}
