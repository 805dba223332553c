//! The first and the last lines: whether the criterion is met, what is known of the other one, and what would help.

use shiftwork_analysis::admission::Verdict;
use shiftwork_analysis::verdicts::{Answer, Criterion, PolicyAnalysis};
use shiftwork_model::TaskSet;
use shiftwork_report::at_most;
use shiftwork_verbs::analyze::{
    AsWritten, Change, Findings, Proposal, Releases, Remedies, Tardiness,
};

/// What the exit status says, for each policy that is asked about:
/// `all deadlines are met under weak-fp: no, by simulation; under strong-edf: yes, by reduction`.
pub fn answer(set: &TaskSet, findings: &Findings) -> String {
    let meaning = match findings.releases {
        Releases::Sporadic => meaning(findings.criterion).to_owned(),
        Releases::AsWritten => format!("as the file says, {}", meaning(findings.criterion)),
    };
    if findings.chosen.is_empty() {
        let known = yes_or_no(findings.known());
        let meet: Vec<&str> = findings
            .analysis
            .policies
            .iter()
            .filter(|found| findings.answer(findings.criterion, found) == Answer::Schedulable)
            .map(|found| found.policy.as_str())
            .collect();
        return match meet.is_empty() {
            true => format!("{meaning} under some policy: {known}"),
            false => format!(
                "{meaning} under some policy: {known}, under {}",
                meet.join(", ")
            ),
        };
    }
    let answers = findings.asked().map(|found| {
        let known = of_policy(findings, findings.criterion, found);
        let number = match findings.criterion {
            Criterion::Hard => None,
            Criterion::Soft => number(set, findings, found),
        };
        let number = number.map_or(String::new(), |number| format!(", {number}"));
        format!("under {}: {known}{number}", found.policy)
    });
    let answers: Vec<String> = answers.collect();
    format!("{meaning} {}", answers.join("; "))
}

/// `no, by simulation`, for the releases that are asked about.
fn of_policy(findings: &Findings, criterion: Criterion, found: &PolicyAnalysis) -> String {
    let as_written = findings.as_written(found);
    match (findings.releases, criterion, as_written) {
        (Releases::AsWritten, Criterion::Hard, Some(known)) => as_written_words(known),
        _ => {
            let (answer, by) = findings.answer_by(criterion, found);
            words(answer, by, found.refusal.is_some())
        }
    }
}

/// `no, by simulation`, for sporadic releases.
fn sporadic(criterion: Criterion, found: &PolicyAnalysis) -> String {
    let judgement = found.judgement(criterion);
    words(judgement.answer, &judgement.by, found.refusal.is_some())
}

fn words(answer: Answer, by: &[&str], is_refused: bool) -> String {
    let known = yes_or_no(answer);
    match (by, answer) {
        ([], Answer::Unknown) if is_refused => {
            format!("{known}, since it does not take the task set")
        }
        ([], Answer::Unknown) => format!("{known}, since no test decides"),
        ([], _) => known.to_owned(),
        (by, _) => format!("{known}, by {}", by.join(" and ")),
    }
}

/// `yes, by simulation of 0 to 420ms`, or `no, by simulation: task `a` misses its deadline at 9ms`.
fn as_written_words(known: &AsWritten) -> String {
    let by = known.by.join(" and ");
    let reason = known.reason.as_deref().unwrap_or_default();
    match (known.answer, known.until) {
        (Answer::Schedulable, Some(until)) => format!("yes, by {by} of 0 to {until}"),
        (Answer::Schedulable, None) => format!("yes, by {by}"),
        (Answer::Unschedulable, _) => format!("no, by {by}: {reason}"),
        (Answer::Unknown, _) => format!("unknown, since {reason}"),
    }
}

