//! The first and the last lines: whether the criterion is met, what is known of the other one, and what would help.

use shiftwork_analysis::admission::Verdict;
use shiftwork_analysis::verdicts::{Answer, Criterion, PolicyAnalysis};
use shiftwork_model::TaskSet;
use shiftwork_report::at_most;
use shiftwork_verbs::analyze::{Change, Findings, Proposal, Remedies, Tardiness};

/// What the exit status says, for each policy that is asked about:
/// `all deadlines are met under weak-fp: no, by simulation; under strong-edf: yes, by reduction`.
pub fn answer(set: &TaskSet, findings: &Findings) -> String {
    let meaning = meaning(findings.criterion);
    if findings.chosen.is_empty() {
        let known = yes_or_no(findings.known());
        let meet: Vec<&str> = findings
            .analysis
            .policies
            .iter()
            .filter(|found| findings.judgement(found).answer == Answer::Schedulable)
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
        let known = of_policy(findings.criterion, found);
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

/// `no, by simulation`.
fn of_policy(criterion: Criterion, found: &PolicyAnalysis) -> String {
    let judgement = found.judgement(criterion);
    let known = yes_or_no(judgement.answer);
    match (judgement.by.as_slice(), judgement.answer) {
        ([], Answer::Unknown) if found.refusal.is_some() => {
            format!("{known}, since it does not take the task set")
        }
        ([], Answer::Unknown) => format!("{known}, since no test decides"),
        ([], _) => known.to_owned(),
        (by, _) => format!("{known}, by {}", by.join(" and ")),
    }
}

/// What is known of the criterion that was not asked about, a line for each policy.
pub fn other(set: &TaskSet, findings: &Findings) -> Vec<String> {
    let asked = findings.asked().filter(|found| found.refusal.is_none());
    match findings.criterion {
        // A task set that meets all deadlines is never late.
        Criterion::Hard => asked
            .filter(|found| found.hard.answer != Answer::Schedulable)
            .map(|found| tardiness(set, findings, found))
            .collect(),
        Criterion::Soft => asked
            .map(|found| {
                let known = of_policy(Criterion::Hard, found);
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
        of_policy(Criterion::Soft, found)
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
            "no policy, affinities or lower costs were found with which {meaning}"
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

fn changes(set: &TaskSet, change: &Change, would: &str) -> Vec<String> {
    let policy = &change.policy;
    let mut lines = Vec::new();
    if let Some(proposal) = &change.proposal {
        lines.push(format!(
            "{would} under {policy} with other affinities{}",
            affinities(set, proposal)
        ));
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

/// `: a on CPU 0, b on CPUs 1-2 (--assign)`, only of those that change.
fn affinities(set: &TaskSet, proposal: &Proposal) -> String {
    /// More are too long for a line.
    const MOST: usize = 8;
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
    match shown.len() {
        0..=MOST => format!(": {}{wider} (--assign)", shown.join(", ")),
        many => format!(" of {many} tasks{wider} (--assign)"),
    }
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
