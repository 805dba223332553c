//! The text of `analyze`.

use shiftwork_analysis::admission::Guarantee;
use shiftwork_analysis::affinity::{AffinityLoss, Feasible};
use shiftwork_analysis::stand_ins::waits;
use shiftwork_analysis::verdicts::{
    Answer, Criterion, Factor, Found, Judgement, Names, PolicyAnalysis, decimal, fraction, witness,
};
use shiftwork_model::{Span, TaskSet};
use shiftwork_report::{Bound, at_most};
use shiftwork_verbs::analyze::{Findings, Proposal, Scale};
use shiftwork_verbs::why_nothing_is_guaranteed;

use super::{conclusion, remarks};
use crate::failure::Failure;
use crate::output::{Console, columns, plural, wrapped};
use crate::table::WIDTH;

/// Everything: the answer, from the whole to the single task, and the answer again with what would make it yes.
pub fn show(set: &TaskSet, findings: &Findings, console: &mut Console) -> Result<(), Failure> {
    let answer = conclusion::answer(set, findings);
    console.line(&answer)?;
    console.line(title(set, findings))?;
    console.line(feasible(set, findings))?;
    console.line(findings.admission.to_string())?;
    if !findings.admission.is_admitted() {
        console.line("`run` refuses it; `run --best-effort` runs it without any guarantee")?;
    }
    console.line("")?;
    console.text(&table(findings))?;
    for line in remarks(set, findings) {
        console.line(line)?;
    }
    for line in remarks::unit(set)
        .into_iter()
        .chain(remarks::overheads(set, findings))
    {
        console.line(line)?;
    }
    if !set.chains.is_empty() {
        console.line("")?;
        console.text(&chains(set, findings))?;
    }
    for found in findings.asked() {
        console.line("")?;
        tests(set, found, console)?;
    }
    if let Some(scales) = &findings.scales {
        console.line("")?;
        console.text(&scaled(scales, findings.overheads.is_some()))?;
    }
    if let Some(proposal) = &findings.proposal {
        console.line("")?;
        console.text(&proposed(set, proposal))?;
    }
    for line in findings.loss.iter().flat_map(|loss| lost(set, loss)) {
        console.line(format!("# {line}"))?;
    }
    console.line("")?;
    for line in conclusion::other(set, findings) {
        console.line(line)?;
    }
    for line in conclusion::other_releases(set, findings) {
        console.line(line)?;
    }
    for line in conclusion::remedies(set, findings) {
        console.line(line)?;
    }
    console.line(answer)
}

/// `rover: 3 CPUs, 6 tasks, utilization 5/3 (1.66), arbitrary affinities`.
fn title(set: &TaskSet, findings: &Findings) -> String {
    let name = match set.name.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    };
    let utilization = &findings.analysis.utilization;
    let rounded = decimal(utilization, 3);
    let utilization = match fraction(utilization) {
        Some(fraction) => format!("{fraction} ({rounded})"),
        None => rounded,
    };
    format!(
        "{name}{}, {}, utilization {utilization}, {} affinities",
        plural(set.platform.cpus, "CPU"),
        plural(set.tasks.len(), "task"),
        set.affinity_kind()
    )
}

fn feasible(set: &TaskSet, findings: &Findings) -> String {
    let feasibility = &findings.analysis.feasibility;
    let by = feasibility.by;
    match (feasibility.verdict, &feasibility.witness) {
        (Feasible::Yes, _) => format!("feasible: yes, by {by}: some scheduler meets all deadlines"),
        (Feasible::No, Some(proof)) => {
            format!("feasible: no, by {by}: {}", witness(proof, Names(set)))
        }
        (Feasible::No, None) => format!("feasible: no, by {by}"),
        (Feasible::Unknown, _) if set.first_triggered().is_some() => String::from(
            "feasible: unknown: when triggered jobs arrive is known under single policies alone",
        ),
        (Feasible::Unknown, _) if set.lends_cpus() => String::from(
            "feasible: unknown: jobs may use CPUs of others while they hold mutexes, and what that takes is not known",
        ),
        (Feasible::Unknown, _) if set.first_locking().is_some() => String::from(
            "feasible: unknown: the utilizations fit, and how long mutexes block is known under single policies alone",
        ),
        (Feasible::Unknown, _) if set.tasks.iter().any(|task| task.curve().is_some()) => {
            String::from(
                "feasible: unknown: the utilizations fit in the long run, and bursts may need more than there is",
            )
        }
        (Feasible::Unknown, _) if waits(set) => String::from(
            "feasible: unknown: the utilizations fit, and whether jobs can wait as well, for late releases or suspended, is not known",
        ),
        (Feasible::Unknown, _) => format!(
            "feasible: unknown: the utilizations fit, and by their deadlines ({by}) the tasks do not"
        ),
    }
}

/// Room for the names of tests, beside what they found.
const TESTS_WIDTH: usize = 43;