/// What is known of the releases that were not asked about: of those in the file where it is more than of sporadic ones,
/// or of sporadic ones. A line for all policies of which the same is known; of all policies where none is named.
pub fn other_releases(set: &TaskSet, findings: &Findings) -> Vec<String> {
    let is_asked = |found: &&PolicyAnalysis| {
        findings.chosen.is_empty() || findings.chosen.contains(&found.policy)
    };
    let about = findings.analysis.policies.iter().filter(is_asked);
    let known = about.filter_map(|found| match findings.releases {
        Releases::Sporadic => Some((found, more_as_written(set, findings, found)?)),
        Releases::AsWritten => Some((found, sporadic(findings.criterion, found)))
            .filter(|_| !findings.chosen.is_empty()),
    });
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (found, words) in known {
        match groups.iter_mut().find(|(other, _)| *other == words) {
            Some((_, names)) => names.push(&found.policy),
            None => groups.push((words, vec![&found.policy])),
        }
    }
    let (which, meaning) = match findings.releases {
        Releases::Sporadic if has_offsets(set) => (
            "as the file says (periodic, with these offsets)",
            meaning(Criterion::Hard),
        ),
        Releases::Sporadic => (
            "as the file says (periodic, released together)",
            meaning(Criterion::Hard),
        ),
        Releases::AsWritten => (
            "with any releases a period or more apart",
            meaning(findings.criterion),
        ),
    };
    let line = |(words, names): (String, Vec<&str>)| {
        format!("{which}: {meaning} under {}: {words}", names.join(", "))
    };
    groups.into_iter().map(line).collect()
}

/// What is known of the releases in the file, where that is more than of sporadic ones. Without offsets a
/// simulation that refutes sporadic tasks is of these releases, and is shown as such.
fn more_as_written(set: &TaskSet, findings: &Findings, found: &PolicyAnalysis) -> Option<String> {
    let known = findings.as_written(found)?;
    let sporadic = &found.hard;
    let words = as_written_words(known);
    match (known.answer, sporadic.answer) {
        (Answer::Unknown, _) | (_, Answer::Schedulable) => None,
        (Answer::Schedulable, other) => {
            Some(format!("{words}; other releases: {}", yes_or_no(other)))
        }
        (Answer::Unschedulable, _) if sporadic.by == known.by && !has_offsets(set) => None,
        (Answer::Unschedulable, _) => Some(words),
    }
}

fn has_offsets(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| !task.offset.is_zero())
}

/// What is known of the criterion that was not asked about, a line for each policy.
pub fn other(set: &TaskSet, findings: &Findings) -> Vec<String> {
    let asked = findings.asked().filter(|found| found.refusal.is_none());
    match findings.criterion {
        // A task set that meets all deadlines is never late.
        Criterion::Hard => asked
            .filter(|found| findings.answer(Criterion::Hard, found) != Answer::Schedulable)
            .map(|found| tardiness(set, findings, found))
            .collect(),
        Criterion::Soft => asked
            .map(|found| {
                let known = of_policy(findings, Criterion::Hard, found);
                format!(
                    "{} under {}: {known}",
                    meaning(Criterion::Hard),
                    found.policy
                )
            })
            .collect(),
    }
}

/// `tardiness is bounded under strong-edf: yes, by laminar, planner up to 3.667 ms late`.
fn tardiness(set: &TaskSet, findings: &Findings, found: &PolicyAnalysis) -> String {
    let number = number(set, findings, found).map_or(String::new(), |number| format!(", {number}"));
    format!(
        "{} under {}: {}{number}",
        meaning(Criterion::Soft),
        found.policy,
        of_policy(findings, Criterion::Soft, found)
    )
}

/// How late jobs may be; `None` where tardiness is not known to be bounded.
fn number(set: &TaskSet, findings: &Findings, found: &PolicyAnalysis) -> Option<String> {
    match findings.tardiness(set, found) {
        Tardiness::Bounded(Some((_, late))) if late.is_zero() => Some("no job late".to_owned()),
        Tardiness::Bounded(Some((place, late))) => {
            let name = &set.tasks[place].name;
            Some(format!("{name} up to {} late", at_most(late)))
        }
        Tardiness::Bounded(None) if !set.tasks.is_empty() => {
            Some("though no number is known".to_owned())
        }
        Tardiness::Bounded(None) | Tardiness::Unbounded | Tardiness::Unknown => None,
    }
}

