//! What verdicts rest on beside the tasks: the unit of time, and overheads.

use shiftwork_analysis::overheads::{Inflated, Obstacle};
use shiftwork_analysis::verdicts::{Account, Criterion, Table};
use shiftwork_model::{Span, TaskSet};
use shiftwork_taskset::overheads::Use;
use shiftwork_verbs::analyze::Findings;

/// A line about the unit of time; none where that is a nanosecond.
pub fn unit(set: &TaskSet) -> Option<String> {
    let unit = set.platform.tick_unit;
    (unit > Span::from_ns(1)).then(|| {
        format!("in whole units of {unit} (`tick-unit`), for schedulers that decide only at these")
    })
}

/// Lines about the overheads in the table of policies; none without an overhead file.
pub fn overheads(set: &TaskSet, findings: &Findings) -> Vec<String> {
    let Some((path, file)) = &findings.overheads else {
        return Vec::new();
    };
    let mut lines = vec![format!(
        "with the overheads of {path}: the worst for deadlines, the average for tardiness"
    )];
    let has = |purpose: Use, policy: &str| file.find(purpose, policy).is_some();
    let mut add = |words: &str, applies: &dyn Fn(&str, &Account) -> bool| {
        let names = findings
            .accounted()
            .filter(|(found, account)| found.refusal.is_none() && applies(&found.policy, account))
            .map(|(found, _)| found.policy.as_str());
        let names: Vec<&str> = names.collect();
        if !names.is_empty() {
            lines.push(format!("{words}: {}", names.join(" ")));
        }
    };
    add(
        "without overheads, of which the file has none for them",
        &|policy, _| !has(Use::Worst, policy) && !has(Use::Average, policy),
    );
    add(
        "without overheads, since jobs may be moved aside, which no accounting covers",
        &|policy, account| {
            let tables = has(Use::Worst, policy) || has(Use::Average, policy);
            tables && account.hard.is_none() && account.soft.is_none()
        },
    );
    add(
        "deadlines without overheads, since the file has no worst ones",
        &|_, account| account.hard.is_none() && account.soft.is_some(),
    );
    add(
        "tardiness with the worst overheads, since the file has no average",
        &|_, account| {
            let table = account.soft.as_ref().map(|charged| charged.table);
            table == Some(Table::Worst)
        },
    );
    lines.extend(obstacles(set, findings));
    lines
}

/// The first task of each policy that does not fit with the worst overheads, where nothing can stand for it.
fn obstacles(set: &TaskSet, findings: &Findings) -> Vec<String> {
    let line = |(policy, account): (&str, &Account)| {
        let charged = account.of(Criterion::Hard)?;
        let (place, obstacle) = first_obstacle(&charged.inflated)?;
        let name = &set.tasks[place].name;
        Some(format!("{policy}: task `{name}`: {}", obstacle.words()))
    };
    let accounts = findings.accounted();
    let named = accounts.map(|(found, account)| (found.policy.as_str(), account));
    named.filter_map(line).collect()
}

fn first_obstacle(inflated: &[Inflated]) -> Option<(usize, Obstacle)> {
    let of = |(place, one): (usize, &Inflated)| Some((place, one.obstacle?));
    inflated.iter().enumerate().find_map(of)
}