/// A line for each policy that is not left out.
fn table(findings: &Findings) -> String {
    let mut rows = vec![vec![
        "policy".to_owned(),
        "all deadlines met".to_owned(),
        "tardiness bounded".to_owned(),
    ]];
    for found in &findings.analysis.policies {
        if is_left_out(found) {
            continue;
        }
        rows.push(vec![
            found.policy.clone(),
            verdict(&found.hard),
            verdict(&found.soft),
        ]);
    }
    columns(&rows)
}

/// Whether the policy does not take the affinities, and no verdict of it is a yes all the same.
fn is_left_out(found: &PolicyAnalysis) -> bool {
    let is_shown = |judgement: &Judgement| judgement.answer == Answer::Schedulable;
    found.refusal.is_some() && !is_shown(&found.hard) && !is_shown(&found.soft)
}

/// `yes, by gfb`.
fn verdict(judgement: &Judgement) -> String {
    let by = judgement.by.join(" and ");
    match judgement.answer {
        Answer::Schedulable => format!("yes, by {by}"),
        Answer::Unschedulable => format!("no, by {by}"),
        Answer::Unknown => "unknown".to_owned(),
    }
}

/// A line for each chain and policy that is asked about; if none is named, for each policy under which anything is known.
fn chains(set: &TaskSet, findings: &Findings) -> String {
    let has_latencies = set.chains.iter().any(|chain| chain.is_triggered(set));
    let titles = [
        "chain", "policy", "at most", "reaction", "age", "latency", "wanted",
    ];
    let shown = if has_latencies { 7 } else { 5 };
    let mut rows = vec![titles.map(str::to_owned)[..shown].to_vec()];
    for (place, chain) in set.chains.iter().enumerate() {
        for found in &findings.analysis.policies {
            let Some(&known) = findings.chains(set, found).get(place) else {
                continue;
            };
            let is_asked = findings.chosen.contains(&found.policy);
            let is_known = known.bound.is_some() || known.latency.is_some();
            if !is_asked && (!is_known || !findings.chosen.is_empty()) {
                continue;
            }
            let verdict = |wanted: Option<Span>| match wanted {
                Some(wanted) => format!("{wanted} {}", known.verdict(wanted)),
                None => "-".to_owned(),
            };
            let bound = |bound: Option<Span>| bound.map_or_else(|| "unknown".to_owned(), at_most);
            let latency = match (chain.latency, chain.is_triggered(set)) {
                (_, false) => ["-".to_owned(), "-".to_owned()],
                (None, true) => [bound(known.latency), "-".to_owned()],
                (Some(wanted), true) => {
                    let verdict = known.latency_verdict(wanted);
                    [bound(known.latency), format!("{wanted} {verdict}")]
                }
            };
            let mut row = vec![
                chain.name.clone(),
                found.policy.clone(),
                bound(known.bound),
                verdict(chain.reaction),
                verdict(chain.age),
            ];
            row.extend(latency.into_iter().filter(|_| has_latencies));
            rows.push(row);
        }
    }
    match rows.len() {
        1 => "no policy is known to bound the chains\n".to_owned(),
        _ => columns(&rows),
    }
}

/// Which policies are not in the table, and what proves that others miss deadlines.
fn remarks(set: &TaskSet, findings: &Findings) -> Vec<String> {
    let policies = &findings.analysis.policies;
    let left_out = policies.iter().filter(|it| is_left_out(it));
    let left_out: Vec<&str> = left_out.map(|it| &*it.policy).collect();
    let mut lines = match left_out.is_empty() {
        true => Vec::new(),
        false => {
            let text = format!("not for these affinities: {}", left_out.join(", "));
            wrapped(text.split(' '), WIDTH)
        }
    };
    // What no policy can do was said above.
    let known = findings.analysis.feasibility.witness.as_ref();
    let mut proven: Vec<(String, &str)> = Vec::new();
    for found in policies {
        let proof = found.hard.witness.as_ref().or(found.soft.witness.as_ref());
        let Some(proof) = proof.filter(|proof| Some(*proof) != known) else {
            continue;
        };
        proven.push((witness(proof, Names(set)), &found.policy));
    }
    let examples = findings.examples.iter();
    proven.extend(examples.map(|(policy, example)| (example.to_string(), policy.as_str())));
    lines.extend(by_reason(proven));
    lines
}

/// A line for each reason, in the order in which they come first, with all policies of which it is true.
fn by_reason(proven: Vec<(String, &str)>) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (reason, policy) in proven {
        match reasons.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, policies)) => policies.push(policy),
            None => reasons.push((reason, vec![policy])),
        }
    }
    let line =
        |(reason, policies): (String, Vec<&str>)| format!("{}: {reason}", policies.join(", "));
    reasons.into_iter().map(line).collect()
}