/// What would make the answer yes; nothing if it is.
pub fn remedies(set: &TaskSet, findings: &Findings) -> Vec<String> {
    let Some(remedies) = &findings.remedies else {
        return Vec::new();
    };
    let would = match findings.criterion {
        Criterion::Hard => "all deadlines would be met",
        Criterion::Soft => "tardiness would be bounded",
    };
    if remedies.is_empty() {
        let meaning = meaning(findings.criterion);
        return vec![format!(
            "no policy, affinities{}, priorities or lower costs were found with which {meaning}",
            kept_free(set).map_or_else(String::new, |kept| format!(" ({kept})"))
        )];
    }
    let mut lines = substitutes(remedies, would);
    for change in &remedies.changes {
        lines.extend(changes(set, change, would));
    }
    lines
}

fn substitutes(remedies: &Remedies, would: &str) -> Vec<String> {
    let with = |is_refused: bool| {
        let of = remedies.policies.iter();
        let of = of.filter(|one| (one.admission == Verdict::Refused) == is_refused);
        let names: Vec<&str> = of.map(|one| one.policy.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let admitted = with(false).map(|names| format!("{would} under {names} (--policy)"));
    let refused = with(true)
        .map(|names| format!("{would} under {names} (--policy), where `run` needs --best-effort"));
    admitted.into_iter().chain(refused).collect()
}

/// More tasks are too long for a line.
const MOST: usize = 8;

fn changes(set: &TaskSet, change: &Change, would: &str) -> Vec<String> {
    let policy = &change.policy;
    let mut lines = Vec::new();
    if let Some(proposal) = &change.proposal {
        lines.push(format!(
            "{would} under {policy} with other affinities{}",
            affinities(set, proposal)
        ));
    }
    if let Some(order) = &change.priorities {
        let tasks = order.iter().map(|task| &set.tasks[task.index()]);
        let names: Vec<&str> = tasks.map(|task| task.name.as_str()).collect();
        let order = match names.len() {
            0..=MOST => format!(
                "the priorities {} (the most urgent first)",
                names.join(", ")
            ),
            many => format!("other priorities of {many} tasks (--json)"),
        };
        lines.push(format!("{would} under {policy} with {order}"));
    }
    if let Some(factor) = change.factor {
        let exact = factor.to_string();
        lines.push(format!(
            "{would} under {policy} with costs times {} ({exact}), as far as tests show (--scale)",
            factor.to_decimal()
        ));
    }
    lines
}

/// `: a on CPU 0, b on CPUs 1-2, with the reserve of 0.05 of each CPU kept free (--assign)`, only of those that change.
fn affinities(set: &TaskSet, proposal: &Proposal) -> String {
    let cpus = proposal.assignment.iter().flat_map(|found| &found.cpus);
    let changed = set
        .tasks
        .iter()
        .zip(cpus)
        .filter(|(task, cpus)| task.affinity.cpus() != *cpus);
    let shown: Vec<String> = changed
        .map(|(task, cpus)| match cpus.len() {
            1 => format!("{} on CPU {cpus}", task.name),
            _ => format!("{} on CPUs {cpus}", task.name),
        })
        .collect();
    let wider = match proposal.is_wider {
        true => ", some wider than the file's",
        false => "",
    };
    let reserve = beside_reserve(set);
    match shown.len() {
        0..=MOST => format!(": {}{wider}{reserve} (--assign)", shown.join(", ")),
        many => format!(" of {many} tasks{wider}{reserve} (--assign)"),
    }
}

/// What a proposal of affinities leaves to ordinary work, at the end of a sentence; nothing if that is nothing.
pub fn beside_reserve(set: &TaskSet) -> String {
    kept_free(set).map_or_else(String::new, |kept| format!(", {kept}"))
}

fn kept_free(set: &TaskSet) -> Option<String> {
    let reserve = set.scheduler.reserve;
    let is_any = reserve.billionths() > 0;
    is_any.then(|| format!("with the reserve of {reserve} of each CPU kept free"))
}

/// What a criterion asks.
pub const fn meaning(criterion: Criterion) -> &'static str {
    match criterion {
        Criterion::Hard => "all deadlines are met",
        Criterion::Soft => "tardiness is bounded",
    }
}

const fn yes_or_no(answer: Answer) -> &'static str {
    match answer {
        Answer::Schedulable => "yes",
        Answer::Unschedulable => "no",
        Answer::Unknown => "unknown",
    }
}