/// What every test says of one policy, and of every task the best that is known.
fn tests(set: &TaskSet, found: &PolicyAnalysis, console: &mut Console) -> Result<(), Failure> {
    if let Some(refusal) = &found.refusal {
        return console.line(refusal);
    }
    let listed = listed(found);
    if listed.is_empty() {
        let why = why_nothing_is_guaranteed(&found.traits);
        return console.line(format!("no test speaks of {}: {why}", found.policy));
    }
    console.line(format!("tests for {}:", found.policy))?;
    console.text(&columns(&listed))?;
    if found.best.iter().all(Option::is_none) {
        return Ok(());
    }
    let bounds: Vec<Option<Bound>> = found
        .best
        .iter()
        .map(|best| {
            best.map(|best| Bound {
                response: best.response,
                by: best.by,
            })
        })
        .collect();
    console.line("")?;
    console.text(&shiftwork_report::bounds(set, &bounds, console.look()))
}

/// The tests of both criteria, by what they found.
fn listed(found: &PolicyAnalysis) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (criterion, meaning) in [
        (Criterion::Hard, "  all deadlines met"),
        (Criterion::Soft, "  tardiness bounded"),
    ] {
        let tests = &found.judgement(criterion).tests;
        let mut meaning = meaning;
        for one in [
            Found::Pass,
            Found::Fail,
            Found::StepLimit,
            Found::NotApplicable,
        ] {
            let names = tests.iter().filter(|(_, found)| *found == one);
            let mut found = in_words(one);
            for names in wrapped(names.map(|(name, _)| *name), TESTS_WIDTH) {
                rows.push(vec![meaning.to_owned(), found.to_owned(), names]);
                (meaning, found) = ("", "");
            }
        }
    }
    rows
}

const fn in_words(found: Found) -> &'static str {
    match found {
        Found::Pass => "pass",
        Found::Fail => "fail",
        Found::NotApplicable => "not applicable",
        Found::StepLimit => "gave up (--max-steps)",
    }
}

/// `priced`: whether the verdicts count overheads, which these factors never do.
fn scaled(scales: &[Scale], priced: bool) -> String {
    let growth = match priced {
        true => "without overheads costs times at most",
        false => "costs times at most",
    };
    let mut rows = vec![vec![
        "policy".to_owned(),
        growth.to_owned(),
        "and still".to_owned(),
    ]];
    for scale in scales.iter().filter(|scale| !scale.is_refused) {
        let factor = match scale.factor {
            Some(factor) => format!("{} ({factor})", factor.to_decimal()),
            None => "-".to_owned(),
        };
        rows.push(vec![
            scale.policy.clone(),
            factor,
            conclusion::meaning(scale.criterion).to_owned(),
        ]);
    }
    columns(&rows)
}

/// The proposal as a piece of a task-set file.
fn proposed(set: &TaskSet, proposal: &Proposal) -> String {
    let policy = &proposal.policy;
    let reserve = conclusion::beside_reserve(set);
    let Some(assignment) = &proposal.assignment else {
        return format!(
            "no affinities were found that {policy} could promise anything for{reserve}\n"
        );
    };
    let promise = match assignment.guarantee {
        Guarantee::Hard => "all deadlines are met",
        Guarantee::BoundedTardiness => "tardiness is bounded",
        Guarantee::Share => "every task gets its utilization",
        Guarantee::None => "nothing is promised",
    };
    let mut text = format!("# With these affinities {promise} under {policy}{reserve}");
    if proposal.is_wider {
        text.push_str("; some are wider than the file's, within which none were found");
    }
    text.push_str(".\n");
    for (task, cpus) in set.tasks.iter().zip(&assignment.cpus) {
        text.push_str(&format!(
            "[[task]]\nname = {}\naffinity = \"{cpus}\"\n",
            serde_json::Value::from(task.name.as_str())
        ));
    }
    text
}

/// What the affinities of the file take, and the change of one that wins most of it back.
fn lost(set: &TaskSet, loss: &AffinityLoss) -> Vec<String> {
    let times = |factor: &_| {
        let factor = Factor::of(factor);
        format!("times {} ({factor})", factor.to_decimal())
    };
    let names = Names(set);
    let with = format!(
        "under any policy, costs {} fit beside the reserve with the affinities of the file",
        times(&loss.factor)
    );
    let Some(bottleneck) = &loss.bottleneck else {
        return vec![format!("{with}, and without no more")];
    };
    let need = match bottleneck.tasks.len() {
        1 => "needs",
        _ => "need",
    };
    let of = match bottleneck.cpus.len() {
        1 => "CPU",
        _ => "CPUs",
    };
    let mut lines = vec![format!(
        "{with}, and without {}: {} then {need} all of {of} {}",
        times(&loss.without),
        names.list(&bottleneck.tasks),
        bottleneck.cpus
    )];
    lines.extend(loss.changes.iter().map(|change| {
        let tasks = names.list(&change.tasks);
        let factor = times(&change.factor);
        format!(
            "with CPU {} for {tasks} as well: {factor}",
            change.cpu.index()
        )
    }));
    if loss.changes.is_empty() {
        lines.push("no change of one affinity was found that makes it more".to_owned());
    }
    lines
}
